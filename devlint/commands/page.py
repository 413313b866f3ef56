"""A rule's page on a terminal: headings in bold, prose wrapped to the width, code and names in a colour.

It reads the Markdown that rules write: headings, paragraphs, lists and indented code. `docs/writing-a-rule.md` shows it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator

from devlint.terminal import Style

_ITEM = re.compile(r"[*-] |\d+\. ")
_NAME = re.compile(r"`([^`\n]+)`")
_BREAK = "\x00"  # stands for a blank inside a name while lines are wrapped: names are not broken


def laid_out(text: str, width: int, style: Style) -> str:
    """Markdown as a terminal of `width` columns shows it."""
    lines: list[str] = []
    for block in _blocks(text.splitlines()):
        lines += _shown(block, width, style)
    return "\n".join(lines).strip("\n")


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Headings, blank lines and rows of code, each by itself; the rows of a paragraph or of an item together."""
    block: list[str] = []
    for line in lines:
        goes_on = bool(block) and not _ITEM.match(line) and (_ITEM.match(block[0]) or not line.startswith("    "))
        if not line.strip() or line.startswith("#") or not goes_on:
            if block:
                yield block
            block = []
        if not line.strip() or (line.startswith(("#", "    ")) and not block):
            yield [line]
        else:
            block.append(line)
    if block:
        yield block


def _shown(block: list[str], width: int, style: Style) -> Iterator[str]:
    first = block[0]
    if not first.strip():
        yield ""
    elif first.startswith("#"):
        yield style.bold(first.lstrip("#").strip().replace("`", ""))
    elif first.startswith("    "):
        yield style.frame(first)
    else:
        yield from _wrapped(block, width, style)


def _wrapped(block: list[str], width: int, style: Style) -> Iterator[str]:
    mark = _ITEM.match(block[0])
    indent = " " * (mark.end() if mark else 0)
    prose = " ".join(line.strip() for line in block)
    kept = _NAME.sub(lambda name: name.group().replace(" ", _BREAK), prose)
    rows = textwrap.wrap(kept, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    for row in rows:
        yield _NAME.sub(lambda name: style.mark(name[1]), row.replace(_BREAK, " "))
