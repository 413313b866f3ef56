"""Problems for reviewdog (rdjson): fixes become suggestions that a reviewer applies with a click.

Lines are 1-based, columns are 1-based and count UTF-8 bytes. Source: reviewdog's `proto/rdf/reviewdog.proto`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from devlint.addresses import rule_url
from devlint.model import Diagnostic, Position, Related, Safety, Severity
from devlint.report import FileReport, Run
from devlint.report.data import as_json
from devlint.report.json_ import render_statistics
from devlint.report.lines import Lines
from devlint.report.places import message, related_places
from devlint.terminal import Style

__all__ = ["render", "render_statistics"]

_SEVERITIES = {Severity.ERROR: "ERROR", Severity.WARNING: "WARNING", Severity.INFO: "INFO"}


def render(run: Run, style: Style) -> Iterator[str]:
    rows = []
    for file in run.files:
        lines = Lines(file.text or "") if file.result.diagnostics else None
        rows += [_row(diagnostic, file, lines) for diagnostic in file.result.diagnostics if lines is not None]
    yield as_json({"source": {"name": "devlint"}, "severity": "WARNING", "diagnostics": rows}, indent=2)


def _row(diagnostic: Diagnostic, file: FileReport, lines: Lines) -> dict[str, Any]:
    row: dict[str, Any] = {
        "message": message(diagnostic),
        "location": _location(diagnostic, lines, file),
        "severity": _SEVERITIES[diagnostic.severity],
        "code": _code(diagnostic.code),
    }
    fix = diagnostic.fix
    if fix is not None and fix.safety is not Safety.HINT and diagnostic.cell is None and file.text is not None:
        row["suggestions"] = [
            {
                "range": _range(lines.position(edit.start), lines.position(edit.end), lines),
                "text": edit.text,
            }
            for edit in sorted((*fix.edits, *fix.shared))
        ]
    if places := related_places(diagnostic):
        row["related_locations"] = [
            {"message": each.message, "location": _location(each, lines, file)} for each in places
        ]
    return row


def _code(code: str) -> dict[str, str]:
    url = rule_url(code)
    return {"value": code, "url": url} if url else {"value": code}


def _location(what: Diagnostic | Related, lines: Lines, file: FileReport) -> dict[str, Any]:
    """A place; without a range in a notebook, whose lines mean nothing to reviewdog, and in a file not at hand."""
    location: dict[str, Any] = {"path": what.path}
    if what.cell is None and file.text is not None and what.path == file.result.path:
        location["range"] = _range(what.start, what.end, lines)
    return location


def _range(start: Position, end: Position, lines: Lines) -> dict[str, Any]:
    return {"start": _position(start, lines), "end": _position(end, lines)}


def _position(position: Position, lines: Lines) -> dict[str, int]:
    before = lines.text[lines.start(position.row) :][: position.column - 1]
    return {"line": position.row, "column": len(before.encode("utf-8", "surrogatepass")) + 1}
