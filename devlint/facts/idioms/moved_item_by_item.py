"""Loops that put every item of a container on a device and back into its place: the container is there once they end.

    for i, item in enumerate(batch):
        batch[i] = item.to(device)

    for key in batch:
        batch[key] = batch[key].to(device)

No turn may leave anything where it is: the assignment stands in the loop's own block, and nothing leaves the loop early.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from devlint.facts.frozen import replace
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

_LEAVES = (ast.Continue, ast.Break, ast.Return)


def moved_by(machine: Machine, node: ast.For | ast.AsyncFor) -> tuple[str, Value] | None:
    """The name, or attribute of `self`, of the container whose items a loop moves one by one, with what it holds then."""
    for name, call in moves(node):
        if any(isinstance(each, _LEAVES) for each in walk(node)):
            return None
        value = machine.evaluate(call)
        if value.kind in ("tensor", "tensors") and value.moved and value.device:
            return name, replace(value, kind="tensors", split=None)
    return None


def is_another(container: Value, given: Sequence[Value]) -> bool:
    """Whether what a container gets as further items is not surely where it has the others."""
    return not given or not (given[-1].is_tensor and given[-1].device == container.device)


def moves(node: ast.For | ast.AsyncFor) -> Iterator[tuple[str, ast.Call]]:
    """The moves of a loop's block that put each item of what it goes through back into its place, with the name of that."""
    for statement in node.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        place, call = statement.targets[0], statement.value
        if not isinstance(place, ast.Subscript):
            continue
        if not isinstance(place.value, ast.Name) and not is_self_attribute(place.value):
            continue
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        if call.func.attr not in OFF_HOST:
            continue
        whole, key, item = ast.unparse(place.value), place.slice, call.func.value
        if not isinstance(key, ast.Name):
            continue
        names = gone_through(node, whole)
        if names is None or names[0] != key.id:
            continue
        if ast.unparse(item) in (names[1], ast.unparse(place)):
            yield whole, call


def gone_through(node: ast.For | ast.AsyncFor, whole: str) -> tuple[str, str | None] | None:
    """The names that a loop over a container has for the key of an item and for the item; None for any other loop."""
    text, target = ast.unparse(node.iter), node.target
    if isinstance(target, ast.Name):
        keys = (whole, f"{whole}.keys()", f"list({whole})", f"list({whole}.keys())", f"range(len({whole}))")
        return (target.id, None) if text in keys else None
    if not isinstance(target, ast.Tuple) or text not in (
        f"enumerate({whole})",
        f"{whole}.items()",
        f"list({whole}.items())",
    ):
        return None
    names = [part.id for part in target.elts if isinstance(part, ast.Name)]
    return (names[0], names[1]) if len(names) == len(target.elts) == 2 else None
