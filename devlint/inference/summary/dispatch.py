"""The table from syntax to what evaluates it. The modules that evaluate register here, so that none needs another one."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from devlint.inference.summary.frame import Frame
from devlint.inference.terms.values import NOTHING, Value

Evaluator = Callable[[Frame, Any], Value]
EXPRESSIONS: dict[type[ast.expr], Evaluator] = {}
#: How deep expressions may be nested.
NESTED = 60


def evaluates(*types: type[ast.expr]) -> Callable[[Evaluator], Evaluator]:
    """Register the function that evaluates some types of expressions."""

    def register(function: Evaluator) -> Evaluator:
        for each in types:
            EXPRESSIONS[each] = function
        return function

    return register


def evaluate(frame: Frame, node: ast.expr) -> Value:
    """What an expression gives. Whatever it does to devices is recorded in the frame."""
    run = EXPRESSIONS.get(type(node))
    if run is None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                evaluate(frame, child)
        return NOTHING
    if frame.depth > NESTED:
        return NOTHING
    frame.depth += 1
    try:
        value = run(frame, node)
    finally:
        frame.depth -= 1
    if frame.analyser.watch is not None:
        frame.analyser.watch.saw(frame, node, value)
    return value


def peek(frame: Frame, node: ast.expr) -> Value | None:
    """What a name, an attribute or an item is, without running anything; None for other expressions."""
    inner: ast.expr = node
    while isinstance(inner, (ast.Attribute, ast.Subscript)):
        if isinstance(inner, ast.Subscript) and not _is_one_part(inner.slice):
            return None
        inner = inner.value
    if not isinstance(inner, (ast.Name, ast.Constant)):
        return None
    with silent(frame):
        return evaluate(frame, node)


def _is_one_part(index: ast.expr) -> bool:
    """Whether an index stands for one part: a constant. Or for a part of a tensor: whole dimensions, beside names."""
    if isinstance(index, ast.Constant):
        return True
    entries = index.elts if isinstance(index, ast.Tuple) else [index]
    if not any(isinstance(each, ast.Slice) or is_dimension(each) for each in entries):
        return False
    return all(isinstance(node, _LOOKING) for each in entries for node in ast.walk(each))


#: Nodes of an index that run no code of the program.
_LOOKING = (ast.Constant, ast.Slice, ast.Name, ast.UnaryOp, ast.expr_context, ast.unaryop)


def is_dimension(index: ast.expr) -> bool:
    """Whether an entry of an index is a new dimension, or all that are left."""
    return isinstance(index, ast.Constant) and index.value in (None, ...)


class silent:
    """Nothing that is evaluated inside is recorded."""

    __slots__ = ("asks", "constraints", "frame", "stops")

    def __init__(self, frame: Frame) -> None:
        self.frame = frame

    def __enter__(self) -> None:
        self.constraints, self.asks = self.frame.constraints, self.frame.site.asks
        self.stops = self.frame.stops
        self.frame.constraints, self.frame.site.asks, self.frame.stops = [], set(self.asks), []

    def __exit__(self, *error: object) -> None:
        self.frame.constraints, self.frame.site.asks, self.frame.stops = self.constraints, self.asks, self.stops
