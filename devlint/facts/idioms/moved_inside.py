"""Functions of the file that move what they are given, on every path and for themselves alone: `x = x.to(self.device)`.

outputs = self.step(inputs, labels)   # `step` moves both: the loader's batches are on the host
hits += (outputs == labels).sum()     # and here `labels` still is
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.signatures import positional_names

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine


def moved_inside(machine: Machine, call: ast.Call) -> Iterator[tuple[str, ast.Call]]:
    """The names that a call hands to a function of the file which moves them at its top level, each with the move."""
    function = _called(machine, call)
    if function is None:
        return
    moved = dict(_moves(function))
    names = positional_names(function.args)
    names = names[1:] if names[:1] in (["self"], ["cls"]) and isinstance(call.func, ast.Attribute) else names
    given = [*zip(names, call.args, strict=False), *((k.arg, k.value) for k in call.keywords)]
    for name, value in given:
        if isinstance(value, ast.Name) and name in moved:
            yield value.id, moved[name]


def _called(machine: Machine, call: ast.Call) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function of the file, or the method of the class under analysis, that a call runs."""
    callee = call.func
    if isinstance(callee, ast.Name):
        known = machine.functions.get(callee.id)
        node = known.node if known is not None else None
        return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    if not isinstance(callee, ast.Attribute) or not isinstance(callee.value, ast.Name) or callee.value.id != "self":
        return None
    found = machine.owner.method(callee.attr) if machine.owner is not None and not machine.owner.abroad else None
    return found[1] if found is not None and not found[0].abroad else None


def _moves(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[tuple[str, ast.Call]]:
    """The names that a function binds to their own moved copies, in no branch and no loop."""
    for statement in function.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target, value = statement.targets[0], statement.value
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        else:
            pairs = [(target, value)]
        for bound, made in pairs:
            if (
                not isinstance(bound, ast.Name)
                or not isinstance(made, ast.Call)
                or not isinstance(made.func, ast.Attribute)
            ):
                continue
            receiver = made.func.value
            if isinstance(receiver, ast.Name) and receiver.id == bound.id:
                if made.func.attr in OFF_HOST:
                    yield bound.id, made
