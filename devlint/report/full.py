"""The report for people: each problem with its code, the places that explain it, and the fix as a small diff."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.report import Run
from devlint.report.closing import closing_lines
from devlint.report.statistics import table as render_statistics
from devlint.terminal import Style

__all__ = ["render", "render_statistics"]


def render(run: Run, style: Style) -> Iterator[str]:
    for file in run.files:
        if file.result.diagnostics:
            from devlint.report.lines import Lines
            from devlint.report.problem import problem

            lines = Lines(file.text or "")
            for diagnostic in file.result.diagnostics:
                yield "\n".join(problem(diagnostic, file, lines, style))
                yield ""
    yield from closing_lines(run, style)
