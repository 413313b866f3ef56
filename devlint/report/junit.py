"""JUnit XML: a suite for each file with findings, a failed case for each problem, a passed one for what is info.

A run without problems holds one passed case, since some servers take a report without cases for a failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from devlint.report import FileReport, Run
from devlint.report.places import message, rows_in_file
from devlint.report.statistics import table as render_statistics
from devlint.terminal import Style, printable

__all__ = ["render", "render_statistics"]


def render(run: Run, style: Style) -> Iterator[str]:
    files = [file for file in run.files if file.result.diagnostics]
    tests = sum(len(file.result.diagnostics) for file in files)
    problems = sum(len(file.problems) for file in files)
    yield '<?xml version="1.0" encoding="UTF-8"?>'
    yield f'<testsuites name="devlint" tests="{tests or 1}" failures="{problems}" errors="0">'
    for file in files:
        yield from _suite(file)
    if not files:
        yield '  <testsuite name="devlint" tests="1" failures="0" errors="0">'
        yield '    <testcase name="No problems found" classname="devlint" />'
        yield "  </testsuite>"
    yield "</testsuites>"


def _suite(file: FileReport) -> Iterator[str]:
    found = file.result.diagnostics
    path = _attribute(file.result.path)
    yield f'  <testsuite name={path} tests="{len(found)}" failures="{len(file.problems)}" errors="0">'
    for diagnostic in found:
        start, _ = rows_in_file(diagnostic)
        name = _attribute(f"{diagnostic.code} ({diagnostic.name})")
        text = message(diagnostic)
        where = f'line="{start.row}" column="{start.column}"'
        yield f"    <testcase name={name} classname={path} file={path} {where}>"
        failure = f"{start.row}:{start.column}: {diagnostic.code} {text}" if diagnostic.cell is None else text
        if file.is_note(diagnostic):
            yield f"      <system-out>{escape(_legal(failure))}</system-out>"
        else:
            opening = f"<failure type={_attribute(diagnostic.code)} message={_attribute(text)}>"
            yield f"      {opening}{escape(_legal(failure))}</failure>"
        yield "    </testcase>"
    yield "  </testsuite>"


def _attribute(text: str) -> str:
    return quoteattr(_legal(text))


def _legal(text: str) -> str:
    """Text without what XML 1.0 cannot hold: control characters, surrogates, U+FFFE and U+FFFF."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" or c in "\ufffe\uffff" else c for c in printable(text))
