"""Arguments of which a function moves a copy, and that meet what is computed from it as they are.

    def error(model, x: Tensor, device):
        out = model(x.to(device)).cpu()  # so `x` is on the CPU, for all that the function knows
        return out - x

The function never binds the name anew, and moves the copy whenever it runs.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.events import Operand
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import CPU, HOME, may_be_accelerator, on

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.values import Device

#: What says where a tensor is.
_PLACE = frozenset({"device", "is_cuda", "is_cpu", "is_mps", "is_xpu", "get_device"})
_PLAIN = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)
_PERHAPS = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.DictComp, ast.SetComp, ast.GeneratorExp)


def is_fetched_beside(machine: Machine, node: ast.expr, off: Operand, other: Operand) -> bool:
    """Whether what is on the CPU again meets an argument of which a copy was moved away: it is where the argument is.

    `out = model(x.to(device)).cpu()` and `out - x`.
    """
    if off.value.device != CPU or not off.value.moved or other.value.device != HOME:
        return False
    return any(may_be_accelerator(target(machine, call)) for call in copies(machine, node, other.node))


def copies(machine: Machine, node: ast.expr, name: ast.expr) -> Iterator[ast.Call]:
    """The calls above a node that move a copy of an argument, whose name the function never binds anew."""
    if not isinstance(name, ast.Name) or not machine.assume or machine.host or machine.function is None:
        return
    function = machine.function.node
    own = machine.scan.functions.get(id(function))
    if own is None or isinstance(function, ast.Lambda) or name.id not in parameter_names(function):
        return
    if not own.bound.get(name.id, 0) and name.id not in own.nonlocals:
        yield from (call for call in moves_in(function, name.id) if call.lineno < node.lineno)


@lru_cache(64)
def moves_in(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> tuple[ast.Call, ...]:
    """The moves of `moves`; none where the function asks where the variable is."""
    found = tuple(moves(function.body, name))
    asked = found and any(
        isinstance(each, ast.Attribute) and each.attr in _PLACE and getattr(each.value, "id", "") == name
        for each in walk(function)
    )
    return () if asked else found


def moves(body: list[ast.stmt], name: str) -> Iterator[ast.Call]:
    """The calls that move a copy of a variable whenever a function runs."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from moves(statement.body, name)
        nodes = list(walk(statement)) if isinstance(statement, _PLAIN) else []
        if any(isinstance(each, _PERHAPS) for each in nodes):
            continue
        for each in nodes:
            function = each.func if isinstance(each, ast.Call) else None
            if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
                if function.value.id == name and function.attr in OFF_HOST:
                    assert isinstance(each, ast.Call)
                    yield each


def target(machine: Machine, call: ast.Call) -> Device:
    """The device that a move names."""
    assert isinstance(call.func, ast.Attribute)
    given = call.args[0] if call.args else next((k.value for k in call.keywords if k.arg == "device"), None)
    if call.func.attr != "to":
        return on(call.func.attr)
    value = machine.evaluate(given) if given is not None else None
    return value.device if value is not None and value.kind in ("device", "string") else frozenset()
