"""Attributes that a class computes from nothing but what it brought to the CPU: they are there, whoever reads them.

def on_batch(self, output):
    found = output.argmax(-1).cpu()
    counts = (found == self.kinds[:, None]).sum(1)   # on the CPU, or it fails itself
    self.counts = counts if self.counts is None else self.counts + counts
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_name, is_own_attribute, is_self_attribute

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

_DEPTH = 6  # names and operations that are followed
#: Methods that give a tensor without dimensions, or a number, where they are told no dimension.
_REDUCES = frozenset(
    {
        "mean", "sum", "item", "max", "min", "norm", "prod", "std", "var", "median", "any", "all", "argmax", "argmin", "amax",
        "amin", "nanmean", "nansum", "logsumexp",
    }
)  # fmt: skip


def reads_one(machine: Machine, node: ast.expr) -> bool:
    """Whether an expression reads such an attribute of the object that the checked method belongs to."""
    if machine.owner is None or machine.owner.abroad or "cpu" not in machine.scan.calls:
        return False
    names = {n.attr for n in walk(node) if isinstance(n, ast.Attribute) and is_self_attribute(n)}
    return any(is_computed_there(machine.owner, name) for name in names)


@lru_cache(32)
def is_computed_there(class_: ClassFacts, name: str) -> bool:
    """Whether a class and its bases give an attribute tensors of the CPU alone, and do so once at least, or None."""
    methods = (method for each in lineage(class_) for method in each.methods.values())
    given = [(method, value) for method in methods for value in given_to(method, name)]
    tensors = [(method, value) for method, value in given if not isinstance(value, ast.Constant)]
    return bool(tensors) and all(is_there(method, name, value, 0) for method, value in tensors)


def given_to(method: ast.AST, name: str) -> Iterator[ast.expr]:
    """What a method binds an attribute of `self` to, adds to it, or puts into a part of it: `self.sums[0] += x.cpu()`."""
    for node in walk(method):
        if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(is_own_attribute(part, name) for target in targets for part in walk(target)):
                yield node.value


def is_there(method: ast.AST, name: str, node: ast.expr, depth: int) -> bool:
    """Whether an expression gives a tensor of the CPU, where it does not fail: a part that it computes with is there."""
    if depth > _DEPTH:
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr in OFF_HOST:
            return False
        return node.func.attr == "cpu" or is_there(method, name, node.func.value, depth + 1)
    if isinstance(node, ast.IfExp):
        return all(is_there(method, name, part, depth + 1) for part in (node.body, node.orelse))
    if isinstance(node, (ast.BinOp, ast.Compare)):
        parts = (node.left, node.right) if isinstance(node, ast.BinOp) else (node.left, *node.comparators)
        there = [part for part in parts if is_there(method, name, part, depth + 1)]
        rest = [part for part in parts if part not in there and not isinstance(part, ast.Constant)]
        if any(not is_reduced(method, part, 0) for part in there):
            return True  # torch takes what has dimensions beside nothing on an accelerator
        return bool(there) and all(is_own_attribute(part, name) for part in rest)
    if isinstance(node, (ast.Subscript, ast.UnaryOp)):
        inner = node.value if isinstance(node, ast.Subscript) else node.operand
        return is_there(method, name, inner, depth + 1)
    if not isinstance(node, ast.Name):
        return False
    return is_bound_there(method, name, node.id, depth)


@lru_cache(256)
def is_bound_there(method: ast.AST, name: str, local: str, depth: int) -> bool:
    """Whether a method binds a name to tensors of the CPU alone."""
    given, others = assigned(method, local)
    return bool(given) and len(given) == others and all(is_there(method, name, value, depth + 1) for value in given)


@lru_cache(64)
def assigned(method: ast.AST, local: str) -> tuple[list[ast.expr], int]:
    """What the assignments of a method give a name, and how often the method binds or deletes it at all."""
    given = [n.value for n in walk(method) if isinstance(n, ast.Assign) and any(is_name(t, local) for t in n.targets)]
    names = (n for n in walk(method) if isinstance(n, ast.Name) and n.id == local)
    return given, sum(not isinstance(n.ctx, ast.Load) for n in names)


def is_reduced(method: ast.AST, node: ast.expr, depth: int) -> bool:
    """Whether an expression gives a tensor without dimensions, which torch takes beside any other: `out.mean().cpu()`."""
    if depth > _DEPTH:
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        taken = len(node.args) - is_name(owner, "torch") - (node.func.attr == "norm")
        if node.func.attr in _REDUCES and taken <= 0 and not any(k.arg in ("dim", "axis") for k in node.keywords):
            return True
        return is_reduced(method, owner, depth + 1)
    if isinstance(node, ast.BinOp):
        parts = [part for part in (node.left, node.right) if not isinstance(part, ast.Constant)]
        return all(is_reduced(method, part, depth + 1) for part in parts)
    if isinstance(node, ast.UnaryOp):
        return is_reduced(method, node.operand, depth + 1)
    if not isinstance(node, ast.Name):
        return False
    return is_bound_reduced(method, node.id, depth)


@lru_cache(256)
def is_bound_reduced(method: ast.AST, local: str, depth: int) -> bool:
    """Whether a method binds a name to a tensor without dimensions, on one path at least."""
    return any(is_reduced(method, value, depth + 1) for value in assigned(method, local)[0])
