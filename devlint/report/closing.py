"""The last lines of a report for people: what is info, how many problems, and how many of them `--fix` would handle.

Of a single program with unsafe fixes, `devlint verify --fix` can tell which of them hold.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from devlint.model import Diagnostic, Safety, Severity
from devlint.report import FileReport, Run, count
from devlint.report.places import place
from devlint.terminal import Style, printable

ASIDES = 3  # findings of severity info that a report shows where nobody asked for them


def line(diagnostic: Diagnostic, fixable: bool, style: Style) -> str:
    """One problem in one line; line breaks of a message become spaces."""
    star = f" [{style.mark('*')}]" if fixable else ""
    info = " info:" if diagnostic.severity is Severity.INFO else ""
    message = printable(" ".join(diagnostic.message.split()))
    return f"{place(diagnostic, style)}: {style.code(diagnostic.code)}{star}{info} {message}"


def aside_lines(run: Run, style: Style) -> Iterator[str]:
    """The first findings of severity info, one line each, and how many more there are."""
    found = list(run.asides())
    for file, diagnostic in found[:ASIDES]:
        yield line(diagnostic, file.is_fixable(diagnostic), style)
    if len(found) > ASIDES:
        yield f"{len(found) - ASIDES} more with severity `info`: `--min-severity info` shows all."


def closing_lines(run: Run, style: Style) -> Iterator[str]:
    """One line of success, or the counts; then what is not shown."""
    if run.quiet:
        return
    yield from _counts(run, style)
    yield from run.notes


def _counts(run: Run, style: Style) -> Iterator[str]:
    problems = list(run.problems())
    fixed = len(run.fixed())
    if not problems:
        text = _success(run, fixed)
        yield f"{text}; {count(run.errors, 'error')}, see above." if run.errors else style.good(f"{text}.")
        return
    files = len({problem.path for _, problem in problems} | {file.result.path for file in run.files if file.fixed})
    detail = f" ({fixed} fixed, {len(problems)} left)" if fixed else ""
    yield style.bold(f"Found {count(len(problems) + fixed, 'problem')} in {count(files, 'file')}{detail}.")
    assumed = sum(1 for _, problem in problems if problem.certainty == "assume")
    if assumed:
        yield _assumed(assumed, len(problems))
    safe = sum(1 for file, problem in problems if file.is_fixable(problem))
    unsafe = sum(
        1 for file, p in problems if p.fix is not None and p.fix.safety is Safety.UNSAFE and not file.is_fixable(p)
    )
    if safe:
        more = f" ({unsafe} more with `--unsafe-fixes`)" if unsafe else ""
        yield f"[{style.mark('*')}] {safe} fixable with `--fix`{more}."
    elif unsafe:
        yield f"{unsafe} fixable with `--fix --unsafe-fixes`."
    if unsafe and len(run.files) == 1 and _is_program(run.files[0]):
        import shlex  # for this line alone

        path = shlex.quote(run.files[0].result.path)
        yield f"`devlint verify --fix {path}` runs the program and writes the fixes that hold."


def _is_program(file: FileReport) -> bool:
    """Whether a file does something when it is run: it asks for its own name, or calls or repeats something at the top."""
    if not file.result.path.endswith(".py"):
        return False
    try:
        text = Path(file.result.path).read_bytes() if file.text is None else file.text
        tree = ast.parse(text)
    except (OSError, SyntaxError, ValueError):
        return False
    for statement in tree.body:
        if isinstance(statement, ast.If):
            if any(isinstance(node, ast.Name) and node.id == "__name__" for node in ast.walk(statement.test)):
                return True
        called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if called or isinstance(statement, ast.For | ast.While | ast.With):
            return True
    return False


def _assumed(number: int, problems: int) -> str:
    """How many problems rest on an assumption, and whether others do not."""
    what = "that an argument or a module may be on an accelerator (`assume-accelerator`)"
    if number == problems:
        return f"It assumes {what}." if number == 1 else f"All of them assume {what}."
    others = "the other does" if problems - number == 1 else "the others do"
    return f"{number} of them {'assumes' if number == 1 else 'assume'} {what}; {others} not."


def _success(run: Run, fixed: int) -> str:
    files = count(len(run.files), "file")
    if run.fix_only:
        changed = sum(1 for file in run.files if file.fixed)
        return f"Fixed {count(fixed, 'problem')} in {count(changed, 'file')}"
    return f"Fixed {count(fixed, 'problem')}; none left in {files}" if fixed else f"No device problems found in {files}"


def fixed_lines(run: Run, style: Style) -> Iterator[str]:
    """What was fixed, for `--show-fixes`: per file, the number for each rule."""
    fixed = run.fixed()
    if not fixed:
        return
    yield style.bold(f"Fixed {count(len(fixed), 'problem')}:")
    for file in run.files:
        if not file.fixed:
            continue
        yield f"- {style.bold(file.result.path)}:"
        counts: dict[tuple[str, str], int] = {}
        for diagnostic in file.fixed:
            key = diagnostic.code, diagnostic.name
            counts[key] = counts.get(key, 0) + 1
        for (code, name), number in sorted(counts.items()):
            yield f"    {number} x {style.code(code)} ({name})"
