"""Tables: new tensors of several dimensions, whose rows have one at least.

    self.table = torch.zeros(count, width)
    torch.eq(x, self.table[j])     # a row, and no scalar

The call that makes a tensor tells how many sizes it has; what else is bound to its name would hide that.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.text.factory_names import OF_SIZES
from devlint.facts.text.references import is_self_attribute
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.events import Operand
    from devlint.facts.interpreter.machine import Machine

_OF_ONE_SIZE = frozenset({"torch.full"})  # that are given their sizes as one tuple
#: What makes tensors of one dimension.
_VECTORS = frozenset(
    {"torch.arange", "torch.linspace", "torch.logspace", "torch.randperm", "torch.hann_window", "torch.hamming_window"}
)
_MATRIX = "torch.eye"  # two dimensions, whatever it is given


def dimensions(value: Value) -> int:
    """How many sizes the call that made a tensor names; 0 where that is not known."""
    if len(value.made) != 1 or value.made[0].function not in OF_SIZES | _OF_ONE_SIZE:
        return 0
    sizes = value.made[0].node.args
    if sizes and (len(sizes) == 1 or value.made[0].function in _OF_ONE_SIZE):
        if not isinstance(sizes[0], (ast.Tuple, ast.List)):
            return 1 if value.made[0].function in OF_SIZES else 0
        sizes = sizes[0].elts
    return 0 if any(isinstance(size, ast.Starred) for size in sizes) else len(sizes)


def may_have_no_dimension(machine: Machine, node: ast.expr, left: Operand, right: Operand) -> bool:
    """Whether a matrix product, `node`, may be one of two vectors, by the calls that made both, or since both are one thing.

    That gives a value without dimensions [https://docs.pytorch.org/docs/stable/generated/torch.matmul.html]. One thing that
    is as it was made, with two dimensions, is no vector.
    """
    if ast.unparse(left.node) == ast.unparse(right.node):
        return not is_matrix(machine, node, left.node, left.value)
    return is_vector(left.value) and is_vector(right.value)


def is_matrix(machine: Machine, product: ast.expr, node: ast.expr, value: Value) -> bool:
    """Whether what a product multiplies with itself is as a call made it, with two dimensions or more.

    A local name may be bound to that product as well: `a = a @ a`.
    """
    if len(value.made) != 1 or not (dimensions(value) > 1 or value.made[0].function == _MATRIX):
        return False
    made = value.made[0].node
    return node is made or holds_as_made(machine, node, made, product)


def is_vector(value: Value) -> bool:
    return bool(value.made) and (dimensions(value) == 1 or all(each.function in _VECTORS for each in value.made))


def has_rows(machine: Machine, node: ast.expr, value: Value, indices: int) -> bool:
    """Whether a name or an attribute holds a tensor as it was made, with more dimensions than some integers take away."""
    return dimensions(value) > indices and holds_as_made(machine, node, value.made[0].node)


def holds_as_made(machine: Machine, node: ast.expr, made: ast.Call, product: ast.expr | None = None) -> bool:
    """Whether a call makes all that is ever bound to a local name, or to an attribute of the object.

    `product`: another expression that a local name may be bound to.
    """
    if isinstance(node, ast.Attribute) and is_self_attribute(node):
        entry = machine.owner.unregistered.get(node.attr) if machine.owner is not None else None
        return entry is not None and entry.value_node is made and not entry.reassigned
    own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else None
    if own is None or not isinstance(node, ast.Name) or own.bound.get(node.id, 0) not in (1, 2):
        return False
    assigns = [a for a in own.assigns if isinstance(a, ast.Assign) and (a.value is made or a.value is product)]
    bound = [a.value for a in assigns if any(isinstance(t, ast.Name) and t.id == node.id for t in a.targets)]
    return made in bound and len(bound) == own.bound[node.id]
