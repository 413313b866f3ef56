"""Moves to a device that are left out where that device is the CPU: what they move is on the device in either case.

    on_card = device.type != "cpu"
    if on_card:
        images = images.to(device)      # else the device is the CPU, where the images are
    hits = torch.zeros(8, device=device)

A flag keeps the answer as long as the device is not bound anew.
"""

from __future__ import annotations

import ast
from collections.abc import Set
from typing import TYPE_CHECKING

from devlint.facts.frozen import replace
from devlint.facts.idioms import guards
from devlint.facts.text.nodes import walk
from devlint.facts.values import CPU, Symbol, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine, State


def flag(machine: Machine, node: ast.Assign, condition: guards.Condition) -> Value:
    """The value of a flag that holds the answer of a condition."""
    kept = sorted(
        path for path in condition.else_on_cpu if path.isidentifier() and not is_bound_after(machine, path, node)
    )
    return Value("bool", type_name=guards.flag_of(condition.when, kept))


def is_bound_after(machine: Machine, name: str, node: ast.Assign) -> bool:
    """Whether a function binds a name again in the rows after a statement; at module level nobody knows."""
    own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else None
    if own is None or name in own.nonlocals or machine.loops:
        return True
    return any(
        isinstance(target, ast.Name) and target.id == name
        for assigned in own.assigns
        if assigned is not node and isinstance(assigned, ast.Assign) and assigned.lineno >= node.lineno
        for each in assigned.targets
        for target in walk(each)
    )


def settle(joined: State, then: State, otherwise: State, condition: guards.Condition) -> None:
    """What one branch moves to a device, and the other one, where that device is the CPU, leaves there. Both go on."""
    for moving, left, paths in ((then, otherwise, condition.else_on_cpu), (otherwise, then, condition.on_cpu)):
        for name, value in moving.env.items() if paths else ():
            mate = left.env.get(name)
            if mate is None or not (value.is_tensor and value.moved) or not mate.is_tensor or mate.device != CPU:
                continue
            if is_at(value, paths):
                joined.env[name] = replace(value, split=None)


def is_at(value: Value, paths: Set[str]) -> bool:
    """Whether a value is on the device of one of these variables."""
    return len(value.device) == 1 and all(isinstance(p, Symbol) and p.name in paths for p in value.device)
