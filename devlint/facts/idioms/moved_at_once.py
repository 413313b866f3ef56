"""Buffers that a method makes anew and then puts where they belong, before it ends.

self.register_buffer("count", torch.zeros(size))
self.count = self.count.to(device)   # or `self.to(device)`, which moves all of the module
"""

from __future__ import annotations

import ast

from devlint.facts.text.method_names import OFF_HOST_TENSOR
from devlint.facts.text.nodes import blocks, holds
from devlint.facts.text.references import chain, is_own_attribute
from devlint.facts.values import ACCELERATORS

_DEFINES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def is_moved_at_once(function: ast.AST, place: ast.AST, name: str) -> bool:
    """Whether a statement below a place in a function, reached whenever the place is, moves `self.name` or all of `self`."""
    for block in reversed(list(blocks(function))):  # those inside others first
        at = next((i for i, statement in enumerate(block) if holds(statement, place)), None)
        if at is None:
            continue
        if isinstance(block[at], _DEFINES):
            return False
        for statement in block[at + 1 :]:
            if moves_it(statement, name):
                return True
            if isinstance(statement, _LEAVES):
                return False
    return False


def moves_it(statement: ast.stmt, name: str) -> bool:
    """Whether a statement is `self.name = self.name.to(x)`, `self.name.data = self.name.data.to(x)` or `self.to(x)`."""
    if isinstance(statement, ast.Assign):
        data = statement.targets[0]
        target = data.value if isinstance(data, ast.Attribute) and data.attr == "data" else data
        of_name = is_own_attribute(target, name)
        parts = [*chain(statement.value)] if of_name else []
        return any(map(is_move, parts)) and any(is_own_attribute(part, name) for part in parts)
    called = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(called, ast.Call) or not isinstance(called.func, ast.Attribute):
        return False
    return is_move(called) and isinstance(called.func.value, ast.Name) and called.func.value.id == "self"


def is_move(node: ast.expr) -> bool:
    """Whether a call may move its object: `x.to(device)`, `x.to(y)`, `x.cuda()`; not `x.to(torch.float16)` or `x.to(dtype)`."""
    if (
        not isinstance(node, ast.Call)
        or not isinstance(node.func, ast.Attribute)
        or node.func.attr not in OFF_HOST_TENSOR
    ):
        return False
    where = [*node.args[:1], *(k.value for k in node.keywords if k.arg in ("device", "tensor"))]
    return node.func.attr in ACCELERATORS or any(not is_type(argument) for argument in where)


def is_type(node: ast.expr) -> bool:
    """Whether an expression names a type of numbers, or the CPU, which is where the tensor is as it was made."""
    text = ast.unparse(node)
    return "dtype" in text or text == "'cpu'" or (text.startswith("torch.") and not text.startswith("torch.device"))
