"""Changes as text: the small diff of one fix for the full report, and the unified diff of a file for `--diff`."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import AnyStr

from devlint.fix.apply import in_order
from devlint.model import TextEdit, TextFix
from devlint.report.frame import CROPPED, LIMIT, cells
from devlint.report.lines import Lines
from devlint.terminal import Style

CONTEXT = 3


def fix_diff(lines: Lines, fix: TextFix, gutter: int, style: Style) -> Iterator[str]:
    """The rows that a fix removes and adds, numbered as before and after, with `...` between distant places."""
    shift = 0
    previous: int | None = None
    for first, last, edits in _groups(lines, fix):
        old = [lines.line(row) for row in range(first, last + 1)]
        new = Lines.split(_apply(lines, first, last, edits))
        top = _common(old, new)
        bottom = _common(old[top:][::-1], new[top:][::-1])
        removed, added = old[top : len(old) - bottom], new[top : len(new) - bottom]
        row = first + top
        if previous is not None and row > previous + 1:
            yield f"{' ' * gutter} {style.frame(CROPPED)}"
        for offset, text in enumerate(removed):
            yield _row(row + offset, "-", text, gutter, style)
        for offset, text in enumerate(added):
            yield _row(row + shift + offset, "+", text, gutter, style)
        shift += len(new) - len(old)
        previous = last


def last_row(lines: Lines, fix: TextFix) -> int:
    """The highest row number that `fix_diff` prints."""
    grown = sum(edit.text.count("\n") for edit in (*fix.edits, *fix.shared))
    return max((lines.row(edit.end) for edit in (*fix.edits, *fix.shared)), default=1) + grown


def _groups(lines: Lines, fix: TextFix) -> list[tuple[int, int, list[TextEdit]]]:
    """The edits of a fix by the rows that they touch, edits on the same or adjoining rows together."""
    groups: list[tuple[int, int, list[TextEdit]]] = []
    for edit in in_order((*fix.edits, *fix.shared)):
        first, last = lines.row(edit.start), lines.row(edit.end)
        if groups and first <= groups[-1][1]:
            begun, until, edits = groups[-1]
            groups[-1] = (begun, max(until, last), [*edits, edit])
        else:
            groups.append((first, last, [edit]))
    return groups


def _apply(lines: Lines, first: int, last: int, edits: Sequence[TextEdit]) -> str:
    at, stop = lines.start(first), lines.start(last + 1)
    parts: list[str] = []
    for edit in edits:
        parts += [lines.text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*parts, lines.text[at:stop]])


def _common(old: Sequence[AnyStr], new: Sequence[AnyStr]) -> int:
    """How many items both start with."""
    same = 0
    for left, right in zip(old, new, strict=False):
        if left != right:
            break
        same += 1
    return same


def _row(row: int, sign: str, text: str, gutter: int, style: Style) -> str:
    shown, starts = cells(text)
    if starts[-1] > LIMIT:
        shown = shown[:LIMIT] + CROPPED
    paint = style.removed if sign == "-" else style.added
    return f"{style.frame(f'{row:>{gutter}}')} {paint(f'{sign} {shown}'.rstrip())}"


def unified_diff(old: bytes, new: bytes, name: str, style: Style) -> bytes:
    """The change of one file as a unified diff that `git apply` takes; empty when nothing changed.

    Works on bytes: line endings, a byte order mark and the encoding of the file stay as they are.
    """
    if old == new:
        return b""
    path = (name if os.sep == "/" else name.replace(os.sep, "/")).lstrip("/")
    before, after = _by_line_feed(old), _by_line_feed(new)
    rows: list[bytes] = [b"--- " + _header(f"a/{path}") + b"\n", b"+++ " + _header(f"b/{path}") + b"\n"]
    rows += _hunks(before, after)
    if not style.color:
        return b"".join(rows)
    return b"".join(_colored(row, style) for row in rows)


def _header(path: str) -> bytes:
    """A path as git writes it: quoted when it holds control characters, quotes or backslashes, a tab behind spaces."""
    raw = path.encode("utf-8", "surrogateescape")
    if any(byte < 0x20 or byte in b'"\\\x7f' for byte in raw):
        return (
            b'"'
            + b"".join(b"\\%03o" % byte if byte < 0x20 or byte in b'"\\\x7f' else bytes([byte]) for byte in raw)
            + b'"'
        )
    return raw + b"\t" if b" " in raw else raw


def _by_line_feed(data: bytes) -> list[bytes]:
    return [line + b"\n" for line in data.split(b"\n")[:-1]] + (
        [data.rpartition(b"\n")[2]] if data[-1:] != b"\n" else []
    )


def _hunks(before: list[bytes], after: list[bytes]) -> Iterator[bytes]:
    for group in _grouped(_changes(before, after)):
        first, last = group[0], group[-1]
        start, stop = max(0, first[0] - CONTEXT), min(len(before), last[1] + CONTEXT)
        new_start, new_stop = first[2] - (first[0] - start), last[3] + (stop - last[1])
        yield b"@@ -%s +%s @@\n" % (_range(start, stop), _range(new_start, new_stop))
        at = start
        for old_start, old_stop, added_start, added_stop in group:
            yield from (_line(b" ", line) for line in before[at:old_start])
            yield from (_line(b"-", line) for line in before[old_start:old_stop])
            yield from (_line(b"+", line) for line in after[added_start:added_stop])
            at = old_stop
        yield from (_line(b" ", line) for line in before[at:stop])


Change = tuple[int, int, int, int]  # before[0:1] became after[2:3]


def _changes(before: list[bytes], after: list[bytes]) -> list[Change]:
    """The differing ranges; the common beginning and end are set aside first, which leaves difflib little to do."""
    import difflib

    top = _common(before, after)
    bottom = _common(before[top:][::-1], after[top:][::-1])
    old, new = before[top : len(before) - bottom], after[top : len(after) - bottom]
    codes = difflib.SequenceMatcher(None, old, new).get_opcodes()
    return [(a + top, b + top, c + top, d + top) for tag, a, b, c, d in codes if tag != "equal"]


def _grouped(changes: Sequence[Change]) -> Iterator[list[Change]]:
    """Changes so close together that their context would overlap, as one hunk each."""
    group: list[Change] = []
    for change in changes:
        if group and change[0] - group[-1][1] > 2 * CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _range(start: int, stop: int) -> bytes:
    length = stop - start
    begin = start + 1 if length else start
    return b"%d" % begin if length == 1 else b"%d,%d" % (begin, length)


def _line(sign: bytes, line: bytes) -> bytes:
    return sign + line if line.endswith(b"\n") else sign + line + b"\n\\ No newline at end of file\n"


def _colored(row: bytes, style: Style) -> bytes:
    paint = {b"-": style.removed, b"+": style.added, b"@": style.mark}.get(row[:1])
    if row.startswith((b"---", b"+++")):
        paint = style.bold
    if paint is None:
        return row
    body, _, _ = row.partition(b"\n")
    opening, _, closing = paint("\0").partition("\0")
    return opening.encode() + body + closing.encode() + row[len(body) :]
