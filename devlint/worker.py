"""Checks, and fixes when asked, one file: what runs once per file in this process or in a worker process."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from devlint.errors import SourceError, UsageError
from devlint.model import Diagnostic, FileResult, Safety, Statistics
from devlint.report import FileReport
from devlint.settings import Settings

if TYPE_CHECKING:
    from devlint.engine import Linter
    from devlint.source import Source


@dataclass(frozen=True, slots=True)
class Task:
    """One file to check. `raw` stands for the content of `path` when it is standard input."""

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


@dataclass(frozen=True, slots=True)
class Seen:
    """The state of a file when it was read at the time `when` (nanoseconds): what a cache compares."""

    size: int
    mtime: int
    inode: int
    when: int
    content: bytes = b""

    @classmethod
    def of(cls, path: str) -> Seen | None:
        """The state now, without the content's digest; to be asked before the file is read."""
        when = time.time_ns()
        try:
            state = os.stat(path)
        except OSError:
            return None
        return cls(state.st_size, state.st_mtime_ns, state.st_ino, when)


@dataclass(slots=True)
class Outcome:
    """What became of a file. `before` and `after` are its bytes when fixes changed them; `errors` mean exit code 2.

    `seen`: the file whose content the report follows from, as it was when it was read.
    """

    report: FileReport
    errors: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    before: bytes = b""
    after: bytes | None = None
    seen: Seen | None = None


def run_tasks(tasks: Sequence[Task]) -> list[Outcome]:
    """The outcome of each task, in order."""
    return [run_task(task) for task in tasks]


def run_task(task: Task) -> Outcome:
    """Check one file. Never raises for what is in the file or in a rule: an internal error is among the `errors`."""
    try:
        return _run(task)
    except SourceError as error:
        return Outcome(FileReport(_unreadable(task.name, error)))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        place = f" ({os.path.basename(frames[-1].filename)}:{frames[-1].lineno})" if frames else ""
        message = f"{task.name}:1: internal error: {type(error).__name__}: {error}{place}"
        return Outcome(FileReport(FileResult(task.name, statistics=Statistics(files=1))), errors=[message])


def _run(task: Task) -> Outcome:
    from devlint.source import decode, read_source

    seen = Seen.of(task.path) if task.remember else None
    source = decode(task.raw, task.name) if task.raw is not None else read_source(Path(task.path), task.name)
    linter = _linter(task.settings, task.plugins)
    if task.fix:
        outcome = _fix(task, linter, source)
    else:
        result = linter.check(source)
        outcome = Outcome(_report(task, result, source.text), errors=list(result.crashes))
    if seen is not None:
        from devlint.fingerprint import content_digest

        outcome.seen = replace(seen, size=len(source.raw), content=content_digest(source.raw))
    return outcome


def _fix(task: Task, linter: Linter, source: Source) -> Outcome:
    from devlint.fix.rounds import fix_source
    from devlint.fix.write import write_file

    fixed = fix_source(linter, source, task.applied)
    outcome = Outcome(
        _report(task, fixed.result, fixed.text, tuple(fixed.fixed)),
        errors=list(fixed.result.crashes),
        warnings=[_withdrawn(each.diagnostic, each.reason) for each in fixed.rejected],
    )
    if fixed.text != source.text:
        outcome.before, outcome.after = source.raw, source.encode(fixed.text)
        if task.write:
            try:
                write_file(Path(task.name), outcome.after, source.raw)
            except UsageError as error:
                unfixed = linter.check(source)
                return Outcome(_report(task, unfixed, source.text), errors=[str(error), *unfixed.crashes])
    return outcome


def _withdrawn(diagnostic: Diagnostic, reason: str) -> str:
    at = diagnostic.start
    return f"{diagnostic.path}:{at.row}:{at.column}: the fix for {diagnostic.code} was not applied: {reason}"


def _report(task: Task, result: FileResult, text: str, fixed: tuple[Diagnostic, ...] = ()) -> FileReport:
    kept = text if task.keep_text and result.diagnostics else None
    return FileReport(result, kept, fixed, task.applied)


@cache
def _linter(settings: Settings, plugins: tuple[str, ...]) -> Linter:
    from devlint.engine import Linter
    from devlint.rulebook import rules_of

    return Linter(rules_of(plugins), settings)


def _unreadable(name: str, error: SourceError) -> FileResult:
    """The result of a file that cannot be read or decoded: the one finding that says so."""
    from devlint.engine import unreadable

    return FileResult(name, [unreadable(name, error)], statistics=Statistics(files=1))
