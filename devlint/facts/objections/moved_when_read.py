"""Buffers of which a class moves a copy wherever it computes with them: what takes their place may be on any device.

if self.weight.ndim == 0:
    self.weight = torch.as_tensor([self.weight] * n)
return loss * self.weight.to(loss)
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute
from devlint.facts.text.results import parents
from devlint.facts.text.signs import moves

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Meet

#: What is asked of a tensor without computing on its device beside others.
_ASKED = frozenset(
    {"ndim", "shape", "dtype", "device", "dim", "size", "numel", "nelement", "item", "tolist", "is_cuda"}
)


def is_moved_when_read(sites: CallSites, event: Meet) -> bool:
    """Whether every place of its class that computes with a buffer moves it there, and one does."""
    class_ = sites.class_of(event.function) if event.how == "buffer" else None
    if class_ is None:
        return False
    around = parents(class_.node)
    moved = False
    for node in walk(class_.node):
        if not isinstance(node, ast.Attribute) or node.attr != event.operation or not is_self_attribute(node):
            continue
        if not isinstance(node.ctx, ast.Load):
            continue
        outer = around.get(node)
        call = around.get(outer) if outer is not None else None
        if isinstance(outer, ast.Attribute) and isinstance(call, ast.Call) and call.func is outer and is_move(call):
            moved = True
        elif not (isinstance(outer, ast.Attribute) and outer.attr in _ASKED) and not is_tested(node, around):
            if not is_replaced(node, event, around):
                return False
    return moved


def is_move(call: ast.Call) -> bool:
    """Whether a call moves a tensor, also to another one: `w.to(x)`, `w.type_as(x)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    return moves(call) or (name in ("to", "type_as") and len(call.args) == 1 and isinstance(call.args[0], ast.Name))


def is_tested(node: ast.AST, around: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether an expression is a part of a condition, with nothing but constants: `w is None`, `w.min() < 0`."""
    while True:
        outer = around.get(node)
        if isinstance(outer, (ast.If, ast.While, ast.IfExp, ast.Assert)):
            return outer.test is node
        if isinstance(outer, ast.Compare):
            others = [side for side in (outer.left, *outer.comparators) if side is not node]
            if not all(isinstance(side, (ast.Constant, ast.Name)) for side in others):
                return False
        elif isinstance(outer, ast.Call):
            if outer.func is not node:
                return False
        elif not isinstance(outer, (ast.Attribute, ast.BoolOp, ast.UnaryOp)):
            return False
        node = outer


def is_replaced(node: ast.AST, event: Meet, around: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a read is in what takes the buffer's place itself."""
    outer: ast.AST | None = node
    while outer is not None and outer is not event.node:
        if isinstance(outer, ast.Assign):
            return any(isinstance(t, ast.Attribute) and t.attr == event.operation for t in outer.targets)
        outer = around.get(outer)
    return outer is not None
