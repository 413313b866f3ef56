"""Generators that an object makes for itself, for the CPU, and keeps: every method draws by them.

    def __init__(self):
        self.rng = torch.Generator()

    def seed(self, seed):
        if isinstance(seed, int):
            self.rng.manual_seed(seed)
        elif isinstance(seed, torch.Generator):
            self.rng = seed                   # one in place of a number

Other methods may make a new one of the CPU, or take one where they seed the first as a rule. A method that does nothing but
take a generator is there for those who want one of another device.
"""

from __future__ import annotations

import ast

from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_own_attribute, last_name
from devlint.facts.values import CPU

_SEEDS = frozenset({"manual_seed", "seed"})


def kept_generators(class_: ClassFacts, names: set[str]) -> set[str]:
    """Of the attributes that methods assign, those that hold a generator of the CPU all the same."""
    values = {name: class_.attributes.get(name) for name in names}
    found = {
        n for n, value in values.items() if value is not None and value.kind == "generator" and value.device == CPU
    }
    others = [method for name, method in class_.methods.items() if name != "__init__"]
    return {name for name in found if all(keeps(method, name) for method in others)}


def keeps(method: ast.AST, name: str) -> bool:
    """Whether a method leaves a generator of the CPU in `self.name`, unless it is given one in place of a seed."""
    attributes = (n for n in walk(method) if isinstance(n, ast.Attribute) and is_own_attribute(n, name))
    stores = {id(n) for n in attributes if not isinstance(n.ctx, ast.Load)}
    if not stores:
        return True
    given = {id(a) for a in taken(method)} if seeds(method, name) else set()
    for node in walk(method):
        if isinstance(node, ast.Assign) and (id(node) in given or is_plain(node.value)):
            stores -= {id(target) for target in node.targets}
    return not stores


def seeds(method: ast.AST, name: str) -> bool:
    """Whether a method seeds the generator in `self.name`."""
    calls = (n.func for n in walk(method) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute))
    return any(function.attr in _SEEDS and is_own_attribute(function.value, name) for function in calls)


def taken(method: ast.AST) -> list[ast.Assign]:
    """The assignments of a name where it is told to be a generator: `if isinstance(seed, torch.Generator):`."""
    found: list[ast.Assign] = []
    for node in walk(method):
        test = node.test if isinstance(node, ast.If) else None
        if isinstance(node, ast.If) and isinstance(test, ast.Call) and last_name(test.func) == "isinstance":
            asked = test.args[0] if len(test.args) == 2 else None
            if isinstance(asked, ast.Name) and last_name(test.args[1]) == "Generator":
                assigned = (n for n in node.body if isinstance(n, ast.Assign))
                found += [n for n in assigned if isinstance(n.value, ast.Name) and n.value.id == asked.id]
    return found


def is_plain(node: ast.expr) -> bool:
    """Whether an expression is a new generator of the CPU, seeded or not: `torch.Generator().manual_seed(0)`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "manual_seed":
        node = node.func.value
    return isinstance(node, ast.Call) and last_name(node.func) == "Generator" and not (node.args or node.keywords)
