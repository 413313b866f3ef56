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
from bisect import bisect
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.text.nodes import walk
from devlint.facts.text.signatures import parameter_names, parameter_of
from devlint.facts.values import CPU, HOME, LOOKED_UP, Conflict, Symbol, Value, describe
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.operations import Operations
    from devlint.facts.text.scan import FunctionScan


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
    if off.value.attribute is not None:
        return False  # what a module keeps unregistered is reported as such
    function = machine.function
    given = next((p.name.removesuffix(".device") for p in other.value.device if isinstance(p, Symbol)), "")
    if function is None or off.value.device != CPU or len(other.value.device) != 1 or not given.isidentifier():
        return False
    own = machine.scan.functions.get(id(function.node))
    earlier = before(own, off.node, given) if own is not None else []
    table = machine.path(off.node) if earlier else None
    if own is None or table is None or any(machine.path(store) == table for store in own.stores) or table in own.bound:
        return False
    for node in earlier:
        if machine.path(node.value) != table:
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


def before(own: FunctionScan, place: ast.expr, given: str) -> list[ast.Subscript]:
    """The look-ups by an argument in the simple statements that run before one with a place in it, in the same block."""
    found = lookups(own)
    if given not in found.by_argument:
        return []
    start = (place.lineno, place.col_offset)
    at = bisect(found.starts, start) - 1
    if at < 0 or found.ends[at] <= start:
        return []
    return [
        node for number, node in found.by_argument[given] if number < at and found.blocks[number] == found.blocks[at]
    ]


class Lookups(NamedTuple):
    """`starts`, `ends`, `blocks`: where each simple statement of a function begins and ends, and in which block, in order.
    `by_argument`: the subscripts whose index is an argument as it is, with the number of their statement."""

    starts: list[tuple[int, int]]
    ends: list[tuple[int, int]]
    blocks: list[int]
    by_argument: dict[str, list[tuple[int, ast.Subscript]]]


@lru_cache(8)
def lookups(own: FunctionScan) -> Lookups:
    """The look-ups of a function by its arguments; read once."""
    found = Lookups([], [], [], {})
    names = {node.slice.id for node in own.subscripts if isinstance(node.slice, ast.Name)}
    names.intersection_update(parameter_names(own.node))
    if not names:
        return found
    simple: list[tuple[int, ast.stmt]] = []
    blocks = 0
    for node in walk(own.node):
        for block in (getattr(node, "body", None), getattr(node, "orelse", None)):
            if isinstance(block, list):
                simple += ((blocks, s) for s in block if not hasattr(s, "body"))
                blocks += 1
    simple.sort(key=lambda each: (each[1].lineno, each[1].col_offset))
    for at, (number, statement) in enumerate(simple):
        found.starts.append((statement.lineno, statement.col_offset))
        found.ends.append((statement.end_lineno or statement.lineno, statement.end_col_offset or 0))
        found.blocks.append(number)
        for part in walk(statement):
            if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Name) and part.slice.id in names:
                found.by_argument.setdefault(part.slice.id, []).append((at, part))
    return found
