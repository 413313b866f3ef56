"""Whether the host read a tensor before it meets another one: had it been on an accelerator, that would have failed.

values = theta.numpy()                        # on every path, and it is itself what DEV109 is about
shifted = theta + torch.from_numpy(noise)     # so `theta` is on the CPU here

rows, columns = linear_sum_assignment(cost)   # as a library of the host does
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.text.method_names import TO_HOST
from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.references import chain, last_name, stored_names
from devlint.facts.text.signs import moves
from devlint.facts.values import HOME

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Meet


def is_read_before(sites: CallSites, event: Meet) -> bool:
    """Whether a statement of the function's own block, before the operation, calls `numpy()` on the variable as it is, or
    hands it to a library of the host."""
    function = sites.body(event.function)
    names = set(operands(event.other.node)) if event.other.value.device == HOME else set()
    if event.how == "size" and event.other.value.device == HOME:
        names.add(event.other.text)  # the tensor of that size; the node is a number of it
    if not names or function is None:
        return False
    read: set[str] = set()
    for statement in getattr(function, "body", ()):
        if holds(statement, event.node):
            return bool(read)
        bound = stored_names(statement)
        read -= bound
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
            read |= {name for name in names - bound for node in walk(statement) if is_read(node, name, sites.imports)}
    return False


def operands(node: ast.expr) -> Iterator[str]:
    """The variables that an expression is computed from by arithmetic, each as it is or by a chain: they are together."""
    if isinstance(node, ast.BinOp):
        yield from operands(node.left)
        yield from operands(node.right)
    elif isinstance(node, ast.Call) and node.args and last_name(node.func).endswith("_like"):
        yield from operands(node.args[0])  # it is made where that one is
    else:
        *_, root = chain(node)
        if isinstance(root, ast.Name):
            yield root.id


def is_read(node: ast.AST, name: str, imports: Mapping[str, str]) -> bool:
    """Whether an expression is `name.numpy()`, or of a view of it, and not of a copy on the host; or hands it to the host."""
    if not isinstance(node, ast.Call):
        return False
    if any(isinstance(a, ast.Name) and a.id == name for a in node.args):
        *parts, root = chain(node.func)
        home = imports.get(root.id) if isinstance(root, ast.Name) else None
        if home is None or home.split(".", 1)[0] in ("torch", "numpy"):
            return False
        names = [part.attr for part in parts if isinstance(part, ast.Attribute)]
        record = knowledge.function(".".join((home, *reversed(names))))
        return record is not None and record.host_only
    if not isinstance(node.func, ast.Attribute) or node.func.attr != "numpy":
        return False
    *parts, root = chain(node.func.value)
    calls = [part for part in parts if isinstance(part, ast.Call)]
    if any(getattr(call.func, "attr", "") in TO_HOST or moves(call) for call in calls):
        return False
    return isinstance(root, ast.Name) and root.id == name
