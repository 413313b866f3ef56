"""One walk over a file's `ast` that collects what several analyses need: sizes, names, nodes by function."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LEAVES = (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)


@dataclass(slots=True)
class FunctionScan:
    """What one function's text holds, nested functions included.

    `nodes`: its attributes, calls and subscripts, in no order. `size`: number of nodes. `bound`: how often each name is
    bound. `nonlocals`: names that a nested function rebinds. `node`: the function; `owner`: the class around it.
    """

    node: ast.AST
    owner: ast.ClassDef | None = None
    size: int = 0
    nodes: list[ast.Attribute | ast.Call | ast.Subscript] = field(default_factory=list)
    bound: dict[str, int] = field(default_factory=dict)
    nonlocals: set[str] = field(default_factory=set)


class Site(NamedTuple):
    """A call, and the outermost function that it stands in; None at module level."""

    call: ast.Call
    caller: FunctionScan | None


@dataclass(slots=True)
class Scan:
    """What the whole file holds. `functions` is keyed by the identity of the function's node."""

    functions: dict[int, FunctionScan] = field(default_factory=dict)
    rebound: set[str] = field(default_factory=set)  # names that some function declares global
    collators: set[str] = field(default_factory=set)  # functions given as `collate_fn` or `worker_init_fn`
    called: set[str] = field(default_factory=set)  # last names of everything that is called inside a function
    calls: dict[str, list[Site]] = field(default_factory=dict)  # every call, by the last name of what is called
    handed: set[str] = field(default_factory=set)  # names, and last names of attributes, that are read and not called
    size: int = 0
    tree: ast.Module | None = None


def scan(tree: ast.Module) -> Scan:
    """Walk the tree once."""
    found = Scan(tree=tree)
    stack: list[tuple[ast.AST, tuple[FunctionScan, ...], ast.ClassDef | None]] = [(tree, (), None)]
    pop, push = stack.pop, stack.append
    callees: set[int] = set()  # what calls call
    while stack:
        node, inside, owner = pop()
        found.size += 1
        for function in inside:
            function.size += 1
        if isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
            for function in inside:
                function.nodes.append(node)
            if isinstance(node, ast.Call):
                target = node.func
                name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", None)
                if isinstance(name, str):
                    callees.add(id(target))
                    found.calls.setdefault(name, []).append(Site(node, inside[0] if inside else None))
                    if inside:
                        found.called.add(name)
            elif isinstance(node, ast.Attribute) and id(node) not in callees:
                found.handed.add(node.attr)
        elif isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                if inside:
                    bound = inside[-1].bound
                    bound[node.id] = bound.get(node.id, 0) + 1
            elif id(node) not in callees:
                found.handed.add(node.id)
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
        elif isinstance(node, ast.ClassDef):
            owner = node
        if isinstance(node, _FUNCTIONS):
            inside = (*inside, found.functions.setdefault(id(node), FunctionScan(node, owner)))
        for name in node._fields:
            part = getattr(node, name, None)
            if isinstance(part, list):
                for child in part:
                    if isinstance(child, ast.AST):
                        push((child, inside, owner))
            elif isinstance(part, ast.AST) and not isinstance(part, _LEAVES):
                push((part, inside, owner))
    return found
