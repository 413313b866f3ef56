"""Reading and writing a tensor by an index or a mask."""

from __future__ import annotations

import ast

from devlint.inference.summary.frame import Frame
from devlint.inference.terms.places import CPU, is_accelerator, with_zero_dim, zero_dim_of
from devlint.inference.terms.values import PLAIN, Value


def read(frame: Frame, node: ast.Subscript, base: Value, index: Value) -> Value:
    """What `base[index]` gives. The index may be on the CPU or with the tensor.

    Source: torch/csrc/autograd/python_variable_indexing.cpp.
    """
    by_tensor = _need(frame, node, base, index)
    nodes = _nodes(node.slice)
    keeps = by_tensor or any(isinstance(each, ast.Constant) and each.value is Ellipsis for each in nodes)
    has_dimension = any(map(_has_dimension, nodes)) or (keeps and zero_dim_of(base.places) is False)
    zero_dim = False if has_dimension else None
    return Value("tensor", with_zero_dim(base.places, zero_dim), proved=base.proved)


def write(frame: Frame, node: ast.Subscript, base: Value, index: Value, value: Value, source: ast.AST | None) -> None:
    """`base[index] = value`: a plain copy may cross devices, one by an index tensor may not.

    Source: aten/src/ATen/native/TensorAdvancedIndexing.cpp.
    """
    by_tensor = _is_by_tensor(node, index)
    if not value.may_be_tensor or not value.places:
        return
    if by_tensor and zero_dim_of(value.places) is not True:
        frame.need(
            "index", "scalar" if value.is_tensor else "exact", "index", frame.operand(node.value, base),
            frame.operand(source or node, value), node, guessed=value.kind == "unknown",
        )  # fmt: skip
    if value.is_tensor and any(
        each.atom.tag in ("place", "names") or is_accelerator(each.atom) for each in value.places
    ):
        for each in base.places:
            if each.atom == CPU and each.origin is not None and each.origin.why == "factory":
                frame.fills.setdefault(each.origin, value)


def _is_by_tensor(node: ast.Subscript, index: Value) -> bool:
    """Whether a part of an index is a tensor. For a store torch brings indices to the tensor itself."""
    parts = index.parts if index.kind == "tuple" and index.parts is not None else (index,)
    return any(part.is_tensor for part in parts)


def _need(frame: Frame, node: ast.Subscript, base: Value, index: Value) -> bool:
    """Record what an index needs; whether it is surely a tensor."""
    by_tensor = False
    parts = index.parts if index.kind == "tuple" and index.parts is not None else (index,)
    nodes = _nodes(node.slice)
    for part, at in zip(parts, nodes if len(nodes) == len(parts) else [node.slice] * len(parts), strict=True):
        if part.kind in PLAIN or isinstance(at, (ast.Slice, ast.Constant)):
            continue
        if part.is_tensor or (part.kind == "unknown" and part.places):
            by_tensor = by_tensor or part.is_tensor
            if zero_dim_of(part.places) is not True:
                frame.need(
                    "index", "index", "index", frame.operand(node.value, base), frame.operand(at, part), node,
                    guessed=part.kind == "unknown",
                )  # fmt: skip
    return by_tensor


def _nodes(node: ast.expr) -> list[ast.expr]:
    return node.elts if isinstance(node, ast.Tuple) else [node]


def _has_dimension(node: ast.expr) -> bool:
    """Whether a part of an index leaves a dimension, or adds one."""
    return isinstance(node, ast.Slice) or (isinstance(node, ast.Constant) and node.value is None)
