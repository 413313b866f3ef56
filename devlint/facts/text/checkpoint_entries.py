"""Entries of checkpoints: which expressions take one of what `torch.load` puts on the CPU, as the text of a file says.

state = torch.load(path, map_location="cpu")
self.mean = state["mean"]
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.text.collect import qualified
from devlint.facts.text.names import Imports
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import given, last_name
from devlint.facts.text.signatures import parameter_names


def entry_source(node: ast.expr) -> ast.expr | None:
    """What an expression takes an entry of: `state` of `state["mean"]` and of `state.get("mean")`."""
    found: ast.expr | None = None
    while True:
        if isinstance(node, ast.Subscript) and is_key(node.slice):
            found = node = node.value
        elif (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in ("get", "pop")
            and node.args
            and is_key(node.args[0])
        ):
            found = node = node.func.value
        else:
            return found


def is_key(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def load_of(imports: Imports, scope: ast.AST, node: ast.expr) -> ast.Call | None:
    """The `torch.load` onto the CPU that gives an expression, at once or through a variable of a scope."""
    if isinstance(node, ast.Name):
        values = list(bound_values(scope, node.id))
        if not values or any(value is None for value in values):
            return None
        loads = [load_of(imports, scope, value) for value in values if isinstance(value, ast.Call)]
        return loads[0] if len(loads) == len(values) and None not in loads else None
    if not isinstance(node, ast.Call) or qualified(node.func, imports) != "torch.load":
        return None
    place = given(node, "map_location", 1)
    return node if place and is_host(place[0]) else None


def bound_values(scope: ast.AST, name: str) -> Iterator[ast.expr | None]:
    """What the assignments of a scope give a name; None for any other way to bind it, or to change it."""
    if name in parameter_names(scope):
        yield None
    for node in walk(scope):
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name for t in node.targets):
            yield node.value
        elif isinstance(node, ast.Assign):
            targets = (n for target in node.targets for n in walk(target))
            if any(isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store) for n in targets):
                yield None
        elif isinstance(node, (ast.For, ast.AnnAssign, ast.AugAssign, ast.NamedExpr, ast.comprehension)):
            if any(isinstance(n, ast.Name) and n.id == name for n in walk(node.target)):
                yield None
        elif (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)) or (
            isinstance(node, ast.Attribute) and node.attr == "update"
        ):
            inner: ast.expr = node.value
            while isinstance(inner, ast.Subscript):
                inner = inner.value
            if isinstance(inner, ast.Name) and inner.id == name:
                yield None  # an entry of it is replaced
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Name):
            if any(isinstance(argument, ast.Name) and argument.id == name for argument in node.value.args):
                yield None  # `to_device(state, device)`
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            if any(isinstance(n, ast.Name) and n.id == name for n in walk(node.optional_vars)):
                yield None


def is_bound(scope: ast.AST, name: str) -> bool:
    """Whether a function binds a name besides taking it as a parameter."""
    return sum(1 for _ in bound_values(scope, name)) > (name in parameter_names(scope))


def is_host(node: ast.expr) -> bool:
    """Whether `map_location` is the CPU: `"cpu"`, `torch.device("cpu")`, `lambda storage, location: storage`."""
    if isinstance(node, ast.Call) and last_name(node.func) == "device" and len(node.args) == 1 and not node.keywords:
        node = node.args[0]
    if isinstance(node, ast.Constant):
        return node.value == "cpu"
    if isinstance(node, ast.Lambda) and isinstance(node.body, ast.Name):
        return parameter_names(node)[:1] == [node.body.id]
    return False
