"""Tensors that are to gather gradients and are moved before an optimizer gets them: a move gives a tensor that is no leaf.

noise = torch.randn(1, 3, 64, 64, requires_grad=True).to(device)
optimizer = torch.optim.Adam([noise])   # ValueError: can't optimize a non-leaf Tensor
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.events import NoLeaf, Operand
from devlint.facts.frozen import replace
from devlint.facts.text.trained import is_trained
from devlint.facts.values import CPU, Value, may_be_accelerator

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

#: Type name of a tensor that was to gather gradients before it was moved.
NO_LEAF = "no leaf"
_CUT = re.compile(r"\.detach_\(|=\s*[\w.]+\.data(\.requires_grad|\s*$)", re.MULTILINE)


def moved(machine: Machine, node: ast.Call, operand: Operand, method: str, result: Value, only: bool) -> Value:
    """What a move gives, which remembers that it is no leaf any more."""
    if result.kind != "tensor" or operand.value.device != CPU or not may_be_accelerator(result.device):
        return result
    if not gathers(operand.node) or "accelerator" in machine.guards.fails:
        return result
    target = Value("device", result.device)
    span = machine.span(node)
    machine.leaves[span] = NoLeaf(
        span, node, operand.value.because, machine.guards, machine.scope(), machine.name, method, operand, target, only
    )
    return replace(result, type_name=NO_LEAF)


def gathers(node: ast.expr) -> bool:
    """Whether an expression makes a tensor that is to gather gradients: `requires_grad=True`, `x.requires_grad_()`."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "requires_grad_":
        given = [*node.args, *(k.value for k in node.keywords)]
        return not given or (isinstance(given[0], ast.Constant) and given[0].value is True)
    return is_trained(node)


def note_optimizer(machine: Machine, node: ast.Call, given: Value) -> None:
    """Emit `NoLeaf` for each tensor among those that an optimizer gets that a move has made."""
    if _CUT.search(machine.source.text):
        return  # what is cut off from its graph in place is a leaf again
    for part in parts(given):
        if part.kind == "tensor" and part.type_name == NO_LEAF and part.because and part.because[0].path is None:
            event = machine.leaves.get(part.because[0].span)
            if event is not None:
                origin = machine.origin(node, "an optimizer gets it here, and accepts only leaf tensors")
                machine.emit(replace(event, because=(origin,)))


def parts(value: Value) -> Iterator[Value]:
    """A value and what is in it."""
    yield value
    for part in value.parts:
        yield from parts(part)
