"""Tensors read from files of safetensors: on the CPU, or on the device that the reader is told.

    state = load_file(path)                                    # "cpu" is the default
    with safe_open(path, framework="pt", device="cuda:0") as file:
        weight = file.get_tensor("weight")

[safetensors/torch.py, `load_file` and `load`; safetensors/__init__.pyi, `safe_open`]
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from devlint.facts.values import CPU, NOTHING, UNKNOWN, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments
    from devlint.facts.interpreter.torch_classes import TorchClasses

_FILE = "safetensors.safe_open"


def load(machine: TorchClasses, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
    """What `load_file` gives: a dict of tensors."""
    origin = Origin(machine.span(node), "read from a file here")
    device = None if qualname.endswith(".load") else arguments.get("device", 1)
    place = CPU if device is None else machine.device_of_argument(*device).device
    if arguments.star or not place:
        return NOTHING
    held = Value("tensor", place, None, because=(origin,))
    return Value("dict", type_name="comprehension", elements={"*": held})


def opened(machine: TorchClasses, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
    """What `safe_open` gives: an object that gives tensors one by one."""
    framework, device = arguments.get("framework", 1), arguments.get("device", 2)
    if arguments.star or framework is None or framework[1].constant not in ("pt", "torch", "pytorch"):
        return NOTHING
    place = CPU if device is None else machine.device_of_argument(*device).device
    because = (Origin(machine.span(node), "read from a file here"),)
    return Value("object", place, type_name=_FILE, because=because) if place else NOTHING


def tensor(file: Value, method: str) -> Value | None:
    """What a method of such a file gives, where that is a tensor."""
    if file.type_name != _FILE or method != "get_tensor" or file.device == UNKNOWN:
        return None
    return Value("tensor", file.device, None, because=file.because)


CALLS: dict[str, Callable[[TorchClasses, ast.Call, str, Arguments], Value]] = {
    "safetensors.torch.load_file": load,
    "safetensors.torch.load": load,
    _FILE: opened,
}
