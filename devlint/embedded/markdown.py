"""Fenced Python in Markdown (CommonMark, read by markdown-it-py): one source per block, where every place is that of the file.

A block is checked with the imports of the blocks before it. Everything else of the file is blank; what stands in for
it has the same length, and so has what stands before the code of a row in a list or a block quote. A block that does not
parse, such as an interpreter prompt with its answers, is left out.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from devlint.model import TextFix

_LANGUAGES = frozenset({"python", "py", "python3"})
_ROW = re.compile(r"(?P<line>[^\r\n]*)(?:\r\n|\r|\n|\Z)")
_NOT_A_BREAK = re.compile(r"[^\r\n]")
_HEADER = "if 1:"  # code that is indented in the file needs something to be indented under


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where the row of its fence and its code start, and where the code ends.

    `prefixes`: what stands in each row before the code, of a list or a block quote: `> `.
    """

    fence: int
    start: int
    end: int
    prefixes: tuple[str, ...]

    @property
    def is_quoted(self) -> bool:
        """Whether rows begin with something else than blanks, which a new row would lack."""
        return any(prefix.strip() for prefix in self.prefixes)

    def allows(self, text: str, whole: str, fix: TextFix) -> bool:
        """Whether all edits of a fix on `whole`, in which the block may have grown, are inside the block."""
        tail = len(text) - self.end
        edits = (*fix.edits, *fix.shared)
        if self.is_quoted and any("\n" in edit.text or "\n" in whole[edit.start : edit.end] for edit in edits):
            return False
        return all(self.start <= edit.start and edit.end <= len(whole) - tail for edit in edits)

    def code(self, text: str) -> str:
        """The rows of the block in the text of the file, blanks instead of what stands before the code."""
        rows = _rows(text[self.start : self.end])
        return "".join(" " * len(prefix) + row[len(prefix) :] for prefix, row in zip(self.prefixes, rows, strict=True))

    def restored(self, code: str) -> str:
        """Rows of code, after fixes, with what stands before them in the file."""
        if not self.is_quoted:
            return code
        return "".join(prefix + row[len(prefix) :] for prefix, row in zip(self.prefixes, _rows(code), strict=True))


@lru_cache(4)
def blocks(text: str) -> tuple[Block, ...]:
    """The blocks that say they are Python."""
    return tuple(_blocks(text))


def _blocks(text: str) -> Iterator[Block]:
    from markdown_it import MarkdownIt

    starts = [match.start() for match in _ROW.finditer(text)]
    for token in MarkdownIt("commonmark").parse(text):
        if token.type != "fence" or token.map is None or _language(token.info) not in _LANGUAGES:
            continue
        first, number = token.map[0] + 1, token.content.count("\n")
        end = starts[first + number] if first + number < len(starts) else len(text)
        start = starts[first] if first < len(starts) else len(text)
        prefixes = _prefixes(_rows(text[start:end]), token.content)
        if prefixes is not None:
            yield Block(starts[token.map[0]], start, end, prefixes)


def _rows(text: str) -> list[str]:
    """The rows of a text with their ends, none of which is empty."""
    return [match[0] for match in _ROW.finditer(text) if match[0]]


def _prefixes(rows: Sequence[str], content: str) -> tuple[str, ...] | None:
    """What stands before the code in each row; None where a row is not its code with something before it, as with tabs."""
    code = content.split("\n")[:-1]
    if len(rows) < len(code):
        return None
    prefixes = []
    for row, line in zip(rows, code, strict=False):
        written = row.rstrip("\r\n")
        if not written.endswith(line):
            return None
        prefixes.append(written[: len(written) - len(line)])
    return tuple(prefixes)


def _language(info: str) -> str:
    """The language that an info string names, as in `python title="x"`, `{.python}` or `py,ignore`."""
    words = re.split(r"[\s,{}]+", info.strip(" \t{}"))
    return words[0].lstrip(".").lower() if words else ""


def masked(text: str, block: Block, before: Sequence[Block]) -> str | None:
    """The file with the code of one block and the imports before it, the rest blank; None when it does not parse."""
    code = block.code(text)
    if _parsed(textwrap.dedent(code)) is None:
        return None
    head = list(_NOT_A_BREAK.sub(" ", text[: block.start]))
    if any(block.prefixes):
        head[block.fence : block.fence + len(_HEADER)] = _HEADER
    for earlier in before:
        for place, line in _imports(text, earlier):
            head[place : place + len(line)] = line
    whole = "".join(head) + code + _NOT_A_BREAK.sub(" ", text[block.end :])
    return whole if _parsed(whole) is not None else None


def _imports(text: str, block: Block) -> Iterator[tuple[int, str]]:
    """The imports at the top level of a block that take one row, each with the start of its row."""
    code = block.code(text)
    module = _parsed(textwrap.dedent(code))
    if module is None:
        return
    starts = [match.start() for match in _ROW.finditer(code)]
    for statement in module.body:
        if isinstance(statement, ast.Import | ast.ImportFrom):
            line, start = ast.unparse(statement), starts[statement.lineno - 1]
            row = _ROW.match(code, start)
            if row is not None and len(line) <= len(row["line"]):
                yield block.start + start, line


def _parsed(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
