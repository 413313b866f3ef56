"""Problems as a JSON array. Rows and columns are 1-based, columns count code points; ends are exclusive.

Escapes everything outside ASCII, so that the output is the same on every terminal.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from devlint.addresses import rule_url
from devlint.model import Diagnostic, Position, TextFix
from devlint.report import FileReport, Run
from devlint.report.data import as_json
from devlint.report.lines import Lines
from devlint.report.statistics import rule_counts
from devlint.terminal import Style


def render(run: Run, style: Style) -> Iterator[str]:
    rows = [row(diagnostic, file) for file, diagnostic in run.findings()]
    yield as_json(rows, indent=2)


def render_statistics(run: Run, style: Style) -> Iterator[str]:
    yield as_json({"rules": [asdict(each) for each in rule_counts(run)], **asdict(run.totals())}, indent=2)


def row(diagnostic: Diagnostic, file: FileReport) -> dict[str, Any]:
    """One problem as JSON data."""
    return {
        "code": diagnostic.code,
        "name": diagnostic.name,
        "severity": diagnostic.severity.value,
        "certainty": diagnostic.certainty,
        "evidence": diagnostic.evidence,
        "proof": diagnostic.proof,
        "message": diagnostic.message,
        "filename": diagnostic.path,
        "cell": diagnostic.cell,
        "location": _location(diagnostic.start),
        "end_location": _location(diagnostic.end),
        "fix": _fix(diagnostic.fix, file.text_at(diagnostic.cell) or "") if diagnostic.fix is not None else None,
        "related": [
            {
                "filename": related.path,
                "cell": related.cell,
                "location": _location(related.start),
                "end_location": _location(related.end),
                "message": related.message,
            }
            for related in diagnostic.related
        ],
        "folded": [
            {
                "code": folded.code,
                "cell": folded.cell,
                "location": _location(folded.start),
                "end_location": _location(folded.end),
                "message": folded.message,
            }
            for folded in diagnostic.folded
        ],
        "url": rule_url(diagnostic.code),
    }


def _fix(fix: TextFix, text: str) -> dict[str, Any]:
    lines = Lines.of(text)
    return {
        "applicability": fix.safety.value,
        "message": fix.title,
        "edits": [
            {
                "content": edit.text,
                "location": _location(lines.position(edit.start)),
                "end_location": _location(lines.position(edit.end)),
            }
            for edit in sorted((*fix.edits, *fix.shared))
        ],
    }


def _location(position: Position) -> dict[str, int]:
    return {"row": position.row, "column": position.column}
