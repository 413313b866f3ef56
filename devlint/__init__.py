"""devlint: a linter for PyTorch device bugs. The package itself imports nothing."""

__version__ = "0.2.0"
