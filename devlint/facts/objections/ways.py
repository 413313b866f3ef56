"""The ways from one file of a project to another by what they import. Bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites

HOPS = 4  # imports from a script to the checked file
READ = 80  # files whose imports are read to find the way


def leads_to(sites: CallSites, start: str, goal: str) -> bool:
    """Whether a file imports another one, or something that does."""
    seen = {start}
    edge = [start]
    for _ in range(HOPS):
        following: list[str] = []
        for path in edge:
            for found in sorted(imported_files(sites, path)):
                if found == goal:
                    return True
                if found not in seen and len(seen) < READ:
                    seen.add(found)
                    following.append(found)
        edge = following
    return False


def imported_files(sites: CallSites, path: str) -> Iterator[str]:
    offered = sites.files.reach.exports(path)
    for qualname in (*offered.imports.values(), *offered.stars) if offered is not None else ():
        found = sites.files.reach.file_of(path, qualname)
        if found is not None:
            yield found
