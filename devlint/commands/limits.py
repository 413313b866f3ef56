"""What a run does not report: the findings of a baseline, and those that no changed row brings. Also writes baselines."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING

from devlint.commands.options import BASELINE
from devlint.config import Config
from devlint.embedded import NOTEBOOK
from devlint.errors import UsageError
from devlint.model import UNREADABLE_FILE, Diagnostic
from devlint.report import count
from devlint.worker import Outcome, Task

if TYPE_CHECKING:
    from devlint.baseline import Baseline
    from devlint.diff_base import Changes
    from devlint.scope import Rows, Scope


class Limits:
    """The limits that the options of a run set, and `near`, the baseline that holds without being named.

    Raises UsageError for options that do not go together.
    """

    def __init__(self, args: argparse.Namespace, config: Config, near: Path | None) -> None:
        self._writes = bool(args.write_baseline)
        self._prunes = bool(args.prune_baseline)
        changing = args.fix or args.fix_only or args.diff or args.add_ignore is not None
        for wrong, text in (
            (self._writes and changing, "--write-baseline cannot be combined with options that change files"),
            (self._writes and args.diff_base, "--write-baseline cannot be combined with --diff-base"),
            (self._writes and self._prunes, "--write-baseline drops old entries anyway; leave out --prune-baseline"),
            (self._prunes and changing, "--prune-baseline cannot be combined with options that change files"),
            (
                args.add_ignore is not None and (args.fix or args.fix_only),
                "--add-ignore cannot be combined with --fix: fix first, then silence what is left",
            ),
        ):
            if wrong:
                raise UsageError(text)
        self._changing = bool(changing)
        self._baseline = self._find_baseline(args, config, near)
        self._changes: Changes | None = None
        self._elsewhere: dict[str, Rows | None] | None = None
        if args.diff_base:
            from devlint.diff_base import Changes

            self._changes = Changes(args.diff_base, os.getcwd())
        self._recorded = self._in_baseline = self._unchanged = 0

    def _find_baseline(self, args: argparse.Namespace, config: Config, near: Path | None) -> Baseline | None:
        if args.baseline is not None:
            path: Path | None = Path(args.baseline)
        elif config.baseline is not None:
            path = Path(config.root) / config.baseline
        else:
            path = near
        if self._writes and path is None:
            path = Path(BASELINE)
        if path is None:
            if self._prunes:
                raise UsageError("--prune-baseline: there is no baseline; name one with --baseline")
            return None
        from devlint.baseline import Baseline, load

        return Baseline(path) if self._writes and not path.exists() else load(path)

    @property
    def is_writing(self) -> bool:
        """Whether the run writes or prunes a baseline, of which each file is whole."""
        return self._writes or self._prunes

    def scope(self, name: str) -> Scope | None:
        """What counts of a file; None when everything does."""
        if self._baseline is None and self._changes is None:
            return None
        from devlint.scope import Scope

        known = self._baseline.known(name) if self._baseline is not None and not self._writes else frozenset()
        changed = self._changes.rows(name) if self._changes is not None else None
        if changed is not None and self._elsewhere is None and self._changes is not None:
            self._elsewhere = self._changes.elsewhere()
        scope = Scope(known, changed, self._elsewhere or {})
        return None if scope.is_everything else scope

    def take(self, task: Task, outcome: Outcome, whole: bool = True) -> None:
        """Leave out of a report what does not count; note what the baseline needs.

        `whole`: the report holds all findings of its file, so that a baseline can be compared with it.
        """
        result = outcome.report.result
        on = task.settings.select
        unread = any(each.code == UNREADABLE_FILE.code and each.cell is None for each in result.diagnostics)
        is_whole = whole and not outcome.errors and not unread
        if self._baseline is not None and not self._changing and is_whole:
            if self._writes:
                self._recorded += self._baseline.record(task.name, result.diagnostics, on)
                result.diagnostics = [each for each in result.diagnostics if _stays(each.code)]
                return
            self._baseline.compare(task.name, result.diagnostics, on)
        if outcome.hidden is not None:
            self._count(outcome.hidden, task)
        elif result.diagnostics:
            scope = self.scope(task.name)
            if scope is not None:
                from devlint.scope import without

                rows_of = None if scope.changed is None else _places(task)
                hidden = scope.hidden(result.diagnostics, rows_of)
                result.diagnostics = without(result.diagnostics, hidden)
                self._count(hidden, task)

    def _count(self, hidden: Collection[object], task: Task) -> None:
        known = self._baseline.known(task.name) if self._baseline is not None else frozenset()
        in_baseline = sum(1 for key in hidden if key in known)
        self._in_baseline += in_baseline
        self._unchanged += len(hidden) - in_baseline

    def close(self) -> tuple[list[str], list[str]]:
        """Write the baseline where that was asked for. Notes for the end of the report, and warnings."""
        notes, warnings = [], []
        if self._baseline is not None:
            self._baseline.compare_missing()
            path, stale = self._baseline.path, self._baseline.stale
            if self._writes:
                self._baseline.prune()
                self._baseline.write()
                notes.append(f"Wrote {count(self._recorded, 'problem')} to {path}.")
            elif self._prunes:
                self._baseline.prune()
                self._baseline.write()
                notes.append(f"Removed {_entries(stale)} from {path}: no problem matches any more.")
            elif stale and not self._changing:
                warnings.append(
                    f"{path}: {_entries(stale)} {_match(stale)} no problem any more; --prune-baseline removes old entries"
                )
            if self._in_baseline:
                notes.append(f"{count(self._in_baseline, 'problem')} in {path} not shown.")
        if self._unchanged:
            notes.append(f"{count(self._unchanged, 'problem')} on unchanged lines not shown.")
        return notes, warnings


def _stays(code: str) -> bool:
    from devlint.model import ENGINE_RULES

    return any(meta.code == code for meta in ENGINE_RULES)


def _places(task: Task) -> Callable[[Diagnostic], Rows]:
    if not task.name.endswith(NOTEBOOK):
        from devlint.scope import rows_in_text

        return rows_in_text
    from devlint.embedded.notebook import read_notebook
    from devlint.embedded.run import file_rows, read

    notebook = read_notebook(task.raw if task.raw is not None else read(task.path), task.name)

    def rows(diagnostic: Diagnostic) -> Rows:
        return file_rows(notebook, diagnostic)

    return rows


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number} entries"


def _match(number: int) -> str:
    return "matches" if number == 1 else "match"
