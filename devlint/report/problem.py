"""One problem of the full report: its code, the places that explain it, and the fix as a small diff."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.model import Diagnostic, Related, Safety
from devlint.report import FileReport
from devlint.report.diff import fix_diff, last_row
from devlint.report.frame import code_frame, labelled_row
from devlint.report.lines import Lines
from devlint.report.places import place
from devlint.terminal import Style, printable


def problem(diagnostic: Diagnostic, file: FileReport, lines: Lines, style: Style) -> Iterator[str]:
    """One problem as lines of text."""
    star = f" [{style.mark('*')}]" if file.is_fixable(diagnostic) else ""
    yield f"{style.code(diagnostic.code)}{star} {style.bold(printable(' '.join(diagnostic.message.split())))}"
    gutter = _gutter(diagnostic, lines)
    yield f"{' ' * gutter}{style.frame('-->')} {place(diagnostic, style, bold=False)}"
    beside = [related for related in diagnostic.related if _on_the_same_row(related, diagnostic)]
    has_text = file.text_at(diagnostic.cell) is not None
    if has_text:
        yield from code_frame(lines, diagnostic.start, diagnostic.end, gutter, style, also=beside)
    for related in diagnostic.related:
        if not has_text or related not in beside:
            yield from _related(related, diagnostic, file, lines, gutter, style)
    if diagnostic.fix is not None:
        unsafe = " (unsafe fix)" if diagnostic.fix.safety is Safety.UNSAFE else ""
        yield f"{style.mark('help')}: {printable(diagnostic.fix.title)}{unsafe}"
        if diagnostic.fix.edits and has_text:
            yield from fix_diff(lines, diagnostic.fix, gutter, style)


def _on_the_same_row(related: Related, diagnostic: Diagnostic) -> bool:
    rows = {related.start.row, related.end.row, diagnostic.start.row, diagnostic.end.row}
    return _same_text(related, diagnostic) and len(rows) == 1


def _same_text(related: Related, diagnostic: Diagnostic) -> bool:
    return related.path == diagnostic.path and related.cell == diagnostic.cell


def _related(
    related: Related, diagnostic: Diagnostic, file: FileReport, lines: Lines, gutter: int, style: Style
) -> Iterator[str]:
    """A second place in one row: its code in the same text, else where it is."""
    if not _same_text(related, diagnostic) or file.text_at(related.cell) is None:
        yield f"{' ' * gutter} {style.frame('::')} {place(related, style, bold=False)}: {printable(related.message)}"
        return
    yield labelled_row(lines, related.start, gutter, style, related.message)


def _gutter(diagnostic: Diagnostic, lines: Lines) -> int:
    """The cells that the highest row number of a problem takes."""
    rows = [diagnostic.end.row, *(related.end.row for related in diagnostic.related)]
    if diagnostic.fix is not None and diagnostic.fix.edits:
        rows.append(last_row(lines, diagnostic.fix))
    return len(str(max(rows)))
