"""Problems as one JSON object per line, with the keys of the JSON format."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.report import Run
from devlint.report.data import as_json
from devlint.report.json_ import render_statistics, row
from devlint.terminal import Style

__all__ = ["render", "render_statistics"]


def render(run: Run, style: Style) -> Iterator[str]:
    for file, diagnostic in run.findings():
        yield as_json(row(diagnostic, file))
