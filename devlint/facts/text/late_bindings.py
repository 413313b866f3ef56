"""Names of the module level that are bound again after a function's last call there: what it reads is what they held before.

def evaluate(): return model(batch)
model = Small()
evaluate()
model = Large().cuda()   # `evaluate` never sees this one
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from devlint.facts.text.nodes import children, walk

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
Place = tuple[int, int]


class ModuleLevel(NamedTuple):
    """Where the module level last binds each name, and last reads it; and the names that functions and classes read."""

    bound: dict[str, Place]
    read: dict[str, Place]
    inside: frozenset[str]

    def late(self, function: str) -> frozenset[str]:
        """The names that are bound after a function was last read; none where that is not known."""
        last = self.read.get(function)
        if last is None or function in self.inside:
            return frozenset()
        return frozenset(name for name, place in self.bound.items() if place > last)


def read_module_level(tree: ast.Module) -> ModuleLevel:
    bound: dict[str, Place] = {}
    read: dict[str, Place] = {}
    inside: set[str] = set()
    todo: list[tuple[ast.AST, Place | None]] = [(tree, None)]  # with where the loop around it starts
    while todo:
        node, loop = todo.pop()
        if isinstance(node, _SCOPES):
            inside.update(n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
            continue
        if isinstance(node, ast.Name):
            here, is_read = (node.lineno, node.col_offset), isinstance(node.ctx, ast.Load)
            place = here if is_read or loop is None else loop  # the next turn sees what the last one bound
            places = read if is_read else bound
            places[node.id] = max(places.get(node.id, (0, 0)), place)
        elif loop is None and isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
            loop = node.lineno, node.col_offset
        todo += [(child, loop) for child in children(node)]
    return ModuleLevel(bound, read, frozenset(inside))
