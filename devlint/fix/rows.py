"""The rows around a statement: where one starts, what follows it, how it ends."""

from __future__ import annotations

import re

from devlint.source import Source

REST_OF_ROW = re.compile(r"[ \t\f]*(#[^\r\n]*)?(\r\n|\r|\n|\Z)")  # a comment, and the line ending
_ROW_END = re.compile(r"\r\n|\r|\n")


class CannotEditError(Exception):
    """The edit cannot be made on the text without harm; its fix becomes a hint."""


def newline_of(source: Source, offset: int) -> str:
    """The line ending of the row at `offset`, else the first of the file, else LF."""
    match = _ROW_END.search(source.text, offset) or _ROW_END.search(source.text)
    return match.group() if match else "\n"


def starts_row(source: Source, offset: int) -> bool:
    """Whether only whitespace stands before `offset` in its row, and the row continues no other."""
    row = source.row(offset)
    if source.text[source.starts[row - 1] : offset].strip(" \t\f"):
        return False
    return row == 1 or not source.line_text(row - 1).endswith("\\")
