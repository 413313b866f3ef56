"""`devlint check`: find the files, check or fix them, report. Problems go to stdout, everything else to stderr."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devlint.cli import COMMANDS, ExitCode
from devlint.commands.options import parser
from devlint.config import Resolver
from devlint.discover import Finder, Found, Target
from devlint.errors import DevlintError, UsageError
from devlint.model import UNREADABLE_FILE, Safety
from devlint.names import did_you_mean
from devlint.overrides import options_from_environment, read_config_options, settings_from_environment
from devlint.report import FORMATS, FileReport, Run, count, load_format
from devlint.terminal import Terminal
from devlint.worker import Outcome, Task

if TYPE_CHECKING:
    from devlint.cache import Cache
    from devlint.rulebook import Rulebook

STDIN = "-"


def main(arguments: Sequence[str]) -> int:
    """Run `devlint check` and return the exit code."""
    options = parser()
    options_from_environment(os.environ, options)
    args = options.parse_args(arguments)
    terminal = Terminal(args.color)
    try:
        return Check(args, terminal, settings_from_environment(os.environ, options)).run()
    except DevlintError as error:
        terminal.error(str(error))
        return ExitCode.ERROR
    finally:
        terminal.flush()


@dataclass(slots=True)
class _Tally:
    """What decides the exit code."""

    problems: int = 0
    changed: int = 0
    errors: int = 0


class Check:
    """One run of the command."""

    def __init__(self, args: argparse.Namespace, terminal: Terminal, environment: Mapping[str, Any]) -> None:
        self._args = args
        self._terminal = terminal
        file, overrides = read_config_options(args.config or ())
        if file is not None and args.isolated:
            raise UsageError("--isolated reads no configuration file, and --config names one")
        resolver = Resolver(file, args.isolated, {**environment, **overrides})
        self._finder = Finder(resolver, args.force_exclude, args.exclude, args.extend_exclude)
        self._format: str = args.output_format or self._finder.config_for(".").output_format
        self._fixing = bool(args.fix or args.fix_only or args.diff)
        self._from_stdin = args.paths == [STDIN]
        self._stdin = b""
        self._cache = None if self._from_stdin or args.no_cache else self._open_cache()

    def run(self) -> int:
        if self._from_stdin:
            found = self._stdin_target()
        elif STDIN in self._args.paths:
            self._terminal.error("`-` (standard input) cannot be combined with other paths")
            return ExitCode.ERROR
        else:
            found = self._finder.find(self._args.paths or ["."])
        for problem in found.problems:
            self._terminal.error(problem + self._command_hint(problem))
        if self._args.show_files or self._args.show_settings:
            return self._show(found)
        if self._from_stdin:
            if sys.stdin is None:
                raise UsageError("standard input is closed")
            self._stdin = sys.stdin.buffer.read()
        tasks = self._tasks(found.targets)
        if not found.targets and not found.problems and not found.excluded:
            self._terminal.warning(f"no Python files found in {', '.join(self._args.paths or ['.'])}")
        tally = _Tally(errors=len(found.problems))
        if self._from_stdin and not tasks and self._fixing and not self._args.diff:
            self._terminal.write_bytes(self._stdin)  # excluded: goes through unchanged
        files = [self._take(outcome, tally) for outcome in self._outcomes(tasks)]
        if not self._args.diff:
            self._report(Run(files, self._args.fix_only, tally.errors))
        else:
            self._close_diff(files)
        return self._exit_code(tally)

    def _stdin_target(self) -> Found:
        name = self._args.stdin_filename or STDIN
        if self._args.stdin_filename and self._finder.is_forced_out(name):
            return Found(excluded=[name])
        return Found([Target(name, name, self._finder.config_for(name))])

    def _tasks(self, targets: Iterable[Target]) -> list[Task]:
        from devlint.rulebook import Rulebook

        rulebook = Rulebook(
            self._args.select,
            self._args.extend_select,
            (*(self._args.ignore or ()), *(self._args.extend_ignore or ())),
            per_file_ignores=self._args.per_file_ignores,
            min_severity=self._args.min_severity,
            fixable=self._args.fixable,
            unfixable=self._args.unfixable,
            memory=self._cache,
        )
        rulebook.settings(
            self._finder.config_for("."), os.getcwd()
        )  # a misspelt selector is an error without a file too
        return [self._task(target, rulebook) for target in targets]

    def _task(self, target: Target, rulebook: Rulebook) -> Task:
        unsafe = target.config.unsafe_fixes if self._args.unsafe_fixes is None else self._args.unsafe_fixes
        return Task(
            target.path,
            target.name,
            rulebook.settings(target.config, target.path),
            target.config.plugins,
            frozenset({Safety.SAFE, Safety.UNSAFE} if unsafe else {Safety.SAFE}),
            fix=self._fixing,
            write=self._fixing and not self._args.diff and not self._from_stdin,
            keep_text=FORMATS[self._format].needs_text and not self._args.statistics,
            raw=self._stdin if self._from_stdin else None,
            remember=self._cache is not None,
        )

    def _open_cache(self) -> Cache:
        from devlint.cache import Cache, place

        config = self._finder.config_for(".")
        root = config.root if config.path is not None else Path.cwd()
        return Cache(place(self._args.cache_dir, config), root)

    def _outcomes(self, tasks: Sequence[Task]) -> Iterable[Outcome]:
        if self._cache is not None:
            return self._cache.outcomes(tasks, self._run)
        return self._run(tasks)

    def _run(self, tasks: Sequence[Task]) -> Iterable[Outcome]:
        if len(tasks) <= 1:
            from devlint.worker import run_tasks

            return run_tasks(tasks)
        from devlint.pool import run_all

        return run_all(tasks, self._args.jobs)

    def _take(self, outcome: Outcome, tally: _Tally) -> FileReport:
        """Print what belongs to one file alone, count, and keep what the report needs."""
        for error in outcome.errors:
            self._terminal.error(error)
        for warning in outcome.warnings:
            self._terminal.warning(warning)
        tally.errors += len(outcome.errors)
        tally.changed += outcome.after is not None
        report = outcome.report
        if self._args.diff and outcome.after is not None:
            from devlint.report.diff import unified_diff

            name = report.result.path
            self._terminal.write_bytes(unified_diff(outcome.before, outcome.after, name, self._terminal.style))
        elif self._from_stdin and self._fixing and not self._args.diff:
            self._terminal.write_bytes(self._stdin if outcome.after is None else outcome.after)
        if self._args.fix_only or self._args.diff:  # what is left was not asked for, but no file goes unread in silence
            result = report.result
            result.diagnostics = [each for each in result.diagnostics if each.code == UNREADABLE_FILE.code]
        tally.problems += len(report.result.diagnostics)
        return report

    def _report(self, run: Run) -> None:
        to_stderr = self._from_stdin and self._fixing
        emit = self._terminal.note if to_stderr else self._terminal.print
        style = self._terminal.error_style if to_stderr else self._terminal.style
        module = load_format(self._format)
        if self._args.show_fixes:
            from devlint.report.closing import fixed_lines

            for line in fixed_lines(run, style):
                (emit if FORMATS[self._format].for_people else self._terminal.note)(line)
        for block in (module.render_statistics if self._args.statistics else module.render)(run, style):
            emit(block)

    def _close_diff(self, files: Sequence[FileReport]) -> None:
        from devlint.report.closing import fixed_lines
        from devlint.report.concise import line

        style = self._terminal.error_style
        run = Run(files)
        for file, diagnostic in run.problems():
            self._terminal.note(line(diagnostic, file.is_fixable(diagnostic), style))
        if self._args.show_fixes:
            for text in fixed_lines(run, style):
                self._terminal.note(text)
        fixes = len(run.fixed())
        changed = sum(1 for file in files if file.fixed)
        self._terminal.note(f"Would fix {count(fixes, 'problem')} in {count(changed, 'file')}.")

    def _exit_code(self, tally: _Tally) -> int:
        if tally.errors:
            return ExitCode.ERROR
        if self._args.exit_zero:
            return ExitCode.CLEAN
        changed = tally.changed and (self._args.diff or self._args.exit_non_zero_on_fix)
        return ExitCode.PROBLEMS if tally.problems or changed else ExitCode.CLEAN

    def _show(self, found: Found) -> int:
        from devlint.commands.show import settings_lines

        if self._args.show_files:
            lines = [target.name for target in found.targets]
        else:
            first = found.targets[0] if found.targets else Target(".", ".", self._finder.config_for("."))
            lines = settings_lines(first)
        for line in lines:
            self._terminal.print(line)
        return ExitCode.ERROR if found.problems else ExitCode.CLEAN

    def _command_hint(self, problem: str) -> str:
        """A hint when a path that does not exist looks like a misspelt command."""
        path, _, _ = problem.partition(": ")
        is_word = self._args.paths[:1] == [path] and path.isalpha()
        return did_you_mean(path, COMMANDS) if is_word else ""
