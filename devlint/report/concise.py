"""One line for each problem: `path:line:column: CODE [*] message`. A stable contract, made for grep and editors."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.model import Diagnostic
from devlint.report import Run
from devlint.report.closing import closing_lines
from devlint.report.places import place
from devlint.report.statistics import table as render_statistics
from devlint.terminal import Style, printable

__all__ = ["line", "render", "render_statistics"]


def render(run: Run, style: Style) -> Iterator[str]:
    for file, diagnostic in run.problems():
        yield line(diagnostic, file.is_fixable(diagnostic), style)
    yield from closing_lines(run, style)


def line(diagnostic: Diagnostic, fixable: bool, style: Style) -> str:
    """The line of one problem; line breaks of a message become spaces."""
    star = f" [{style.mark('*')}]" if fixable else ""
    message = printable(" ".join(diagnostic.message.split()))
    return f"{place(diagnostic, style)}: {style.code(diagnostic.code)}{star} {message}"
