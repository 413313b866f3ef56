"""Reversible patches that make torch's Python surface agree with the simulated device; see ``table``."""
