"""Names of the module level that are bound again after a function's last call there: what it reads is what they held before.

def evaluate(): return model(batch)
model = Small()
evaluate()
model = Large().cuda()   # `evaluate` never sees this one
"""

from __future__ import annotations

import ast
from functools import cached_property

from devlint.facts.text.nodes import children, walk

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
Place = tuple[int, int]


class ModuleLevel:
    """Where the module level last binds each name, and last reads it; and the names that functions and classes read."""

    def __init__(self, tree: ast.Module) -> None:
        self._scopes: list[ast.AST] = []
        self._bound: dict[str, Place] = {}
        self._read: dict[str, Place] = {}
        todo: list[tuple[ast.AST, Place | None]] = [(tree, None)]  # with where the loop around it starts
        while todo:
            node, loop = todo.pop()
            if isinstance(node, _SCOPES):
                self._scopes.append(node)
                continue
            if isinstance(node, ast.Name):
                here, is_read = (node.lineno, node.col_offset), isinstance(node.ctx, ast.Load)
                place = here if is_read or loop is None else loop  # the next turn sees what the last one bound
                places = self._read if is_read else self._bound
                places[node.id] = max(places.get(node.id, (0, 0)), place)
            elif loop is None and isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                loop = node.lineno, node.col_offset
            todo += [(child, loop) for child in children(node)]

    def late(self, function: str) -> frozenset[str]:
        """The names that are bound after a function was last read; none where that is not known."""
        last = self._read.get(function)
        if last is None:
            return frozenset()
        late = frozenset(name for name, place in self._bound.items() if place > last)
        return late if late and function not in self._inside else frozenset()

    @cached_property
    def _inside(self) -> frozenset[str]:
        names = (n for scope in self._scopes for n in walk(scope) if isinstance(n, ast.Name))
        return frozenset(n.id for n in names if isinstance(n.ctx, ast.Load))
