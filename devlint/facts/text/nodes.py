"""Walks over `ast` nodes that visit no contexts and operators, which are without children or a place, or statements alone.

`ast.walk` visits them too, asks every field of every node and takes twice as long.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

#: Fields that hold no node, or a context or operator.
_PLAIN = frozenset(
    {
        "ctx", "op", "ops", "id", "attr", "arg", "asname", "level", "module", "kind", "type_comment", "conversion",
        "simple", "is_async", "kwd_attrs", "rest", "tag", "n", "s",
    }
)  # fmt: skip


def _parts(base: type[ast.AST]) -> dict[type[ast.AST], tuple[str, ...]]:
    found: dict[type[ast.AST], tuple[str, ...]] = {}
    for kind in base.__subclasses__():
        found[kind] = tuple(name for name in kind._fields if name not in _PLAIN)
        found.update(_parts(kind))
    return found


#: The fields that may hold nodes, by kind of node.
PARTS = {**_parts(ast.AST), **dict.fromkeys((ast.Constant, ast.Global, ast.Nonlocal, ast.alias), ())}


def children(node: ast.AST) -> list[ast.AST]:
    """The nodes directly below one."""
    found: list[ast.AST] = []
    for name in PARTS[type(node)]:
        part = getattr(node, name, None)
        if part.__class__ is list:
            if part:
                found += filter(None, part)  # a key may be missing, and a default
        elif isinstance(part, ast.AST):
            found.append(part)
    return found


LOOPS = (ast.For, ast.AsyncFor, ast.While)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: Expressions that may leave a part of themselves out, or evaluate it later or many times.
PARTIAL = (ast.IfExp, ast.BoolOp, ast.Lambda, *COMPREHENSIONS)

#: The fields that hold statements, or handlers and cases, which hold them, by kind of node; none for expressions.
BLOCKS = {
    kind: tuple(name for name in parts if name in ("body", "handlers", "orelse", "finalbody", "cases"))
    for kind, parts in PARTS.items()
    if not issubclass(kind, ast.expr)
}


_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """A node and the statements below it, with the handlers and cases around some, in the order of `walk`.

    No expression is looked into, so that it costs a small part of it.
    """
    pending = [node]
    for each in pending:  # which grows
        yield each
        for name in BLOCKS[type(each)]:
            pending += getattr(each, name)


def returns(function: ast.AST) -> list[ast.Return]:
    """The `return`s of a function, without those of functions and classes inside it."""
    found: list[ast.Return] = []
    pending: list[ast.AST] = [each for name in BLOCKS.get(type(function), ()) for each in getattr(function, name)]
    for each in pending:  # which grows
        if isinstance(each, ast.Return):
            found.append(each)
        elif not isinstance(each, _SCOPES):
            for name in BLOCKS[type(each)]:
                pending += getattr(each, name)
    return found


def classes(node: ast.AST) -> Iterator[ast.ClassDef]:
    """The classes that are defined below a node, those inside functions and other classes included."""
    return (each for each in statements(node) if isinstance(each, ast.ClassDef))


def walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and all nodes below it, the nearer ones first, as `ast.walk` gives them."""
    return iter(_inside(node)) if isinstance(node, _SCOPES) else _walk(node)


@lru_cache(256)
def _inside(scope: ast.AST) -> tuple[ast.AST, ...]:
    """The nodes of a function or class, which many questions go through one after the other."""
    return tuple(_walk(scope))


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    pending = [node]
    for each in pending:  # which grows
        yield each
        for name in PARTS[type(each)]:  # as in `children`, which would be called for every node
            part = getattr(each, name, None)
            if part.__class__ is list:
                if part:
                    pending += filter(None, part)
            elif isinstance(part, ast.AST):
                pending.append(part)


@lru_cache(8)
def every(node: ast.AST) -> tuple[ast.AST, ...]:
    """What `walk` gives, kept: for a function that is asked many things, or about many places in it."""
    return tuple(walk(node))


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Every list of statements below a node."""
    for child in statements(node):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(child, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield block


def asks_name(node: ast.AST) -> bool:
    """Whether a statement is an `if` that asks for `__name__`: `if __name__ == "__main__":`."""
    return isinstance(node, ast.If) and any(getattr(part, "id", "") == "__name__" for part in walk(node.test))


def holds(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether a node is another one or stands somewhere below it."""
    return any(node is inner for node in walk(outer))


def encloses(outer: ast.AST, inner: ast.AST) -> bool:
    """Whether a node starts on one of the rows of another."""
    first, last = getattr(outer, "lineno", 0), getattr(outer, "end_lineno", 0)
    return bool(first <= getattr(inner, "lineno", -1) <= last)


def text_of(node: ast.AST | None) -> str | None:
    """The text that a literal stands for; None for anything else."""
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
