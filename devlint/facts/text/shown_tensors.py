"""What the text of a function shows of its names and attributes: that they are tensors, numbers, or in host memory."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from devlint.facts.text.method_names import TYPES
from devlint.facts.text.nodes import walk
from devlint.facts.text.parameters import TENSOR_ONLY, shows_tensor
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.scan import FunctionScan
from devlint.facts.values import ACCELERATORS

#: Methods of tensors and modules, of which only tensors are operands.
_CASTS = ACCELERATORS | TYPES
#: Functions and methods that give a number.
_NUMBERS = frozenset({"len", "int", "float", "round", "item"})
#: What else is read of a tensor, but not of a number.
_ASKED = frozenset({"shape", "device", "ndim", "dtype"})


@lru_cache(8)
def used_as_tensors(own: FunctionScan) -> frozenset[str]:
    """The names and attributes that a function uses as only tensors can be, or asks for a shape."""
    methods = {id(call.func) for call in own.calls}
    return frozenset(
        ast.unparse(node.value)
        for node in own.attributes
        if isinstance(node.value, (ast.Name, ast.Attribute))
        and (node.attr in _ASKED or (id(node) in methods and (node.attr == "size" or node.attr in TENSOR_ONLY)))
    )


def is_cast(node: ast.expr) -> bool:
    """Whether what only tensors have gives an operand: `(a + b).detach()`, `x.float()`, `x.sum(dim=1)`, or, beside a tensor,
    what is written as only tensors and arrays are: `x[..., None]`."""
    for part in chain(node):
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
            name = part.func.attr
            if name in _CASTS or name in TENSOR_ONLY or (name != "size" and shows_tensor(name, part)):
                return True
        elif isinstance(part, ast.Subscript) and adds_dimension(part.slice):
            return True
    return False


def adds_dimension(key: ast.expr) -> bool:
    """Whether what stands in brackets has an ellipsis or None beside something else: `[..., None]`, `[..., :2]`."""
    return isinstance(key, ast.Tuple) and any(
        isinstance(part, ast.Constant) and part.value in (None, ...) for part in key.elts
    )


def gives_number(node: ast.expr) -> bool:
    """Whether an expression is a number, or computed by what gives numbers: `math.log(1e4) / half`, `len(x) // 2`."""
    return (isinstance(node, ast.Constant) and isinstance(node.value, (int, float))) or any(
        isinstance(part, ast.Call)
        and (
            last_name(part.func) in _NUMBERS
            or (isinstance(part.func, ast.Attribute) and last_name(part.func.value) == "math")
        )
        for part in walk(node)
    )


def is_asked_for_parts(own: FunctionScan, name: str) -> bool:
    """Whether a condition asks whether an argument has some part: `hasattr(data, "x")`."""
    return any(
        last_name(call.func) == "hasattr" and call.args and getattr(call.args[0], "id", "") == name
        for call in own.calls
    )


@lru_cache(8)
def stays_on_host(own: FunctionScan) -> bool:
    """Whether a function reads some tensor by numpy without bringing it to the CPU, or asks whether one is on a card."""
    if any(node.attr in ("is_cuda", "is_cpu") for node in own.attributes):
        return True
    reads = (
        call.func for call in own.calls if last_name(call.func) == "numpy" and isinstance(call.func, ast.Attribute)
    )
    return any("cpu" not in map(last_name, called_on(read.value)) for read in reads)


def called_on(node: ast.expr) -> Iterator[ast.expr]:
    """The methods whose results an expression is read from."""
    return (part.func for part in chain(node) if isinstance(part, ast.Call))


@lru_cache(8)
def handed_over(own: FunctionScan) -> dict[str, set[str]]:
    """What a function hands to others, as it is written, by the name with which the call begins: `np` of `np.mean(x)`."""
    found: dict[str, set[str]] = {}
    for call in own.calls:
        *_, start = chain(call.func)
        if isinstance(start, ast.Name):
            found.setdefault(start.id, set()).update(map(ast.unparse, call.args))
    return found


def called(node: ast.expr) -> Iterator[str]:
    """The names of the functions and methods that an expression calls."""
    return (last_name(each.func) for each in walk(node) if isinstance(each, ast.Call))
