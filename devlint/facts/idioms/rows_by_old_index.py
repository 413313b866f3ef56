"""Tables on the CPU of which a module takes rows by an index of another device, and moves the rows.

    return self.layer(x) + self.table[ids].to(x.device)

Up to torch 1.12 a tensor of the CPU took an index from any device [pytorch/pytorch issue 90194]. Where a project admits no
later one, such a table may stay behind.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_own_attribute
from devlint.facts.text.signs import moves

if TYPE_CHECKING:
    from devlint.facts.interpreter.flow import Flow
    from devlint.facts.text.classes import ClassFacts, Unregistered

_REFUSED = (1, 13)  # the first torch that refuses the index


def are_rows_moved(flow: Flow, class_: ClassFacts, name: str, entry: Unregistered) -> bool:
    """Whether all that a class does with `self.name` is to take rows of it, which it moves, and no torch of the project refuses
    that."""
    newest = flow.facts.torch_newest
    if newest is None or newest >= _REFUSED or not entry.uses:
        return False
    moved = (
        call.func.value
        for call in walk(class_.node)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and moves(call)
    )
    rows = (node for node in moved if isinstance(node, ast.Subscript) and is_own_attribute(node.value, name))
    return entry.uses.keys() <= {flow.span(node) for node in rows}
