"""Lists that are attributes: empty when the object is made, and filled by what its methods append.

self.values = []                        # in `__init__`
self.values.append(self.critic(state))  # in one method
values = torch.cat(self.values)         # in another
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.values import Value, grown

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.text.classes import ClassFacts


def note(machine: Machine, path: str | None, node: ast.Call, name: str, given: list[Value]) -> None:
    """`self.values.append(x)` outside `__init__`."""
    if name == "append" and path is not None and path.startswith("self.") and machine.owner is not None and given:
        if not machine.in_init and not machine.host:
            parts = machine.attribute_parts.setdefault((machine.owner.name, path[5:]), {})
            parts[machine.span(node)] = given[-1]


def filled(machine: Machine, path: str, value: Value) -> Value:
    """What an attribute holds that is an empty list at first, where every call that appends to it was seen."""
    owner = machine.owner
    if value.kind != "list" or value.elements != () or owner is None or machine.in_init or not path.startswith("self."):
        return value
    parts = machine.attribute_parts.get((owner.name, path[5:]))
    if not parts or not all(part.is_tensor and part.device for part in parts.values()):
        return value
    return grown(parts.values()) if _appends(machine, owner, path[5:]) == set(parts) else value


def _appends(machine: Machine, owner: ClassFacts, name: str) -> set[object] | None:
    """The calls that append to `self.name` in a class; None where it may hold anything else."""
    found: set[object] = set()
    for node in ast.walk(owner.node):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, name):
            if node.func.attr == "append":
                found.add(machine.span(node))
            elif node.func.attr in ("extend", "insert"):
                return None
        elif isinstance(node, ast.AugAssign) and _is(node.target, name):
            return None
        elif isinstance(node, ast.Assign) and any(_is(target, name) for target in node.targets):
            if not isinstance(node.value, ast.List) or node.value.elts:
                return None
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store) and _is(node.value, name):
            return None
    return found


def _is(node: ast.expr, name: str) -> bool:
    """Whether an expression is `self.name`."""
    if not isinstance(node, ast.Attribute) or node.attr != name:
        return False
    return isinstance(node.value, ast.Name) and node.value.id == "self"
