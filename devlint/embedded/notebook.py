"""Jupyter notebooks (format 4): the code cells as one Python source, and the way back.

The cells are joined by a comment that occurs nowhere else, so that the cells of a fixed text can be told apart again.
Only the `source` of a cell that changed is written, and of that only the lines that changed: everything else of the
file keeps its bytes.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from devlint.embedded import ipython
from devlint.errors import SourceError
from devlint.model import Diagnostic, FileResult, Position, Related, Span, TextFix
from devlint.source import Source

_BOM = b"\xef\xbb\xbf"
_BLANK = re.compile(r"[ \t\r\n]*")
_ROW_END = re.compile(r"\r\n|\r|\n")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_LETTERS = [chr(code) for code in range(0x16A0, 0x16EB)]  # runes: letters of identifiers that NFKC leaves alone


#: A row of a cell that installs packages, and what of them is the project itself or a list of it.
_INSTALLS = re.compile(r"^\s*[!%]\s*(?:\w+\s+-m\s+)?(?:uv\s+)?(?:pip3?|conda|mamba)\s+install\s+([^\n]*)", re.MULTILINE)
_OF_PROJECT = re.compile(r"(?:^|\s)(?:-e|--editable|-r|--requirement|\.{1,2}(?:[\[/]\S*)?)(?=\s|$)")


class Piece(NamedTuple):
    """A part of a cell's source: its text, and how the file spells it, between quotes, from offset `start` on."""

    text: str
    raw: str
    start: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A code cell. `number` counts all cells from 1; `span` is the JSON value of `source` in the file's text.

    `masked`: the cell as Python; `header`: a row that makes it so, for a cell that is indented as a whole.
    """

    number: int
    span: Span
    pieces: tuple[Piece, ...]
    is_list: bool
    text: str
    masked: str = ""
    header: str = ""
    error: SourceError | None = None


@dataclass(slots=True)
class Notebook:
    """A notebook with its Python. `source`: all code cells, joined; empty for a notebook of another language."""

    path: str
    raw: bytes
    text: str  # the JSON
    cells: tuple[Cell, ...]
    source: Source
    separator: str
    letter: str
    ascii: bool  # the file escapes what is not ASCII
    _layout: dict[str, list[int]] = field(default_factory=dict)

    @property
    def installs_its_own(self) -> bool:
        """Whether a cell installs the packages that the notebook needs, and not the project around it: `!pip install torch`."""
        rows = [row for cell in self.cells for row in _INSTALLS.findall(cell.text)]
        return bool(rows) and not any(map(_OF_PROJECT.search, rows))

    def split(self, text: str) -> list[str]:
        """The texts of the cells in a joined text, magics masked. Raises ValueError when their number differs."""
        parts = text[:-1].split(self.separator) if self.cells else []
        if len(parts) != len(self.cells):
            raise ValueError("a cell was removed")
        if not all(part.startswith(cell.header) for part, cell in zip(parts, self.cells, strict=True)):
            raise ValueError("what makes a cell Python was removed")
        return [part[len(cell.header) :] for part, cell in zip(parts, self.cells, strict=True)]

    def starts(self, text: str) -> list[int]:
        """Where each cell starts in a joined text."""
        known = self._layout.get(text)
        if known is None:
            known, at = [], 0
            for part, cell in zip(self.split(text), self.cells, strict=True):
                at += len(cell.header)
                known.append(at)
                at += len(part) + len(self.separator)
            self._layout.clear()
            self._layout[text] = known
        return known

    def parts(self, text: str) -> list[int]:
        """Where each cell starts in a joined text, with what makes it Python. A cell is run whatever the others did."""
        return [start - len(cell.header) for start, cell in zip(self.starts(text), self.cells, strict=True)]

    def allows(self, text: str, fix: TextFix) -> bool:
        """Whether all edits of a fix are in one cell and leave its magics alone."""
        starts, parts = self.starts(text), self.split(text)
        cells = set()
        for edit in (*fix.edits, *fix.shared):
            index = bisect_right(starts, edit.start) - 1
            if (
                index < 0
                or edit.end > starts[index] + len(parts[index]) + 1
                or self.letter in text[edit.start : edit.end]
            ):
                return False
            cells.add(index)
        return len(cells) <= 1

    def texts(self, text: str) -> dict[int, str]:
        """The texts of the cells in a joined text by their number, magics restored."""
        restored = {}
        for cell, part in zip(self.cells, self.split(text), strict=True):
            restored[cell.number] = ipython.unmask(
                part, ipython.hidden(cell.text, cell.masked, self.letter), self.letter
            )
        return restored

    def in_cells(self, result: FileResult, text: str) -> FileResult:
        """A result about a joined text with places in the cells, and a finding for each cell that does not parse."""
        from devlint.engine import unreadable

        joined = Source(self.path, b"", text)

        def moved(findings: Sequence[Diagnostic]) -> list[Diagnostic]:
            return [self.in_cell(each, joined) for each in findings]

        broken = [
            replace(unreadable(self.path, cell.error, Source("", b"", cell.text)), cell=cell.number)
            for cell in self.cells
            if cell.error is not None
        ]
        found = sorted([*broken, *moved(result.diagnostics)], key=lambda d: (d.cell or 0, d.span, d.code))
        left = moved(result.left_alone)
        return replace(result, diagnostics=found, suppressed=moved(result.suppressed), left_alone=left)

    def in_cell(self, diagnostic: Diagnostic, joined: Source) -> Diagnostic:
        """A finding about the joined text with places in its cell."""
        starts = self.starts(joined.text)
        index = max(0, bisect_right(starts, diagnostic.span.start) - 1)
        first = starts[index]
        fix = diagnostic.fix
        if fix is not None:
            edits, shared = (
                tuple(edit._replace(start=edit.start - first, end=edit.end - first) for edit in group)
                for group in (fix.edits, fix.shared)
            )
            fix = replace(fix, edits=edits, shared=shared)
        row = joined.row(first) - 1
        return replace(
            diagnostic,
            cell=self.cells[index].number,
            span=Span(diagnostic.span.start - first, diagnostic.span.end - first),
            start=_up(diagnostic.start, row),
            end=_up(diagnostic.end, row),
            fix=fix,
            related=tuple(self._related(each, joined) for each in diagnostic.related),
        )

    def _related(self, related: Related, joined: Source) -> Related:
        if related.path != self.path:
            return related
        starts = [joined.row(start) for start in self.starts(joined.text)]
        index = max(0, bisect_right(starts, related.start.row) - 1)
        row = starts[index] - 1
        return replace(related, cell=self.cells[index].number, start=_up(related.start, row), end=_up(related.end, row))

    def name(self, text: str, offset: int) -> str:
        """How messages call the row of an offset in a joined text."""
        starts = self.starts(text)
        index = max(0, bisect_right(starts, offset) - 1)
        row = len(_ROW_END.findall(text, starts[index], offset)) + 1
        return f"line {row} of cell {self.cells[index].number}"

    def rows_of(self, number: int, first: int, last: int) -> tuple[int, int]:
        """The rows of the file that hold these rows of a cell."""
        cell = next(cell for cell in self.cells if cell.number == number)
        rows = []
        for wanted in (first, last):
            offset, row = 0, 1
            for piece in cell.pieces:
                row += len(_ROW_END.findall(piece.text))
                offset = piece.start
                if row > wanted:
                    break
            rows.append(self.text.count("\n", 0, offset) + 1)
        return rows[0], rows[1]

    def write(self, text: str) -> bytes:
        """The notebook with the cells of a changed joined text. Raises SourceError when they cannot be told apart."""
        try:
            texts = self.texts(text)
        except ValueError as error:
            raise SourceError(f"cannot be written back: {error}") from error
        pieces, at = [], 0
        for cell in self.cells:
            new = texts[cell.number]
            if new != cell.text:
                pieces += [self.text[at : cell.span.start], self._spelled(cell, new)]
                at = cell.span.end
        text = "".join([*pieces, self.text[at:]])
        return (_BOM if self.raw.startswith(_BOM) else b"") + text.encode("utf-8")

    def _spelled(self, cell: Cell, new: str) -> str:
        """The JSON value for a cell's new source: a string or a list as before, lines as before where they are."""
        spelled = {piece.text: piece.raw for piece in cell.pieces}

        def spell(line: str) -> str:
            known = spelled.get(line)
            return known if known is not None else json.dumps(line, ensure_ascii=self.ascii)[1:-1]

        lines = [spell(match.group()) for match in _LINE.finditer(new)]
        if not cell.is_list:
            return '"' + "".join(lines) + '"'
        if not cell.pieces:
            return "[" + ", ".join(f'"{line}"' for line in lines) + "]"
        first, last = cell.pieces[0], cell.pieces[-1]
        opening = self.text[cell.span.start : first.start - 1]
        closing = self.text[last.start + len(last.raw) + 1 : cell.span.end]
        comma = "," + opening[1:]
        if len(cell.pieces) > 1:
            comma = self.text[first.start + len(first.raw) + 1 : cell.pieces[1].start - 1]
        return opening + comma.join(f'"{line}"' for line in lines) + closing

    def changed_cells(self, text: str) -> list[tuple[str, bytes, bytes]]:
        """Name, source before and source after of each cell that differs in a changed joined text."""
        texts = self.texts(text)
        return [
            (f"{self.path}:cell {cell.number}", _as_file(cell.text), _as_file(texts[cell.number]))
            for cell in self.cells
            if texts[cell.number] != cell.text
        ]


def _as_file(text: str) -> bytes:
    return (text if text.endswith("\n") else text + "\n").encode("utf-8", "surrogatepass")


def _up(position: Position, rows: int) -> Position:
    return Position(position.row - rows, position.column)


def read_notebook(raw: bytes, path: str) -> Notebook:
    """The code of a notebook. Raises SourceError when it is not JSON, or a notebook of a format before 4."""
    body = raw[len(_BOM) :] if raw.startswith(_BOM) else raw
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        at = Source(path, b"", body[: error.start].decode("utf-8", "replace")).position(error.start)
        raise SourceError("is not valid UTF-8", *at) from error
    try:
        data = json.loads(text) if text.strip() else {}
        found = [] if not text.strip() or not _is_python(data) else list(_code_cells(text, data))
    except json.JSONDecodeError as error:
        raise SourceError(f"is not valid JSON: {error.msg}", error.lineno, error.colno) from error
    except ValueError as error:  # a number with thousands of digits
        raise SourceError(f"is not valid JSON: {error}") from error
    except RecursionError as error:
        raise SourceError("is nested too deeply to be read") from error
    used = set("".join(cell.text for cell in found))
    free = [letter for letter in _LETTERS if letter not in used][:2]
    if len(free) < 2:
        raise SourceError("uses every rune as a letter, so that magics cannot be told apart")
    letter, other = free
    cells = []
    for cell in found:
        header = ""
        masked, problem = ipython.mask(cell.text, letter)
        if problem is not None and ipython.is_indented(cell.text):
            header = ipython.HEADER
            masked, problem = ipython.mask(cell.text, letter, header)
        cells.append(replace(cell, masked=masked, header=header if problem is None else "", error=problem))
    separator = f"\n#{other}\n"
    joined = separator.join(cell.header + cell.masked for cell in cells) + "\n" if cells else ""
    is_ascii = text.isascii() and re.search(r"\\u[0-9a-fA-F]{4}", text) is not None
    source = Source(path, joined.encode("utf-8"), joined)
    notebook = Notebook(path, raw, text, tuple(cells), source, separator, letter, is_ascii)
    source.naming, source.parting = notebook.name, notebook.parts
    return notebook


def _is_python(data: Any) -> bool:
    """Whether it is a notebook whose kernel runs Python; one that does not say so counts."""
    if not isinstance(data, dict):
        raise SourceError("is not a notebook")
    if "worksheets" in data:
        raise SourceError("is a notebook of format 3 or older; save it as format 4")
    if not isinstance(data.get("cells"), list):
        raise SourceError("is not a notebook: it has no cells")
    metadata = data.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for table, key in (("language_info", "name"), ("kernelspec", "language")):
        named = metadata.get(table)
        language = named.get(key) if isinstance(named, dict) else None
        if isinstance(language, str):
            return language.lower() in ("python", "ipython")
    return True


def _code_cells(text: str, data: Any) -> Iterator[Cell]:
    spans = dict(_members(text, _skip(text, 0)))["cells"]  # of a key that is there twice the last counts
    values = zip(data["cells"], _items(text, spans.start), strict=True)
    for number, (cell, span) in enumerate(values, start=1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        place = dict(_members(text, span.start)).get("source")
        source = cell.get("source")
        if place is None:
            continue
        is_list = isinstance(source, list)
        if isinstance(source, str):
            pieces = tuple(_lines(text, place))
        elif isinstance(source, list) and all(isinstance(item, str) for item in source):
            spelled = list(_items(text, place.start))
            pieces = tuple(
                Piece(item, text[where.start + 1 : where.end - 1], where.start + 1)
                for item, where in zip(source, spelled, strict=True)
            )
        else:
            raise SourceError(f"is not a notebook: the source of cell {number} is not text")
        yield Cell(number, place, pieces, is_list, "".join(piece.text for piece in pieces))


def _lines(text: str, span: Span) -> Iterator[Piece]:
    """The lines of a JSON string, each with its spelling."""
    body = text[span.start + 1 : span.end - 1]
    at = 0
    for match in re.finditer(r"(?:\\(?!n|u000[aA]).|[^\\])*(?:\\(?:n|u000[aA]))?", body, re.DOTALL):
        if match.end() > at:
            raw = body[at : match.end()]
            yield Piece(json.loads(f'"{raw}"', strict=False), raw, span.start + 1 + at)
            at = match.end()


def _skip(text: str, at: int) -> int:
    match = _BLANK.match(text, at)
    return match.end() if match is not None else at


_decoder = json.JSONDecoder()


def _members(text: str, at: int) -> Iterator[tuple[str, Span]]:
    """The keys of a JSON object and where their values stand."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, at = _decoder.raw_decode(text, at)
        start = _skip(text, _skip(text, at) + 1)
        _, end = _decoder.raw_decode(text, start)
        yield key, Span(start, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)


def _items(text: str, at: int) -> Iterator[Span]:
    """Where the items of a JSON array stand."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = _decoder.raw_decode(text, at)
        yield Span(at, end)
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
