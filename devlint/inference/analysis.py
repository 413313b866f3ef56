"""The inference of one checked file, from its tree to the events of its mismatches."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable

from devlint.file_state import FileState
from devlint.inference.events import DeviceMismatch, Texts, event_of
from devlint.inference.program.neighbours import Neighbours
from devlint.inference.program.project import Project
from devlint.inference.summary.analyser import Analyser
from devlint.inference.witness.model import Mismatch
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
    tree: ast.Module, source: Source, load: Load | None, targets: tuple[str, ...] = (), around: Neighbours | None = None
) -> tuple[list[DeviceMismatch], dict[str, FileState]]:
    """The mismatches of a file in the order of the file, and the states of the other files that they follow from.

    `load` gives the tree of another file of the project; None: the file is read alone. `targets`: what the settings say that
    the project must run on. `around`: where callers in other files are looked for; None: nowhere.
    """
    project = Project(load)
    found = judged(Analyser(project), tree, source, targets, around)
    return [event for event, _ in found], project.read


def judged(
    analyser: Analyser, tree: ast.Module, source: Source, targets: tuple[str, ...], around: Neighbours | None = None
) -> list[tuple[DeviceMismatch, Mismatch]]:
    """The events of a file with the mismatches that they are of, in the order of the file."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        path = os.path.abspath(source.path)
        file = analyser.project.add(path, tree)
        found = mismatches(analyser, file, declares_accelerator(targets), around)
        texts = Texts(path, source, around.source if around is not None else None)
        events = [(event_of(each, texts), each) for each in found]
    finally:
        sys.setrecursionlimit(limit)
    strongest: dict[tuple[str, int, int], tuple[DeviceMismatch, Mismatch]] = {}
    for event, each in sorted(events, key=lambda pair: (pair[0].severity.rank, pair[0].span)):
        strongest.setdefault((event.code, *event.span), (event, each))
    return sorted(strongest.values(), key=lambda pair: pair[0].span)
