"""Loaders that something takes and gives back, which may place their batches: `loader = accelerator.prepare(loader)`.

model, optimizer, loader = engine.setup(model, optimizer, loader)
for x, y in loader: ...                  # where these are is up to the engine
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name
from devlint.facts.text.signs import is_loader_name

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

#: What gives the batches of what it is given, where they are.
_PLAIN = frozenset(
    {
        "tqdm",
        "trange",
        "track",
        "enumerate",
        "iter",
        "cycle",
        "islice",
        "zip",
        "list",
        "chain",
        "DataLoader",
        "len",
        "next",
    }
)


def is_wrapped(machine: Machine, iterated: ast.expr) -> bool:
    """Whether what a loop is over is bound to what a call gives that is handed a loader."""
    if not isinstance(iterated, (ast.Name, ast.Attribute)):
        return False
    text = machine.text(iterated)
    own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else machine.scan.module
    for each in own.assigns if own is not None else ():
        if not isinstance(each, ast.Assign) or not isinstance(each.value, ast.Call):
            continue
        if last_name(each.value.func) in _PLAIN or not any(binds(target, text) for target in each.targets):
            continue
        given = [*each.value.args, *(k.value for k in each.value.keywords)]
        if any(isinstance(g, (ast.Name, ast.Attribute)) and is_loader(g, text) for g in given):
            return True
    return False


def binds(target: ast.expr, text: str) -> bool:
    """Whether a target binds a name or an attribute, as written."""
    return any(isinstance(n, (ast.Name, ast.Attribute)) and ast.unparse(n) == text for n in walk(target))


def is_loader(node: ast.Name | ast.Attribute, text: str) -> bool:
    """Whether an argument is what is bound, or a loader by its name."""
    return is_loader_name(last_name(node)) or ast.unparse(node) == text
