"""What was taken to the CPU for a computation, whose result then goes back to the card.

`rows = assign(scores.cpu())` and later `rows = rows.cuda()`: the rows belong where the scores are.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.api import CudaMethod, Facts

from ._shared import parsed

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Methods and attributes that tensors have and modules lack.
_OF_TENSORS = frozenset(
    {"detach", "size", "shape", "dtype", "view", "dim", "ndim", "numel", "sum", "mean", "max", "min", "sigmoid", "softmax",
     "long", "int", "bool", "unsqueeze", "squeeze", "permute", "contiguous", "reshape", "clone"}
)  # fmt: skip


def taken_from(event: CudaMethod, facts: Facts) -> str | None:
    """The tensor that a value was computed from on the CPU, before it is moved; None where nothing shows one."""
    receiver = event.receiver.node
    tree = parsed(facts.text)
    if not isinstance(receiver, ast.Name) or tree is None or not event.function or not isinstance(event.node, ast.expr):
        return None
    row = event.node.lineno
    around = [
        node for node in ast.walk(tree) if isinstance(node, _Function) and node.lineno <= row <= (node.end_lineno or 0)
    ]
    function = max(around, key=lambda node: node.lineno, default=None)
    if function is None:
        return None
    made = _last_binding(function, receiver.id, row)
    if made is None or not isinstance(made.value, ast.Call):
        return None
    arguments = (*made.value.args, *(each.value for each in made.value.keywords))
    for argument in arguments:
        for name in _on_host(argument, function, made.lineno):
            if name != receiver.id and _is_tensor(name, function) and not _is_bound(name, function, made.lineno, row):
                return name
    return None


def _on_host(node: ast.expr, function: _Function, row: int) -> Iterator[str]:
    """The names whose tensors an expression reads on the CPU: of `x.cpu()`, or of a name that was bound to that."""
    for part in ast.walk(node):
        if (name := _host_copy(part)) is not None:
            yield name
        elif isinstance(part, ast.Name):
            made = _last_binding(function, part.id, row)
            for inner in ast.walk(made.value) if made is not None else ():
                if (name := _host_copy(inner)) is not None:
                    yield name


def _host_copy(node: ast.AST) -> str | None:
    """The name of `x` in `x.cpu()`, `x.detach().cpu()` or `x.to("cpu")`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    to_host = node.func.attr == "to" and node.args and ast.unparse(node.args[0]) == "'cpu'"
    if node.func.attr != "cpu" and not to_host:
        return None
    inner = node.func.value
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute):
        inner = inner.func.value
    return inner.id if isinstance(inner, ast.Name) else None


def _last_binding(function: _Function, name: str, row: int) -> ast.Assign | None:
    """The last statement before a row that binds a name."""
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.lineno < row and name in _targets(node)
    ]
    return max(found, key=lambda node: node.lineno, default=None)


def _is_bound(name: str, function: _Function, after: int, before: int) -> bool:
    """Whether a name is bound between two rows: its tensor may be another one then."""
    return any(
        isinstance(node, ast.Assign) and after < node.lineno < before and name in _targets(node)
        for node in ast.walk(function)
    )


def _targets(node: ast.Assign) -> set[str]:
    return {part.id for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}


def _is_tensor(name: str, function: _Function) -> bool:
    """Whether the function reads something of a name that tensors alone have."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in _OF_TENSORS
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in ast.walk(function)
    )
