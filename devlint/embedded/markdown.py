"""Fenced Python in Markdown (CommonMark 4.5): one source per block, in which every place is that of the file.

A block is checked with the imports of the blocks before it. Everything else of the file is blank; what stands in for
it has the same length. A block that does not parse, such as an interpreter prompt with its answers, is left out.
"""

from __future__ import annotations

import ast
import re
import textwrap
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from devlint.model import TextFix

_LANGUAGES = frozenset({"python", "py", "python3"})
_ROW = re.compile(r"(?P<line>[^\r\n]*)(?:\r\n|\r|\n|\Z)")
_FENCE = re.compile(r"(?P<indent>[ \t]*)(?P<fence>`{3,}|~{3,})(?P<info>.*)\Z")
_NOT_A_BREAK = re.compile(r"[^\r\n]")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: where its fence and its code start, where the code ends, and how far it is indented."""

    fence: int
    start: int
    end: int
    indent: int

    def allows(self, text: str, whole: str, fix: TextFix) -> bool:
        """Whether all edits of a fix on `whole`, in which the block may have grown, are inside the block."""
        tail = len(text) - self.end
        return all(self.start <= edit.start and edit.end <= len(whole) - tail for edit in (*fix.edits, *fix.shared))


def blocks(text: str) -> list[Block]:
    """The blocks that say they are Python."""
    return list(_blocks(text))


def _blocks(text: str) -> Iterator[Block]:
    fence = ""  # that opened the block we are in
    opened = start = indent = 0
    is_python = False
    for match in _ROW.finditer(text):
        line = match["line"]
        found = _FENCE.match(line)
        if not fence:
            if found is not None and not (found["fence"][0] == "`" and "`" in found["info"]):
                fence, opened, start, indent = found["fence"], match.start(), match.end(), len(found["indent"])
                is_python = _language(found["info"]) in _LANGUAGES
        elif (
            found is not None
            and found["fence"][0] == fence[0]
            and len(found["fence"]) >= len(fence)
            and not found["info"].strip()
        ):
            if is_python:
                yield Block(opened, start, match.start(), indent)
            fence = ""
    if fence and is_python:
        yield Block(opened, start, len(text), indent)


def _language(info: str) -> str:
    """The language that an info string names, as in `python title="x"`, `{.python}` or `py,ignore`."""
    words = re.split(r"[\s,{}]+", info.strip(" \t{}"))
    return words[0].lstrip(".").lower() if words else ""


def masked(text: str, block: Block, before: Sequence[Block]) -> str | None:
    """The file with the code of one block and the imports before it, the rest blank; None when it does not parse."""
    if _parsed(textwrap.dedent(text[block.start : block.end])) is None:
        return None
    head = list(_NOT_A_BREAK.sub(" ", text[: block.start]))
    if block.indent:
        head[block.fence : block.fence + 5] = "if 1:"  # an indented block needs something to be indented under
    for earlier in before:
        for place, line in _imports(text, earlier):
            head[place : place + len(line)] = line
    whole = "".join(head) + text[block.start : block.end] + _NOT_A_BREAK.sub(" ", text[block.end :])
    return whole if _parsed(whole) is not None else None


def _imports(text: str, block: Block) -> Iterator[tuple[int, str]]:
    """The imports at the top level of a block that take one row, each with the start of its row."""
    code = text[block.start : block.end]
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
