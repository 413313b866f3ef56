"""What a statement makes several of, and drops with the container that holds them: `[x.to(device) for x in xs]`."""

from __future__ import annotations

import ast

_COLLECT = frozenset({"list", "tuple", "set"})


def of(node: ast.expr) -> ast.expr | None:
    """The expression that stands for each item of what a statement makes: the last part of a comprehension, what is mapped.

    `list(map(lambda x: x.to(device), xs))`, and `map(...)` by itself, which does not even run. None for any other.
    """
    if isinstance(node, (ast.ListComp, ast.SetComp)):
        return node.elt
    if isinstance(node, ast.DictComp):
        return node.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name) or node.keywords:
        return None
    if node.func.id == "map" and len(node.args) == 2 and isinstance(node.args[0], ast.Lambda):
        return node.args[0].body
    if node.func.id in _COLLECT and len(node.args) == 1:
        given = node.args[0]
        return given.elt if isinstance(given, ast.GeneratorExp) else of(given)
    return None
