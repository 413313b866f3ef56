"""Lists that are attributes: empty when the object is made, and filled by what methods, or functions around it, append.

    self.values = []                        # in `__init__`
    self.values.append(self.critic(state))  # in one method
    values = torch.cat(self.values)         # in another

The same holds for an object of the module level: `policy.log_probs.append(x)` in one function, read in another.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import Value, grown

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine


def note(machine: Machine, path: str | None, node: ast.Call, name: str, given: list[Value]) -> None:
    """`self.values.append(x)` outside `__init__`, `policy.values.append(x)` of an object of the module level."""
    if name != "append" or path is None or not given or machine.in_init or machine.host:
        return
    key = _key(machine, path)
    if key is not None:
        machine.attribute_parts.setdefault(key, {})[machine.span(node)] = given[-1]


def filled(machine: Machine, path: str, value: Value) -> Value:
    """What an attribute holds that is an empty list at first, where every call that appends to it was seen."""
    if value.kind != "list" or value.elements != () or machine.in_init:
        return value
    key = _key(machine, path)
    parts = machine.attribute_parts.get(key) if key is not None else None
    if not parts or not all(part.is_tensor and part.device for part in parts.values()):
        return value
    root, _, name = path.partition(".")
    around: ast.AST | None = machine.owner.node if root == "self" and machine.owner is not None else machine.scan.tree
    return (
        grown(parts.values()) if around is not None and _appends(machine, around, root, name) == set(parts) else value
    )


def _key(machine: Machine, path: str) -> tuple[str, str] | None:
    """The class, or the object of the module level, and the attribute; None for any other path."""
    root, _, name = path.partition(".")
    if not name.isidentifier():
        return None
    if root == "self":
        return (machine.owner.name, name) if machine.owner is not None else None
    own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else None
    if own is None or root in own.bound or root not in machine.globals or root in machine.rebound:
        return None
    return ("", path) if parameter_of(machine.function.node.args, root) is None else None  # type: ignore[union-attr]


def _appends(machine: Machine, around: ast.AST, root: str, name: str) -> set[object] | None:
    """The calls that append to `root.name` in a scope; None where it may hold anything else."""
    found: set[object] = set()
    for node in walk(around):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and _is(node.func.value, name):
            if node.func.attr == "append" and _root(node.func.value) == root:
                found.add(machine.span(node))
            elif node.func.attr in ("append", "extend", "insert"):
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
    """Whether an expression is the attribute of that name of a variable."""
    return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.value, ast.Name)


def _root(node: ast.expr) -> str:
    return getattr(getattr(node, "value", None), "id", "")
