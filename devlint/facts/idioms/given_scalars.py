"""Arguments of a constructor whose defaults are numbers, plain ones or tensors: `share: Tensor = torch.tensor(0.05)`.

A tensor without dimensions meets those of any device in operations of elements, wherever it is.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.text.collect import qualified
from devlint.facts.text.factory_names import COPIES, OF_SIZES
from devlint.facts.text.nodes import walk
from devlint.facts.text.signatures import Plain, default_of, named_parameters

if TYPE_CHECKING:
    from devlint.facts.text.names import Imports

_OF_NUMBERS = COPIES | {"torch.scalar_tensor"}
_OF_SHAPES = OF_SIZES | {"torch.full"}


def is_made_of_numbers(init: Plain, source: ast.expr, imports: Imports) -> bool:
    """Whether the default of every parameter that an expression reads, and there is one, is a number or a tensor of one.

    No other call gives it dimensions: `share * torch.ones(3)`.
    """
    parameters = {argument.arg for argument in named_parameters(init.args)}
    read = {node.id for node in walk(source) if isinstance(node, ast.Name)} & parameters
    if any(isinstance(node, ast.Call) and reads_none(node, read) for node in walk(source)):
        return False
    return bool(read) and all(is_number(default_of(init.args, name), imports) for name in read)


def reads_none(call: ast.Call, names: set[str]) -> bool:
    """Whether a call reads none of some names."""
    return not any(isinstance(node, ast.Name) and node.id in names for node in walk(call))


def is_number(node: ast.expr | None, imports: Imports) -> bool:
    """Whether an expression is a number as it stands, or a new tensor without dimensions."""
    if isinstance(node, ast.UnaryOp):
        node = node.operand
    if isinstance(node, ast.Constant):
        return isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
    if not isinstance(node, ast.Call) or not node.args:
        return False
    called, first = qualified(node.func, imports), node.args[0]
    if called in _OF_NUMBERS:
        return is_number(first, imports)
    return called in _OF_SHAPES and isinstance(first, (ast.Tuple, ast.List)) and not first.elts
