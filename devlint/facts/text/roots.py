"""Which parameters of a function an operand comes from: a part of one, or what is placed on the device of one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.text.nodes import every
from devlint.facts.text.references import chain
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import Symbol, Value

HOPS = 4  # names that stand for one another


def roots(function: ast.AST, node: ast.expr, value: Value) -> list[str]:
    """The parameters behind an operand: `x` of `x.detach()`, of `y = x[0]`, and of what was made on `x.device`."""
    parameters = set(parameter_names(function)) - {"self", "cls"}
    if not parameters:
        return []
    named = {place.name.split(".", 1)[0] for place in value.device if isinstance(place, Symbol) and "." in place.name}
    return sorted(parameters.intersection({*named, *starts(function, node)}))


def starts(function: ast.AST, node: ast.expr) -> Iterator[str]:
    """The names that an expression is a part of, by way of names that are bound once."""
    for _ in range(HOPS):
        *_, start = chain(node)
        if not isinstance(start, ast.Name):
            return
        yield start.id
        bound = [
            n.value
            for n in every(function)
            if isinstance(n, ast.Assign) and any(isinstance(t, ast.Name) and t.id == start.id for t in n.targets)
        ]
        if len(bound) != 1:
            return
        node = bound[0]
