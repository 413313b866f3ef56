"""The inference of one checked file, from its tree to the events of its mismatches and of its expressions."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple

from devlint.file_state import FileState
from devlint.inference.events import DeviceMismatch, event_of
from devlint.inference.observed.collect import Observer
from devlint.inference.observed.emit import events
from devlint.inference.observed.events import Inferred
from devlint.inference.observed.handed import run_again
from devlint.inference.program.definitions import File
from devlint.inference.program.project import Project
from devlint.inference.summary.analyser import Analyser
from devlint.inference.summary.frame import Frame
from devlint.inference.witness.roots import mismatches
from devlint.source import Source

#: Words for the CPU and for no device at all among the targets.
_NO_ACCELERATORS = frozenset({"cpu", "meta"})
#: The rules that report mismatches.
MISMATCHES = frozenset({"DEV101", "DEV102", "DEV103", "DEV104", "DEV109"})
#: The rules that the inference answers in place of the analysis in `devlint/facts`.
CODES = MISMATCHES | {"DEV301"}
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
    found = infer(tree, source, load, targets)
    return found.mismatches, found.read


class Result(NamedTuple):
    """What is inferred of one file. `observed`: empty unless it was asked for. `read`: the states of the other files."""

    mismatches: list[DeviceMismatch]
    observed: list[Inferred]
    read: dict[str, FileState]


def infer(
    tree: ast.Module,
    source: Source,
    load: Load | None,
    targets: tuple[str, ...] = (),
    observes: Collection[type[Inferred]] = (),
) -> Result:
    """The mismatches of a file, and the events of the types that it `observes`; `Inferred` stands for all of them."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        project = Project(load)
        path = os.path.abspath(source.path)
        file = project.add(path, tree)
        analyser = Analyser(project)
        observer = Observer(path) if observes else None
        analyser.watch = observer
        found = [event_of(each, source, path) for each in mismatches(analyser, file, declares_accelerator(targets))]
        observed: list[Inferred] = []
        if observer is not None:
            run_again(analyser, observer, file)
            for (_, _, shape), summary in analyser.summaries.items():
                if shape and summary is not None and summary.frame is not None:
                    observer.shaped[summary.frame] = frozenset(name for name, _ in shape)
            observed = events(observer, file, source, (*_runs(analyser, file), *observer.handed), tuple(observes))
    finally:
        sys.setrecursionlimit(limit)
    strongest: dict[tuple[str, int, int], DeviceMismatch] = {}
    for each in sorted(found, key=lambda event: (event.severity.rank, event.span)):
        strongest.setdefault((each.code, *each.span), each)
    return Result(sorted(strongest.values(), key=lambda event: event.span), observed, project.read)


def _runs(analyser: Analyser, file: File) -> Iterator[Frame]:
    """The runs of a file's functions and of its module level that are summaries at the end."""
    yield analyser.module_level(file)
    for summary in analyser.summaries.values():
        if summary is not None and summary.frame is not None and summary.frame.file is file:
            yield summary.frame
