"""A text as numbered lines: rows and columns of offsets, the text of a row. Lines end as in Python's tokenizer."""

from __future__ import annotations

import bisect
import functools
import re

from devlint.model import Position

_BREAK = re.compile(r"\r\n|\r|\n")


class Lines:
    """The lines of one text; rows are 1-based, columns are 1-based code points."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._starts = [0, *(match.end() for match in _BREAK.finditer(text))]

    def __len__(self) -> int:
        return len(self._starts)

    def start(self, row: int) -> int:
        """The offset at which a row starts; the end of the text for a row after the last."""
        return self._starts[row - 1] if row <= len(self._starts) else len(self.text)

    def row(self, offset: int) -> int:
        return bisect.bisect_right(self._starts, offset)

    def position(self, offset: int) -> Position:
        row = self.row(offset)
        return Position(row, offset - self.start(row) + 1)

    def line(self, row: int) -> str:
        """The text of a row without its line break; empty for a row that does not exist."""
        return self.text[self.start(row) : self.start(row + 1)].rstrip("\r\n")

    @staticmethod
    @functools.lru_cache(maxsize=1)
    def of(text: str) -> Lines:
        """The lines of a text of which several problems are told one after the other."""
        return Lines(text)

    @staticmethod
    def split(text: str) -> list[str]:
        """The lines of a text without their breaks; a break at the very end starts no further line."""
        parts = _BREAK.split(text)
        return parts[:-1] if parts and not parts[-1] else parts
