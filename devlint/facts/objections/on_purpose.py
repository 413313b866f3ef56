"""What the code puts somewhere on purpose: copies into new tensors of the host, and state that follows another tensor.

Asked before a finding is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.events import Meet
from devlint.facts.text.classes import lineage
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute, last_name

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites


def is_copied_to_host(sites: CallSites, event: Meet) -> bool:
    """Whether a new tensor in the size of another one is there to be filled with its values: `kept.copy_(state)`, or to gather
    what is brought to the host: `total[:, i].add_(part)` after `part = model(x).cpu()`.

    `copy_` is for tensors on two devices; who wants a tensor beside the other one clones it.
    """
    function = sites.body(event.function) if event.how in ("size", "copy") else None
    made = [creation.place for creation in event.off.value.made]
    if function is None or not made:
        return False
    bound = [n for n in walk(function) if isinstance(n, ast.Assign) and any(n.value is place for place in made)]
    names = {t.id for n in bound for t in n.targets if isinstance(t, ast.Name)}
    copied = {
        last_name(node.func.value)
        for node in walk(function)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "copy_"
    }
    return bool(names) and names <= copied | gathered(function)


def gathered(function: ast.AST) -> set[str]:
    """The names of what a function adds values to in place that it brought to the host: `x = model(x).cpu(); total.add_(x)`."""
    on_host = {
        target.id
        for node in walk(function)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Call)
        and getattr(node.value.func, "attr", "") == "cpu"
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    found: set[str] = set()
    for node in walk(function):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "add_"
            and node.args
        ):
            target, added = node.func.value, node.args[0]
        elif isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
            target, added = node.target, node.value
        else:
            continue
        while isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Name) and isinstance(added, ast.Name) and added.id in on_host:
            found.add(target.id)
    return found


def is_rehomed(sites: CallSites, event: Meet) -> bool:
    """Whether a method of the class puts the attribute that is left behind on the device of something else, where it is not:
    `if x.device != self.mask.device: self.mask = self.mask.to(x.device)`.
    """
    class_ = sites.class_of(event.function)
    names = {n.attr for n in walk(event.off.node) if isinstance(n, ast.Attribute) and is_self_attribute(n)}
    if class_ is None or not names:
        return False
    found = {
        name
        for each in lineage(class_)
        for method in each.methods.values()
        for node in walk(method)
        if isinstance(node, ast.If) and compares_devices(node.test)
        for name in names.intersection(bound_in(node.body))
        if any(is_self_attribute(n) and getattr(n, "attr", "") == name for n in walk(node.test))
    }
    return bool(found)


def compares_devices(test: ast.expr) -> bool:
    """Whether a condition asks whether two devices differ."""
    return any(
        isinstance(node, ast.Compare)
        and isinstance(node.ops[0], (ast.NotEq, ast.IsNot))
        and all(last_name(side).endswith("device") for side in (node.left, node.comparators[0]))
        for node in walk(test)
    )


def bound_in(body: list[ast.stmt]) -> Iterator[str]:
    """The attributes of `self` that statements bind, as a whole or in part."""
    for statement in body:
        for node in walk(statement):
            for target in node.targets if isinstance(node, ast.Assign) else ():
                while isinstance(target, ast.Subscript):
                    target = target.value
                if is_self_attribute(target):
                    yield last_name(target)
