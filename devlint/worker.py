"""Checks, and fixes when asked, one file: what runs once per file in this process or in a worker process."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from devlint.embedded import EMBEDDING
from devlint.errors import SourceError, UsageError
from devlint.file_state import FileState
from devlint.model import Diagnostic, FileResult, Safety, Statistics
from devlint.report import FileReport
from devlint.settings import Settings

if TYPE_CHECKING:
    from devlint.engine import Linter
    from devlint.fix.rounds import Checker, FixOutcome, Rejected
    from devlint.identity import Key
    from devlint.scope import Hidden, Rows, Scope
    from devlint.source import Source


@dataclass(frozen=True, slots=True)
class Task:
    """One file to check. `raw` stands for the content of `path` when it is standard input.

    `scope`: the findings that fixes leave alone and that are left out. `add_ignore`: instead of fixing, write a comment
    with this reason for each finding.
    """

    path: str
    name: str
    settings: Settings
    plugins: tuple[str, ...] = ()
    applied: frozenset[Safety] = frozenset({Safety.SAFE})
    fix: bool = False
    write: bool = False
    keep_text: bool = False
    raw: bytes | None = None
    remember: bool = False  # the outcome is kept in a cache
    scope: Scope | None = None
    ignore_suppressions: bool = False
    add_ignore: str | None = None
    explains: bool = False  # say where rules are silent on purpose
    left: str | None = None  # the tree that a link leaves to get to the file, which stays as it is

    @property
    def depends_on_content_alone(self) -> bool:
        """Whether the findings are those of the file under its settings, which is what a cache can keep."""
        return not (self.scope is not None or self.ignore_suppressions or self.add_ignore is not None or self.explains)


@dataclass(slots=True)
class Outcome:
    """What became of a file. `before` and `after` are its bytes when fixes changed them; `errors` mean exit code 2.

    `seen`: the file whose content the report follows from, as it was when it was read. `cells`: name, source before and
    after of each cell that changed. `hidden`: the findings that the scope of the task left out; None without one.
    """

    report: FileReport
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    before: bytes = b""
    after: bytes | None = None
    seen: FileState | None = None
    cells: list[tuple[str, bytes, bytes]] = field(default_factory=list)
    hidden: set[Key] | None = None


def run_tasks(tasks: Sequence[Task]) -> list[Outcome]:
    """The outcome of each task, in order."""
    return list(run_each(tasks))


def run_each(tasks: Sequence[Task]) -> Iterator[Outcome]:
    """The outcome of each task, in order.

    Between the files the garbage collector looks only at what the last one left, and not again at what is kept: the
    parsed files of a project, which hold no cycles. Full collections would pass over all of them time and again.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        for task in tasks:
            yield run_task(task)
            gc.collect(0)
            gc.freeze()
    finally:
        gc.unfreeze()
        if was_on:
            gc.enable()


def run_task(task: Task) -> Outcome:
    """Check one file. Never raises for what is in the file or in a rule: an internal error is among the `errors`."""
    try:
        return _run(task)
    except SourceError as error:
        if not task.settings.reports_unreadable:
            return Outcome(FileReport(FileResult(task.name, statistics=Statistics(files=1))))
        return Outcome(FileReport(_unreadable(task.name, error)))
    except Exception as error:
        import traceback

        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
        message = f"{task.name}:1: internal error: {type(error).__name__}: {error}{place}"
        return Outcome(FileReport(FileResult(task.name, statistics=Statistics(files=1))), errors=[message])


def _run(task: Task) -> Outcome:
    from devlint.source import decode, read_source

    seen = FileState.of(task.path) if task.remember and task.depends_on_content_alone else None
    if task.name.endswith(EMBEDDING):
        from devlint.embedded.run import read, run

        raw = task.raw if task.raw is not None else read(task.path)
        return _seen(run(task, checker_of(task), raw), seen, raw)
    source = decode(task.raw, task.name) if task.raw is not None else read_source(Path(task.path), task.name)
    done, hidden = work(task, checker_of(task), source)
    outcome = Outcome(
        _report(task, done.result, done.text, tuple(done.fixed)),
        errors=list(done.result.crashes),
        warnings=[withdrawn(task, each.diagnostic, each.reason) for each in done.rejected],
        hidden=hidden,
    )
    if done.text != source.text:
        outcome.before, outcome.after = source.raw, source.encode(done.text)
        write(task, outcome)
    return _seen(outcome, seen, source.raw)


def _seen(outcome: Outcome, seen: FileState | None, raw: bytes) -> Outcome:
    """An outcome with the state of the file that it follows from, whose content was `raw`."""
    if seen is not None:
        outcome.seen = seen._replace(size=len(raw)).with_content(raw)
    return outcome


@dataclass(slots=True)
class Done:
    """What is left of a source after a task: as `FixOutcome`, which a run that only checks does not import."""

    text: str
    result: FileResult
    fixed: Sequence[Diagnostic] = ()
    rejected: Sequence[Rejected] = ()

    @classmethod
    def of(cls, outcome: FixOutcome) -> Done:
        return cls(outcome.text, outcome.result, outcome.fixed, outcome.rejected)


def work(
    task: Task, checker: Checker, source: Source, rows_of: Callable[[Diagnostic], Rows] | None = None
) -> tuple[Done, set[Key] | None]:
    """Check one source, and fix it when that is the task; what is left, and what the scope of the task left out.

    `rows_of`: where in the file a finding of this source stands.
    """
    hidden: Hidden | None = None
    if task.scope is not None:
        from devlint.checkers import Scoped
        from devlint.scope import Hidden

        found = checker.check(source).diagnostics
        hidden = Hidden.of(found, task.scope.hidden(found, rows_of))
        checker = Scoped(checker, hidden)
    if task.add_ignore is not None:
        from devlint.add_ignore import add_ignores

        done = Done.of(add_ignores(checker, source, task.add_ignore, hidden))
    elif task.fix:
        from devlint.fix.rounds import fix_source

        done = Done.of(fix_source(checker, source, task.applied))
    else:
        done = Done(source.text, checker.check(source))
    if hidden is None:
        return done, None
    from devlint.scope import without

    done.result.diagnostics = without(done.result.diagnostics, hidden.among(done.result.diagnostics))
    return done, set(hidden.keys)


def write(task: Task, outcome: Outcome) -> None:
    """Write what changed when that is the task; when it cannot be written the findings are those of the old content."""
    if not task.write or outcome.after is None:
        return
    from devlint.fix.write import write_file

    try:
        write_file(Path(task.name), outcome.after, outcome.before)
    except UsageError as error:
        unfixed = run_task(replace(task, fix=False, write=False, add_ignore=None, raw=outcome.before))
        outcome.report, outcome.after, outcome.cells = unfixed.report, None, []
        outcome.errors = [str(error), *unfixed.errors]
        outcome.warnings = []


def withdrawn(task: Task, diagnostic: Diagnostic, reason: str) -> str:
    """The warning about a fix that was not applied, or a comment that was not written."""
    at, cell = diagnostic.start, "" if diagnostic.cell is None else f"cell {diagnostic.cell}:"
    what = f"the fix for {diagnostic.code} was not applied" if task.add_ignore is None else "not silenced"
    return f"{diagnostic.path}:{cell}{at.row}:{at.column}: {what}: {reason}"


def _report(task: Task, result: FileResult, text: str, fixed: tuple[Diagnostic, ...] = ()) -> FileReport:
    kept = text if task.keep_text and result.diagnostics else None
    return FileReport(result, kept, fixed, task.applied)


def checker_of(task: Task) -> Checker:
    """What checks a file under a task's settings."""
    linter = _linter(task.settings, task.plugins, task.explains)
    if not task.ignore_suppressions:
        return linter
    from devlint.checkers import Unsuppressed

    return Unsuppressed(linter)


@cache
def _linter(settings: Settings, plugins: tuple[str, ...], explains: bool) -> Linter:
    from devlint.engine import Linter
    from devlint.rulebook import rules_of

    return Linter(rules_of(plugins), settings, explains=explains)


def _unreadable(name: str, error: SourceError) -> FileResult:
    """The result of a file that cannot be read or decoded: the one finding that says so."""
    from devlint.engine import unreadable

    return FileResult(name, [unreadable(name, error)], statistics=Statistics(files=1))
