"""Whether a place is only reached where something is a tensor: `if torch.is_tensor(v):`, `[... if isinstance(v, Tensor)]`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import COMPREHENSIONS, walk
from devlint.facts.text.references import stored_names

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

_CLASSES = frozenset({"torch.Tensor", "torch.nn.Parameter", "torch.nn.parameter.Parameter"})


def is_told(machine: Machine, place: ast.AST, node: ast.expr, around: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether a condition around a place says that an expression, whose names it does not bind again, is a tensor.

    `around`: what is around each node of the function.
    """
    wanted = ast.unparse(node)
    names = {child.id for child in walk(node) if isinstance(child, ast.Name)}
    inner, outer = place, around.get(place)
    while outer is not None and not isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        if isinstance(outer, (ast.For, ast.AsyncFor)) and not names.isdisjoint(stored_names(outer.target)):
            return False
        if isinstance(inner, ast.stmt) and is_asserted(machine, outer, inner, wanted, names):
            return True
        if isinstance(outer, ast.If) and inner in outer.body and says(machine, outer.test, wanted):
            return all(map(names.isdisjoint, map(stored_names, outer.body)))
        if isinstance(outer, COMPREHENSIONS):
            return any(says(machine, test, wanted) for part in outer.generators for test in part.ifs)
        inner, outer = outer, around.get(outer)
    if isinstance(inner, ast.stmt) and outer is not None:
        return is_asserted(machine, outer, inner, wanted, names)
    return False


def is_asserted(machine: Machine, outer: ast.AST, inner: ast.stmt, wanted: str, names: set[str]) -> bool:
    """Whether an assertion above a statement, in its own block, says so, with nothing between that binds the names."""
    block = next(
        (b for name in ("body", "orelse", "finalbody") if inner in (b := getattr(outer, name, None) or ())), ()
    )
    above = block[: block.index(inner)] if isinstance(block, list) else []
    for statement in reversed(above):
        if isinstance(statement, ast.Assert) and says(machine, statement.test, wanted):
            return True
        if not names.isdisjoint(stored_names(statement)):
            return False
    return False


def says(machine: Machine, test: ast.expr, wanted: str) -> bool:
    """Whether a condition that holds says that the expression with this text is a tensor, and of no other class."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        return any(says(machine, part, wanted) for part in test.values)
    if not isinstance(test, ast.Call) or not test.args or ast.unparse(test.args[0]) != wanted:
        return False
    name = machine.qualify(test.func)
    if name == "torch.is_tensor":
        return True
    if name != "builtins.isinstance" or len(test.args) != 2:
        return False
    types = test.args[1]
    named = {machine.qualify(part) for part in (types.elts if isinstance(types, ast.Tuple) else [types])}
    return bool(named) and named <= _CLASSES
