"""Modules that a loop brings to the CPU, as a rule to save them, and calls again in its next turn.

    model.to(device)
    for epoch in range(epochs):
        loss = criterion(model(x), y)                  # from the second turn on the model is on the CPU
        torch.save(model.cpu().state_dict(), path)     # a module moves in place

Nothing is said where the move may be that of the last turn, or of a turn that does something else: it is made under `==`, or
beside what ends the loop; nor where the loop hands the module and a device to a function, or reads where its parameters are.

`Module.cpu()` moves the module itself and returns it [torch/nn/modules/module.py, `Module._apply`].
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.references import stored_names
from devlint.facts.values import CPU, HOME, Value, may_be_accelerator
from devlint.model import Span

if TYPE_CHECKING:
    from devlint.facts.interpreter.module_calls import ModuleCalls


def note(machine: ModuleCalls, node: ast.Call, module: Operand, given: list[Operand]) -> None:
    """A module is called that was elsewhere before the loop and is on the CPU in some of its turns."""
    value, path = module.value, machine.path(node.func)
    if path is None or not value.moved or value.device == CPU or not value.device >= CPU:
        return
    before = (state.env.get(path) for state in machine.at_entry)
    if not any(known is not None and known.moved and is_elsewhere(known) for known in before):
        return
    there = next((operand for operand in given if is_elsewhere(operand.value)), None)
    level = machine.conflict(CPU, there.value.device) if there is not None else None
    if there is not None and level is not None:
        because = tuple(origin for origin in value.because if "the CPU" in origin.text) or value.because
        if because and may_be_moved_again(machine, node, module.node, because[0].span):
            return
        here = replace(module, value=replace(value, device=CPU, because=because, split=None))
        because = (*because[:1], *there.value.because[:1])
        machine.emit_meet(node, "module", "module", here, there, level, because)


def is_elsewhere(value: Value) -> bool:
    """Whether a value was put somewhere, and not on the CPU."""
    return may_be_accelerator(value.device) and not value.device >= CPU and value.device != HOME


def may_be_moved_again(machine: ModuleCalls, call: ast.Call, module: ast.expr, moved: Span) -> bool:
    """Whether the innermost loop around a call may bring the module back, or does not come to the call after the move."""
    around = machine.function.node if machine.function is not None else machine.scan.tree
    if around is None:
        return False
    loops = [n for n in walk(around) if isinstance(n, (ast.For, ast.While)) and holds(n, call)]
    name = ast.unparse(module)
    for loop in loops:
        for node in walk(loop):
            if isinstance(node, ast.Call) and is_handed_with_device(node, name):
                return True
            if isinstance(node, ast.Attribute) and node.attr == "device" and f"{name}.parameters(" in ast.unparse(node):
                return True
            if isinstance(node, (ast.If, ast.IfExp)) and contains(machine, node, moved):
                if any(is_one_turn(test) for test in walk(node.test)):
                    return True
            if isinstance(loop, ast.While) and isinstance(node, ast.If) and contains(machine, node, moved):
                bound = stored_names(node)
                if any(isinstance(n, ast.Name) and n.id in bound for n in walk(loop.test)):
                    return True
    return False


def contains(machine: ModuleCalls, node: ast.AST, place: Span) -> bool:
    span = machine.span(node)
    return span.start <= place.start and place.end <= span.end


def is_one_turn(test: ast.AST) -> bool:
    """Whether a condition holds in one turn: `epoch == last`, but not `epoch % 5 == 0`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.Eq):
        return False
    return not any(isinstance(n, ast.BinOp) and isinstance(n.op, ast.Mod) for n in walk(test))


def is_handed_with_device(call: ast.Call, name: str) -> bool:
    """Whether a call passes a module on with a device: `train(model, device)`."""
    given = [ast.unparse(a) for a in (*call.args, *(k.value for k in call.keywords))]
    return name in given and any("device" in text.lower() for text in given)
