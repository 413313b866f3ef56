"""The ways from one file of a project to another by what they import. Bounded."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import asks_name
from devlint.facts.text.signs import runs_something

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites

HOPS = 4  # imports from a script to the checked file
READ = 80  # files whose imports are read to find the way


def leads_to(sites: CallSites, start: str, *goals: str) -> bool:
    """Whether a file imports one of others, or something that does, at its module level or in a function."""
    seen = {start}
    edge = [start]
    for _ in range(HOPS):
        following: list[str] = []
        for path in edge:
            for found in sorted(imported_files(sites, path, late=True)):
                if found in goals:
                    return True
                if found not in seen and len(seen) < READ:
                    seen.add(found)
                    following.append(found)
        edge = following
    return False


def scripts_over(sites: CallSites, goal: str) -> Iterator[str]:
    """The programs that lead to a file, itself included: they ask whether they are run, or nothing imports them and they run
    something."""
    seen, edge = {goal}, [goal]
    for _ in range(HOPS + 1):
        following: list[str] = []
        for path in edge:
            importing = [each for each in sites.files.importing(path) if path in imported_files(sites, each, late=True)]
            looked = sites.files.look(path)
            body = looked.loaded.tree.body if looked is not None else []
            if any(map(asks_name, body)) or (not importing and path != goal and runs_something(body)):
                yield path
            following += [each for each in importing if each not in seen]
            seen.update(importing)
        edge = following if len(seen) < READ else []


def imported_files(sites: CallSites, path: str, late: bool = False) -> Iterator[str]:
    """The files that a file imports at its module level. `late`: those that its functions import as well."""
    offered = sites.files.reach.exports(path)
    inside = offered.late if offered is not None and late else ()
    for qualname in (*offered.imports.values(), *offered.stars, *inside) if offered is not None else ():
        found = sites.files.reach.file_of(path, qualname)
        if found is not None:
            yield found
