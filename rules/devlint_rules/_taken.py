"""The tensor whose device a moved value belongs to, by what the function does with both.

What was taken to the CPU for a computation goes back: `rows = assign(scores.cpu())` and later `rows = rows.cuda()` belong
where the scores are. What is made in the size of a tensor, and given to a function beside it, belongs where that is:
`labels = torch.ones(out.size(0)).cuda()` and `loss(out, labels)`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.api import CudaMethod, Event, Facts

from ._shared import parsed
from ._uses import place_of

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Methods and attributes that tensors have and modules lack.
_OF_TENSORS = frozenset(
    {"detach", "size", "shape", "dtype", "view", "dim", "ndim", "numel", "sum", "mean", "max", "min", "sigmoid", "softmax",
     "long", "int", "bool", "unsqueeze", "squeeze", "permute", "contiguous", "reshape", "clone"}
)  # fmt: skip
#: Methods after which a tensor may be elsewhere.
_MOVES = frozenset({"cpu", "cuda", "xpu", "to", "type", "type_as", "numpy", "tolist", "item"})
_STEPS = 6  # statements that are followed one after the other


def taken_from(event: CudaMethod, facts: Facts) -> str | None:
    """The tensor that a value was computed from on the CPU, before it is moved; None where nothing shows one."""
    receiver = event.receiver.node
    tree = parsed(facts.text)
    if not isinstance(receiver, ast.Name) or tree is None or not event.function or not isinstance(event.node, ast.expr):
        return None
    row = event.node.lineno
    function = innermost(tree, row)
    if function is None:
        return None
    made = _last_binding(receiver.id, row, function)
    if made is None or not isinstance(made.value, ast.Call):
        return None
    arguments = (*made.value.args, *(each.value for each in made.value.keywords))
    for argument in arguments:
        for name in _on_host(argument, function, made.lineno):
            if name != receiver.id and _is_tensor(name, function) and not is_bound(name, function, made.lineno, row):
                return name
    return None


def sized_like(event: CudaMethod, facts: Facts) -> str | None:
    """The tensor in whose size a value is made that a function gets beside it; None where nothing shows one."""
    tree = parsed(facts.text)
    if tree is None or not event.function or not isinstance(event.node, ast.expr):
        return None
    row = event.node.lineno
    function = innermost(tree, row)
    made = _statement_of(event.node, function) if function is not None else None
    if function is None or made is None or not isinstance(made.targets[0], ast.Name):
        return None
    for name in _sizes(event.receiver.node):
        if _is_moved(name, function) or not _meet(name, made.targets[0].id, function, row):
            continue
        return name
    return None


def origin(name: str, event: Event, facts: Facts) -> str:
    """The argument of the function that a tensor was computed from step by step, on the same device; else the tensor."""
    tree, row = parsed(facts.text), getattr(event.node, "lineno", 0)
    function = innermost(tree, row) if tree is not None else None
    if function is None or not name.isidentifier():
        return name
    found, given = name, {each.arg for each in function.args.args}
    for _ in range(_STEPS):
        made = _last_binding(found, row, function)
        if made is None:
            break
        source = _source(made.value, facts) if isinstance(made.targets[0], ast.Name) else None
        if source is None:
            return name
        found, row = source, made.lineno
    value = event.scope.get(found)
    is_tensor = _is_tensor(found, function) or (value is not None and value.is_tensor)
    return found if found in given - {"self"} and is_tensor and not _is_moved(found, function) else name


def _source(node: ast.expr, facts: Facts) -> str | None:
    """The name whose tensor an expression is a part, a view or a function of."""
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript):
            node = node.value
        elif isinstance(node, ast.BinOp):
            node = node.left
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            source = _given_or_owner(node, node.func, facts)
            if source is None:
                return None
            node = source
        else:
            return None
    return node.id


def _given_or_owner(call: ast.Call, function: ast.Attribute, facts: Facts) -> ast.expr | None:
    """The first argument of a function of torch, or what a method is called on; None where the result may be elsewhere."""
    first = ast.unparse(function).partition(".")[0]
    if f"{facts.imports.get(first, '')}.".startswith("torch."):
        return None if not call.args or any(each.arg == "device" for each in call.keywords) else call.args[0]
    return None if function.attr in _MOVES else function.value


def _statement_of(node: ast.expr, function: _Function) -> ast.Assign | None:
    """The assignment of one target whose value holds a node."""
    for each in ast.walk(function):
        if isinstance(each, ast.Assign) and len(each.targets) == 1:
            parts = (part for part in ast.walk(each.value) if isinstance(part, ast.expr))
            if any(place_of(part) == place_of(node) for part in parts):
                return each
    return None


def _sizes(node: ast.AST) -> Iterator[str]:
    """The names whose sizes an expression reads: `x.size(0)`, `x.shape`."""
    for part in ast.walk(node):
        if isinstance(part, ast.Attribute) and part.attr in ("size", "shape") and isinstance(part.value, ast.Name):
            yield part.value.id


def _is_moved(name: str, function: _Function) -> bool:
    """Whether a function moves a name itself: it was elsewhere before."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("cuda", "to", "cpu")
        and isinstance(node.value, ast.Name)
        and node.value.id == name
        for node in ast.walk(function)
    )


def _meet(one: str, other: str, function: _Function, row: int) -> bool:
    """Whether a later call gets both names as they are, before one of them is bound again."""
    later = [node for node in ast.walk(function) if isinstance(node, ast.Call) and node.lineno >= row]
    for call in sorted(later, key=lambda node: node.lineno):
        given = {each.id for each in call.args if isinstance(each, ast.Name)}
        if {one, other} <= given:
            return not any(is_bound(name, function, row, call.lineno) for name in (one, other))
    return False


def innermost(tree: ast.Module, row: int) -> _Function | None:
    around = [
        node for node in ast.walk(tree) if isinstance(node, _Function) and node.lineno <= row <= (node.end_lineno or 0)
    ]
    return max(around, key=lambda node: node.lineno, default=None)


def _on_host(node: ast.expr, function: _Function, row: int) -> Iterator[str]:
    """The names whose tensors an expression reads on the CPU: of `x.cpu()`, or of a name that was bound to that."""
    for part in ast.walk(node):
        if (name := _host_copy(part)) is not None:
            yield name
        elif isinstance(part, ast.Name):
            made = _last_binding(part.id, row, function)
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


def _last_binding(name: str, row: int, function: _Function) -> ast.Assign | None:
    """The last statement before a row that binds a name."""
    found = [
        node
        for node in ast.walk(function)
        if isinstance(node, ast.Assign) and node.lineno < row and name in _targets(node)
    ]
    return max(found, key=lambda node: node.lineno, default=None)


def is_bound(name: str, function: _Function, after: int, before: int) -> bool:
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


def shares_memory(node: ast.expr) -> bool:
    """Whether an expression gives the memory of another attribute: `self.scores.data`, `self.scores.detach()`."""
    if isinstance(node, ast.Attribute):
        return node.attr == "data" and isinstance(node.value, ast.Attribute)
    detaches = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "detach"
    return (
        detaches
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Attribute)
    )
