"""Local lists of modules: what they are filled with, where nothing but growing and reading happens to them.

    stages = []
    for width in widths:
        stages.append(nn.Linear(width, width))
    self.stages = stages  # a plain list of modules

So is one that is written out: `stages = [nn.Linear(width, width) for width in widths]`. A list that is handed to anything
else (`nn.Sequential(*stages)`, `self.add_module(...)` in a loop over it) may be registered.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.text.method_names import REGISTERS
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import is_own_attribute
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.text.classes import ClassFacts

_GROWS = frozenset({"append", "extend", "insert"})


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


def made(machine: Machine, name: str, node: ast.expr, value: Value) -> None:
    """`name = [nn.Linear(n, n) for n in widths]` in the function that is being run."""
    items = node.elts if isinstance(node, ast.List) else [node.elt] if isinstance(node, ast.ListComp) else []
    if machine.function is not None and items and all(isinstance(item, ast.Call) for item in items):
        if isinstance(value.elements, tuple):
            machine.local_parts[(id(machine.function.node), name)] = list(value.elements)


def of_name(machine: Machine, node: ast.expr) -> tuple[Value, ...]:
    """The modules in a local list that is only filled and read where it is made; nothing for any other expression."""
    if not isinstance(node, ast.Name) or machine.function is None:
        return ()
    around = machine.function.node
    parts = machine.local_parts.get((id(around), node.id), [])
    if not parts or any(value.kind != "module" for value in parts) or is_handed_on(around, node.id, node):
        return ()
    owner = machine.owner.node if machine.owner is not None else around
    return () if any(_name(n) in REGISTERS for n in ast.walk(owner)) else tuple(parts)


def _name(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def is_handed_on(around: ast.AST, name: str, last: ast.Name) -> bool:
    """Whether a function does more with a local list than to fill it, to ask or call its elements and to use it as `last`.

    An element that goes anywhere else may be registered there: `self.head = layers[-1]`, `nn.Sequential(layers[0])`.
    """
    kept: set[int] = {id(last)}
    asked = {id(node.value) for node in ast.walk(around) if isinstance(node, ast.Attribute)}
    asked |= {id(node.func) for node in ast.walk(around) if isinstance(node, ast.Call)}
    for node in ast.walk(around):
        if isinstance(node, ast.Attribute) and node.attr in _GROWS:
            kept.add(id(node.value))
        elif isinstance(node, ast.Call) and _name(node.func) in _GROWS | {"len"}:
            kept.update(id(argument) for argument in node.args)
        elif isinstance(node, ast.Subscript):
            if id(node) in asked or not isinstance(node.ctx, ast.Load):
                kept.add(id(node.value))
        elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.target, ast.Name):
            if only_asked(around, node.target.id):
                kept.add(id(node.iter))
    names = (n for n in ast.walk(around) if isinstance(n, ast.Name) and n.id == name)
    return any(isinstance(n.ctx, ast.Load) and id(n) not in kept for n in names)


def gives_out(class_: ClassFacts, name: str) -> bool:
    """Whether `__init__` makes elements of `self.name` attributes, or gives them to what becomes one.

    `self.first, self.second = self.stages`, `self.body = nn.Sequential(self.stages[0], nn.ReLU())`.
    """
    for node in statements(class_.methods["__init__"]) if "__init__" in class_.methods else ():
        if not isinstance(node, ast.Assign):
            continue
        bound = [n for target in node.targets for n in walk(target) if isinstance(n, ast.Attribute)]
        if not any(isinstance(n.ctx, ast.Store) and not is_own_attribute(n, name) for n in bound):
            continue
        if is_own_attribute(node.value, name) and any(isinstance(t, (ast.Tuple, ast.List)) for t in node.targets):
            return True
        asked = {id(n.value) for n in walk(node.value) if isinstance(n, ast.Attribute)}
        parts = (n for n in walk(node.value) if isinstance(n, ast.Subscript) and id(n) not in asked)
        if any(is_own_attribute(n.value, name) for n in parts):
            return True
    return False


def only_asked(around: ast.AST, name: str) -> bool:
    """Whether all that a function does with the turns of a loop is to read attributes of them: `{s.width for s in stages}`."""
    nodes = list(ast.walk(around))
    asked = {id(node.value) for node in nodes if isinstance(node, ast.Attribute)}
    called = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    asked -= {id(node.value) for node in nodes if isinstance(node, ast.Attribute) and id(node) in called}
    names = (node for node in nodes if isinstance(node, ast.Name) and node.id == name)
    return all(isinstance(node.ctx, ast.Store) or id(node) in asked for node in names)
