"""What stays the same of a finding when rows shift: rule, enclosing definitions, the statement, and an ordinal.

The statement counts without comments, layout, the kind of quotes and trailing commas, so that a formatter changes
nothing. The rules of the text are this module's own, not those of a tokenizer, which differ between versions of Python.
"""

from __future__ import annotations

import ast
import re
import zlib
from bisect import bisect_left
from collections.abc import Iterable
from typing import NamedTuple

from devlint.model import Diagnostic

_TOKEN = re.compile(
    r"""(?P<string>\"\"\"(?:\\.|[^\\])*?\"\"\"|'''(?:\\.|[^\\])*?'''|"(?:\\.|[^"\\\r\n])*"|'(?:\\.|[^'\\\r\n])*')"""
    r"""|(?P<skip>\#[^\r\n]*|\\\r?\n|\s+)|(?P<word>\w+)|(?P<sign>.)""",
    re.DOTALL,
)


class Key(NamedTuple):
    """Identifies a finding within a file. `ordinal` counts equal ones from 0 on, in the order of the file."""

    code: str
    context: str
    ordinal: int


def keys(diagnostics: Iterable[Diagnostic]) -> list[Key]:
    """The key of each finding of one file; they must be all of the file and in its order."""
    counts: dict[tuple[str, str], int] = {}
    found = []
    for diagnostic in diagnostics:
        pair = diagnostic.code, diagnostic.context
        found.append(Key(*pair, counts.get(pair, 0)))
        counts[pair] = counts.get(pair, 0) + 1
    return found


def fingerprint(path: str, key: Key) -> str:
    """A hash for services that compare runs: of the path in the repository, the rule and the context."""
    import hashlib

    return hashlib.sha256(f"{path}\0{key.code}\0{key.context}".encode("utf-8", "surrogateescape")).hexdigest()[:16]


def context(names: Iterable[str], statement: str) -> str:
    """The context of a finding: the names of the definitions around it, from outside, and a checksum of its statement,
    which tells apart what one rule finds in one definition."""
    checksum = zlib.crc32(normal(statement).encode("utf-8", "surrogatepass"))
    return f"{'.'.join(names)}:{checksum:08x}"


def normal(statement: str) -> str:
    """The text of a statement without comments, layout, the kind of quotes and trailing commas."""
    parts: list[str] = []
    for match in _TOKEN.finditer(statement):
        text = match.group()
        if match.lastgroup == "skip":
            continue
        if match.lastgroup == "string" and text[0] == "'" and not text.startswith("'''") and '"' not in text:
            text = f'"{text[1:-1]}"' if "\\" not in text else text
        if text in (")", "]", "}") and parts and parts[-1] == ",":
            parts.pop()
        parts.append(text)
    return " ".join(parts)


def names_around(module: ast.Module, row: int) -> list[str]:
    """The functions and classes that the row is in, from outside; a definition's own row is in it."""
    names: list[str] = []
    block: list[ast.AST] = [module]
    while block:
        inner = None
        for node in block:
            for part in (part for _, part in ast.iter_fields(node) if isinstance(part, list)):
                for child in _from(part, row):
                    if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case) and _holds(child, row):
                        inner = child
        if inner is None:
            break
        if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.append(inner.name)
        block = [inner]
    return names


def _from(part: list[ast.AST], row: int) -> list[ast.AST]:
    """What of a list of nodes may be on a row: of a list of statements, those on it, or the first one below it."""
    if not part or not isinstance(part[0], ast.stmt):
        return part
    start = bisect_left(part, row, key=lambda each: each.end_lineno)  # type: ignore[attr-defined]
    end = start + 1
    while end < len(part) and part[end].lineno <= row:  # type: ignore[attr-defined]
        end += 1
    return part[start:end]


def _holds(node: ast.AST, row: int) -> bool:
    if isinstance(node, ast.match_case):  # has no place of its own
        return any(_holds(statement, row) for statement in node.body)
    first = min([node.lineno, *(each.lineno for each in getattr(node, "decorator_list", ()))])  # type: ignore[attr-defined]
    return bool(first <= row <= node.end_lineno)  # type: ignore[attr-defined]
