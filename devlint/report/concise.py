"""One line for each problem: `path:line:column: CODE [*] message`. A stable contract, made for grep and editors."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.report import Run
from devlint.report.closing import aside_lines, closing_lines, line
from devlint.report.statistics import table as render_statistics
from devlint.terminal import Style

__all__ = ["line", "render", "render_statistics"]


def render(run: Run, style: Style) -> Iterator[str]:
    for file, diagnostic in run.problems():
        yield line(diagnostic, file.is_fixable(diagnostic), style)
    yield from aside_lines(run, style)
    yield from closing_lines(run, style)
