"""The problems of each file under its name, places aligned."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.report import Run
from devlint.report.closing import aside_lines, closing_lines
from devlint.report.statistics import table as render_statistics
from devlint.terminal import Style, printable

__all__ = ["render", "render_statistics"]


def render(run: Run, style: Style) -> Iterator[str]:
    for file in run.files:
        found = file.problems
        if not found:
            continue
        path = file.result.path
        yield f"{style.link(style.bold(printable(path)), path)}:"
        places = [
            f"{f'cell {each.cell}:' if each.cell is not None else ''}{each.start.row}:{each.start.column}"
            for each in found
        ]
        width = max(map(len, places))
        for where, diagnostic in zip(places, found, strict=True):
            star = f" [{style.mark('*')}]" if file.is_fixable(diagnostic) else ""
            text = printable(" ".join(diagnostic.message.split()))
            yield f"  {where:<{width}}  {style.code(diagnostic.code)}{star} {text}"
        yield ""
    yield from aside_lines(run, style)
    yield from closing_lines(run, style)
