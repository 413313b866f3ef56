"""The report for people: each problem with its code, the places that explain it, and the fix as a small diff."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.report import Run
from devlint.report.closing import aside_lines, closing_lines
from devlint.report.overview import adoption, table
from devlint.report.statistics import table as render_statistics
from devlint.terminal import Style

__all__ = ["render", "render_statistics"]


def render(run: Run, style: Style) -> Iterator[str]:
    yield from table(run, style)
    for file in run.files:
        if file.problems:
            from devlint.report.lines import Lines
            from devlint.report.problem import problem

            texts: dict[int | None, Lines] = {}
            for diagnostic in file.problems:
                lines = texts.get(diagnostic.cell)
                if lines is None:
                    lines = texts[diagnostic.cell] = Lines(file.text_at(diagnostic.cell) or "")
                yield "\n".join(problem(diagnostic, file, lines, style))
                yield ""
    yield from aside_lines(run, style)
    yield from closing_lines(run, style)
    yield from adoption(run)
