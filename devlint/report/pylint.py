"""One line for each problem as many editors parse it: `path:line: [CODE] message`."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.report import Run
from devlint.report.places import message, rows_in_file
from devlint.report.statistics import table as render_statistics
from devlint.terminal import Style, printable

__all__ = ["render", "render_statistics"]


def render(run: Run, style: Style) -> Iterator[str]:
    for _, diagnostic in run.findings():
        start, _ = rows_in_file(diagnostic)
        yield f"{printable(diagnostic.path)}:{start.row}: [{diagnostic.code}] {message(diagnostic)}"
