"""Modules that a loop brings to the CPU, as a rule to save them, and calls again in its next turn.

    model.to(device)
    for epoch in range(epochs):
        loss = criterion(model(x), y)                  # from the second turn on the model is on the CPU
        torch.save(model.cpu().state_dict(), path)     # a module moves in place

`Module.cpu()` moves the module itself and returns it [torch/nn/modules/module.py, `Module._apply`].
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.values import CPU, HOME, Place, Value, may_be_accelerator

if TYPE_CHECKING:
    from devlint.facts.interpreter.module_calls import ModuleCalls

_CPU_PLACE = Place("cpu")


def note(machine: ModuleCalls, node: ast.Call, module: Operand, given: list[Operand]) -> None:
    """A module is called that was elsewhere before the loop and is on the CPU in some of its turns."""
    value, path = module.value, machine.path(node.func)
    if path is None or not value.moved or value.device == CPU or _CPU_PLACE not in value.device:
        return
    before = (state.env.get(path) for state in machine.at_entry)
    if not any(known is not None and known.moved and is_elsewhere(known) for known in before):
        return
    there = next((operand for operand in given if is_elsewhere(operand.value)), None)
    level = machine.conflict(CPU, there.value.device) if there is not None else None
    if there is not None and level is not None:
        because = tuple(origin for origin in value.because if "the CPU" in origin.text) or value.because
        here = replace(module, value=replace(value, device=CPU, because=because, split=None))
        because = (*because[:1], *there.value.because[:1])
        machine.emit_meet(node, "module", "module", here, there, level, because)


def is_elsewhere(value: Value) -> bool:
    """Whether a value was put somewhere, and not on the CPU."""
    return may_be_accelerator(value.device) and _CPU_PLACE not in value.device and value.device != HOME
