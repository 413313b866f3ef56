"""Names of the module level that are bound again after a function's last call there: what it reads is what they held before.

def evaluate(): return model(batch)
model = Small()
evaluate()
model = Large().cuda()   # `evaluate` never sees this one
"""

from __future__ import annotations

import ast

from devlint.facts.text.nodes import BLOCKS, LOOPS
from devlint.facts.text.scan import Scan

_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Place = tuple[int, int]


class ModuleLevel:
    """Where the module level last binds each name, and last reads it."""

    def __init__(self, scanned: Scan) -> None:
        self._scan = scanned
        self._bound: dict[str, Place] = {}
        self._read: dict[str, Place] = {}
        loops = outer_loops(scanned.tree)
        for node in (*scanned.outside, *scanned.called_outside):
            place, is_read = (node.lineno, node.col_offset), isinstance(node.ctx, ast.Load)
            if loops and not is_read:  # the next turn sees what the last one bound
                place = next((start for start, end in loops if start <= place < end), place)
            places = self._read if is_read else self._bound
            places[node.id] = max(places.get(node.id, (0, 0)), place)

    def late(self, function: str) -> frozenset[str]:
        """The names that are bound after a function was last read; none where that is not known."""
        last = self._read.get(function)
        if last is None:
            return frozenset()
        late = frozenset(name for name, place in self._bound.items() if place > last)
        return late if late and not self._is_read_inside(function) else frozenset()

    def _is_read_inside(self, name: str) -> bool:
        """Whether a function or class reads a name."""
        if name in self._scan.read_inside:
            return True
        outside = {id(node) for node in self._scan.called_outside if node.id == name}
        called = [site.call.func for site in self._scan.calls.get(name, ())]
        return any(isinstance(node, ast.Name) and id(node) not in outside for node in called)


def outer_loops(tree: ast.Module | None) -> list[tuple[Place, Place]]:
    """Where the loops of the module level start and end, those inside others left out."""
    pending: list[ast.AST] = list(tree.body) if tree is not None else []
    found: list[tuple[Place, Place]] = []
    for node in pending:  # which grows
        if isinstance(node, LOOPS):
            found.append(((node.lineno, node.col_offset), (node.end_lineno or 0, node.end_col_offset or 0)))
        elif not isinstance(node, _SCOPES):
            for name in BLOCKS[type(node)]:
                pending += getattr(node, name)
    return found
