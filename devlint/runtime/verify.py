"""`devlint verify`: run a program with and without each fix, and say which fixes hold.

This runs the program, several times, with whatever it does; it is never part of linting. Corrected sources are served
under the names of the originals, and devlint writes nothing of the user's; what the program itself writes, it writes.
"""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from devlint.commands.shell import parse
from devlint.errors import DevlintError, SourceError, UsageError
from devlint.model import Position, Span
from devlint.runtime.bench import REAL, Bench, JudgedFix, Report, Request, Runner
from devlint.runtime.correction import Edition, FixCase, carried_back, choose, original_span, read_cases, shown
from devlint.runtime.places import Places
from devlint.runtime.processes import Launcher
from devlint.runtime.runs import Judgement, Verdict
from devlint.runtime.writing import write_confirmed
from devlint.terminal import printable, printable_report

__all__ = ["Finder", "Launcher", "Report", "Request", "Runner", "find_with_linter", "main", "verify"]

DEVICES = "auto, cpu, cuda, mps, xpu, or simulated: sim, sim:2, sim:xpu, sim:cuda:3"
_MOST_ROUNDS = 5
_OVERLAPS = "this fix changes the same text as another fix; apply the other fix, then verify again"

Finder = Callable[[str], list[FixCase]]
"""Finds the fixes of a text; the linter in normal use."""


# ---------------------------------------------------------------------------------------------- verification


def verify(
    request: Request,
    text: str | Mapping[str, str],
    cases: Sequence[FixCase],
    runner: Runner,
    find: Finder | Mapping[str, Finder] | None = None,
) -> Report:
    """Run the program with and without each fix and judge them.

    text: the decoded original, or those of several files by absolute path. cases: the findings, hints among them.
    find: finds further fixes in corrected text, for those that do not go together with the first ones; for several
    files, by path.
    """
    path = os.path.abspath(request.script)
    texts = {path: text} if isinstance(text, str) else dict(text)
    finders = find if isinstance(find, Mapping) else {path: find} if find is not None else {}
    originals: dict[str, Places] = {}
    for name, each in texts.items():
        try:
            originals[name] = Places(each)
        except SyntaxError as error:
            where = "" if isinstance(text, str) else f"{shown(name)}: "
            raise SourceError(f"{where}cannot parse: {error.msg}", error.lineno or 1, error.offset or 1) from error
    main = next(iter(originals), path)
    report = Report(shlex.join(request.command) if request.command else request.script)
    fixes, waiting = choose([case for case in cases if not case.is_hint])
    if finders:
        fixes, waiting = _more_rounds(originals, fixes, waiting, finders)
    _check(originals, fixes)
    whole = Edition(originals, fixes)
    report.corrections = whole.changed or {main: texts.get(main, "")}
    report.originals = {name: texts[name] for name in report.corrections if name in texts}
    if fixes:
        bench = Bench(request, originals, fixes, runner, report)
        for index, case in enumerate(fixes):
            report.fixes.append(_judged(originals, case, bench.judge(index)))
        report.falls_short = bench.falls_short
    for case in waiting:
        report.fixes.append(_judged(originals, case, Judgement(Verdict.COULD_NOT_JUDGE, (_OVERLAPS,))))
    judged = {(fix.case.file, fix.case.code, fix.start) for fix in report.fixes}  # a hint may become a fix later on
    hints = [(case, _position(originals[case.file or main], case.span.start)) for case in cases if case.is_hint]
    report.hints = [(case, at) for case, at in hints if (case.file, case.code, at) not in judged]
    report.fixes.sort(key=lambda fix: (fix.case.file, fix.case.span, fix.case.code))
    report.torch, report.notes = runner.torch, list(runner.notes)
    return report


def _check(originals: Mapping[str, Places], fixes: Sequence[FixCase]) -> None:
    """Raise DevlintError naming the fix whose text Python does not accept, or saying that they do not go together."""
    main = next(iter(originals), "")

    def attempt(chosen: Sequence[FixCase]) -> None:
        try:
            for text in Edition(originals, chosen).changed.values():
                compile(text, "corrected", "exec", dont_inherit=True)
        except SyntaxError as error:
            names = ", ".join(f"{case.code} at {_line(originals, case, main)}" for case in chosen)
            raise DevlintError(f"the fix of {names} breaks the syntax: {error.msg}") from error

    try:
        attempt(fixes)
    except DevlintError:
        for case in fixes:
            attempt([case])
        raise


def _line(originals: Mapping[str, Places], case: FixCase, main: str) -> str:
    line = originals[case.file or main].lines.line(case.span.start)
    return f"{shown(case.file)}:{line}" if case.file else f"line {line}"


def _more_rounds(
    originals: Mapping[str, Places], fixes: list[FixCase], waiting: list[FixCase], finders: Mapping[str, Finder]
) -> tuple[list[FixCase], list[FixCase]]:
    """Take in the fixes that show, or fit, only when the first ones are applied; the rest are left waiting."""
    main = next(iter(originals))
    for _ in range(_MOST_ROUNDS):
        edition = Edition(originals, fixes)
        touched = {case.file or main for case in [*fixes, *waiting]}
        found = [
            (case, carried_back(case, variant), variant)
            for path, variant in edition.files.items()
            if path in touched and path in finders
            for case in finders[path](variant.text)
            if not case.is_hint
        ]
        waiting = [replace(case, span=original_span(case, variant)) for case, moved, variant in found if moved is None]
        more, later = choose([*fixes, *(moved for _, moved, _ in found if moved is not None)])
        waiting += later
        if len(more) == len(fixes) or not set(map(id, fixes)) <= set(map(id, more)):
            break
        fixes = more
    return fixes, waiting


def _judged(originals: Mapping[str, Places], case: FixCase, judgement: Judgement) -> JudgedFix:
    places = originals[case.file or next(iter(originals))]
    return JudgedFix(case, _position(places, case.span.start), _position(places, case.span.end), judgement)


def _position(places: Places, offset: int) -> Position:
    line = places.lines.line(offset)
    return Position(line, offset - places.lines.starts[line - 1] + 1)


# --------------------------------------------------------------------------------------------------- command


def find_with_linter(
    path: Path, select: tuple[str, ...], ignore: tuple[str, ...], file: str = ""
) -> tuple[str, Finder]:
    """The decoded text of a script, and what finds fixes in it or in a corrected copy, by the project's configuration.

    file: what the cases say of their file. Raises SourceError for a file that cannot be read or parsed, UsageError for
    a bad configuration or an unknown rule.
    """
    from devlint.config import Resolver
    from devlint.engine import Linter
    from devlint.rulebook import Rulebook, rules_of
    from devlint.source import parse, read_source

    source = read_source(path)
    parse(source)
    config = Resolver().for_directory(str(path.resolve().parent))
    settings = Rulebook(select or None, None, ignore or None).settings(config, str(path.resolve()))
    linter = Linter(rules_of(config.plugins), settings)

    def find(text: str) -> list[FixCase]:
        result = linter.check(source.with_text(text))
        if result.crashes:
            raise DevlintError("\n".join(result.crashes))
        places = Places(text)
        return [
            FixCase.of(diagnostic, _related(diagnostic, str(source.path), places), file)
            for diagnostic in result.diagnostics
        ]

    return source.text, find


def find_in_files(
    paths: Sequence[str], select: tuple[str, ...], ignore: tuple[str, ...]
) -> tuple[dict[str, str], list[FixCase], dict[str, Finder], list[str]]:
    """Texts, findings and finders of all Python files under some paths, and why some files are left as they are.

    Raises UsageError when a path does not exist or there is no Python file under any of them.
    """
    from devlint.config import Resolver
    from devlint.discover import Finder as Search

    found = Search(Resolver()).find(paths)
    if found.problems:
        raise UsageError(found.problems[0])
    texts: dict[str, str] = {}
    cases: list[FixCase] = []
    finders: dict[str, Finder] = {}
    left: list[str] = []
    for target in found.targets:
        if not target.path.endswith(".py"):
            continue
        try:
            text, find = find_with_linter(Path(target.path), select, ignore, target.path)
            cases += find(text)
        except (SourceError, DevlintError) as error:
            left.append(f"{target.name} is left as it is: {error}")
            continue
        texts[target.path], finders[target.path] = text, find
    if not texts:
        raise UsageError(f"no Python file under {', '.join(paths)}" + "".join(f"; {each}" for each in left))
    return texts, cases, finders, left


def _related(diagnostic: Any, path: str, places: Places) -> tuple[Span, ...]:
    starts = places.lines.starts
    return tuple(
        Span(
            starts[related.start.row - 1] + related.start.column - 1,
            starts[related.end.row - 1] + related.end.column - 1,
        )
        for related in diagnostic.related
        if related.path == path
    )


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code. Prints the report on stdout, errors and progress on stderr."""
    from devlint.runtime.report import as_json, as_text

    named = ""
    try:
        options = _parse(argv)
        named = options.paths[0]
        request = _request(options)
        for file in (options.html, options.trace):
            _check_writable(file)
        if options.fix and request.script and not os.access(request.script, os.W_OK):
            raise UsageError(f"{request.script} is read-only, so no fix can be written to it")
        report = _verify(request, options)
        if options.html:
            from devlint.runtime.page import as_html

            _write(options.html, as_html(report))
        if options.trace:
            from devlint.runtime.trace import as_trace

            _write(options.trace, as_trace(report))
    except SourceError as error:
        print(printable(f"{named}:{error.row}:{error.column}: DEV900 {error}"), file=sys.stderr)
        return 2
    except DevlintError as error:
        print(printable(f"devlint verify: {error}"), file=sys.stderr)
        return 2
    print(as_json(report) if options.json else printable_report(as_text(report)))
    return report.exit_code


def _request(options: argparse.Namespace) -> Request:
    """One script is the program, and what follows `--` its arguments; else what follows is a command."""
    device = _device(options.device)
    given: list[str] = options.paths
    path = Path(given[0])
    if len(given) == 1 and not path.is_dir() and not path.is_file():
        raise UsageError(f"{path} is not a file")
    if path.suffix == ".ipynb":
        raise UsageError(
            f"{path}: verify takes no notebooks; save its code as a script, as with: jupyter nbconvert --to script"
        )
    is_script = len(given) == 1 and path.is_file() and not _is_command(options.arguments)
    if not is_script and not options.arguments:
        raise UsageError(f"what runs {' '.join(given)}? give a command after --, such as: -- pytest -q")
    return Request(
        script=given[0] if is_script else "",
        arguments=tuple(options.arguments) if is_script else (),
        command=() if is_script else tuple(options.arguments),
        device=device,
        steps=options.steps,
        timeout=options.timeout,
        memory=options.memory,
        ordered=bool(options.html or options.trace),
    )


def _is_command(arguments: Sequence[str]) -> bool:
    """Whether what follows `--` is a command of this interpreter, such as `python drive.py`, and no arguments."""
    return bool(arguments) and shutil.which(arguments[0], path=os.path.dirname(sys.executable)) is not None


def _check_writable(file: str | None) -> None:
    """Raise UsageError before anything is run when a report could not be written."""
    if file:
        folder = os.path.dirname(os.path.abspath(file))
        if not os.path.isdir(folder) or os.path.isdir(file) or not os.access(folder, os.W_OK):
            raise UsageError(f"cannot write {file}")


def _write(file: str, text: str) -> None:
    try:
        Path(file).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror or error}") from error


def _verify(request: Request, options: argparse.Namespace) -> Report:
    made = 0

    def finished(report: Report, texts: Mapping[str, str]) -> Report:
        if options.fix:
            write_confirmed(request, report, texts, runner)
        return report

    def say(label: str) -> None:
        nonlocal made
        made += 1
        label = printable(label)
        if sys.stderr.isatty():
            print(f"\r\x1b[Kdevlint verify: run {made}: {label} ...", end="", file=sys.stderr, flush=True)
        else:
            print(f"devlint verify: run {made}: {label}", file=sys.stderr, flush=True)

    select, ignore = _codes(options.select), _codes(options.ignore)
    try:
        with Launcher() as launcher:
            runner = Runner(request, launcher, say)
            if request.command:
                texts, cases, finders, left = find_in_files(options.paths, select, ignore)
                for each in left:
                    runner.note(each)
                return finished(verify(request, texts, cases, runner, finders), texts)
            path = Path(request.script)
            if options.fixes:
                from devlint.source import read_source

                text = read_source(path).text
                return finished(verify(request, text, read_cases(Path(options.fixes), text), runner), _of(path, text))
            text, find = find_with_linter(path, select, ignore)
            return finished(verify(request, text, find(text), runner, find), _of(path, text))
    finally:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _of(path: Path, text: str) -> dict[str, str]:
    return {os.path.abspath(path): text}


def _codes(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(code.strip() for value in values for code in value.split(",") if code.strip())


def _device(text: str) -> str:
    """Check a device name. Raises UsageError that lists the known ones."""
    if text in ("auto", "cpu", *REAL):
        return text
    from devlint.runtime.simulator import DeviceSpec

    try:
        return str(DeviceSpec.parse(text))
    except ValueError as error:
        raise UsageError(f"--device {text}: {error}; known devices: {DEVICES}") from error


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError(message)


def _parse(argv: list[str]) -> argparse.Namespace:
    own, arguments = argv, []
    if "--" in argv:
        cut = argv.index("--")
        own, arguments = argv[:cut], argv[cut + 1 :]
    options = parse(parser(), own)
    options.arguments = arguments
    return options


def parser() -> argparse.ArgumentParser:
    """The parser of the options of `devlint verify`."""
    result = _Parser(
        prog="devlint verify",
        description="Run a program with and without each fix, and say which fixes work. This runs your program several times.",
        usage="devlint verify [OPTIONS] SCRIPT [-- ARGUMENTS]\n       devlint verify [OPTIONS] PATH... -- COMMAND",
        epilog="Exit codes: 0 if no fix is refuted and the corrected program runs to its end, 1 if not, 2 for wrong usage, 3 "
        "if no fix could be judged. The program may also stop where the original stops without a device error.",
    )
    result.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a script, whose arguments follow after --, or files and folders to correct. In the second case, a command that "
        "runs them follows after --, such as pytest, torchrun or python -m",
    )
    result.add_argument(
        "--device",
        default="auto",
        help=f"{DEVICES} (default: auto, which is a real device if there is one, otherwise a simulated one)",
    )
    result.add_argument("--steps", type=_positive, metavar="N", help="end each run after N optimizer steps")
    result.add_argument(
        "--timeout", type=_seconds, default=300.0, metavar="S", help="end each run after S seconds (default: 300)"
    )
    result.add_argument(
        "--memory", type=_bytes, metavar="SIZE", help="end a run if a process uses more memory, such as 500M or 4G"
    )
    result.add_argument(
        "--select", action="append", default=[], metavar="CODES", help="test only the fixes of these rules"
    )
    result.add_argument(
        "--ignore", action="append", default=[], metavar="CODES", help="do not test the fixes of these rules"
    )
    result.add_argument(
        "--fix", action="store_true", help="write the confirmed fixes to the files, both safe and unsafe ones"
    )
    result.add_argument("--json", action="store_true", help="print one JSON object")
    result.add_argument("--html", metavar="FILE", help="also write an HTML page with verdicts, code and timelines")
    result.add_argument("--trace", metavar="FILE", help="also write a trace of the runs for Perfetto")
    result.add_argument("--unsafe-fixes", action="store_true", help=argparse.SUPPRESS)  # judged always
    result.add_argument("--fixes", metavar="FILE", help=argparse.SUPPRESS)  # fixes by hand, see read_cases
    return result


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("must be more than 0")
    return number


def _bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if match is None or float(match[1]) == 0:
        raise argparse.ArgumentTypeError("must be a size such as 500M or 4G")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))
