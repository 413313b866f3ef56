"""Tables of the host that an argument looks up, of which the function itself does not show that it is a tensor.

    class Schedule:
        def __init__(self, steps):
            self.kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, steps), dim=0)

        def noisy(self, x, t):
            return self.kept[t].to(x.device) * x    # `t` may be a number, or steps on an accelerator

Whether it is an index on an accelerator is for the calls of the project to say: see `CallSites.holds`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Operand
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import CPU, HOME, LOOKED_UP, Value, describe
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.operations import Operations


def note(machine: Operations, node: ast.Subscript, table: Value, index: Value) -> None:
    """`table[t]`: emit what the calls of the function have to bear out, where `t` is an argument as it was given."""
    if index.kind != "unknown" or table.device != CPU or table.zero_dim is not False or table.attribute is not None:
        return
    other = argument(machine, node.slice)
    if other is None:
        return
    off = machine.operand(node.value, table)
    meets = Origin(machine.span(node), f"meets `{other.text}` on {describe(HOME)} here")
    because = (*table.because[:2], meets, *other.value.because)
    machine.emit_meet(node, "index", "index", off, other, "assume", because)


def argument(machine: Operations, node: ast.expr) -> Operand | None:
    """An argument of the function as it was given, for a tensor of whatever device; None for anything else."""
    function = machine.function
    if not isinstance(node, ast.Name) or function is None or isinstance(function.node, ast.Lambda):
        return None
    if not machine.assume or machine.host or not machine.knows_torch:
        return None
    parameter = parameter_of(function.node.args, node.id)
    own = machine.scan.functions.get(id(function.node))
    if parameter is None or own is None or own.bound.get(node.id):
        return None
    origin = Origin(machine.span(parameter), f"`{node.id}` is an argument, which may be on an accelerator")
    machine.assumed.setdefault(origin.span, (function, node.id))
    value = Value("tensor", HOME, False, because=(origin,), type_name=LOOKED_UP)
    return Operand(machine.span(node), node, node.id, value)
