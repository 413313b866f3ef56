"""Annotations of a GitHub Actions job (workflow commands).

GitHub shows at most ten errors, ten warnings and ten notices of a step, so the most severe come first; a last line
counts all. Source: docs.github.com, "Workflow commands for GitHub Actions".
"""

from __future__ import annotations

from collections.abc import Iterator

from devlint.model import Diagnostic, Severity
from devlint.report import Run, count
from devlint.report.places import message, repository_path, rows_in_file
from devlint.report.statistics import table as render_statistics
from devlint.terminal import Style, printable

__all__ = ["render", "render_statistics"]

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}
_ORDER = list(_COMMANDS)


def render(run: Run, style: Style) -> Iterator[str]:
    for _, diagnostic in sorted(run.findings(), key=lambda each: _ORDER.index(each[1].severity)):
        yield _command(diagnostic)
    problems = list(run.problems())
    files = len({diagnostic.path for _, diagnostic in problems})
    yield f"Found {count(len(problems), 'problem')} in {count(files, 'file')}." if problems else "No problems found."


def _command(diagnostic: Diagnostic) -> str:
    start, end = rows_in_file(diagnostic)
    values = {
        "title": f"{diagnostic.code} ({diagnostic.name})",
        "file": printable(repository_path(diagnostic.path)),
        "line": start.row,
        "col": start.column,
        "endLine": end.row,
    }
    if start.row == end.row and end.column > start.column:  # a column of another line would be misread
        values["endColumn"] = end.column
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in values.items())
    return f"::{_COMMANDS[diagnostic.severity]} {properties}::{_data(f'{diagnostic.code} {message(diagnostic)}')}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
