"""Facts about what a tensor that goes to an accelerator meets first in its function: that is where it belongs.

`fg[rand.cuda()]` belongs where `fg` is, and so does `rand = torch.from_numpy(a).cuda()` when `fg[rand]` follows. Only the
text decides here, because most such tensors come from where nothing is known of them.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace

from devlint.facts.events import ApiCall, CudaMethod, DeviceLiteral, Event
from devlint.facts.outline import Outline, dotted, own_nodes

#: Methods of tensors that take other tensors, and of nothing else that takes them.
_TAKE_TENSORS = frozenset(
    {
        "add", "add_", "addmm", "baddbmm", "bmm", "copy_", "div", "div_", "eq", "expand_as", "gather", "ge", "gt",
        "index_add", "index_add_", "index_copy", "index_copy_", "index_fill", "index_fill_", "index_put_", "index_select",
        "le", "lt", "masked_fill", "masked_fill_", "masked_scatter_", "masked_select", "matmul", "mm", "mul", "mul_", "ne",
        "scatter", "scatter_", "scatter_add", "scatter_add_", "sub", "sub_", "where",
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
        found = met(o, node) or met_later(o, node)
        if found is not None:
            yield replace(event, partner=found)


def met(o: Outline, node: ast.expr) -> str | None:
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
            return tensor_path(o, other) if isinstance(other, (ast.Name, ast.Subscript)) else None
        elif isinstance(above, ast.Call) and isinstance(above.func, ast.Attribute) and current in above.args:
            if above.func.attr not in _TAKE_TENSORS:
                return None
            return tensor_path(o, above.func.value)
        else:
            return None
    return None


def is_index(o: Outline, node: ast.Tuple) -> bool:
    parent = o.parent.get(node)
    return isinstance(parent, ast.Subscript) and parent.slice is node


def tensor_path(o: Outline, node: ast.expr) -> str | None:
    """The name of the tensor that an expression is a part or a view of."""
    while isinstance(node, ast.Subscript) or (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
        node = node.value if isinstance(node, ast.Subscript) else node.func.value  # type: ignore[attr-defined]
    path = dotted(node)
    return path if path is not None and "." not in path and path not in o.flow.imports.names else None


def met_later(o: Outline, node: ast.expr) -> str | None:
    """What the name that a statement binds to the expression meets first."""
    statement = o.statement(node)
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    name = statement.targets[0]
    if not isinstance(name, ast.Name) or not is_chain_of(statement.value, node):
        return None
    uses = [
        child
        for child in own_nodes(o.scope(node))
        if isinstance(child, ast.Name)
        and child.id == name.id
        and isinstance(child.ctx, ast.Load)
        and child.lineno > statement.lineno
    ]
    for use in sorted(uses, key=lambda child: (child.lineno, child.col_offset)):
        found = met(o, use)
        if found is not None and found != name.id:
            return found if bound_before(o, found, statement) else None
    return None


def bound_before(o: Outline, path: str, statement: ast.stmt) -> bool:
    """Whether a name is bound above a statement, and nowhere below it."""
    stores = [
        child.lineno
        for child in own_nodes(o.scope(statement))
        if isinstance(child, ast.Name) and child.id == path and isinstance(child.ctx, ast.Store)
    ]
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
