"""Device facts: analyses over the stdlib `ast` that report nothing by themselves. Rules see them as `Facts` and events."""

from devlint.facts.result import Facts

__all__ = ["Facts"]
