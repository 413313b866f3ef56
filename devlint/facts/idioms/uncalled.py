"""Methods that are named and not called: `x.cpu.data`, `x.detach.cpu()`. What follows is no attribute of a method.

An object of the project may have attributes of these names, such as a buffer with a copy on either side (`ids.cpu.numpy()`).
Where it is not known to be a tensor, what is read from the method has to be what nothing but a tensor has.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Call
from devlint.facts.text.method_names import OUT_OF_TORCH
from devlint.facts.values import NOTHING, ONE_TENSOR, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

#: Methods of a tensor that chains go through.
METHODS = frozenset({"cpu", "cuda", "xpu", "detach"})
#: The family name that events carry for what is read from a method.
FAMILY = "method"
_AFTER_DETACH = frozenset({"cpu", "cuda", "numpy", "clone", "data", "item", "tolist"})


def note(machine: Machine, node: ast.Attribute, is_called: bool = False) -> None:
    """An attribute is read, or called as a method, of what may be such a method."""
    data = node.value
    by_data = is_called and node.attr in OUT_OF_TORCH and isinstance(data, ast.Attribute) and data.attr == "data"
    read = data if by_data and isinstance(data, ast.Attribute) else node  # `x.cpu.data.numpy()`
    method = read.value
    if not isinstance(method, ast.Attribute) or method.attr not in METHODS or read.attr.startswith("__"):
        return
    if not isinstance(read.ctx, ast.Load) or machine.path(method.value) is None:
        return
    known = machine.evaluate(method.value)
    if known.kind not in ONE_TENSOR:
        if known.kind not in ("unknown", "tensors") or binds(machine.source.text, method.attr):
            return
        if not (by_data or (method.attr == "detach" and read.attr in _AFTER_DETACH)):
            return
    operand = machine.operand(method, Value("function", because=known.because))
    machine.emit(
        Call(
            machine.span(read), read, known.because, machine.guards, machine.scope(), machine.name, f"{FAMILY}.{read.attr}",
            operand, {}, False, False, False, NOTHING,
        )
    )  # fmt: skip


def binds(text: str, name: str) -> bool:
    """Whether a file binds the name on something itself: `self.cpu = ...`, `def cpu(self)`."""
    return f".{name} = " in text or f".{name}: " in text or f"def {name}(" in text
