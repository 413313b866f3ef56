"""Tensors that a function moves where it finds another one, beside what it computes from that one.

out = F.conv_transpose1d(magnitude, self.basis)
window = window.cuda() if magnitude.is_cuda else window
out /= window                      # wherever `magnitude` is: with `out`

Where a call gives `magnitude` another place than the module has, what computes `out` fails, and not what meets it. Asked
before a finding is reported.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.objections.read_before import operands
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import stored_names
from devlint.facts.text.signs import TO_HOST, moves

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Meet

#: What is asked of a tensor and says nothing of its place.
_ASKED = frozenset({"shape", "size", "dtype", "ndim", "dim", "numel", "nelement", "is_cuda", "requires_grad", "type"})


def is_placed_along(sites: CallSites, event: Meet) -> bool:
    """Whether what is off was last bound by a move under `y.is_cuda`, and what it meets is computed from `y`."""
    function = sites.body(event.function) if "is_cuda" in sites.text else None
    if function is None:
        return False
    last = getattr(event.node, "end_lineno", None) or 0
    statements = [n for n in walk(function) if isinstance(n, (ast.Assign, ast.AugAssign)) and n.lineno <= last]
    followed = {tested for name in operands(event.off.node) for tested in tested_for(function, statements, name)}
    return bool(followed) and not followed.isdisjoint(computed_from(statements, event.other.node))


def tested_for(function: ast.AST, statements: list[ast.Assign | ast.AugAssign], name: str) -> Iterator[str]:
    """The variable that a function asks for `is_cuda` where it binds a name for the last time, to what it moves there."""
    bound = [n for n in statements if isinstance(n, ast.Assign) and name in stored_names(n)]
    made = max(bound, key=lambda node: node.lineno, default=None)
    if made is None or not any(isinstance(n, ast.Call) and moves(n) for n in walk(made.value)):
        return
    if isinstance(made.value, ast.IfExp):
        yield from is_cuda_of(made.value.test)
    for node in walk(function):
        if isinstance(node, ast.If) and made in node.body and not node.orelse:
            yield from is_cuda_of(node.test)


def is_cuda_of(test: ast.expr) -> Iterator[str]:
    """The variable that `y.is_cuda` asks."""
    if isinstance(test, ast.Attribute) and test.attr == "is_cuda" and isinstance(test.value, ast.Name):
        yield test.value.id


def computed_from(statements: list[ast.Assign | ast.AugAssign], node: ast.expr) -> set[str]:
    """The variables that an expression is computed from, without what was moved elsewhere on the way."""
    found: set[str] = set()
    pending = [node]
    for each in pending:  # which grows
        if any(isinstance(n, ast.Call) and (moves(n) or getattr(n.func, "attr", "") in TO_HOST) for n in walk(each)):
            continue
        new = set(names_in(each)) - found
        found |= new
        pending += [s.value for s in statements if not new.isdisjoint(stored_names(s))]
    return found


def names_in(node: ast.expr) -> Iterator[str]:
    """The variables in an expression, but for those that it only asks for a size or a type, and for those of an index."""
    pending: list[ast.AST] = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Subscript):
            pending.append(part.value)
        elif not (isinstance(part, ast.Attribute) and part.attr in _ASKED):
            pending += ast.iter_child_nodes(part)
