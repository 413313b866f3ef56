"""Tensors without elements, which stand for nothing yet: `torch.zeros(0)`, `torch.tensor([])`, `torch.empty(0, 4)`.

What is given one asks for its size before it combines it with anything.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint.facts.events import Creation
from devlint.facts.frozen import replace
from devlint.facts.values import UNKNOWN, Value


def is_void(creation: Creation) -> bool:
    """Whether a tensor is made with nothing in any dimension, which joins no other: `torch.empty(0, 0)`."""
    sizes = creation.node.args
    return len(sizes) > 1 and all(map(is_zero, sizes))


def is_empty(creation: Creation) -> bool:
    """Whether a tensor is made without elements, as far as its call shows: a size of nothing, or data without any."""
    given = [*creation.node.args, *(k.value for k in creation.node.keywords if k.arg in ("size", "data"))]
    if not given:
        return False
    if isinstance(given[0], (ast.Tuple, ast.List)):
        if creation.function.endswith((".tensor", ".as_tensor", "Tensor")):
            return not given[0].elts
        return any(map(is_zero, given[0].elts))
    if creation.function in ("torch.zeros", "torch.ones", "torch.empty", "torch.rand", "torch.randn"):
        return any(map(is_zero, given))
    return False


def fills_places(values: Iterable[Value]) -> bool:
    """Whether the values of a list that is repeated, `[torch.empty(0)] * n`, only keep places for what has a shape.

    Those with one, `[torch.zeros(0, 6)] * n`, are results where nothing replaces them.
    """
    return all(is_placeholder(value) and all(map(is_without_shape, value.made)) for value in values)


def is_without_shape(creation: Creation) -> bool:
    """Whether a tensor without elements has one dimension alone: `torch.empty(0)`, `torch.tensor([])`."""
    given = creation.node.args
    return len(given) == 1 and (is_zero(given[0]) or (isinstance(given[0], ast.List) and not given[0].elts))


def is_placeholder(value: Value) -> bool:
    return value.kind == "tensor" and bool(value.made) and all(map(is_empty, value.made))


def handed_over(value: Value) -> Value:
    """A value as a function gets it: a placeholder is replaced before it meets anything."""
    return replace(value, device=UNKNOWN, made=(), because=()) if is_placeholder(value) else value


def is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0
