"""A device that is taken for a text: `x.device.startswith("cuda")`, which it cannot, and `str(x.device) == "cuda"`, which never
holds, because the text of a tensor's device has an index on every accelerator.

The events say who asks and of what. Whether it is a `torch.device` at all is for the rule to decide.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Compare
from devlint.facts.idioms.devices import OF_TENSOR
from devlint.facts.values import ACCELERATORS, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

#: Methods of a text that code asks of the name of a device.
_METHODS = frozenset(
    {
        "startswith", "endswith", "split", "rsplit", "partition", "rpartition", "lower", "upper", "strip", "replace", "find",
        "rfind", "removeprefix", "removesuffix", "isdigit", "format", "join", "encode", "count",
    }
)  # fmt: skip


def note_method(machine: Machine, node: ast.Call, receiver: Value, name: str) -> None:
    """Emit a `Compare` with the operator "method" where a method of a text is called on a device."""
    if name not in _METHODS or not isinstance(node.func, ast.Attribute):
        return
    operand = machine.operand(node.func.value, receiver)
    machine.emit(
        Compare(
            operand.span, node.func, receiver.because, machine.guards, {}, machine.name, operand,
            machine.operand(node.func, Value("string", constant=name)), "method",
        ),
        "method",
    )  # fmt: skip


def note_text(
    machine: Machine, node: ast.Compare, side: ast.expr, other: ast.expr, value: Value, operator: str
) -> None:
    """Emit a `Compare` with the operator "text" where the text of a tensor's device is compared with a type alone.

    `value`: what `other` is. "mps" counts as well, for a tensor's device is "mps:0".
    """
    if operator not in ("==", "!=") or value.kind != "string" or value.constant not in ACCELERATORS:
        return
    inner = _told(side)
    if inner is None or not isinstance(inner, ast.Attribute) or inner.attr != "device":
        return
    known = machine.evaluate(inner)
    if known.kind == "device" and known.type_name == OF_TENSOR and not inner_of_object(inner):
        machine.emit(
            Compare(
                machine.span(node), node, known.because, machine.guards, {}, machine.name, machine.operand(side, known),
                machine.operand(other, value), f"text {operator}",
            ),
            "text",
        )  # fmt: skip


def inner_of_object(node: ast.Attribute) -> bool:
    """Whether it is the device of an object that keeps options: `self.device`, `args.device`."""
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls", "args", "cfg", "config")


def _told(node: ast.expr) -> ast.expr | None:
    """What `str(x)` and `f"{x}"` are the text of."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str" and len(node.args) == 1:
        return node.args[0] if not node.keywords else None
    if isinstance(node, ast.JoinedStr) and len(node.values) == 1:
        (part,) = node.values
        return part.value if isinstance(part, ast.FormattedValue) and part.format_spec is None else None
    return None
