"""Arguments that are lengths by their name, and that the function brings together with its data.

    mask = lengths > 0
    x = torch.masked_select(x, mask.view(-1, 1))  # refuses two devices, so the lengths are where `x` is
    packed = pack_padded_sequence(x, lengths[mask])

Who calls with lengths knows where they must be; nothing but such an operation shows that they are not on the host. An
index may be on the CPU, and so may what has no dimensions.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from devlint import knowledge
from devlint.facts.events import Lengths, Operand
from devlint.facts.frozen import replace
from devlint.facts.text.nodes import BLOCKS, PARTIAL, holds, walk
from devlint.facts.values import GUESS, HOME, Symbol, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

#: The origin of an argument that is lengths by its name.
_LENGTHS = re.compile(r"`(n|num|nb)_|`\w*(len|size|count|duration)", re.IGNORECASE)
#: The origin of what may be on the host beside lengths.
_FOR_HOST = re.compile(r"`[\w.]*(len|size|idx|index|indices|num|count|mask|label|target|duration|step)", re.IGNORECASE)
_WAYS_OUT = (ast.Return, ast.Raise, ast.Break, ast.Continue)


class Uses(NamedTuple):
    """What a function does with such an argument, by the identity of the nodes."""

    packed: dict[int, Lengths]
    met: dict[int, tuple[ast.expr, Origin]]  # operations with the data that torch refuses across devices


def is_lengths(value: Value) -> bool:
    """Whether a tensor is an argument that is lengths by its name, or computed from one."""
    return value.device == HOME and any(_LENGTHS.match(origin.text) for origin in value.because)


def note_call(machine: Machine, event: Lengths) -> None:
    """Note a call that packs by such an argument."""
    if machine.awaited or machine.function is None:
        return
    for uses in uses_of(machine, event.lengths.value):
        uses.packed[id(event.node)] = event
        settle(machine, uses)


def note_meeting(machine: Machine, node: ast.expr, operands: Sequence[Operand], mixing: str) -> None:
    """Note an operation that brings such an argument together with data that may be on an accelerator."""
    if machine.function is None or machine.host or mixing not in knowledge.ON_ONE_DEVICE:
        return
    for lengths in operands:
        if lengths.value.zero_dim is not False or lengths.value.type_name == GUESS or not is_lengths(lengths.value):
            continue
        for data in operands:
            if is_data(data.value):
                text = f"`{lengths.text}` meets `{data.text}` here, so both are on one device"
                for uses in uses_of(machine, lengths.value):
                    uses.met[id(node)] = (node, Origin(machine.span(node), text))
                    settle(machine, uses)


def is_data(value: Value) -> bool:
    """Whether a tensor takes part in the computation on the device: no lengths, masks or places among themselves."""
    if value.made or value.type_name == GUESS or value.zero_dim is True or not value.is_tensor:
        return False
    placed = all(isinstance(place, Symbol) for place in value.device) and len(value.device) == 1
    return placed and not any(_FOR_HOST.search(origin.text) for origin in value.because)


def uses_of(machine: Machine, value: Value) -> list[Uses]:
    """The uses of the arguments that lengths come from."""
    found = [origin.span for origin in value.because if _LENGTHS.match(origin.text)]
    return [machine.lengths.setdefault(span, Uses({}, {})) for span in found]


def settle(machine: Machine, uses: Uses) -> None:
    """Emit `Lengths` for the calls that are reached only where the lengths meet the data as well."""
    assert machine.function is not None
    for event in uses.packed.values():
        for node, origin in uses.met.values():
            if is_reached_with(machine.function.node, node, event.node):
                machine.emit(replace(event, because=(*event.because[:1], origin)))
                break


def is_reached_with(function: ast.AST, node: ast.expr, call: ast.AST) -> bool:
    """Whether a run of a function that reaches a call of it reaches another node of it, too."""
    if not holds(function, node) or not holds(function, call):
        return False
    row = getattr(call, "lineno", 0)
    for outer in walk(function):
        if isinstance(outer, _WAYS_OUT) and row <= outer.lineno < node.lineno:
            return False
        if outer is function or isinstance(outer, (ast.With, ast.AsyncWith)):
            continue
        if isinstance(outer, PARTIAL) and holds(outer, node) and not holds(outer, call):
            return False
        for name in BLOCKS.get(type(outer), ()):
            block = getattr(outer, name)
            if any(holds(part, node) for part in block) and not any(holds(part, call) for part in block):
                return False
    return True
