"""`devlint check`: find the files, check or fix them, report. Problems go to stdout, everything else to stderr."""

from __future__ import annotations

import argparse
import atexit
import gc
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devlint.cli import COMMANDS, ExitCode
from devlint.commands import shell
from devlint.commands.options import BASELINE, parser
from devlint.config import Resolver
from devlint.discover import Finder, Found, Target
from devlint.embedded import MARKDOWN
from devlint.errors import UsageError
from devlint.model import UNREADABLE_FILE, Diagnostic, Safety
from devlint.names import did_you_mean
from devlint.overrides import options_from_environment, read_config_options, settings_from_environment
from devlint.report import FORMATS, FileReport, Output, Run, count, load_format
from devlint.terminal import Terminal
from devlint.worker import Outcome, Task

if TYPE_CHECKING:
    from devlint.cache import Cache
    from devlint.commands.limits import Limits
    from devlint.config import Config
    from devlint.rulebook import Rulebook

STDIN = "-"


def main(arguments: Sequence[str]) -> int:
    """Run `devlint check` and return the exit code."""
    atexit.register(
        gc.freeze
    )  # the parsed files of a project live to the end, and need no last passes of the collector
    options = parser()
    options_from_environment(os.environ, options)
    words = ["--add-ignore=" if word == "--add-ignore" else word for word in arguments]

    def work(args: argparse.Namespace, terminal: Terminal) -> int:
        return Check(args, terminal, settings_from_environment(os.environ, options)).run()

    return shell.run(options, words, work)


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
        more = MARKDOWN if args.markdown else ()
        self._finder = Finder(resolver, args.force_exclude, args.exclude, args.extend_exclude, more)
        config = self._finder.config_for(".")
        self._outputs = self._read_outputs(config)
        self._limits = self._read_limits(config)
        self._fixing = bool(args.fix or args.fix_only or args.diff or args.add_ignore is not None)
        self._from_stdin = args.paths == [STDIN]
        self._stdin = b""
        uncached = (
            self._from_stdin or args.no_cache or args.ignore_suppressions or args.add_ignore is not None or args.verbose
        )
        self._cache = None if uncached else self._open_cache()

    def _read_outputs(self, config: Config) -> list[Output]:
        if not self._args.output_format and self._args.output_file is None:
            return [Output(config.output_format)]
        from devlint.report.output import outputs

        return outputs(self._args.output_format, self._args.output_file, config.output_format)

    def _read_limits(self, config: Config) -> Limits | None:
        """What the run does not report; None when nothing says so."""
        args = self._args
        wanted = args.baseline or args.write_baseline or args.prune_baseline or args.diff_base or config.baseline
        near = None if args.isolated else _near_baseline(Path.cwd())
        if not wanted and near is None and args.add_ignore is None:
            return None
        from devlint.commands.limits import Limits

        return Limits(args, config, near)

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
        self._tell_idle(tasks)
        if not found.targets and not found.problems and not found.excluded:
            self._warn(f"no Python files found in {', '.join(self._args.paths or ['.'])}")
        tally = _Tally(errors=len(found.problems))
        if self._from_stdin and not tasks and self._fixing and not self._args.diff:
            self._terminal.write_bytes(self._stdin)  # excluded: goes through unchanged
        outcomes = self._watched(self._outcomes(tasks), len(tasks))
        files = [self._take(task, outcome, tally) for task, outcome in zip(tasks, outcomes, strict=True)]
        files += self._take_reached(tasks, files, tally)
        notes, warnings = self._limits.close() if self._limits is not None else ([], [])
        for warning in warnings:
            self._warn(warning)
        if not self._args.diff:
            self._report(
                Run(
                    files,
                    self._args.fix_only,
                    tally.errors,
                    tuple(notes),
                    tuple(sorted({name for task in tasks for name in task.plugins})),
                    self._args.quiet,
                    self._args.verbose,
                    self._titles(tasks),
                    () if self._from_stdin or self._limits is not None else tuple(self._args.paths) or (".",),
                )
            )
        else:
            self._close_diff(files)
        return self._exit_code(tally)

    def _warn(self, text: str) -> None:
        if not self._args.quiet:
            self._terminal.warning(text)

    def _watched(self, outcomes: Iterable[Outcome], total: int) -> Iterable[Outcome]:
        if total < 2 or self._args.quiet or sys.stderr is None or not sys.stderr.isatty():
            return outcomes
        from devlint.progress import is_wanted, watched

        return watched(outcomes, total, sys.stderr) if is_wanted(sys.stderr) else outcomes

    def _stdin_target(self) -> Found:
        name = self._args.stdin_filename or STDIN
        if self._args.stdin_filename and self._finder.is_forced_out(name):
            return Found(excluded=[name])
        return Found([Target(name, name, self._finder.config_for(name))])

    def _tasks(self, targets: Iterable[Target]) -> list[Task]:
        from devlint.rulebook import Rulebook

        rulebook = self._rulebook = Rulebook(
            self._args.select,
            self._args.extend_select,
            (*(self._args.ignore or ()), *(self._args.extend_ignore or ())),
            per_file_ignores=self._args.per_file_ignores,
            min_severity=self._args.min_severity,
            inference=self._args.inference,
            fixable=self._args.fixable,
            unfixable=self._args.unfixable,
            memory=self._cache,
        )
        rulebook.settings(
            self._finder.config_for("."), os.getcwd()
        )  # a misspelt selector is an error without a file too
        return [self._task(target, rulebook) for target in targets]

    def _tell_idle(self, tasks: Iterable[Task]) -> None:
        """Name the selected rules that report nothing because the settings do not switch the new inference on."""
        sets = {task.plugins for task in tasks}
        needing = {p: [m for m in self._rulebook.metas(p) if m.needs_inference] for p in sets}
        idle = {
            f"{meta.code} ({meta.name})"
            for task in tasks
            if needing[task.plugins] and task.settings.inference != "new"
            for meta in needing[task.plugins]
            if meta.code in task.settings.select
        }
        for name in sorted(idle):
            self._warn(f'{name} reports nothing without `inference = "new"` in the settings, or `--inference new`')

    def _titles(self, tasks: Iterable[Task]) -> dict[str, str]:
        """What each rule flags, by code: the metadata that the settings of the tasks came from."""
        sets = {task.plugins for task in tasks}
        return {meta.code: meta.summary for plugins in sets for meta in self._rulebook.metas(plugins)}

    def _task(self, target: Target, rulebook: Rulebook) -> Task:
        unsafe = target.config.unsafe_fixes if self._args.unsafe_fixes is None else self._args.unsafe_fixes
        fixes = self._fixing and target.left is None
        return Task(
            target.path,
            target.name,
            rulebook.settings(target.config, target.path),
            target.config.plugins,
            frozenset({Safety.SAFE, Safety.UNSAFE} if unsafe else {Safety.SAFE}),
            fix=fixes,
            write=fixes and not self._args.diff and not self._from_stdin,
            keep_text=not self._args.statistics and any(FORMATS[each.format].needs_text for each in self._outputs),
            raw=self._stdin if self._from_stdin else None,
            remember=self._cache is not None,
            scope=self._limits.scope(target.name) if self._fixing and self._limits is not None else None,
            ignore_suppressions=self._args.ignore_suppressions,
            add_ignore=self._args.add_ignore if fixes else None,
            explains=self._args.verbose,
            left=target.left,
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

    def _take(self, task: Task, outcome: Outcome, tally: _Tally, whole: bool = True) -> FileReport:
        """Print what belongs to one file alone, count, and keep what the report needs.

        `whole`: the outcome holds all findings of its file.
        """
        for error in outcome.errors:
            self._terminal.error(error)
        for warning in outcome.warnings:
            self._warn(warning)
        tally.errors += len(outcome.errors)
        tally.changed += outcome.after is not None
        report = outcome.report
        if self._fixing and task.left is not None and report.result.diagnostics:
            self._terminal.warning(f"{task.name}: not changed: a link leads to it out of {task.left}")
        if self._limits is not None:
            self._limits.take(task, outcome, whole)
        if self._args.verbose:
            from devlint.report.explained import lines

            for text in lines(report, self._terminal.error_style):
                self._terminal.note(text)
        report = _folded(report)
        if self._args.diff and outcome.after is not None:
            from devlint.report.diff import unified_diff

            for name, before, after in outcome.cells or [(task.name, outcome.before, outcome.after)]:
                self._terminal.write_bytes(unified_diff(before, after, name, self._terminal.style))
        elif self._from_stdin and self._fixing and not self._args.diff:
            self._terminal.write_bytes(self._stdin if outcome.after is None else outcome.after)
        if self._args.fix_only or self._args.diff:  # what is left was not asked for, but no file goes unread in silence
            result = report.result
            result.diagnostics = [each for each in result.diagnostics if each.code == UNREADABLE_FILE.code]
        report = replace(report, counts_info=task.settings.counts_info)
        tally.problems += len(report.problems)
        return report

    def _take_reached(self, tasks: Sequence[Task], files: Sequence[FileReport], tally: _Tally) -> list[FileReport]:
        """The findings in files that nobody named which a call in a named file brings about, and no others."""
        named = {task.path for task in tasks}
        ways = zip(tasks, files, strict=True)
        paths = {
            os.path.normpath(os.path.join(os.path.dirname(task.path), way))
            for task, file in ways
            for way in file.result.reached
        }
        if self._from_stdin or paths <= named or (self._limits is not None and self._limits.is_writing):
            return []
        targets = filter(None, map(self._finder.followed, sorted(paths - named)))
        found = [
            replace(task, applied=frozenset(), fix=False, write=False, add_ignore=None, scope=None)
            for task in self._tasks(targets)
        ]
        reports = []
        for task, outcome in zip(found, self._outcomes(found), strict=True):
            result = outcome.report.result
            result.diagnostics = [each for each in result.diagnostics if _is_called_from(each, named)]
            result.suppressed = [each for each in result.suppressed if _is_called_from(each, named)]
            result.left_alone = []
            if result.diagnostics:
                reports.append(self._take(task, outcome, tally, whole=False))
        return reports

    def _report(self, run: Run) -> None:
        to_stderr = self._from_stdin and self._fixing
        emit = self._terminal.note if to_stderr else self._terminal.print
        style = self._terminal.error_style if to_stderr else self._terminal.style
        shown = next((each.format for each in self._outputs if each.path is None), None)
        say = emit if shown is not None and FORMATS[shown].for_people else self._terminal.note
        if self._args.show_fixes:
            from devlint.report.closing import fixed_lines

            for line in fixed_lines(run, style):
                say(line)
        if self._args.add_ignore is not None:
            changed = sum(1 for file in run.files if file.fixed)
            say(f"Silenced {count(len(run.fixed()), 'problem')} in {count(changed, 'file')}.")
            run = replace(run, files=[replace(file, fixed=()) for file in run.files])
        if say is not emit and not run.quiet:
            for note in run.notes:
                say(note)
        if self._args.write_baseline and not any(True for _ in run.findings()):
            for note in run.notes if say is emit else ():
                say(note)
            return
        for output in self._outputs:
            if output.path is not None:
                from devlint.report.output import write_report

                write_report(output, run, self._args.statistics)
                continue
            module = load_format(output.format)
            for block in (module.render_statistics if self._args.statistics else module.render)(run, style):
                emit(block, commands=FORMATS[output.format].commands)

    def _close_diff(self, files: Sequence[FileReport]) -> None:
        from devlint.report.closing import fixed_lines, line

        style = self._terminal.error_style
        run = Run(files)
        for file, diagnostic in run.problems():
            self._terminal.note(line(diagnostic, file.is_fixable(diagnostic), style))
        if self._args.show_fixes:
            for text in fixed_lines(run, style):
                self._terminal.note(text)
        fixes = len(run.fixed())
        changed = sum(1 for file in files if file.fixed)
        if not self._args.quiet:
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


def _is_called_from(diagnostic: Diagnostic, named: Collection[str]) -> bool:
    """Whether a call in one of these files (absolute) brings a finding about."""
    return diagnostic.evidence == "called" and any(os.path.abspath(each.path) in named for each in diagnostic.related)


def _folded(report: FileReport) -> FileReport:
    """A report whose findings stand for those that they settle."""
    result = report.result
    if not any(each.decision or each.portability for each in (*result.diagnostics, *report.fixed)):
        return report
    from devlint.folding import fold

    result.diagnostics = fold(result.diagnostics)
    return replace(report, fixed=tuple(fold(report.fixed)))


def _near_baseline(directory: Path) -> Path | None:
    """The baseline that holds without being named: in this directory, or above it within the repository."""
    for place in (directory, *directory.parents):
        if (place / BASELINE).is_file():
            return Path(os.path.relpath(place / BASELINE))
        if (place / ".git").exists():
            return None
    return None
