"""Chains of `if` and `elif` that tell apart the named options of one thing: one of them is taken, though no `else` says so."""

from __future__ import annotations

import ast
from functools import lru_cache

from devlint.facts.text.nodes import walk


def last_option(node: ast.If) -> tuple[ast.If, frozenset[str]] | None:
    """The last `elif` of such a chain without `else`, and the names that every option binds; None for other statements.

    `if mode == "sum": ... elif mode == "mean": ...`
    """
    subject = asked(node.test)
    if subject is None:
        return None
    names = bound(node)
    last = node
    while len(last.orelse) == 1 and isinstance(following := last.orelse[0], ast.If):
        last = following
        if asked(last.test) != subject:
            return None
        names &= bound(last)
    return (last, frozenset(names)) if last is not node and not last.orelse and names else None


@lru_cache(1024)
def asked(test: ast.expr) -> str | None:
    """What a condition compares with a text: `mode` of `mode == "sum"` and `mode in ("sum", "add")`."""
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (ast.Eq, ast.In)):
        return None
    option = test.comparators[0]
    texts = option.elts if isinstance(option, (ast.Tuple, ast.List, ast.Set)) else [option]
    if not all(isinstance(t, ast.Constant) and isinstance(t.value, str) for t in texts):
        return None
    return ast.unparse(test.left)


def bound(node: ast.If) -> set[str]:
    """The names that the statements of an `if`, not its `else`, assign."""
    statements = (statement for statement in node.body if isinstance(statement, (ast.Assign, ast.If)))
    found: set[str] = set()
    for statement in statements:
        if isinstance(statement, ast.If):
            if statement.orelse:
                found |= bound(statement) & {name for s in statement.orelse for name in stored(s)}
        else:
            found |= stored(statement)
    return found


def stored(statement: ast.stmt) -> set[str]:
    if not isinstance(statement, ast.Assign):
        return set()
    return {n.id for target in statement.targets for n in walk(target) if isinstance(n, ast.Name)}
