"""What a function only reads of an argument: a list that it loops over, indexes or measures is the same list afterwards."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from devlint.facts.text.nodes import walk

#: Builtins that look at what they are given, and keep nothing of it.
_LOOKING = frozenset(
    {
        "zip", "enumerate", "len", "sum", "min", "max", "any", "all", "list", "tuple", "reversed", "sorted", "isinstance",
        "map", "filter", "print", "type", "iter",
    }
)  # fmt: skip
_LOOKS = (
    ast.For, ast.comprehension, ast.Subscript, ast.Attribute, ast.Starred, ast.Compare, ast.UnaryOp, ast.If, ast.IfExp,
    ast.While, ast.Assert, ast.Call,
)  # fmt: skip
_LOOKUPS = frozenset({"items", "values", "keys", "get", "copy", "index", "count"})


def only_reads(function: ast.AST, name: str, leaves: Callable[[ast.Call, ast.expr], bool]) -> bool:
    """Whether a function does nothing with an argument but read it: it neither changes, keeps, returns nor hands it on.

    `leaves`: whether a call of something that is no builtin leaves an argument of it as it was.
    """
    uses = _uses(function)
    if uses is None:
        return False
    return all(
        isinstance(node.ctx, ast.Load) and (looked or (call is not None and leaves(call, node)))
        for node, looked, call in uses.get(name, ())
    )


class _Use(NamedTuple):
    """A name in a function; whether it is only looked at where it stands, or the call that is given it."""

    node: ast.Name
    looked: bool
    call: ast.Call | None


@lru_cache(256)
def _uses(function: ast.AST) -> Mapping[str, Sequence[_Use]] | None:
    """The names in a function, by what they are; None where it moves items of what it is given."""
    names: list[ast.Name] = []
    read: set[int] = set()
    calls: dict[int, ast.Call] = {}
    for node in walk(function):
        if isinstance(node, ast.Name):
            names.append(node)
            continue
        if isinstance(node, ast.Attribute) and (
            node.attr == "set_" or (node.attr == "data" and isinstance(node.ctx, ast.Store))
        ):
            return None  # its items may be elsewhere afterwards: `item.data = item.data.to(device)`
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in _LOOKING):
            calls.update((id(a), node) for a in (*node.args, *(k.value for k in node.keywords)))
        if isinstance(node, _LOOKS):
            read.update(map(id, _looked_at(node)))
    found: dict[str, list[_Use]] = {}
    for name in names:
        found.setdefault(name.id, []).append(_Use(name, id(name) in read, calls.get(id(name))))
    return found


def _looked_at(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a node that it reads something from, no more."""
    if isinstance(node, (ast.For, ast.comprehension)):
        yield node.iter
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        yield node.value
        yield node.slice
    elif (isinstance(node, ast.Attribute) and node.attr in _LOOKUPS) or isinstance(node, ast.Starred):
        yield node.value
    elif isinstance(node, ast.Compare):
        yield from (node.left, *node.comparators)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    elif isinstance(node, (ast.If, ast.IfExp, ast.While, ast.Assert)):
        yield node.test
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _LOOKING:
        yield from (*node.args, *(k.value for k in node.keywords))
