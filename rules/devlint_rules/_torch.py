"""Which torch the file can run on, for what a fix writes."""

from __future__ import annotations

from devlint.api import Facts, torch_range


def has_torch(since: tuple[int, int], facts: Facts) -> bool:
    """Whether a name that came with a version is there: by the lowest torch of the project, and by the newest of the file."""
    return facts.torch_version >= since and may_have(since, facts)


def may_have(since: tuple[int, int], facts: Facts) -> bool:
    """Whether the newest torch that the file can run on has what came with a version."""
    return torch_range(facts.text, facts.torch_newest).has(since)
