"""Local lists of modules: what they are filled with, where nothing but growing and reading happens to them.

    stages = []
    for width in widths:
        stages.append(nn.Linear(width, width))
    self.stages = stages  # a plain list of modules

A list that is handed to anything else (`nn.Sequential(*stages)`, `self.add_module(...)` in a loop over it) may be registered.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

_GROWS = frozenset({"append", "extend", "insert"})
#: What registers modules one by one, under computed names.
_REGISTERS = frozenset({"add_module", "register_module", "setattr", "__setattr__"})


def note(machine: Machine, path: str | None, name: str, nodes: list[ast.expr], given: list[Value]) -> None:
    """`path.append(given)` and the like was called in the function that is being run."""
    if path is None or not path.isidentifier() or name not in _GROWS or not given or machine.function is None:
        return
    parts = machine.local_parts.setdefault((id(machine.function.node), path), [])
    inner = [given[-1]]
    if given[-1].kind in ("list", "tuple"):
        known = given[-1].elements if isinstance(given[-1].elements, tuple) else ()
        inner = list(known) or list(of_name(machine, nodes[-1]))
    parts += [value for value in inner if value not in parts]


def of_name(machine: Machine, node: ast.expr) -> tuple[Value, ...]:
    """The modules in a local list that is only filled and read where it is made; nothing for any other expression."""
    if not isinstance(node, ast.Name) or machine.function is None:
        return ()
    around = machine.function.node
    parts = machine.local_parts.get((id(around), node.id), [])
    if not parts or any(value.kind != "module" for value in parts) or is_handed_on(around, node.id, node):
        return ()
    owner = machine.owner.node if machine.owner is not None else around
    return () if any(_name(n) in _REGISTERS for n in ast.walk(owner)) else tuple(parts)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def is_handed_on(around: ast.AST, name: str, last: ast.Name) -> bool:
    """Whether a function does more with a local list than to fill it, to read one element and to use it as `last`."""
    kept: set[int] = {id(last)}
    for node in ast.walk(around):
        if isinstance(node, ast.Attribute) and node.attr in _GROWS:
            kept.add(id(node.value))
        elif isinstance(node, ast.Call) and _name(node.func) in _GROWS | {"len"}:
            kept.update(id(argument) for argument in node.args)
        elif isinstance(node, ast.Subscript):
            kept.add(id(node.value))
    names = (n for n in ast.walk(around) if isinstance(n, ast.Name) and n.id == name)
    return any(isinstance(n.ctx, ast.Load) and id(n) not in kept for n in names)
