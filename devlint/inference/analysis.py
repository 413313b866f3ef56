"""The inference of one checked file, from its tree to the events of its mismatches."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable

from devlint.file_state import FileState
from devlint.inference.events import DeviceMismatch, event_of
from devlint.inference.program.project import Project
from devlint.inference.summary.analyser import Analyser
from devlint.inference.witness.roots import mismatches
from devlint.source import Source

#: Words for the CPU and for no device at all among the targets.
_NO_ACCELERATORS = frozenset({"cpu", "meta"})
#: The rules that the inference answers.
CODES = frozenset({"DEV101", "DEV102", "DEV103", "DEV104", "DEV109"})
_RECURSION = 6_000

Load = Callable[[str], tuple[FileState, ast.Module | None]]


def declares_accelerator(targets: tuple[str, ...]) -> bool:
    """Whether the settings say that the project must run on an accelerator."""
    return bool(set(targets) - _NO_ACCELERATORS)


def device_mismatches(
    tree: ast.Module, source: Source, load: Load | None, targets: tuple[str, ...] = ()
) -> tuple[list[DeviceMismatch], dict[str, FileState]]:
    """The mismatches of a file in the order of the file, and the states of the other files that they follow from.

    `load` gives the tree of another file of the project; None: the file is read alone. `targets`: what the settings say that
    the project must run on.
    """
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        project = Project(load)
        path = os.path.abspath(source.path)
        file = project.add(path, tree)
        found = [
            event_of(each, source, path) for each in mismatches(Analyser(project), file, declares_accelerator(targets))
        ]
    finally:
        sys.setrecursionlimit(limit)
    strongest: dict[tuple[str, int, int], DeviceMismatch] = {}
    for each in sorted(found, key=lambda event: (event.severity.rank, event.span)):
        strongest.setdefault((each.code, *each.span), each)
    return sorted(strongest.values(), key=lambda event: event.span), project.read
