"""Entries of a batch that the project leaves out where it moves the others: they are read on the host.

    for key in batch:
        if key != "meta":
            batch[key] = batch[key].to(device)

Asked before a finding is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain
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
    """Whether a file has a condition that a name is not a key, under which something moves."""
    for node in walk(tree):
        if isinstance(node, ast.If) and excludes(node.test, key):
            if any(isinstance(part, ast.Call) and moves(part) for statement in node.body for part in walk(statement)):
                return True
    return False


def excludes(test: ast.expr, key: str) -> bool:
    """Whether a condition, or a part of it that must hold, is `name != key` or `name not in (key, ...)`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(excludes(part, key) for part in test.values)
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.left, ast.Name):
        return False
    right = test.comparators[0]
    named = right.elts if isinstance(right, (ast.Tuple, ast.List, ast.Set)) else [right]
    asks = isinstance(test.ops[0], (ast.NotEq, ast.NotIn))
    return asks and any(isinstance(each, ast.Constant) and each.value == key for each in named)
