"""One walk over a file's `ast` that collects what several analyses need: sizes, names, nodes by function."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_LEAVES = frozenset(
    kind
    for base in (ast.expr_context, ast.operator, ast.cmpop, ast.boolop, ast.unaryop)
    for kind in base.__subclasses__()
)  # without children or a place


@dataclass(slots=True)
class FunctionScan:
    """What one function's text holds, nested functions included.

    `nodes`: its attributes, calls and subscripts, in no order. `size`: number of nodes. `bound`: how often each name is
    bound. `nonlocals`: names that a nested function rebinds. `assigns`: its own assignments, `for` loops and
    comprehensions. `node`: the function; `owner`: the class around it.
    """

    node: ast.AST
    owner: ast.ClassDef | None = None
    size: int = 0
    nodes: list[ast.Attribute | ast.Call | ast.Subscript] = field(default_factory=list)
    bound: dict[str, int] = field(default_factory=dict)
    nonlocals: set[str] = field(default_factory=set)
    assigns: list[ast.Assign | ast.For | ast.comprehension] = field(default_factory=list)


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
    """Walk the tree once. What a nested function holds is counted there, and added to the outer one at the end."""
    found = Scan(tree=tree)
    outside = FunctionScan(tree)  # stands for the module level
    nested: list[tuple[FunctionScan, FunctionScan]] = []
    # node, the function that holds it, the outermost function around it, the class around that
    stack: list[tuple[ast.AST, FunctionScan, FunctionScan | None, ast.ClassDef | None]] = [(tree, outside, None, None)]
    pop, push = stack.pop, stack.append
    callees: set[int] = set()  # what calls call
    while stack:
        node, inside, caller, owner = pop()
        inside.size += 1
        kind = type(node)
        if kind is ast.Constant:
            continue
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                if caller is not None:
                    inside.bound[node.id] = inside.bound.get(node.id, 0) + 1
            elif id(node) not in callees:
                found.handed.add(node.id)
            continue
        if isinstance(node, ast.Attribute):
            inside.nodes.append(node)
            if id(node) not in callees:
                found.handed.add(node.attr)
            push((node.value, inside, caller, owner))
            continue
        if isinstance(node, ast.Call):
            inside.nodes.append(node)
            target = node.func
            name = target.id if isinstance(target, ast.Name) else getattr(target, "attr", None)
            if isinstance(name, str):
                callees.add(id(target))
                found.calls.setdefault(name, []).append(Site(node, caller))
                if caller is not None:
                    found.called.add(name)
            push((target, inside, caller, owner))
            for child in (*node.args, *node.keywords):
                push((child, inside, caller, owner))
            continue
        if isinstance(node, ast.Subscript):
            inside.nodes.append(node)
        elif isinstance(node, (ast.Assign, ast.For, ast.comprehension)):
            inside.assigns.append(node)
        elif isinstance(node, ast.Global):
            found.rebound.update(node.names)
        elif isinstance(node, ast.Nonlocal):
            inside.nonlocals.update(node.names)
        elif isinstance(node, ast.keyword) and node.arg in ("collate_fn", "worker_init_fn"):
            value = node.value
            if isinstance(value, ast.Name):
                found.collators.add(value.id)
            elif isinstance(value, ast.Attribute):
                found.collators.add(value.attr)
        elif isinstance(node, ast.ClassDef):
            owner = node
        elif isinstance(node, _FUNCTIONS):
            own = found.functions.setdefault(id(node), FunctionScan(node, owner))
            nested.append((own, inside))
            inside, caller = own, caller or own
        for field_name in node._fields:
            part = getattr(node, field_name, None)
            if part.__class__ is list:
                for child in part:
                    if isinstance(child, ast.AST):
                        push((child, inside, caller, owner))
            elif isinstance(part, ast.AST) and type(part) not in _LEAVES:
                push((part, inside, caller, owner))
    for own, outer in reversed(nested):
        outer.size += own.size
        if outer is not outside:
            outer.nodes += own.nodes
            outer.nonlocals |= own.nonlocals
    found.size = outside.size
    return found
