"""What a function that cannot be read gives where it is told a device: tensors there, beside a tensor made on the CPU.

    keep = torch.rand(batch, 1) < 0.5
    return keep & random_mask((batch, length), device=device)

Such a function may as well give a number, `evaluate(model, device=device)`. It makes tensors where it is told their shape or
type as well, or where the last words of its name say what they are.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from devlint.facts.idioms.said_elsewhere import is_of_host
from devlint.facts.text.references import last_name
from devlint.facts.values import Value, may_be_accelerator

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import CallArguments

#: What only functions that make tensors are told, as torch's own factories are.
_OF_FACTORIES = frozenset({"shape", "size", "dtype", "generator", "requires_grad"})
#: What is made, by the last words of a name.
_MADE = re.compile(
    r"(?:^|_)(?:tensors?|masks?|noise|grids?|coords?|coordinates|matrix|bias|positions|ids|indices|embeddings?|normal|uniform"
    r"|zeros|ones|kernel|freqs|rays|points|latents?|range|arange)(?:_(?:nd|[1-3]d|like))?\Z"
)
#: What tells a function which file or which stored thing to give: that may be left where it is.
_HOST = re.compile(r"load|read|fetch|numpy|host|cpu", re.IGNORECASE)


def place_of(machine: CallArguments, node: ast.expr) -> Value | None:
    """Where a call of something unknown gives a tensor, as its `device` says; None for any other expression."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)) or is_of_host(node):
        return None
    name = last_name(node.func)
    told = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg is not None}
    device = told.get("device")
    if device is None or name[:1].isupper() or _HOST.search(name) is not None:
        return None
    if _OF_FACTORIES.isdisjoint(told) and _MADE.search(name) is None:
        return None
    if not isinstance(device, (ast.Name, ast.Attribute)):
        return None
    if any(known == name or known.endswith(f".{name}") for known in machine.functions):
        return None  # what a function of the file gives is known, or cannot be
    place = machine.device_of_argument(device, machine.evaluate(device))
    if not may_be_accelerator(place.device):
        return None
    return Value(
        "tensor", place.device, None, because=(machine.origin(node, "made on the device that it is told here"),)
    )
