"""Arrays of numpy that meet a tensor of torch without a function's name: the array's library reads it on the host.

    scores[:, 0] = model(x)     # stored into an array
    labels[order]               # looked up by several indices, or by a mask
    probabilities * weights     # a tensor first and an array behind it: torch gives way, and numpy computes

numpy asks the tensor for its memory in each of them ("can't convert cuda:0 device type tensor to numpy"); all three work with
tensors of the CPU. One value without dimensions is read as a number, wherever it is: `losses[i] = loss`, `labels[best]`;
so is a tensor of one element that is an index, `labels[found[i : i + 1]]`, or that is stored at one place of an array (more
elements do not fit there on the CPU either). An array of objects keeps the tensor itself at one place.
[numpy 2.4.6 given a torch 2.13 tensor that refuses `__array__`, as one without host memory does]
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import TYPE_CHECKING

from devlint.facts.idioms import arrays
from devlint.facts.text.nodes import text_of, walk
from devlint.facts.text.signs import OF_HOST
from devlint.facts.values import GUESS, ONE, ONE_TENSOR, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.host_reads import HostReads

#: What torch leaves to numpy where an array follows; a comparison is refused on the CPU as well.
_LEFT: Mapping[type[ast.operator], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "truediv", ast.Pow: "pow", ast.MatMult: "matmul",
    ast.FloorDiv: "floordiv", ast.Mod: "mod",
}  # fmt: skip


def note_store(machine: HostReads, target: ast.Subscript, base: Value, value: Value, source: ast.expr | None) -> None:
    """`array[...] = tensor`."""
    if base.kind != "ndarray" or source is None or not is_tensor(value):
        return
    nodes = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
    if arrays.is_place(base, len(nodes)) and all(is_integer(machine, n) for n in nodes):
        return
    if value.zero_dim is False or (value.zero_dim is None and any(isinstance(n, ast.Slice) for n in nodes)):
        machine.note_use(target, "numpy.ndarray.__setitem__", [machine.operand(source, value)])


def note_lookup(machine: HostReads, node: ast.Subscript, base: Value, index: Value) -> None:
    """`array[tensor]`, `array[:, tensor]`."""
    if base.kind != "ndarray":
        return
    key = node.slice
    pairs = [(key, index)]
    if isinstance(key, ast.Tuple) and isinstance(index.elements, tuple) and len(index.elements) == len(key.elts):
        pairs = list(zip(key.elts, index.elements, strict=True))
    for part, value in pairs:
        if is_tensor(value) and value.zero_dim is False and value.type_name != ONE and not is_named_array(part):
            machine.use(node, "numpy.ndarray.__getitem__", machine.operand(part, value), detached=True)


def note_operator(machine: HostReads, node: ast.BinOp, left: Value, right: Value) -> None:
    """`tensor * array`, of an array that surely has a dimension: numbers of numpy are numbers."""
    name = _LEFT.get(type(node.op))
    if arrays.has_dimension(right) and is_tensor(left) and name is not None:
        machine.note_use(node, f"numpy.ndarray.__r{name}__", [machine.operand(node.left, left)])


def is_integer(machine: HostReads, node: ast.expr) -> bool:
    """Whether nothing shows that an index is for several places of an array at once."""
    if isinstance(node, (ast.Slice, ast.Compare, ast.List)) or (
        isinstance(node, ast.Constant) and node.value in (None, ...)
    ):
        return False
    return machine.evaluate(node).kind not in ("ndarray", "list", "tuple", "tensor", "tensors")


def is_one_wide(key: ast.expr) -> bool:
    """Whether a slice takes one item: `[i : i + 1]`, `[:1]`, `[-1:]`."""
    if not isinstance(key, ast.Slice) or key.step is not None:
        return False
    lower = ast.unparse(key.lower) if key.lower is not None else "0"
    if key.upper is None:
        return lower == "-1"
    if isinstance(key.upper, ast.BinOp) and isinstance(key.upper.op, ast.Add):
        ends = {ast.unparse(key.upper.left), ast.unparse(key.upper.right)}
        return ends == {lower, "1"}
    upper = ast.unparse(key.upper)
    return lower.isdigit() and upper.isdigit() and int(upper) == int(lower) + 1


def is_named_array(node: ast.expr) -> bool:
    """Whether a name in an expression, or a key, says that it is an array: `batch["mask_np"][i] == 0`."""
    words = (getattr(n, "id", None) or getattr(n, "attr", None) or text_of(n) or "" for n in walk(node))
    return any(OF_HOST.search(word) is not None for word in words)


def is_tensor(value: Value) -> bool:
    """Whether a value is one tensor, as far as anything is known, or was moved and is used like one."""
    known = value.kind in ONE_TENSOR or (value.kind == "tensors" and value.moved)
    return known and value.type_name != GUESS
