"""The statements of a program as places: numbered, and found again in a corrected copy.

A place is a simple statement, or the header of a compound one. The count of a place says whether the runs came there
and whether one run got further than another. Free of torch.
"""

from __future__ import annotations

import ast
import bisect
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

_NEWLINE = re.compile(r"\r\n|\r|\n")
_BODIES = ("body", "orelse", "finalbody")


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: code points `start` to `end`, its header up to `header_end`, and the lines of the header.

    For a simple statement the header is the whole of it. Lines are 1-based.
    """

    start: int
    end: int
    header_end: int
    first_line: int
    last_line: int


class Lines:
    """The lines of a text as Python counts them, with the offset where each begins."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in _NEWLINE.finditer(text))]

    def offset(self, line: int, byte_column: int) -> int:
        """The code point offset of a 1-based line and a UTF-8 byte column, as `ast` gives them."""
        start = self.starts[line - 1]
        end = self.starts[line] if line < len(self.starts) else len(self.text)
        row = self.text[start:end]
        if row.isascii():
            return start + byte_column
        return start + len(row.encode()[:byte_column].decode(errors="replace"))

    def line(self, offset: int) -> int:
        """The 1-based line of an offset."""
        low, high = 0, len(self.starts)
        while high - low > 1:
            middle = (low + high) // 2
            if self.starts[middle] <= offset:
                low = middle
            else:
                high = middle
        return low + 1


def bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every list of statements under a node, outer ones first, in source order."""
    for name in _BODIES:
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block
            for statement in block:
                yield from bodies(statement)
        if name == "body":
            for inner in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from bodies(inner)


class Places:
    """The statements of one text, numbered from 0.

    Raises SyntaxError when the text is no Python.
    """

    def __init__(self, text: str) -> None:
        self.lines = Lines(text)
        self.statements: list[Statement] = []
        self._blocks: list[range] = []
        for block in bodies(ast.parse(text)):
            numbers = range(len(self.statements), len(self.statements) + len(block))
            self._blocks += [numbers] * len(block)
            self.statements += map(self._statement, block)
        self._by_start = sorted((statement.start, number) for number, statement in enumerate(self.statements))

    def _statement(self, node: ast.stmt) -> Statement:
        first_line, column = begin_of(node)
        start = self.lines.offset(first_line, column)
        end = self.lines.offset(node.end_lineno or first_line, node.end_col_offset or 0)
        body = next(bodies(node), None)
        header_end = end if body is None else self.lines.offset(*begin_of(body[0]))
        last = header_end - 1
        while last > start and self.lines.text[last].isspace():
            last -= 1
        return Statement(start, end, header_end, first_line, self.lines.line(last))

    def at(self, offset: int) -> int | None:
        """The number of the innermost statement that holds an offset; None between statements."""
        order = self._by_start
        for position in range(bisect.bisect_right(order, (offset, len(self.statements))) - 1, -1, -1):
            number = order[position][1]
            statement = self.statements[number]
            if statement.start <= offset < max(statement.end, statement.start + 1):
                return number
        return None

    def on_line(self, line: int, byte_column: int | None = None) -> int | None:
        """The number of the statement whose header covers a line; the column decides between several on one line."""
        if not 1 <= line <= len(self.lines.starts):
            return None
        if byte_column is not None:
            return self.at(self.lines.offset(line, byte_column))
        covering = [n for n, s in enumerate(self.statements) if s.first_line <= line <= s.last_line]
        if covering:
            first = max(self.statements[n].first_line for n in covering)
            return next(n for n in covering if self.statements[n].first_line == first)
        return self.at(self.lines.starts[line - 1])

    def beside(self, number: int, gone: Collection[int] = ()) -> tuple[int | None, int | None]:
        """The statements after and before one in its block; of the outermost around it among those that are `gone`."""
        while (around := self._around(number)) is not None and around in gone:
            number = around
        block = self._blocks[number]
        return (number + 1 if number + 1 in block else None), (number - 1 if number - 1 in block else None)

    def _around(self, number: int) -> int | None:
        """The innermost statement that holds another."""
        inner = self.statements[number]
        holding = [
            n for n, s in enumerate(self.statements) if n != number and s.start <= inner.start and inner.end <= s.end
        ]
        return max(holding, key=lambda n: self.statements[n].start, default=None)

    def touching(self, start: int, end: int) -> list[int]:
        """The statements whose headers share a code point with a range, or hold an empty one."""
        return [
            n
            for n, s in enumerate(self.statements)
            if (s.start < end and start < s.header_end) or (start == end and s.start <= start < s.header_end)
        ]


def lost_call(text: str, offset: int, corrected: str) -> str:
    """The function of a call statement that has an offset in its arguments, where a corrected text calls it nowhere.

    "" where it is called still, where the offset is in no argument, and where a text does not parse.
    """
    try:
        statement, after = ast.parse(text).body, ast.parse(corrected)
    except SyntaxError:
        return ""
    call = statement[0].value if len(statement) == 1 and isinstance(statement[0], ast.Expr) else None
    if not isinstance(call, ast.Call):
        return ""
    lines = Lines(text)
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    ranges = [
        (lines.offset(each.lineno, each.col_offset), lines.offset(each.end_lineno or 1, each.end_col_offset or 0))
        for each in given
    ]
    function = ast.unparse(call.func)
    called = {ast.unparse(node.func) for node in ast.walk(after) if isinstance(node, ast.Call)}
    return function if function not in called and any(start <= offset < end for start, end in ranges) else ""


def begin_of(node: ast.stmt) -> tuple[int, int]:
    """Line and byte column of a statement, its first decorator's `@` included."""
    decorators = getattr(node, "decorator_list", None)
    if decorators:
        return decorators[0].lineno, max(decorators[0].col_offset - 1, 0)
    return node.lineno, node.col_offset
