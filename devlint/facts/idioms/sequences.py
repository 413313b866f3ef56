"""Sequence lengths: `pack_padded_sequence` reads them on the host, wherever its data is.

The lengths must be a list or a 1-D int64 tensor on the CPU [torch/nn/utils/rnn.py, `_pack_padded_sequence`].
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Lengths, Operand
from devlint.facts.idioms import lengths_beside_data, looked_up
from devlint.facts.values import CPU, Conflict

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments, CallArguments


def note_lengths(machine: CallArguments, node: ast.Call, arguments: Arguments) -> None:
    """Emit `Lengths` when the lengths are a tensor that is, or may be, on an accelerator."""
    given = arguments.get("lengths", 1)
    if given is None or machine.host:
        return
    value = given[1]
    if value.kind == "unknown" or lengths_beside_data.is_lengths(value):
        operand = looked_up.argument(machine, given[0])
        # whether they are on an accelerator is for the calls to say, if none of the file's own did
        if operand is not None and ("Lengths", machine.span(node)) not in machine.events:
            machine.emit(_event(machine, node, operand, "assume"))
    if not value.is_tensor:
        return
    if value.kind == "tensors" and not value.moved:
        return  # a part of what a module gives may be a list of numbers
    level = machine.conflict(CPU, value.device)
    if value.device == CPU or level is None:
        return
    event = _event(machine, node, machine.operand(*given), level)
    if lengths_beside_data.is_lengths(value):
        lengths_beside_data.note_call(machine, event)  # whoever calls with lengths knows where they must be
    else:
        machine.emit(event)


def _event(machine: CallArguments, node: ast.Call, lengths: Operand, level: Conflict) -> Lengths:
    because = lengths.value.because
    return Lengths(machine.span(node), node, because, machine.guards, machine.scope(), machine.name, lengths, level)
