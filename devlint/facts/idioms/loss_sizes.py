"""Sizes of losses, which have no dimensions as a rule: what is made in such a size may be 0-dim, and goes with any device.

loss = alpha * criterion(out, y)
extra = torch.zeros(loss.shape)
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.idioms.added_losses import is_loss, is_name_of_loss
from devlint.facts.idioms.said_elsewhere import bindings

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine


def is_size_of_loss(machine: Machine, node: ast.expr) -> bool:
    """Whether an expression is `loss.shape` or `loss.size()`: the whole size of what is a loss by its name, or by what
    computes it, and of which it is not known that it has dimensions."""
    whole = node.value if isinstance(node, ast.Starred) else node
    if isinstance(whole, ast.Call) and not whole.args and not whole.keywords and isinstance(whole.func, ast.Attribute):
        asked: ast.expr = whole.func
    else:
        asked = whole
    if not isinstance(asked, ast.Attribute) or asked.attr != ("shape" if asked is whole else "size"):
        return False
    return may_be_loss(machine, asked.value)


def may_be_loss(machine: Machine, node: ast.expr) -> bool:
    if not isinstance(node, ast.Name):
        return is_loss(node)
    known = machine.state.env.get(node.id)
    if known is not None and known.zero_dim is False:
        return False
    own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else None
    bound = bindings(own).get(node.id, ()) if own is not None else ()
    return is_name_of_loss(node.id) or (bool(bound) and all(map(is_loss, bound)))
