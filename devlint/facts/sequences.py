"""Sequence lengths: `pack_padded_sequence` reads them on the host, wherever its data is.

The lengths must be a list or a 1-D int64 tensor on the CPU [torch/nn/utils/rnn.py, `_pack_padded_sequence`].
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Lengths
from devlint.facts.values import CPU

if TYPE_CHECKING:
    from devlint.facts.calls import Arguments, Calls


def note_lengths(machine: Calls, node: ast.Call, arguments: Arguments) -> None:
    """Emit `Lengths` when the lengths are a tensor that is, or may be, on an accelerator."""
    given = arguments.get("lengths", 1)
    if given is None or not given[1].is_tensor or machine.host:
        return
    level = machine.conflict(CPU, given[1].device)
    if given[1].device == CPU or level is None:
        return
    machine.emit(
        Lengths(
            machine.span(node), node, given[1].because, machine.guards, machine.scope(), machine.name,
            machine.operand(*given), level,
        )
    )  # fmt: skip
