"""Entries of a batch that the project leaves out where it moves the others: they are read on the host.

    for key in batch:
        if key != "meta":
            batch[key] = batch[key].to(device)

Asked before a finding is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.signs import moves

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Use


def is_left_out(sites: CallSites, event: Use) -> bool:
    """Whether what the host reads is a part of an entry that a loop of the project does not move."""
    return any(
        leaves_out(looked.loaded.tree, key)
        for key in keys(event.operand.node)
        for looked in sites.files.mentioning(key)
    )


def keys(node: ast.expr) -> Iterator[str]:
    """The text keys of the entries that an expression is a part of: `meta` and `c` of `batch["meta"]["c"][i]`."""
    for part in chain(node):
        if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Constant):
            if isinstance(part.slice.value, str):
                yield part.slice.value


def leaves_out(tree: ast.AST, key: str) -> bool:
    """Whether a file has a loop that moves what it goes through, but for one key."""
    return any(isinstance(node, ast.For) and skips(node, key) for node in walk(tree))


def skips(loop: ast.For, key: str) -> bool:
    """Whether a loop moves where its name is not a key, or goes on where it is: `if name == "meta": continue`."""
    names = {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    for node in walk(loop):
        if not isinstance(node, ast.If):
            continue
        if excludes(node.test, key, names) and any(map(moves_something, node.body)):
            return True
        if isinstance(node.body[-1], ast.Continue) and compares(node.test, key, names, (ast.Eq, ast.In)):
            return any(map(moves_something, loop.body))
    return False


def moves_something(statement: ast.stmt) -> bool:
    return any(isinstance(part, ast.Call) and moves(part) for part in walk(statement))


def excludes(test: ast.expr, key: str, names: Collection[str]) -> bool:
    """Whether a condition, or a part of it that must hold, is `name != key` or `name not in (key, ...)`, of some names."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(excludes(part, key, names) for part in test.values)
    return compares(test, key, names, (ast.NotEq, ast.NotIn))


def compares(test: ast.expr, key: str, names: Collection[str], operators: tuple[type[ast.cmpop], ...]) -> bool:
    """Whether a condition compares one of some names with a key, or with several of which it is one, by an operator."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or last_name(test.left) not in names:
        return False
    right = test.comparators[0]
    named = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
    return isinstance(test.ops[0], operators) and any(isinstance(n, ast.Constant) and n.value == key for n in named)
