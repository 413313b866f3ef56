"""Tensors whose gradient is read, and that were moved under their own name after they were told to gather one.

image.requires_grad = True
image = image.to(device)           # no leaf: the gradient gathers in the tensor that was moved
loss(model(image)).backward()
step = image.grad.sign()           # None
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.events import Move, NoLeaf
from devlint.facts.idioms.leaves import gathers
from devlint.facts.surveys.outline import Outline
from devlint.facts.values import may_be_accelerator

#: What makes a tensor gather its gradient though it is no leaf, or makes it a leaf again.
_REPAIRS = frozenset({"retain_grad", "requires_grad_", "detach_"})


def lost_leaves(o: Outline) -> Iterator[NoLeaf]:
    for event in list(o.flow.events.values()):
        if (
            not isinstance(event, Move)
            or event.discarded
            or event.target is None
            or not isinstance(event.node, ast.Call)
        ):
            continue
        name, statement = event.receiver.node, o.nearest(event.node, ast.Assign)
        there = event.target.device
        if not isinstance(name, ast.Name) or statement is None or not may_be_accelerator(there):
            continue
        if f"{name.id}.grad" not in o.flow.source.text:
            continue
        if there & event.receiver.value.device or name.id not in stored(statement):
            continue
        read = read_after(o, name.id, statement)
        if read is not None:
            origin = o.flow.origin(read, "its gradient is read here, and it is None")
            head = (event.span, event.node, (origin,), event.under, event.scope, event.function)
            yield NoLeaf(*head, event.method, event.receiver, event.target, event.only_device)


def read_after(o: Outline, name: str, move: ast.Assign) -> ast.Attribute | None:
    """Where the gradient of a name is read after a move, if it was to gather one before, and nothing was mended between."""
    scope, asked = o.scope(move), False
    nodes = [n for n in ast.walk(scope) if isinstance(n, (ast.Name, ast.Attribute, ast.Assign)) and o.scope(n) is scope]
    for node in sorted(nodes, key=lambda n: (n.lineno, n.col_offset)):
        after = node.lineno > (move.end_lineno or move.lineno)
        if node.lineno >= move.lineno and not after:
            if not asked:
                return None
        elif isinstance(node, ast.Assign) and name in stored(node):
            if after:
                return None
            asked = gathers(node.value)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == name:
            if after and node.attr == "grad" and isinstance(node.ctx, ast.Load):
                return node
            mends = node.attr in _REPAIRS or (node.attr == "requires_grad" and isinstance(node.ctx, ast.Store))
            if after and mends:
                return None
            asked = asked or (mends and is_asked(o, node))
    return None


def is_asked(o: Outline, node: ast.Attribute) -> bool:
    """Whether a tensor is told to gather its gradient: `x.requires_grad = True`, `x.requires_grad_()`."""
    outer = o.parent.get(node)
    if isinstance(outer, ast.Assign):
        return isinstance(outer.value, ast.Constant) and outer.value.value is True
    return isinstance(outer, ast.Call) and gathers(outer)


def stored(node: ast.Assign) -> set[str]:
    """The names that an assignment binds."""
    return {
        n.id
        for target in node.targets
        for n in ast.walk(target)
        if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
