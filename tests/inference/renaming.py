"""Renames what a program defines: functions, classes, arguments, locals and fields, each to a word without meaning.

Names that torch or Python give a meaning stay: a class may define a method `to`, but `x.to` is also torch's.
"""

from __future__ import annotations

import ast
import builtins
import io
import keyword
import re
import tokenize
from collections.abc import Iterator
from functools import cache

from devlint import knowledge

#: Names of fields and arguments that calls of torch write too.
_OF_TORCH = frozenset({"device", "model", "dtype", "weight", "bias", "out", "self", "cls", "size", "index"})


def renamed(text: str) -> tuple[str, dict[str, str]]:
    """The program with other names, and the old name of each new one."""
    tree = ast.parse(text)
    own = sorted({name for name in _defined(tree) if not _has_meaning(name)} - _imported(tree))
    new = {name: f"zq{len(own) - i}" for i, name in enumerate(own)}
    tokens = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        word = token.string
        if token.type == tokenize.NAME:
            word = new.get(word, word)
        elif token.type == tokenize.STRING and not word.startswith(("f", "F", "b", "B")):
            value = ast.literal_eval(word)
            word = repr(new[value]) if value in new else word
        tokens.append((token, word))
    return _text(tokens), {after: before for before, after in new.items()}


def old_names(text: str, names: dict[str, str]) -> str:
    """A message about the renamed program, in the names of the first one."""
    return re.sub(r"\bzq\d+\b", lambda match: names[match[0]], text)


def _text(tokens: list[tuple[tokenize.TokenInfo, str]]) -> str:
    """The tokens with new words, each on the line on which it was."""
    lines: dict[int, str] = {}
    ends: dict[int, int] = {}
    for token, word in tokens:
        if token.type in (tokenize.NEWLINE, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER):
            continue
        row, column = token.start
        gap = column - ends.get(row, 0)
        lines[row] = lines.get(row, "") + " " * gap + word
        ends[token.end[0]] = token.end[1]
    return "".join(lines.get(row, "") + "\n" for row in range(1, max(lines) + 1))


def _defined(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


def _imported(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                found |= {alias.asname or alias.name, *alias.name.split(".")}
    return found


@cache
def _has_meaning(name: str) -> bool:
    """Whether a library may mean something by a name."""
    plain = (str, list, dict, tuple, set, object)
    return (
        name.startswith("__")
        or name in _OF_TORCH
        or keyword.iskeyword(name)
        or hasattr(builtins, name)
        or any(hasattr(each, name) for each in plain)
        or knowledge.method("Tensor", name) is not None
        or knowledge.attribute("Tensor", name) is not None
        or name in knowledge.methods("Module")
        or name == "forward"
    )
