"""The inference of one checked file, from its tree to the events of its mismatches and of its expressions."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from devlint.file_state import FileState
from devlint.inference.events import DeviceMismatch, Texts, event_of
from devlint.inference.observed.collect import Observer
from devlint.inference.observed.emit import events
from devlint.inference.observed.events import Inferred, InferredReading
from devlint.inference.observed.handed import run_again
from devlint.inference.observed.standing import Standing
from devlint.inference.program.definitions import File
from devlint.inference.program.neighbours import Neighbours
from devlint.inference.program.project import Changed, Project
from devlint.inference.summary.analyser import Analyser
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.shared import Shared
from devlint.inference.witness.model import Mismatch
from devlint.inference.witness.roots import mismatches, read_callers
from devlint.source import Source

#: Words for the CPU and for no device at all among the targets.
_NO_ACCELERATORS = frozenset({"cpu", "meta"})
#: The rules that report mismatches.
MISMATCHES = frozenset({"DEV101", "DEV102", "DEV103", "DEV104", "DEV109"})
#: The rules that the inference answers in place of the analysis in `devlint/facts`.
CODES = MISMATCHES | {"DEV301"}
_RECURSION = 6_000
#: How often a check begins again because files change while it runs.
TRIES = 2
#: Files that a session keeps.
KEPT = 1_000

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
    found = infer(tree, source, load, targets, around)
    return found.mismatches, found.read


class Result(NamedTuple):
    """What is inferred of one file. `observed`: empty unless it was asked for. `read`: the states of the other files."""

    mismatches: list[DeviceMismatch]
    observed: list[Inferred]
    read: dict[str, FileState]


class Session:
    """The checks of one process, one after the other: what is read of a file that one of them imports serves the others.

    It keeps at most `KEPT` files, and forgets everything once a file is another one than was read.
    """

    def __init__(self, load: Load | None, keeps: bool = True) -> None:
        """`keeps`: there is more than one check."""
        self._shared = Shared() if keeps else None
        self._project = Project(load)
        self._analyser = Analyser(self._project, None, self._shared)
        self._clocks: bool | None = None

    def begin(self, path: str, tree: ast.Module, observer: Observer | None) -> Analyser:
        """What a new check of a file begins with."""
        clocks = observer.reads_clocks if observer is not None else None
        project = self._project
        is_other = project.is_other(path, tree, observer is not None)
        if is_other or clocks is not self._clocks or project.size > KEPT or project.has_other_modules():
            self._clocks = clocks
            self.forget()
        self._analyser.begin(observer, path if observer is not None else "")
        return self._analyser

    def tree_of(self, source: Source) -> ast.Module | None:
        """The tree that is kept of an imported file, where it is the same text."""
        return self._project.tree_of(os.path.abspath(source.path), source.raw)

    def forget(self) -> None:
        """Read every file again."""
        if self._shared is not None:
            self._shared.forget()
        self._project.forget()


def infer(
    tree: ast.Module,
    source: Source,
    load: Load | None,
    targets: tuple[str, ...] = (),
    around: Neighbours | None = None,
    observes: Collection[type[Inferred]] = (),
    callers: bool = False,
    session: Session | None = None,
) -> Result:
    """The mismatches of a file, and the events of the types that it `observes`; `Inferred` stands for all of them.

    `callers`: the events also say what calls in other files hand over. `session`: the checks of which this is one.
    """
    asked = _Asked(tree, source, targets, around, tuple(observes), callers)
    if session is not None:
        for _ in range(TRIES):
            try:
                return asked.answer(session)
            except Changed:
                session.forget()
    return asked.answer(Session(load, keeps=False))


class _Asked(NamedTuple):
    """What is asked of one file: see `infer`."""

    tree: ast.Module
    source: Source
    targets: tuple[str, ...]
    around: Neighbours | None
    observes: tuple[type[Inferred], ...]
    callers: bool

    def answer(self, session: Session) -> Result:
        """What is inferred. Raises Changed where a file is not what an earlier check read."""
        path = os.path.abspath(self.source.path)
        reads_clocks = any(issubclass(InferredReading, kind) for kind in self.observes)
        observer = Observer(path, reads_clocks) if self.observes else None
        analyser = session.begin(path, self.tree, observer)
        found = [event for event, _ in judged(analyser, self.tree, self.source, self.targets, self.around)]
        if observer is not None and self.callers and self.around is not None:
            _read_callers(analyser, observer, self.around)
        texts = Texts(path, self.source, self.around.source if self.around is not None else None)
        observed = _observed(analyser, observer, texts, self.observes) if observer is not None else []
        return Result(found, observed, analyser.project.read)


def _read_callers(analyser: Analyser, observer: Observer, around: Neighbours) -> None:
    file = analyser.project.files[observer.path]
    assert file is not None
    with _deep():
        read_callers(analyser, file, around)


@contextmanager
def _deep() -> Iterator[None]:
    """Functions call each other deeper than Python allows by itself."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _RECURSION))
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def _observed(
    analyser: Analyser, observer: Observer, texts: Texts, kinds: tuple[type[Inferred], ...]
) -> list[Inferred]:
    """The events of what was observed in a file that was judged."""
    file = analyser.project.files[observer.path]
    assert file is not None
    with _deep():
        run_again(analyser, observer, file)
        for (_, _, shape), summary in analyser.summaries.items():
            if shape and summary is not None and summary.frame is not None:
                observer.shaped[summary.frame] = frozenset(name for name, _ in shape)
        standing = Standing(analyser, observer, file)
        return events(standing, texts, (*_runs(analyser, file), *observer.runs), kinds)


def judged(
    analyser: Analyser, tree: ast.Module, source: Source, targets: tuple[str, ...], around: Neighbours | None = None
) -> list[tuple[DeviceMismatch, Mismatch]]:
    """The events of a file with the mismatches that they are of, in the order of the file."""
    with _deep():
        path = os.path.abspath(source.path)
        file = analyser.project.add(path, tree)
        found = mismatches(analyser, file, declares_accelerator(targets), around)
        texts = Texts(path, source, around.source if around is not None else None)
        found_events = [(event_of(each, texts), each) for each in found]
    strongest: dict[tuple[str, int, int], tuple[DeviceMismatch, Mismatch]] = {}
    for event, each in sorted(found_events, key=lambda pair: (pair[0].severity.rank, pair[0].span)):
        strongest.setdefault((event.code, *event.span), (event, each))
    return sorted(strongest.values(), key=lambda pair: pair[0].span)


def _runs(analyser: Analyser, file: File) -> Iterator[Frame]:
    """The runs of a file's functions and of its module level that are summaries at the end."""
    yield analyser.module_level(file)
    for summary in analyser.summaries.values():
        if summary is not None and summary.frame is not None and summary.frame.file is file:
            yield summary.frame
