"""Tensors that a module brings to where a plain tensor of its own was given to it.

    self.weight = weight
    self.device = self.weight.device
    ...
    F.linear(x.to(self.device), self.weight)

Such a tensor does not move with the module, and neither does the device that is kept of it: both stay together.
"""

from __future__ import annotations

import ast

from devlint.facts.text.classes import ClassFacts, Unregistered
from devlint.facts.text.references import is_own_attribute, own_bindings
from devlint.facts.values import Symbol, Value


def is_beside(class_: ClassFacts, name: str, entry: Unregistered, other: Value) -> bool:
    """Whether a value is on the device that the constructor keeps of the plain tensor `self.name`: neither it nor
    the tensor is bound anew."""
    if entry.reassigned or entry.what != "tensor" or len(other.device) != 1:
        return False
    (place,) = other.device
    start, _, device = place.name.partition(".") if isinstance(place, Symbol) else ("", "", "")
    if start != "self" or not device.isidentifier():
        return False
    init = class_.methods.get("__init__")
    set_to = [value for method in class_.methods.values() for value in own_bindings(method).get(device, ())]
    if init is None or len(set_to) != 1 or set_to != own_bindings(init).get(device):
        return False
    read = set_to[0]
    if not isinstance(read, ast.Attribute) or read.attr != "device":
        return False
    given = entry.value_node
    by_name = isinstance(given, ast.Name) and isinstance(read.value, ast.Name) and read.value.id == given.id
    return is_own_attribute(read.value, name) or by_name
