"""Shadow tests: the calls of a suite are repeated on copies that were moved to the simulated card; see ``shadow``."""
