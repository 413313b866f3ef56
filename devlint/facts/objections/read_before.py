"""Whether the host read a tensor before it meets another one: had it been on an accelerator, that would have failed.

values = theta.numpy()                        # on every path, and it is itself what DEV109 is about
shifted = theta + torch.from_numpy(noise)     # so `theta` is on the CPU here
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.references import chain, stored_names
from devlint.facts.text.signs import TO_HOST, moves
from devlint.facts.values import HOME

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Meet


def is_read_before(sites: CallSites, event: Meet) -> bool:
    """Whether a statement of the function's own block, before the operation, calls `numpy()` on the variable as it is."""
    function = sites.body(event.function)
    names = set(operands(event.other.node)) if event.other.value.device == HOME else set()
    if not names or function is None:
        return False
    read: set[str] = set()
    for statement in getattr(function, "body", ()):
        if holds(statement, event.node):
            return bool(read)
        bound = stored_names(statement)
        read -= bound
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)):
            read |= {name for name in names - bound for node in walk(statement) if is_read(node, name)}
    return False


def operands(node: ast.expr) -> Iterator[str]:
    """The variables that an expression is computed from by arithmetic, each as it is or by a chain: they are together."""
    if isinstance(node, ast.BinOp):
        yield from operands(node.left)
        yield from operands(node.right)
    else:
        *_, root = chain(node)
        if isinstance(root, ast.Name):
            yield root.id


def is_read(node: ast.AST, name: str) -> bool:
    """Whether an expression is `name.numpy()`, or of a view of it, and not of a copy on the host."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr != "numpy":
        return False
    *parts, root = chain(node.func.value)
    calls = [part for part in parts if isinstance(part, ast.Call)]
    if any(getattr(call.func, "attr", "") in TO_HOST or moves(call) for call in calls):
        return False
    return isinstance(root, ast.Name) and root.id == name
