"""Parts of an argument that a function leaves where they are while it moves others: a batch of the host, whose lengths stay.

x, y, lengths = batch
x, y = x.to(device), y.to(device)
ends = torch.cat([torch.zeros(1), lengths.cumsum(0)])   # both on the CPU
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import every, walk
from devlint.facts.text.references import chain
from devlint.facts.text.signatures import parameter_names
from devlint.facts.text.signs import moves
from devlint.facts.values import HOME

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Meet


def is_part_left(sites: CallSites, event: Meet) -> bool:
    """Whether what a new tensor meets is computed from a part of an argument that stays, while the function moves another."""
    function = sites.body(event.function) if event.other.value.device == HOME else None
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    parameters = set(parameter_names(function)) - {"self", "cls"}
    parts = {name: whole for name, whole in parts_of(function) if whole in parameters}
    used = {n.id for n in walk(event.other.node) if isinstance(n, ast.Name)} & parts.keys()
    if not used:
        return False
    moved: set[str] = set()
    for call in (n for n in every(function) if isinstance(n, ast.Call) and moves(n)):
        *_, start = chain(call)
        if isinstance(start, ast.Name):
            moved.add(start.id)
    if moved & (used | parameters):
        return False
    return all(any(parts[name] == parts[other] for other in moved & parts.keys()) for name in used)


def parts_of(function: ast.AST) -> Iterator[tuple[str, str]]:
    """The names that a function binds to parts of another name, each with that one: `x, y = batch`, `x = batch["x"]`."""
    for node in every(function):
        if not isinstance(node, ast.Assign) or len(node.targets) != 1:
            continue
        target, value = node.targets[0], node.value
        pairs = [(target, value)]
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            pairs = list(zip(target.elts, value.elts, strict=True))
        for bound, given in pairs:
            if isinstance(bound, ast.Name) and isinstance(given, ast.Subscript) and isinstance(given.value, ast.Name):
                yield bound.id, given.value.id
            elif isinstance(bound, (ast.Tuple, ast.List)) and isinstance(given, ast.Name):
                for part in walk(bound):
                    if isinstance(part, ast.Name):
                        yield part.id, given.id
