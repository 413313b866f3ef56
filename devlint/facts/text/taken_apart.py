"""Values that the code takes apart item by item: tensors of them have a dimension at least.

`pads[i]` in a loop over `i`, `pads[0]`, `pads[2:]`, `len(pads)`, `for pad in pads`, `pads.shape[0]`, `x @ pads`. A tensor
without dimensions refuses all of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_own_attribute

#: What asks for the number of dimensions: the code is ready for none.
_ASKS = frozenset({"ndim", "dim", "ndimension", "is_tensor"})
_ITERATES = frozenset({"len", "enumerate", "zip", "list", "tuple", "iter", "reversed", "sorted"})


def is_taken_apart(functions: Iterable[ast.AST], attribute: str, parameter: str | None) -> bool:
    """Whether methods take `self.attribute` apart, or the first one of them its parameter, and none asks for dimensions."""
    found = False
    for index, function in enumerate(functions):
        name = parameter if index == 0 else None
        turns = {
            part.id
            for node in walk(function)
            if isinstance(node, (ast.For, ast.comprehension))
            for part in walk(node.target)
            if isinstance(part, ast.Name)
        }
        for node in walk(function):
            if isinstance(node, ast.Attribute) and node.attr in _ASKS and _is(node.value, attribute, name):
                return False
            if not found:
                found = _takes_apart(node, attribute, name, turns)
    return found


def _takes_apart(node: ast.AST, attribute: str, name: str | None, turns: set[str]) -> bool:
    if isinstance(node, (ast.For, ast.comprehension)):
        return _is(node.iter, attribute, name)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _ITERATES:
        return any(_is(given, attribute, name) for given in node.args)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
        return _is(node.left, attribute, name) or _is(node.right, attribute, name)
    if not isinstance(node, ast.Subscript):
        return False
    of_shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    whole = node.value.value if of_shape and isinstance(node.value, ast.Attribute) else node.value
    index = node.slice.elts[0] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    return _is(whole, attribute, name) and _is_place(index, turns)


def _is_place(node: ast.expr, turns: set[str]) -> bool:
    """Whether an index is a number or a slice: no None, no ellipsis and no mask, which may stand for no dimension."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int) and not isinstance(node.value, bool)
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Name) and node.id in turns)


def _is(node: ast.AST, attribute: str, name: str | None) -> bool:
    """Whether an expression is `self.attribute`, or the parameter."""
    if isinstance(node, ast.Name):
        return node.id == name
    return isinstance(node, ast.expr) and is_own_attribute(node, attribute)
