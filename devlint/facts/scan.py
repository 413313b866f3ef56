"""One walk over a file's `ast` that collects what several analyses need: sizes, names, nodes by function."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LEAVES = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)


@dataclass(slots=True)
class FunctionScan:
    """What one function's text holds, nested functions included.

    `nodes`: its attributes, calls and subscripts, in no order. `size`: number of nodes. `bound`: how often each name is
    bound. `nonlocals`: names that a nested function rebinds.
    """

    size: int = 0
    nodes: list[ast.Attribute | ast.Call | ast.Subscript] = field(default_factory=list)
    bound: dict[str, int] = field(default_factory=dict)
    nonlocals: set[str] = field(default_factory=set)


@dataclass(slots=True)
class Scan:
    """What the whole file holds. `functions` is keyed by the identity of the function's node."""

    functions: dict[int, FunctionScan] = field(default_factory=dict)
    rebound: set[str] = field(default_factory=set)  # names that some function declares global
    collators: set[str] = field(default_factory=set)  # functions given as `collate_fn` or `worker_init_fn`
    called: set[str] = field(default_factory=set)  # last names of everything that is called inside a function
    size: int = 0
    tree: ast.Module | None = None


def scan(tree: ast.Module) -> Scan:
    """Walk the tree once."""
    found = Scan(tree=tree)
    stack: list[tuple[ast.AST, tuple[FunctionScan, ...]]] = [(tree, ())]
    pop, push = stack.pop, stack.append
    while stack:
        node, inside = pop()
        found.size += 1
        for function in inside:
            function.size += 1
        if isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
            for function in inside:
                function.nodes.append(node)
            if inside and isinstance(node, ast.Call):
                target = node.func
                if isinstance(target, ast.Name):
                    found.called.add(target.id)
                elif isinstance(target, ast.Attribute):
                    found.called.add(target.attr)
        elif isinstance(node, ast.Name):
            if inside and isinstance(node.ctx, ast.Store):
                bound = inside[-1].bound
                bound[node.id] = bound.get(node.id, 0) + 1
            continue
        elif isinstance(node, ast.Constant):
            continue
        elif isinstance(node, ast.Global):
            found.rebound.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            for function in inside:
                function.nonlocals.update(node.names)
        elif isinstance(node, ast.keyword) and node.arg in ("collate_fn", "worker_init_fn"):
            value = node.value
            if isinstance(value, ast.Name):
                found.collators.add(value.id)
            elif isinstance(value, ast.Attribute):
                found.collators.add(value.attr)
        if isinstance(node, _FUNCTIONS):
            inside = (*inside, found.functions.setdefault(id(node), FunctionScan()))
        for name in node._fields:
            part = getattr(node, name, None)
            if isinstance(part, list):
                for child in part:
                    if isinstance(child, ast.AST):
                        push((child, inside))
            elif isinstance(part, ast.AST) and not isinstance(part, _LEAVES):
                push((part, inside))
    return found
