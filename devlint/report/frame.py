"""Code frames: numbered lines with a mark under a range, aligned by what a terminal shows.

A wide East Asian character takes two cells, a combining one none, a tab runs to the next multiple of four. Control
characters are replaced. A line longer than `LIMIT` cells is cropped around the mark.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence

from devlint.model import Position, Related
from devlint.report.lines import Lines
from devlint.terminal import Style, printable

TAB = 4
LIMIT = 160
CROPPED = "..."
MAX_ROWS = 6  # of a range over several lines; the middle of a longer one is left out


def width(char: str) -> int:
    """The cells that a character takes on a terminal."""
    if char < "\u0300":
        return 1
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cells(line: str) -> tuple[str, list[int]]:
    """A line as it is shown, and for each of its characters, and its end, the cell at which it starts."""
    if line.isascii() and line.isprintable():
        return line, list(range(len(line) + 1))
    shown: list[str] = []
    starts: list[int] = []
    at = 0
    for char in line:
        starts.append(at)
        if char == "\t":
            size = TAB - at % TAB
            shown.append(" " * size)
        else:
            char = printable(char)
            size = width(char)
            shown.append(char)
        at += size
    return "".join(shown), [*starts, at]


def code_frame(
    lines: Lines,
    start: Position,
    end: Position,
    gutter: int,
    style: Style,
    *,
    label: str = "",
    mark: str = "^",
    also: Sequence[Related] = (),
) -> Iterator[str]:
    """The rows of a range, marked. Row numbers take `gutter` cells.

    `also`: further places on the same row, when the range is on one row; they are marked below it.
    """
    bar = f"{' ' * gutter} {style.frame('|')}"
    paint = style.caret if mark == "^" else style.second
    tail = f" {paint(printable(label))}" if label else ""
    first, last = start.row, min(max(end.row, start.row), max(len(lines), start.row))
    if last > first and end.column == 1:  # the range ends with the line break of the row before
        last -= 1
        end = Position(last, len(lines.line(last)) + 1)
    if first == last:
        text, left, right = _marked(lines.line(first), start.column - 1, end.column - 1)
        yield _numbered(first, gutter, style, text)
        yield f"{bar} {' ' * left}{paint(mark * max(1, right - left))}{tail}"
        for other in also:
            text, left, right = _marked(lines.line(first), other.start.column - 1, other.end.column - 1)
            line = f"{'-' * max(1, right - left)} {printable(other.message)}"
            yield f"{bar} {' ' * left}{style.second(line)}"
    else:
        yield from _long_range(lines, start, end, last, gutter, style, mark, tail)


def labelled_row(lines: Lines, at: Position, gutter: int, style: Style, label: str) -> str:
    """The row of a place, with what there is to say of it behind the code."""
    text, _, _ = _marked(lines.line(at.row), at.column - 1, at.column)
    return f"{_numbered(at.row, gutter, style, text)}  {style.second(f'-- {printable(label)}')}"


def _long_range(
    lines: Lines, start: Position, end: Position, last: int, gutter: int, style: Style, mark: str, tail: str
) -> Iterator[str]:
    """A range over several rows: a line on the left joins its first and its last character."""
    paint = style.caret if mark == "^" else style.second
    bar = f"{' ' * gutter} {style.frame('|')}"
    text, left, _ = _marked(lines.line(start.row), start.column - 1, start.column)
    if text[:left].strip():
        yield _numbered(start.row, gutter, style, f"  {text}")
        yield f"{bar}  {paint('_' * (left + 1) + mark)}"
    else:
        yield _numbered(start.row, gutter, style, f"{paint('/')} {text}")
    rows = list(range(start.row + 1, last + 1))
    if len(rows) >= MAX_ROWS:
        half = MAX_ROWS // 2
        rows = [*rows[: half - 1], 0, *rows[-half:]]
    for row in rows:
        text = CROPPED if row == 0 else _crop(lines.line(row), 0, 0)[0]
        line = f"{paint('|')} {text}".rstrip()
        yield _numbered(row, gutter, style, line) if row else f"{' ' * gutter} {style.frame('|')} {line}"
    _, _, right = _marked(lines.line(last), max(0, end.column - 2), end.column - 1)
    yield f"{bar} {paint('|' + '_' * max(0, right) + mark)}{tail}"


def _numbered(row: int, gutter: int, style: Style, text: str) -> str:
    return f"{style.frame(f'{row:>{gutter}} |')} {text}".rstrip()


def _marked(line: str, start: int, end: int) -> tuple[str, int, int]:
    """The shown line and the cells of the range [start, end) in it, both cropped to the limit."""
    _, starts = cells(line)
    start, end = min(start, len(line)), min(max(end, start), len(line))
    text, dropped = _crop(line, starts[start], starts[end])
    left, right = starts[start] - dropped, starts[end] - dropped
    return text, left, min(right, max(left + 1, LIMIT))


def _crop(line: str, left: int, right: int) -> tuple[str, int]:
    """The shown line, cut to `LIMIT` cells around the cells [left, right), and how many cells were cut on the left."""
    shown, starts = cells(line)
    total = starts[-1]
    if total <= LIMIT:
        return shown, 0
    room = LIMIT - 2 * len(CROPPED)
    begin = 0 if right <= room else max(0, min(left - room // 4, total - room))
    kept: list[str] = []
    first: int | None = None
    for index, char in enumerate(line):
        if begin <= starts[index] and starts[index + 1] <= begin + room:
            first = starts[index] if first is None else first
            kept.append(" " * (starts[index + 1] - starts[index]) if char == "\t" else printable(char))
    first = first or 0
    opening = CROPPED if begin else ""
    closing = CROPPED if begin + room < total else ""
    return opening + "".join(kept) + closing, first - len(opening)
