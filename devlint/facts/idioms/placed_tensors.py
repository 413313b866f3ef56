"""Tensors that every method of a plain class that binds them puts on the object's own device: known in all the others.

    def reset(self):
        self.state = torch.zeros(self.number, device=self.device)

    def step(self, n):
        return self.state * torch.arange(n)  # on the CPU, and the state is on `self.device`

The text of the class decides. An attribute counts when each statement that binds it makes a new tensor on that device,
computes it of what it was, or says None; the device must be an attribute of the object, or named.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.idioms.placed import accelerator_of, argument, device_given, goes_back, own_name
from devlint.facts.text.classes import lineage
from devlint.facts.text.collect import qualified
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.values import UNKNOWN, Device, Place, Value, may_be_accelerator
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.text.classes import ClassFacts

#: Statements that bind attributes in ways that are not followed.
_OTHERWISE = (ast.For, ast.AsyncFor, ast.withitem, ast.NamedExpr, ast.Delete)


def placed_tensors(machine: Machine, class_: ClassFacts, set_outside: Collection[str]) -> Iterator[tuple[str, Value]]:
    """The attributes of a plain class that are such tensors, with what is known of each."""
    found: dict[str, tuple[Device, ast.expr]] = {}
    left: set[str] = set(set_outside)
    for each in lineage(class_):
        for method in each.methods.values():
            for node in walk(method):
                if isinstance(node, _OTHERWISE):
                    left |= set(stored_in(node))
                elif isinstance(node, ast.Assign):
                    for target in node.targets:
                        names = set(stored_in(target))
                        if each.abroad or not isinstance(target, ast.Attribute) or not is_self_attribute(target):
                            left |= names
                        elif not keeps(machine, class_, target.attr, node.value, found):
                            left.add(target.attr)
                elif isinstance(node, ast.AnnAssign) and is_self_attribute(node.target) and node.value is not None:
                    if each.abroad or not keeps(machine, class_, own_name(node.target), node.value, found):
                        left.add(own_name(node.target))
                elif isinstance(node, ast.Call) and goes_back(node) and isinstance(node.func, ast.Attribute):
                    left.add(own_name(node.func.value))
    for name, (device, node) in found.items():
        known = class_.attributes.get(name)
        if name in left or (known is not None and known.kind not in ("none", "unknown")):
            continue
        because = (Origin(machine.span(node), f"`self.{name}` is always put on that device, as here"),)
        yield name, Value("tensor", device, None, because=because, moved=True)


def stored_in(node: ast.AST) -> Iterator[str]:
    """The attributes of `self` that a node binds or deletes."""
    for part in walk(node):
        if isinstance(part, ast.Attribute) and is_self_attribute(part) and not isinstance(part.ctx, ast.Load):
            yield part.attr


def keeps(
    machine: Machine, class_: ClassFacts, name: str, value: ast.expr, found: dict[str, tuple[Device, ast.expr]]
) -> bool:
    """Whether an attribute that is bound to a value is None or a tensor where it always is; notes where that is."""
    if isinstance(value, ast.Constant) and value.value is None:
        return True
    device = place_of(machine, class_, name, value)
    if device is None:
        return False
    if device == UNKNOWN:
        return True  # computed of what it was
    return found.setdefault(name, (device, value))[0] == device


def place_of(machine: Machine, class_: ClassFacts, name: str, node: ast.expr) -> Device | None:
    """Where an expression puts the new tensor that it gives; UNKNOWN for `self.name` itself, None where nothing is known."""
    while True:
        if own_name(node) == name:
            return UNKNOWN
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.USub, ast.Invert)):
            node = node.operand
        elif isinstance(node, ast.BinOp):
            sides = [place_of(machine, class_, name, side) for side in (node.left, node.right)]
            known = [side for side in sides if side is not None]
            return next((side for side in known if side), known[0] if known else None)
        elif isinstance(node, ast.Call):
            qualname = qualified(node.func, machine.imports) or ""
            record = knowledge.function(qualname) if qualname.startswith("torch.") else None
            if last_name(node.func) == "Parameter" and len(node.args) == 1:
                node = node.args[0]
            elif record is not None:
                given = next((k.value for k in node.keywords if k.arg == "device"), None)
                return named_device(machine, class_, given) if given is not None and record.result == "tensor" else None
            elif isinstance(node.func, ast.Attribute) and node.func.attr in OFF_HOST:
                if not makes_tensor(machine, node.func.value):
                    return place_of(machine, class_, name, node.func.value)
                given = argument(node)
                if node.func.attr == "to" and (given is None or is_dtype(given)):
                    node = node.func.value
                else:
                    return named_device(machine, class_, given, accelerator_of(node))
            elif isinstance(node.func, ast.Attribute):
                method = knowledge.method("Tensor", node.func.attr)
                if method is None or method.result not in ("tensor", "same") or method.device_from != "first_tensor":
                    return None
                node = node.func.value
            else:
                return None
        else:
            return None


def makes_tensor(machine: Machine, node: ast.expr) -> bool:
    """Whether an expression begins with a function of torch that gives a tensor: `torch.from_numpy(x).float()`."""
    while isinstance(node, ast.Call):
        record = knowledge.function(qualified(node.func, machine.imports) or "")
        if record is not None:
            return record.result == "tensor" and record.qualname.startswith("torch.")
        if not isinstance(node.func, ast.Attribute):
            return False
        node = node.func.value
    return False


def is_dtype(node: ast.expr) -> bool:
    """Whether an expression names a type of numbers of torch: `torch.float32`, `self.dtype`."""
    name = last_name(node)
    return "dtype" in name or name.startswith(("float", "int", "bfloat", "complex", "half", "long", "bool", "double"))


def named_device(machine: Machine, class_: ClassFacts, node: ast.expr | None, type: str = "cuda") -> Device | None:
    """The device that an attribute of the object, or a text, names; None for anything else, which may change.

    `type`: see `device_given`.
    """
    if node is not None and not isinstance(node, ast.Constant) and not is_self_attribute(node):
        return None
    device = device_given(machine, class_, node, type)
    if not may_be_accelerator(device) or any(isinstance(p, Place) and p.type == "cpu" for p in device):
        return None
    return device
