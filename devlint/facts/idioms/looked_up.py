"""Tables of the host that an argument looks up, of which the function itself does not show that it is a tensor.

    class Schedule:
        def __init__(self, steps):
            self.kept = torch.cumprod(1 - torch.linspace(1e-4, 0.02, steps), dim=0)

        def noisy(self, x, t):
            return self.kept[t].to(x.device) * x    # `t` may be a number, or steps on an accelerator

Whether it is an index on an accelerator is for the calls of the project to say: see `CallSites.holds`. But where the function
looks up an index that it put on the device of the argument later on, torch refuses the first look-up before that one:

        k = self.kept[t]
        other = self.kept[self.drawn.to(t.device)]
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.text.nodes import walk
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import CPU, HOME, LOOKED_UP, Conflict, Symbol, Value, describe
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


def note_first(machine: Operations, off: Operand, other: Operand, level: Conflict) -> bool:
    """Emit what a look-up before this one meets instead, if it is of the same table and by an argument on whose device the
    index of this one is."""
    function = machine.function
    given = next((p.name.removesuffix(".device") for p in other.value.device if isinstance(p, Symbol)), "")
    if function is None or off.value.device != CPU or len(other.value.device) != 1 or not given.isidentifier():
        return False
    own = machine.scan.functions.get(id(function.node))
    table = machine.path(off.node)
    if own is None or table is None or any(machine.path(store) == table for store in own.stores) or table in own.bound:
        return False
    for node in before(function.node, off.node):
        if machine.path(node.value) != table or not isinstance(node.slice, ast.Name) or node.slice.id != given:
            continue
        index = argument(machine, node.slice)
        if index is None:
            continue
        first = machine.operand(node.value, off.value)
        met = replace(index, value=replace(index.value, device=other.value.device, type_name=None))
        meets = Origin(machine.span(node), f"meets `{given}` on {describe(other.value.device)} here")
        machine.emit_meet(node, "index", "index", first, met, level, (*off.value.because[:2], meets))
        return True
    return False


def before(function: ast.AST, place: ast.expr) -> Iterator[ast.Subscript]:
    """The subscripts in the simple statements that run before one with a place in it, in the same block."""
    for node in walk(function):
        blocks: list[object] = [getattr(node, "body", None), getattr(node, "orelse", None)]
        for block in blocks:
            if not isinstance(block, list):
                continue
            for at, statement in enumerate(block):
                if not hasattr(statement, "body") and any(part is place for part in walk(statement)):
                    earlier = (each for each in block[:at] if not hasattr(each, "body"))
                    yield from (part for each in earlier for part in walk(each) if isinstance(part, ast.Subscript))
