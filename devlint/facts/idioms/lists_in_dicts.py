"""Lists in a local dict, which a loop fills: each key's list is followed like a list that has a name of its own.

losses = {"train": [], "valid": []}   # or `collections.defaultdict(list)`
for x in batches:
    losses["train"].append(model(x.to(device)).mean())
np.mean(losses["train"])
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

#: What makes a dict whose missing keys are made.
MAKER = "collections.defaultdict"
_FILLS = ("append", "extend")
#: Type name of a dict whose missing keys are empty lists.
DEFAULTS = "defaultdict of lists"
_EMPTY = Value("list", elements=())


def made(machine: Machine, node: ast.Call) -> Value | None:
    """What `defaultdict(list)` gives; None for any other call of `MAKER`."""
    if len(node.args) != 1 or node.keywords:
        return None
    is_list = isinstance(node.args[0], ast.Name) and node.args[0].id == "list" and "list" not in machine.imports.names
    return Value("dict", type_name=DEFAULTS) if is_list else None


def bound(machine: Machine, name: str, value: Value) -> None:
    """A local name is bound to a dict: the empty lists under the keys that the file fills get paths of their own."""
    if value.kind != "dict":
        return
    elements = value.elements if isinstance(value.elements, dict) else {}
    for key in sorted(filled(machine).get(name, ())):
        if value.type_name == DEFAULTS or elements.get(key) == _EMPTY:
            path = f"{name}[{key!r}]"
            machine.state.env[path] = _EMPTY
            machine.rooted.add(name)


def filled(machine: Machine) -> dict[str, set[str]]:
    """The keys under which the file fills lists, by the names of the dicts that hold them."""
    if machine.filled_keys is None:
        machine.filled_keys = {}
        for call, _ in (site for method in _FILLS for site in machine.scan.calls.get(method, ())):
            held = call.func.value if isinstance(call.func, ast.Attribute) else None
            if isinstance(held, ast.Subscript) and isinstance(held.value, ast.Name):
                if isinstance(held.slice, ast.Constant) and isinstance(held.slice.value, str):
                    machine.filled_keys.setdefault(held.value.id, set()).add(held.slice.value)
    return machine.filled_keys
