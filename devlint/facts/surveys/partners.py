"""Facts about what a tensor that goes to an accelerator meets first in its function: that is where it belongs.

`fg[rand.cuda()]` belongs where `fg` is, and so does `rand = torch.from_numpy(a).cuda()` when `fg[rand]` follows. The text
decides here, because most such tensors come from where nothing is known of them; a factor may be a number, so that
what an operator combines must be known to be a tensor, or be used as one.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from devlint.facts.events import ApiCall, CudaMethod, DeviceLiteral, Event, Scope
from devlint.facts.frozen import replace
from devlint.facts.surveys.outline import Outline, dotted, own_nodes

#: Methods of tensors that take other tensors, and of nothing else that takes them.
_TAKE_TENSORS = frozenset(
    {
        "add", "add_", "addmm", "baddbmm", "bmm", "copy_", "div", "div_", "eq", "expand_as", "gather", "ge", "gt",
        "index_add", "index_add_", "index_copy", "index_copy_", "index_fill", "index_fill_", "index_put_", "index_select",
        "le", "lt", "masked_fill", "masked_fill_", "masked_scatter_", "masked_select", "matmul", "mm", "mul", "mul_", "ne",
        "scatter", "scatter_", "scatter_add", "scatter_add_", "sub", "sub_", "where",
    }
)  # fmt: skip


#: What a tensor is asked for, and no number.
_OF_TENSORS = frozenset(
    {
        "size", "shape", "dim", "device", "dtype", "view", "reshape", "detach", "unsqueeze", "squeeze", "permute", "backward",
        "requires_grad", "requires_grad_", "grad", "new_zeros", "new_tensor", "contiguous", "expand", "flatten", "is_cuda",
        "transpose", "sum", "mean",
    }
)  # fmt: skip


def partners(o: Outline) -> Iterator[Event]:
    """Events of a fixed accelerator, where no device of the run is in scope, with the tensor that they meet."""
    for event in list(o.flow.events.values()):
        node = event.node
        if not event.function or getattr(event, "run_device", "") is not None or not isinstance(node, ast.expr):
            continue
        if isinstance(event, DeviceLiteral):
            call = next((above for above in o.above(node) if isinstance(above, ast.Call)), None)
            made = event.role == "argument" and event.argument == "device" and (event.call or "").startswith("torch.")
            if call is None or not made or event.call == "torch.device":
                continue
            node = call
        elif isinstance(event, CudaMethod):
            if event.argument is not None or event.receiver.value.kind == "module":
                continue
        elif not (isinstance(event, ApiCall) and event.is_call and event.qualname.endswith("Tensor")):
            continue
        found = met(o, node, event.scope) or met_later(o, node, event.scope)
        if found is not None:
            yield replace(event, partner=found)


def met(o: Outline, node: ast.expr, scope: Scope) -> str | None:
    """The path of the tensor that an expression is read, written or combined with in its own statement."""
    current: ast.expr = node
    for above in o.above(node):
        if isinstance(above, ast.Attribute) and above.value is current:
            current = above
        elif isinstance(above, ast.Call) and above.func is current:
            current = above  # a method of it
        elif isinstance(above, ast.Subscript) and above.value is current:
            current = above
        elif isinstance(above, ast.Subscript) or (isinstance(above, ast.Tuple) and is_index(o, above)):
            if isinstance(above, ast.Subscript):
                return tensor_path(o, above.value)
            current = above
        elif isinstance(above, ast.BinOp):
            other = above.right if above.left is current else above.left
            path = tensor_path(o, other) if isinstance(other, (ast.Name, ast.Subscript)) else None
            if path is not None and is_used_as_tensor(o, path, node, scope):
                return path
            current = above  # a number, or what only this statement knows
        elif isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and current in above.args:
            if above.func.attr not in _TAKE_TENSORS:
                return None
            return tensor_path(o, above.func.value)
        else:
            return None
    return None


def is_used_as_tensor(o: Outline, path: str, node: ast.expr, scope: Scope) -> bool:
    """Whether a name is known to hold a tensor where an expression stands, or its function asks it for a tensor's parts."""
    value = scope.get(path)
    if value is not None and value.kind != "unknown":
        return value.is_tensor
    return any(
        isinstance(child, ast.Attribute) and child.attr in _OF_TENSORS and dotted(child.value) == path
        for child in own_nodes(o.scope(node))
    )


def is_index(o: Outline, node: ast.Tuple) -> bool:
    parent = o.parent.get(node)
    return isinstance(parent, ast.Subscript) and parent.slice is node


def tensor_path(o: Outline, node: ast.expr) -> str | None:
    """The name of the tensor that an expression is a part or a view of."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        node = node.value if isinstance(node, ast.Subscript) else node.func.value  # type: ignore[attr-defined]
    path = dotted(node)
    return path if path is not None and "." not in path and path not in o.flow.imports.names else None


def met_later(o: Outline, node: ast.expr, scope: Scope) -> str | None:
    """What the name that a statement binds to the expression meets first."""
    statement = o.statement(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    name = statement.targets[0]
    if not isinstance(name, ast.Name) or not is_chain_of(statement.value, node):
        return None
    uses = [
        child
        for child in names_in(o.scope(node)).get(name.id, ())
        if isinstance(child.ctx, ast.Load) and child.lineno > statement.lineno
    ]
    for use in sorted(uses, key=lambda child: (child.lineno, child.col_offset)):
        found = met(o, use, scope)
        if found is not None and found != name.id:
            return found if bound_before(o, found, statement) else None
    return None


@lru_cache(4)
def names_in(scope: ast.AST) -> dict[str, list[ast.Name]]:
    """The names of a scope, each where it is read or bound."""
    found: dict[str, list[ast.Name]] = {}
    for child in own_nodes(scope):
        if isinstance(child, ast.Name):
            found.setdefault(child.id, []).append(child)
    return found


def bound_before(o: Outline, path: str, statement: ast.stmt) -> bool:
    """Whether a name is bound above a statement, and nowhere below it."""
    stores = [child.lineno for child in names_in(o.scope(statement)).get(path, ()) if isinstance(child.ctx, ast.Store)]
    return all(line < statement.lineno for line in stores)


def is_chain_of(value: ast.expr, node: ast.expr) -> bool:
    """Whether a value is the expression, or methods of it: `node.long()`."""
    while value is not node:
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute):
            value = value.func.value
        elif isinstance(value, ast.Subscript):
            value = value.value
        else:
            return False
    return True
