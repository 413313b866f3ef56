"""Copies of a model's parameters that come back from a checkpoint on the CPU.

    def __init__(self, model):
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    def update(self, model):
        for name, p in model.named_parameters():
            self.shadow[name] = 0.9 * self.shadow[name] + 0.1 * p.detach()

    def load_state_dict(self, state):
        self.shadow = state["shadow"]  # of `torch.load(path, map_location="cpu")`

Copies are made where the parameters are, and meet them there. Nothing is said of a class that moves anything, or where other
code of the file reads the attribute.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.idioms.restored import entries, note, origins
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.method_names import PLACES
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_own_attribute, is_self_attribute
from devlint.facts.text.signatures import calls_parameter
from devlint.facts.values import CPU, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

_PARAMETERS = frozenset({"parameters", "named_parameters"})
_COPIES = frozenset({"clone", "detach", "float", "copy", "deepcopy"})
_MOVES = PLACES | {"type_as", "device", "apply", "new_tensor"}


def restored_copies(machine: Machine, class_: ClassFacts, name: str, first: Value) -> Value | None:
    """What other methods find in such an attribute, a list or a dict; None for any other."""
    if first.kind not in ("list", "dict") or not keeps_copies(class_, name) or moves_anything(class_):
        return None
    if machine.scan.tree is None or any(is_read_outside(node, name) for node in walk(machine.scan.tree)):
        return None
    taken = entries(machine, class_, name, lambda method: set())
    if not taken:
        return None
    origin, kept = origins(machine, taken[0])
    part = Value("tensor", CPU, False, because=(kept, origin))
    if first.kind == "dict":
        value = Value("dict", elements={"*": part})
    else:
        value = Value("list", elements=(part,), type_name="comprehension")
    return note(machine, class_, name, Value(first.kind), taken[0], part, value)


def keeps_copies(class_: ClassFacts, name: str) -> bool:
    """Whether methods of a class fill an attribute with copies of parameters, and with nothing else that they show."""
    for method in class_.methods.values():
        for node in walk(method):
            if isinstance(node, ast.For) and any(
                isinstance(n, ast.Assign)
                and any(isinstance(t, ast.Subscript) and is_own_attribute(t.value, name) for t in n.targets)
                and is_copy(n.value, node.target)
                for n in walk(node)
                if is_over_parameters(node.iter)
            ):
                return True
            if isinstance(node, ast.Assign) and any(is_own_attribute(target, name) for target in node.targets):
                made = node.value
                if isinstance(made, (ast.ListComp, ast.DictComp)) and len(made.generators) == 1:
                    part = made.elt if isinstance(made, ast.ListComp) else made.value
                    (generator,) = made.generators
                    if is_over_parameters(generator.iter) and is_copy(part, generator.target):
                        return True
    return False


def is_over_parameters(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _PARAMETERS


def is_copy(node: ast.expr, target: ast.expr) -> bool:
    """Whether an expression is a copy of what a loop goes through: `p.data.clone()`, `p.detach().clone()`."""
    copied = False
    while True:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _COPIES:
            copied = copied or node.func.attr != "detach"
            node = node.func.value
        elif isinstance(node, ast.Attribute) and node.attr == "data":
            node = node.value
        else:
            break
    names = target.elts[-1:] if isinstance(target, ast.Tuple) else [target]
    return copied and isinstance(node, ast.Name) and any(isinstance(n, ast.Name) and n.id == node.id for n in names)


def moves_anything(class_: ClassFacts) -> bool:
    """Whether the code of a class knows of devices."""
    for node in walk(class_.node):
        if isinstance(node, ast.Attribute) and node.attr in _MOVES:
            return True
        if isinstance(node, ast.arg) and "device" in node.arg:
            return True
    return any(map(calls_parameter, class_.methods.values()))


def is_read_outside(node: ast.AST, name: str) -> bool:
    """Whether a node reads or binds an attribute of that name, of anything but `self`."""
    return isinstance(node, ast.Attribute) and node.attr == name and not is_self_attribute(node)
