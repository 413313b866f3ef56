"""Subscripts: elements of containers, items and slices of tensors, and tensors as indices."""

from __future__ import annotations

import ast
import re

from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import arrays, beside_arrays, guesses, looked_up, tables, unplaced
from devlint.facts.interpreter.methods import Methods
from devlint.facts.interpreter.operations import TURN
from devlint.facts.text.references import last_name
from devlint.facts.text.signs import gives_tensors
from devlint.facts.values import GROWN, GUESS, NOTHING, ONE, OUTPUT, UNKNOWN, Value, extent

#: Names of what holds settings, which are numbers and texts, wherever the object that has them is.
_SETTINGS = re.compile(r"(?:^|[._])(?:kwargs|config|cfg|options|settings|hparams)$")
#: Functions whose results are several tensors: `x.sort()[1]` is no item of one.
_SEVERAL = frozenset(
    {
        "sort",
        "max",
        "min",
        "topk",
        "kthvalue",
        "median",
        "mode",
        "unique",
        "split",
        "chunk",
        "unbind",
        "where",
        "nonzero",
    }
)


class Subscripts(Methods):
    """Adds `subscript` and `is_item`."""

    def subscript(self, node: ast.Subscript) -> Value:
        path = self.path(node)
        if path is not None:
            found = self.lookup(path)
            if found is not None:
                self.evaluate(node.value)
                return found
        base = self.evaluate(node.value)
        key = node.slice
        index = self.evaluate(key)
        if isinstance(base.elements, tuple) and base.kind in ("list", "tuple"):
            if base.type_name == GROWN:
                return base if isinstance(key, ast.Slice) else self.element(base)
            if isinstance(key, ast.Constant) and isinstance(key.value, int):
                return base.elements[key.value] if -len(base.elements) <= key.value < len(base.elements) else NOTHING
            if isinstance(key, ast.UnaryOp) and isinstance(key.operand, ast.Constant) and base.elements:
                value = key.operand.value
                if isinstance(value, int) and value <= len(base.elements):
                    return base.elements[-value]
            if isinstance(key, ast.Slice):
                return replace(base, elements=None)
            return self.element(base)
        if isinstance(base.elements, dict):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return base.elements.get(key.value) or base.elements.get("*", NOTHING)
            return self.values_of(self.path(node.value), base)
        if isinstance(key, ast.Constant) and isinstance(key.value, int) and base.zero_dim is not False:
            if (base.is_tensor and base.zero_dim) or is_data_of_loss(node.value):
                return NOTHING  # a number in torch 0.3, `loss.data[0]`, and refused since
        if base.kind == "tensors":
            if isinstance(key, ast.Constant) and isinstance(key.value, int) and gives_tensors(node.value):
                return replace(base, kind="tensor")
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _SETTINGS.search(self.text(node.value)):
                return NOTHING  # `G.rendering_kwargs["scale"]`
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and base.type_name == OUTPUT:
                return replace(base, type_name=None)  # a model may give arrays and numbers beside tensors
            # several indices, or a slice among them, are for a tensor, or for an array, which a caller may well give
            is_tensor = is_of_tensor(key) and not (base.because and base.because[0].span in self.assumed)
            if is_tensor:
                parts_of_key = key.elts if isinstance(key, ast.Tuple) else [key]
                kept = any(isinstance(n, ast.Slice) or is_new_axis(n) for n in parts_of_key)
                picking = self.picking(key, index)
                if picking and self.picks(node, replace(base, kind="tensor"), picking):
                    return Value("tensor", UNKNOWN, False)
                return replace(base, kind="tensor", zero_dim=False if kept else None)
            if index.kind == "tensor" and index.zero_dim is False and base.zero_dim is False:
                # nothing but a tensor, or an array, takes several items at once
                if self.picks(node, replace(base, kind="tensor"), [self.operand(key, index)]):
                    return Value("tensor", UNKNOWN, False)
                return replace(base, kind="tensor")
            counted = base.moved and isinstance(key, ast.Name) and self.is_count(key)
            return replace(base, zero_dim=None) if counted else base  # an item of what a loop goes through
        beside_arrays.note_lookup(self, node, base, index)
        if base.type_name == "size":
            if isinstance(key, ast.Slice):
                return base
            return extent(base, str(base.constant))
        if base.is_tensor:
            nodes = key.elts if isinstance(key, ast.Tuple) else [key]
            operands = self.picking(key, index)
            receiver = self.operand(node.value, base)
            if not operands:
                looked_up.note(self, node, base, index)
            else:
                met = unplaced.beside(self, [receiver, *operands])
                if self.meet(node, met, "index", "index", "index") is not None:
                    return Value("tensor", UNKNOWN, False)  # torch refuses it; what would follow is no other fault
            keeps = any(isinstance(n, ast.Slice) or is_new_axis(n) for n in nodes) or bool(operands)
            keeps = keeps or (all(map(self.is_count, nodes)) and tables.has_rows(self, node.value, base, len(nodes)))
            made = base.made
            if not keeps and len(base.device) > 1:  # an item of what was made on one path may have no dimension left
                made = tuple(replace(creation, zero_dim=None) for creation in made)
            named = GUESS if base.type_name == GUESS else ONE if beside_arrays.is_one_wide(key) else None
            return Value(
                "tensor", base.device, False if keeps else None, because=base.because, made=made,
                attribute=base.attribute, type_name=named,
            )  # fmt: skip
        if base.kind == "module":
            found = self.element(base)
            if found.kind == "module":
                return replace(found, moved=base.moved) if found.device == base.device else found
            return Value("module", base.device, because=base.because, moved=base.moved)
        if base.kind == "dataset" and base.device:
            return Value("tensors", base.device, None, because=base.because)
        return arrays.part(base, key) or guesses.part(guesses.of_checkpoint(base))

    def picking(self, key: ast.expr, index: Value) -> list[Operand]:
        """The tensors in brackets that index by their elements."""
        if index.kind != "tuple":
            pairs = [(key, index)]
        else:
            parts = index.elements if isinstance(index.elements, tuple) else ()
            pairs = list(zip(key.elts if isinstance(key, ast.Tuple) else [key], parts, strict=False))
        return [self.operand(n, v) for n, v in pairs if is_index(v) and not self.is_item(n, v)]

    def picks(self, node: ast.Subscript, base: Value, indices: list[Operand]) -> bool:
        """Whether torch refuses to pick from a tensor by some indices, of which the fault is noted."""
        return self.meet(node, [self.operand(node.value, base), *indices], "index", "index", "index") is not None

    def is_item(self, node: ast.expr, value: Value) -> bool:
        """Whether an index is one item of a tensor, which may well have no dimension: `found[i]`, `found[i] + 1`, or `i` of
        `for i in found`.

        An integer tensor without dimensions is read as an int, whatever its device [torch/csrc/autograd/
        python_variable_indexing.cpp].
        """
        if value.zero_dim is not None:
            return False
        if value.type_name == TURN:
            return True
        if value.split is not None and any(side.kind == "number" for side in value.split[1:]):
            return True  # `center = len(x) // 2 if given is None else given`: what is a number on one path is one item
        while isinstance(node, ast.BinOp) and isinstance(node.right, ast.Constant):
            node = node.left
        if not isinstance(node, ast.Subscript):
            return False
        if isinstance(node.value, ast.Call) and last_name(node.value.func) in _SEVERAL:
            return False
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return all(map(self.is_count, parts))

    def for_loops(self) -> list[ast.For]:
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        return [a for a in own.assigns if isinstance(a, ast.For)] if own is not None else []

    def is_count(self, node: ast.expr) -> bool:
        """Whether an index is an integer: a literal, what a loop counts with, a number that is bound to the name."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int)
        if not isinstance(node, ast.Name):
            return False
        known = self.lookup(node.id)
        return (known is not None and known.kind == "number") or any(counts(loop, node.id) for loop in self.for_loops())

    def slice_(self, node: ast.Slice) -> Value:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.evaluate(part)
        return NOTHING


def is_data_of_loss(node: ast.expr) -> bool:
    """Whether an expression is the data of what is called a loss: `loss.data`."""
    return isinstance(node, ast.Attribute) and node.attr == "data" and "loss" in last_name(node.value).lower()


def counts(loop: ast.For, name: str) -> bool:
    """Whether a loop counts with a name: `for name in range(n)`, `for name, x in enumerate(xs)`."""
    call, target = loop.iter, loop.target
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    if call.func.id == "enumerate" and isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    return call.func.id in ("range", "enumerate") and isinstance(target, ast.Name) and target.id == name


def is_of_tensor(key: ast.expr) -> bool:
    """Whether what stands in brackets is for a tensor, or an array: `[:, 0]`, `[..., :2]`."""
    return isinstance(key, ast.Tuple) and any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...) for part in key.elts
    )


def is_index(value: Value) -> bool:
    """Whether a tensor indexes by its elements; a 0-dim one is read as a number, wherever it is.

    [torch/csrc/autograd/python_variable_indexing.cpp, applySlicing: applySelect with the integer]
    """
    return value.is_tensor and value.zero_dim is not True


def is_new_axis(node: ast.expr) -> bool:
    """Whether a part of an index adds a dimension: `x[None]`."""
    return isinstance(node, ast.Constant) and node.value is None
