"""Source text: reading, decoding, parsing with `ast`, and positions.

Everything outside this module speaks of offsets: code points in `Source.text`, which keeps the line endings of the
file. `ast` counts rows and UTF-8 bytes within a row, and a row ends at LF, CRLF or a lone CR, never at a form feed or
at one of Unicode's separators (CPython's `Parser/tokenizer`, `translate_newlines`). `Source` converts both ways.
"""

from __future__ import annotations

import ast
import re
import sys
import warnings
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from devlint.errors import SourceError
from devlint.model import Position, Span
from devlint.reading import LARGEST_SOURCE, read_regular

_ROW_END = re.compile(r"\r\n|\r|\n")
_WIDE = re.compile(r"[^\x00-\x7f]+")
_COOKIE = re.compile(rb"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"[ \t\f]*(?:#.*)?\Z")
_BOM = b"\xef\xbb\xbf"


class Located(Protocol):
    """An `ast` node with a place: expressions, statements, arguments, keywords, aliases, handlers, patterns."""

    lineno: int
    col_offset: int
    end_lineno: int
    end_col_offset: int


@dataclass(slots=True)
class Source:
    """One file. `text` has no byte order mark and keeps its line endings; `path` is the name that reports show.

    `naming`: how messages call the row of an offset in a text that stands for parts of a file, such as a notebook's.
    `parting`: where those parts start in a text, each of which runs whatever became of the one before it.
    """

    path: str
    raw: bytes
    text: str
    encoding: str = "utf-8"
    bom: bool = False
    naming: Callable[[str, int], str] | None = None
    parting: Callable[[str], Sequence[int]] | None = None
    _starts: list[int] | None = field(default=None, repr=False)
    _wide: dict[int, bytes] | None = field(default=None, repr=False)

    @property
    def starts(self) -> list[int]:
        """The offset at which each row starts; row `r` starts at `starts[r - 1]`."""
        if self._starts is None:
            if "\r" in self.text:
                self._starts = [0, *(match.end() for match in _ROW_END.finditer(self.text))]
            else:
                ends = accumulate(map(len, self.text.split("\n")[:-1]))
                self._starts = [0, *(end + row for row, end in enumerate(ends, 1))]
        return self._starts

    @property
    def rows(self) -> int:
        """The number of rows; text after the last line ending counts as one, nothing after it does not."""
        return len(self.starts) - (self.starts[-1] == len(self.text))

    @property
    def wide(self) -> dict[int, bytes]:
        """The rows with characters of several bytes, in UTF-8."""
        if self._wide is None:
            rows = {self.row(match.start()) for match in _WIDE.finditer(self.text)} if not self.text.isascii() else ()
            self._wide = {row: self.line_text(row).encode("utf-8", "surrogatepass") for row in rows}
        return self._wide

    def offset(self, row: int, column_bytes: int) -> int:
        """The offset of `ast`'s place: 1-based row, 0-based column in UTF-8 bytes."""
        start = self.starts[row - 1]
        line = self.wide.get(row)
        return start + (column_bytes if line is None else len(line[:column_bytes].decode("utf-8", "replace")))

    def span(self, node: ast.AST) -> Span:
        """Where an `ast` node stands. A decorated definition starts at its `def` or `class`, as in `ast`.

        Raises AttributeError for nodes without a place (operators, contexts, `match_case`).
        """
        place: Located = node  # type: ignore[assignment]
        row, column, end_row, end_column = place.lineno, place.col_offset, place.end_lineno, place.end_col_offset
        wide = self._wide if self._wide is not None else self.wide
        if not wide or (row not in wide and end_row not in wide):
            starts = self._starts if self._starts is not None else self.starts
            return Span(starts[row - 1] + column, starts[end_row - 1] + end_column)
        return Span(self.offset(row, column), self.offset(end_row, end_column))

    def row(self, offset: int) -> int:
        """The 1-based row that holds `offset`."""
        return bisect_right(self.starts, offset)

    def position(self, offset: int) -> Position:
        """The 1-based row and column (code points) of an offset."""
        row = bisect_right(self.starts, offset)
        return Position(row, offset - self.starts[row - 1] + 1)

    def parts(self) -> Sequence[int]:
        """Where the parts start that run one after the other whatever becomes of each; none for a plain file."""
        return () if self.parting is None else self.parting(self.text)

    def line(self, offset: int) -> str:
        """How messages call the row that holds `offset`: `line 12`, in a notebook `line 3 of cell 2`."""
        return f"line {self.row(offset)}" if self.naming is None else self.naming(self.text, offset)

    def line_text(self, row: int) -> str:
        """The text of a row without its line ending."""
        start = self.starts[row - 1]
        end = self.starts[row] if row < len(self.starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n") if row < len(self.starts) else self.text[start:end]

    def encode(self, text: str) -> bytes:
        """Text in this file's encoding, with its byte order mark. Raises SourceError when it cannot be encoded."""
        try:
            return (_BOM if self.bom else b"") + text.encode(self.encoding)
        except UnicodeError as error:
            raise SourceError(f"cannot be written as {self.encoding}: {error}") from error

    def with_text(self, text: str) -> Source:
        """The same file with other text. Raises SourceError where the encoding cannot hold it."""
        return Source(self.path, self.encode(text), text, self.encoding, self.bom, self.naming, self.parting)

    def rewritten(self, text: str) -> Source:
        """What a reader of the file finds once `text` is written to it. Raises SourceError."""
        fresh = decode(self.with_text(text).raw, self.path)
        fresh.naming, fresh.parting = self.naming, self.parting
        return fresh


def read_source(path: Path, name: str | None = None) -> Source:
    """Read and decode a file; `name` is what reports call it. Raises SourceError with the reason when that fails."""
    shown = str(path) if name is None else name
    try:
        raw = read_regular(path, LARGEST_SOURCE)
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}") from error
    return decode(raw, shown)


def decode(raw: bytes, path: str) -> Source:
    """Decode as Python does (PEP 263): byte order mark, coding comment in the first two lines, else UTF-8.

    Raises SourceError at the place of the first byte that does not belong, and for NUL characters.
    """
    bom = raw.startswith(_BOM)
    body = raw[len(_BOM) :] if bom else raw
    encoding, row = _cookie(body)
    if bom and encoding != "utf-8":
        raise SourceError(f"has a UTF-8 byte order mark and a comment that says {encoding}", row)
    if not bom and body[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise SourceError("is UTF-16; Python source must be UTF-8 or name its encoding in a comment")
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError as error:
        before = Source(path, b"", body[: error.start].decode(encoding, "replace"))
        at = before.position(len(before.text))
        reason = f"byte 0x{body[error.start]:02x} is not valid {encoding}"
        if row == 0:
            reason += "; name the file's encoding in a comment if it is another"
        raise SourceError(reason, at.row, at.column) from error
    except (LookupError, UnicodeError, ValueError, TypeError) as error:
        raise SourceError(f"unknown encoding: {encoding}", max(row, 1)) from error
    source = Source(path, raw, text, encoding, bom)
    if "\0" in text:
        at = source.position(text.index("\0"))
        raise SourceError("source contains a NUL byte", at.row, at.column)
    return source


def of_text(text: str, path: str) -> Source:
    """The file of a text that was decoded already, as an editor holds it. Raises SourceError as `decode` does."""
    encoding, row = _cookie(text[:1000].encode("utf-8", "surrogatepass"))
    try:
        raw = text.encode(encoding)
    except LookupError as error:
        raise SourceError(f"unknown encoding: {encoding}", max(row, 1)) from error
    except UnicodeError:
        raw = text.encode("utf-8", "surrogatepass")
    return decode(raw, path)


def _cookie(body: bytes) -> tuple[str, int]:
    """The encoding that the first two lines name and the row of that comment; ("utf-8", 0) when they name none."""
    for row, line in enumerate(re.split(rb"\r\n|\r|\n", body[:1000], maxsplit=2)[:2], start=1):
        match = _COOKIE.match(line)
        if match:
            name = match.group(1).decode("ascii", "replace")
            plain = name.lower().replace("_", "-")
            if plain == "utf-8" or plain.startswith("utf-8-") or plain in ("utf8", "u8"):
                return "utf-8", row
            if re.match(r"(latin-1|iso-8859-1|iso-latin-1)(-|\Z)", plain):
                return "iso-8859-1", row
            return name, row
        if not _BLANK.match(line):
            break
    return "utf-8", 0


def parse(source: Source) -> ast.Module:
    """The `ast` of a file. Raises SourceError at the place of a syntax error.

    The message names the Python that is needed when the syntax is newer than the running one, and says so when it is
    Python 2's.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(source.text, source.path)
    except SyntaxError as error:
        row = min(max(error.lineno or 1, 1), len(source.starts))
        column = max(error.offset or 1, 1)
        reason = _explain(source, error.msg or "invalid syntax", row)
        raise SourceError(reason, row, min(column, len(source.line_text(row)) + 1)) from error
    except (RecursionError, MemoryError) as error:
        raise SourceError("nested too deeply to be parsed", _busiest_row(source)) from error
    except ValueError as error:  # lone surrogates, integers with too many digits
        raise SourceError(f"cannot be parsed: {error}") from error


def check_syntax(source: Source) -> None:
    """`parse` for a file whose tree nobody asks for. Raises the same SourceError.

    The compiler's symbol table comes from the same parser and spares the conversion of the tree into Python objects,
    a third of the time. It also objects to what only later passes see (`nonlocal` at module level), where `parse` has
    the last word.
    """
    import symtable

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            symtable.symtable(source.text, source.path, "exec")
    except (SyntaxError, RecursionError, MemoryError, ValueError):
        parse(source)


@dataclass(frozen=True, slots=True)
class _Newer:
    """Syntax that Python has `since` this version, recognised where a parser stopped."""

    since: tuple[int, int]
    what: str
    sign: re.Pattern[str]


_NEWER = (
    _Newer((3, 15), "`lazy import`", re.compile(r"\s*lazy\s+(?:import|from)\s+\w")),
    _Newer((3, 15), "unpacking in a comprehension", re.compile(r".*[\[({]\s*\*{1,2}[\w.()\[\]]+\s+(?:async\s+)?for\s")),
    _Newer((3, 14), "a template string", re.compile(r"""(?i).*(?<!\w)(?:t|tr|rt)(?:'|").*""")),
    _Newer((3, 14), "`except` with several types and no parentheses", re.compile(r"\s*except\s+[\w.]+\s*,\s*[A-Z]")),
    _Newer((3, 13), "a type parameter's default", re.compile(r"\s*(?:async\s+def|def|class|type)\s+\w+\s*\[[^\]]*=")),
    _Newer((3, 12), "a type parameter list", re.compile(r"\s*(?:async\s+def|def|class)\s+\w+\s*\[")),
    _Newer((3, 12), "the `type` statement", re.compile(r"\s*type\s+\w+\s*(?:\[.*\]\s*)?=")),
    _Newer((3, 11), "`except*`", re.compile(r"\s*except\s*\*")),
    _Newer((3, 11), "unpacking in an index", re.compile(r".*\w\[[^\]]*\*\w|.*\*\w+\s*:\s*\*\w")),
)
LOOKED_AT = 1_000  # characters of a row that a parser stopped in; the patterns may take the square of that
_F_STRING = re.compile(r"""(?i)(?<!\w)(?:f|fr|rf)(?:'|")""")
_PYTHON_2 = re.compile(
    r"""\s*print\s+[^\s=(.\[,]|\s*print\s*>>|\s*exec\s+["'\w]|\s*raise\s+[\w.]+\s*,"""
    r"""|\s*except\s+[\w.(), ]+,\s*[a-z_]\w*\s*:|.*\w\s*<>\s*\w|.*`[^`]+`|.*(?<!\w)ur["']|.*(?<![\w.])\d+[lL]\b"""
)


def _explain(source: Source, message: str, row: int) -> str:
    line = source.line_text(row)[:LOOKED_AT]
    running = sys.version_info[:2]
    for newer in _NEWER:
        if newer.since > running and newer.sign.match(line) and not (newer.since == (3, 15) and "f-string" in message):
            return _needs(newer.what, newer.since)
    if _PYTHON_2.match(line):
        return f"{message} (Python 2 syntax)"
    if running < (3, 12) and _F_STRING.search(line) and _is_newer_f_string(line, message):
        return _needs("this f-string (quotes, backslashes or comments inside the braces)", (3, 12))
    return message


def _needs(what: str, since: tuple[int, int]) -> str:
    version = ".".join(map(str, since))
    return f"{what} needs Python {version} or newer; devlint runs on Python {sys.version_info[0]}.{sys.version_info[1]}"


def _is_newer_f_string(line: str, message: str) -> bool:
    """Whether an f-string of this line has in its braces what Python takes only since 3.12 (PEP 701): its own quote, a
    backslash or a comment."""
    if "f-string expression part cannot include" in message:
        return True
    for match in _F_STRING.finditer(line):
        quote = line[match.end() - 1]
        opened = line.find("{", match.end())
        closed = line.find(quote, match.end())
        inside = 0 <= opened < closed and line.count("{", opened, closed) > line.count("}", opened, closed)
        if inside and line.count(quote, closed) >= 3 and "}" in line[closed:]:
            return True
    return False


def _busiest_row(source: Source) -> int:
    """The row where the logical line with most tokens starts, which a parser without stack most likely failed on."""
    import io
    import tokenize

    best, best_row, count, row = 0, 1, 0, 1
    readline = io.StringIO(_ROW_END.sub("\n", source.text), newline="\n").readline
    try:
        for token in tokenize.generate_tokens(readline):
            if count == 0:
                row = token.start[0]
            if token.type == tokenize.NEWLINE:
                count = 0
            elif token.type not in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                count += 1
                if count > best:
                    best, best_row = count, row
    except (tokenize.TokenError, SyntaxError):
        return best_row
    return best_row
