"""One walk over a file's `ast` that collects what several analyses need: sizes, names, nodes by function."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from devlint.facts.text.nodes import PARTS

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


#: What is noted of a file, besides names, attributes and calls.
_NOTED = frozenset(
    {
        ast.Subscript, ast.Assign, ast.For, ast.comprehension, ast.Compare, ast.Global, ast.Nonlocal, ast.ClassDef,
        *_FUNCTIONS,
    }
)  # fmt: skip


@dataclass(slots=True, eq=False)
class FunctionScan:
    """What one function's text holds, nested functions included.

    `attributes`, `stores` (those among them that are bound), `calls`, `subscripts`: its nodes of these kinds, in no order.
    `size`: number of nodes. `bound`: how often each name is bound. `nonlocals`: names that a nested function rebinds.
    `assigns`: its own assignments, `for` loops and comprehensions. `node`: the function; `owner`: the class around it.
    `is_outermost`: it stands in no other function.
    """

    node: ast.AST
    owner: ast.ClassDef | None = None
    is_outermost: bool = False
    size: int = 0
    attributes: list[ast.Attribute] = field(default_factory=list)
    stores: list[ast.Attribute] = field(default_factory=list)
    calls: list[ast.Call] = field(default_factory=list)
    subscripts: list[ast.Subscript] = field(default_factory=list)
    bound: dict[str, int] = field(default_factory=dict)
    nonlocals: set[str] = field(default_factory=set)
    assigns: list[ast.Assign | ast.For | ast.comprehension] = field(default_factory=list)

    @property
    def loops(self) -> Iterator[ast.For | ast.comprehension]:
        """Its own `for` loops and comprehensions."""
        return (each for each in self.assigns if not isinstance(each, ast.Assign))


class Site(NamedTuple):
    """A call, and the outermost function that it stands in; None at module level."""

    call: ast.Call
    caller: FunctionScan | None


@dataclass(slots=True, eq=False)
class Scan:
    """What the whole file holds. `functions` is keyed by the identity of the function's node."""

    functions: dict[int, FunctionScan] = field(default_factory=dict)
    rebound: set[str] = field(default_factory=set)  # names that some function declares global
    collators: set[str] = field(default_factory=set)  # functions given as `collate_fn` or `worker_init_fn`
    called: set[str] = field(default_factory=set)  # last names of everything that is called inside a function
    calls: dict[str, list[Site]] = field(default_factory=dict)  # every call, by the last name of what is called
    handed: set[str] = field(default_factory=set)  # names, and last names of attributes, that are read and not called
    uncalled: set[str] = field(default_factory=set)  # last names of attributes that are read or bound, and not called
    compares: list[ast.Compare] = field(default_factory=list)  # every comparison, in no order
    read_inside: set[str] = field(default_factory=set)  # names that are read in functions and classes, and not called
    outside: list[ast.Name] = field(default_factory=list)  # at module level, in no class and not called; in no order
    called_outside: list[ast.Name] = field(default_factory=list)  # at module level, in no class and called; in no order
    module: FunctionScan | None = None  # what is at module level and in class bodies, and in no function
    size: int = 0
    tree: ast.Module | None = None

    @property
    def stores(self) -> Iterator[ast.Attribute]:
        """Every attribute that is bound; those of nested functions come again with each function around them."""
        for each in (*self.functions.values(), self.module):
            if each is not None:
                yield from each.stores

    @property
    def every_call(self) -> Iterator[ast.Call]:
        """The calls of the file, those inside another one after it."""
        for each in (self.module, *self.functions.values()):
            if each is not None and (each.is_outermost or each is self.module):
                yield from each.calls

    def calls_in(self, node: ast.AST | None) -> Sequence[ast.Call]:
        """The calls that a function of the file holds, nested functions included, in no order."""
        own = self.functions.get(id(node))
        return own.calls if own is not None else ()


def scan(tree: ast.Module) -> Scan:
    """Walk the tree once. What a nested function holds is counted there, and added to the outer one at the end."""
    found = Scan(tree=tree)
    outside = FunctionScan(tree)  # stands for the module level
    nested: list[tuple[FunctionScan, FunctionScan]] = []
    # what is left to do around a function or class, the function that holds it, the outermost one, the class
    around: list[tuple[list[ast.AST | None], FunctionScan, FunctionScan | None, ast.ClassDef | None]] = []
    inside, caller, owner = outside, None, None
    uncalled, read_inside, names_outside = found.uncalled, found.read_inside, found.outside
    stack: list[ast.AST | None] = [tree]
    any_node, name, constant = ast.AST, ast.Name, ast.Constant  # asked for at every node, as are these
    load, store = ast.Load, ast.Store
    deleted: set[str] = set()
    size = 0  # nodes of `inside` that are not counted there yet
    while True:
        if not stack:
            inside.size += size
            size = 0
            if not around:
                break
            stack, inside, caller, owner = around.pop()
            continue
        node = stack.pop()
        if node is None:
            continue  # a key may be missing, and a default
        size += 1
        if isinstance(node, name):
            context = type(node.ctx)
            if caller is None and owner is None:
                names_outside.append(node)
            elif context is load:
                read_inside.add(node.id)
            elif context is not store:
                deleted.add(node.id)
            elif caller is not None:
                inside.bound[node.id] = inside.bound.get(node.id, 0) + 1
            continue
        kind = type(node)
        if kind is constant:
            continue
        if isinstance(node, ast.Attribute):
            inside.attributes.append(node)
            if type(node.ctx) is ast.Store:
                inside.stores.append(node)
            uncalled.add(node.attr)
            stack.append(node.value)
            continue
        if isinstance(node, ast.Call):
            inside.calls.append(node)
            target = node.func
            if isinstance(target, ast.Name):
                size += 1
                found.calls.setdefault(target.id, []).append(Site(node, caller))
                if caller is not None:
                    found.called.add(target.id)
                elif owner is None:
                    found.called_outside.append(target)
            elif isinstance(target, ast.Attribute):
                size += 1
                inside.attributes.append(target)
                found.calls.setdefault(target.attr, []).append(Site(node, caller))
                if caller is not None:
                    found.called.add(target.attr)
                stack.append(target.value)
            else:
                stack.append(target)
            stack += node.args
            size += len(node.keywords)
            for keyword in node.keywords:
                value = keyword.value
                stack.append(value)
                if keyword.arg in ("collate_fn", "worker_init_fn"):
                    if isinstance(value, ast.Name):
                        found.collators.add(value.id)
                    elif isinstance(value, ast.Attribute):
                        found.collators.add(value.attr)
            continue
        if kind in _NOTED:
            if isinstance(node, ast.Subscript):
                inside.subscripts.append(node)
            elif isinstance(node, (ast.Assign, ast.For, ast.comprehension)):
                inside.assigns.append(node)
            elif isinstance(node, ast.Compare):
                found.compares.append(node)
            elif isinstance(node, ast.Global):
                found.rebound.update(node.names)
            elif isinstance(node, ast.Nonlocal):
                inside.nonlocals.update(node.names)
            elif isinstance(node, ast.ClassDef):
                around.append((stack, inside, caller, owner))
                inside.size += size
                stack, size, owner = [], 0, node
            elif isinstance(node, _FUNCTIONS):
                around.append((stack, inside, caller, owner))
                inside.size += size
                own = found.functions.setdefault(id(node), FunctionScan(node, owner, caller is None))
                nested.append((own, inside))
                stack, size, inside, caller = [], 0, own, caller or own
        for field_name in PARTS[kind]:
            part = getattr(node, field_name, None)
            if part.__class__ is list:
                stack += part
            elif isinstance(part, any_node):
                stack.append(part)
    for own, outer in reversed(nested):
        outer.size += own.size
        if outer is not outside:
            outer.attributes += own.attributes
            outer.stores += own.stores
            outer.calls += own.calls
            outer.subscripts += own.subscripts
            outer.nonlocals |= own.nonlocals
    found.handed = uncalled | read_inside | deleted
    found.handed.update(each.id for each in names_outside if type(each.ctx) is not store)
    found.size, found.module = outside.size, outside
    return found
