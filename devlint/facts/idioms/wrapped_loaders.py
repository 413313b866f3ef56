"""Loaders that something takes and gives back, which may place their batches: `loader = accelerator.prepare(loader)`.

model, optimizer, loader = engine.setup(model, optimizer, loader)
for x, y in loader: ...                  # where these are is up to the engine
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name
from devlint.facts.text.scan import FunctionScan
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
    own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else machine.scan.module
    return own is not None and machine.text(iterated) in given_back(own)


@lru_cache(8)
def given_back(own: FunctionScan) -> frozenset[str]:
    """The names and attributes, as written, that a function binds to what calls give that are handed them, or a loader."""
    found: set[str] = set()
    for each in own.assigns:
        if not isinstance(each, ast.Assign) or not isinstance(each.value, ast.Call):
            continue
        if last_name(each.value.func) in _PLAIN:
            continue
        given = [*each.value.args, *(k.value for k in each.value.keywords)]
        handed = {ast.unparse(g) for g in given if isinstance(g, (ast.Name, ast.Attribute))}
        loads = any(is_loader_name(last_name(g)) for g in given if isinstance(g, (ast.Name, ast.Attribute)))
        bound = {ast.unparse(n) for t in each.targets for n in walk(t) if isinstance(n, (ast.Name, ast.Attribute))}
        found |= bound if loads else bound & handed
    return frozenset(found)
