"""What a function that cannot be read gives where it is told a device: tensors there, beside a tensor made on the CPU.

    keep = torch.rand(batch, 1) < 0.5
    return keep & random_mask((batch, length), device=device)

Such a function may as well give a number, `evaluate(model, device=device)`. It makes tensors where it is told their shape or
type as well, or where the last words of its name say what they are; not where it is given a model or a function, or its name
is that of a measurement: `measure(run, shape=(3, 8), device=device)`.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from devlint.facts.idioms.said_elsewhere import is_of_host
from devlint.facts.text.references import last_name
from devlint.facts.text.signs import is_model_name
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
#: What is done to get a number, as the first or last word of a name, and numbers, as the last one.
_VERB = (
    r"eval\w*|bench\w*|measur\w*|scor(?:e|es|ing)|tim(?:e|er|eit|ing)|count\w*|tests?|run|train\w*|fit|profil\w*|check"
)
_MEASURES = re.compile(
    rf"^_*(?:{_VERB})(?:_|\Z)|(?:^|_)(?:{_VERB}|flops|macs|params|latency|throughput|speed|memory|accuracy|loss|metrics?)\Z"
)
#: Names of functions that a function is given to call them.
_CALLED = re.compile(r"(?:^|_)(?:f|fn|fun|func|function|forward|callback|self)\Z")
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
    if not isinstance(device, (ast.Name, ast.Attribute)) or _MEASURES.search(name) is not None:
        return None
    if any(known == name or known.endswith(f".{name}") for known in machine.functions):
        return None  # what a function of the file gives is known, or cannot be
    given = (*node.args, *(each for name, each in told.items() if name not in _OF_FACTORIES))
    if any(isinstance(each, ast.Lambda) or is_model(machine, each) for each in given):
        return None
    place = machine.device_of_argument(device, machine.evaluate(device))
    if not may_be_accelerator(place.device):
        return None
    return Value(
        "tensor", place.device, None, because=(machine.origin(node, "made on the device that is passed here"),)
    )


def is_model(machine: CallArguments, node: ast.expr) -> bool:
    """Whether an argument is a module or a function, as is known of it or by its name."""
    if not isinstance(node, (ast.Name, ast.Attribute)):
        return False
    name = last_name(node).lower()
    return (
        is_model_name(name) or _CALLED.search(name) is not None or machine.evaluate(node).kind in ("module", "function")
    )
