"""A code quality report of GitLab: a JSON array of issues.

The fingerprints hold no line numbers, so that GitLab recognises a problem that moved. Source: docs.gitlab.com, "Code
Quality", implementing a custom tool.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from devlint.identity import Key, fingerprint, keys
from devlint.model import Diagnostic, Position, Severity
from devlint.report import Run
from devlint.report.data import as_json
from devlint.report.json_ import render_statistics
from devlint.report.places import message, repository_path, rows_in_file
from devlint.terminal import Style

__all__ = ["render", "render_statistics"]

_SEVERITIES = {Severity.ERROR: "major", Severity.WARNING: "minor", Severity.INFO: "info"}


def render(run: Run, style: Style) -> Iterator[str]:
    rows = [
        _issue(diagnostic, key)
        for file in run.files
        for diagnostic, key in zip(file.result.diagnostics, keys(file.result.diagnostics), strict=True)
    ]
    yield as_json(rows, indent=2)


def _issue(diagnostic: Diagnostic, key: Key) -> dict[str, Any]:
    path = repository_path(diagnostic.path)
    start, end = rows_in_file(diagnostic)
    return {
        "description": f"{diagnostic.code}: {message(diagnostic)}",
        "check_name": diagnostic.name,
        "fingerprint": f"{fingerprint(path, key)}{key.ordinal:04x}",
        "severity": _SEVERITIES[diagnostic.severity],
        "location": {"path": path, "positions": {"begin": _position(start), "end": _position(end)}},
    }


def _position(position: Position) -> dict[str, int]:
    return {"line": position.row, "column": position.column}
