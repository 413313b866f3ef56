"""Modules without parameters and buffers: registered or not, nothing of them moves, is trained or is saved.

class Average(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.pool = nn.AvgPool1d(size)

self.averages = [Average(size) for size in sizes]   # of a module: a plain list will do
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.text.classes import MODULE, ClassFacts
from devlint.facts.text.collect import qualified
from devlint.facts.text.method_names import REGISTERS
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import is_own_attribute, last_name
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signatures import named_parameters

if TYPE_CHECKING:
    from devlint.facts.interpreter.flow import Flow

_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList"})
#: What gives a module state by other ways than by assigning to its attributes.
_REGISTERING = REGISTERS | {
    "set_submodule",
    "register_buffer",
    "register_parameter",
    "update",
    "append",
    "extend",
    "Parameter",
}
#: Functions that give numbers, texts and lists of them for such.
_PLAIN_CALLS = frozenset(
    {"int", "float", "str", "bool", "len", "max", "min", "abs", "round", "sum", "range", "tuple", "list"}
)
_DEEP = 4  # classes that hold one another


def are_stateless(flow: Flow, class_: ClassFacts, name: str, node: ast.expr) -> bool:
    """Whether the modules that `__init__` puts into `self.name`, bound to `node`, all are of classes without state."""
    init = class_.methods.get("__init__")
    own = flow.scan.functions.get(id(init))
    if init is None or own is None:
        return False
    bound = bound_names(own)
    given = given_names(init, own)
    made = [
        part for part in made_for(flow, class_, name, node) if not (isinstance(part, ast.Name) and part.id in given)
    ]
    return bool(made) and all(is_stateless(flow, side, 0) for part in made for side in sides(part, bound))


def bound_names(own: FunctionScan) -> dict[str, list[ast.expr]]:
    """What the assignments of a function bind to its names, by name."""
    found: dict[str, list[ast.expr]] = {}
    for each in own.assigns:
        for target in each.targets if isinstance(each, ast.Assign) else ():
            if isinstance(target, ast.Name) and isinstance(each, ast.Assign):
                found.setdefault(target.id, []).append(each.value)
    return found


def given_names(init: ast.FunctionDef | ast.AsyncFunctionDef, own: FunctionScan) -> set[str]:
    """The arguments of a function, and what its loops take from them: whoever made them knows what they are."""
    found = {a.arg for a in named_parameters(init.args)}
    for loop in own.loops:
        if isinstance(loop.iter, ast.Name) and loop.iter.id in found:
            found |= {n.id for n in walk(loop.target) if isinstance(n, ast.Name)}
    return found


def sides(node: ast.expr, bound: Mapping[str, list[ast.expr]]) -> Iterator[ast.expr]:
    """What an expression chooses from: both sides of a condition, the items of a table of the function."""
    if isinstance(node, ast.IfExp):
        yield from sides(node.body, bound)
        yield from sides(node.orelse, bound)
        return
    table = node.value if isinstance(node, ast.Subscript) else None
    said = bound.get(table.id, []) if isinstance(table, ast.Name) else []
    if not said:
        yield node
    for each in said:
        if isinstance(each, ast.Dict):
            yield from each.values
        elif isinstance(each, (ast.List, ast.Tuple)):
            yield from each.elts
        else:
            yield each


def made_for(flow: Flow, class_: ClassFacts, name: str, node: ast.expr) -> Iterator[ast.expr]:
    """The items of the container, as they are written where it is bound and where something is appended."""
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        yield node.elt
    elif isinstance(node, (ast.List, ast.Tuple)):
        yield from node.elts
    else:
        yield node
    for call in flow.scan.calls_in(class_.methods.get("__init__")):
        function = call.func
        if isinstance(function, ast.Attribute) and is_own_attribute(function.value, name):
            yield from call.args if function.attr in ("append", "insert") else [call]


def is_stateless(flow: Flow, node: ast.expr, depth: int) -> bool:
    """Whether an expression makes a module that is known to have neither parameters nor buffers."""
    if not isinstance(node, ast.Call):
        return False
    qualname = qualified(node.func, flow.imports) or ""
    if qualname in _CONTAINERS:
        return all(is_stateless(flow, part, depth) for part in node.args)
    if qualname.startswith("torch.nn."):
        known = knowledge.cls(qualname)
        # what has parameters takes a device for them, and a loss a weight for each class
        return (
            known is not None and not known.takes_device and not any("weight" in (k.arg or "") for k in node.keywords)
        )
    class_ = flow.classes.get(node.func.id) if isinstance(node.func, ast.Name) else None
    return class_ is not None and depth < _DEEP and keeps_nothing(flow, class_, depth)


def keeps_nothing(flow: Flow, class_: ClassFacts, depth: int) -> bool:
    """Whether a module's class is plain in all that it keeps: numbers, texts and modules without state."""
    if not class_.is_module or class_.abroad or class_.unregistered:
        return False
    for base in class_.node.bases:
        own = flow.classes.get(base.id) if isinstance(base, ast.Name) else None
        if qualified(base, flow.imports) in MODULE:
            continue
        if own is None or own is class_ or depth >= _DEEP or not keeps_nothing(flow, own, depth + 1):
            return False
    for method in class_.methods.values():
        if any(last_name(call.func) in _REGISTERING for call in flow.scan.calls_in(method)):
            return False
        for statement in statements(method):
            for name, value in kept(statement):
                plain = value is not None and is_plain(value) and not runs(class_, name)
                if value is None or not (plain or is_stateless(flow, value, depth + 1)):
                    return False
    return True


def kept(statement: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """The attributes of `self` that a statement binds, each with what to; None for what is not written out."""
    if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)) or statement.value is None:
        return
    for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
        if isinstance(target, ast.Attribute) and is_own_attribute(target, target.attr):
            yield target.attr, statement.value
        elif isinstance(target, (ast.Tuple, ast.List)):
            for part in target.elts:
                if isinstance(part, ast.Attribute) and is_own_attribute(part, part.attr):
                    yield part.attr, None


def is_plain(node: ast.expr) -> bool:
    """Whether an expression is written of names, numbers and arithmetic."""
    for child in walk(node):
        if isinstance(child, ast.Call) and not (isinstance(child.func, ast.Name) and child.func.id in _PLAIN_CALLS):
            return False
        if isinstance(child, (ast.Lambda, ast.Await)):
            return False
    return True


def runs(class_: ClassFacts, name: str) -> bool:
    """Whether a method calls what is kept under a name, or goes through it: it may be a module, or hold some."""
    for method in class_.methods.values():
        for node in walk(method):
            if isinstance(node, ast.Call) and is_own_attribute(node.func, name):
                return True
            if isinstance(node, (ast.For, ast.comprehension)) and is_own_attribute(node.iter, name):
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Subscript):
                if is_own_attribute(node.func.value, name):
                    return True
    return False
