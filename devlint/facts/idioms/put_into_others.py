"""Modules that a class keeps in a plain container for itself, and that a call puts into another module, which registers them.

adapter = Adapter(net.get_submodule(path))
net.set_submodule(path, adapter)   # or a function that ends in `setattr(parent, name, adapter)`
self.adapters[path] = adapter

Or into a list of the same function, of which a part is made: `layers.append(layer)`, and later `self.layers =
nn.ModuleList(layers)`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.method_names import REGISTERS
from devlint.facts.text.nodes import blocks, walk
from devlint.facts.text.references import (
    is_name,
    is_own_attribute,
    is_self_attribute,
    is_static,
    last_name,
    stored_names,
)
from devlint.facts.text.signatures import named_parameters, positional_names

if TYPE_CHECKING:
    from devlint.facts.interpreter.flow import Flow

#: What registers what is in a list [torch/nn/modules/container.py].
_CONTAINERS = frozenset({"ModuleList", "Sequential"})
#: What only reads a list that it gets.
_READS = frozenset({"len", "enumerate", "zip", "list", "tuple", "reversed", "print", "append", "extend"})
_GROWS = frozenset({"append", "add", "setdefault", "insert"})
_REGISTERS = REGISTERS | {"set_submodule"}
#: Names of functions that cannot be read which put a module into another one under a computed name:
#: `set_module_by_name(net, name, layer)`, `replace_layer(net, i, layer)`.
_LIKELY = re.compile(r"(?:^|_)(?:set|add|register|replace|swap)_(?:\w+_)?(?:sub)?(?:module|layer|attr)s?(?:_|\Z)")


def is_put_into_another(flow: Flow, class_: ClassFacts, name: str) -> bool:
    """Whether a call puts all that the class stores in the container `self.name` into another module, or into a list of which
    a part is made, in the same block."""
    found = False
    for method in class_.methods.values():
        registered: frozenset[str] | None = None
        for block in blocks(method):
            for at, statement in enumerate(block):
                for item in stored(statement, name):
                    if not isinstance(item, ast.Name):
                        return False
                    if not any(puts(flow, class_, each, item.id) for each in block):
                        registered = lists_of_parts(method) if registered is None else registered
                        if not any(grows(each, registered, item.id) for each in same_item(block, at, item.id)):
                            return False
                    found = True
    return found


def same_item(block: list[ast.stmt], at: int, name: str) -> list[ast.stmt]:
    """The statements around one of a block in which a name stands for the same as there."""
    binds = [index for index, each in enumerate(block) if name in stored_names(each)]
    start = max((index for index in binds if index <= at), default=0)
    end = min((index for index in binds if index > at), default=len(block))
    return block[start:end]


def grows(statement: ast.stmt, lists: frozenset[str], name: str) -> bool:
    """Whether a statement appends what has a name to one of some local lists."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr != "append":
        return False
    return (
        last_name(call.func.value) in lists
        and isinstance(call.func.value, ast.Name)
        and any(is_name(each, name) for each in call.args)
    )


def lists_of_parts(method: ast.FunctionDef | ast.AsyncFunctionDef) -> frozenset[str]:
    """The local lists, bound once and only appended to, of which a method makes a part of its module under no condition:
    `self.layers = nn.ModuleList(layers)`, `self.body = nn.Sequential(*layers)`."""
    nodes = list(walk(method))
    bound = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del))]
    end = min((n.lineno for n in nodes if isinstance(n, ast.Return)), default=None)
    parts = (
        node.value
        for node in method.body
        if isinstance(node, ast.Assign) and any(is_self_attribute(target) for target in node.targets)
        if end is None or node.lineno < end
    )
    calls = (part for part in parts if isinstance(part, ast.Call) and last_name(part.func) in _CONTAINERS)
    given = (node.value if isinstance(node, ast.Starred) else node for call in calls for node in call.args)
    found = {node.id for node in given if isinstance(node, ast.Name) and bound.count(node.id) == 1}
    return frozenset(found.difference(*(shrunk(node) for node in nodes))) if found else frozenset()


def shrunk(node: ast.AST) -> Iterator[str]:
    """The names of the lists that a node may take something from: `layers.pop()`, `del layers[0]`, `prune(layers)`."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.attr not in ("append", "extend"):
        yield node.value.id
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and not isinstance(node.ctx, ast.Load):
        yield node.value.id
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
        yield node.value.id
    if isinstance(node, ast.Call) and last_name(node.func) not in _CONTAINERS | _READS:
        yield from (
            given.id for given in (*node.args, *(k.value for k in node.keywords)) if isinstance(given, ast.Name)
        )


def stored(statement: ast.stmt, name: str) -> Iterator[ast.expr]:
    """What a statement stores in `self.name`: `self.name[key] = item`, `self.name.append(item)`."""
    if isinstance(statement, ast.Assign):
        for target in statement.targets:
            if isinstance(target, ast.Subscript) and is_own_attribute(target.value, name):
                yield statement.value
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _GROWS:
        if is_own_attribute(call.func.value, name) and call.args:
            yield call.args[-1]


def puts(flow: Flow, class_: ClassFacts, statement: ast.stmt, name: str) -> bool:
    """Whether a statement is a call that puts what has a name into something else that it is given, or is a method of."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call):
        return False
    given: dict[int | str, ast.expr] = {**dict(enumerate(call.args)), **{k.arg or "": k.value for k in call.keywords}}
    place = next((key for key, value in given.items() if isinstance(value, ast.Name) and value.id == name), None)
    if place is None or len(given) < 2:
        return False
    called = last_name(call.func)
    if called in _REGISTERS:
        return True
    function = function_of(flow, class_, call.func)
    if function is None:
        return _LIKELY.search(called) is not None
    plain = positional_names(function.args)
    if isinstance(place, int):
        place += is_self_attribute(call.func) and not is_static(function)
        return place < len(plain) and keeps(function, plain[place])
    return any(a.arg == place for a in named_parameters(function.args)) and keeps(function, place)


def function_of(flow: Flow, class_: ClassFacts, called: ast.expr) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
    """The function of the project, or the method of the same object, that a call runs, where it can be read."""
    if isinstance(called, ast.Attribute) and is_self_attribute(called):
        method = class_.method(called.attr)
        node: ast.AST | None = method[1] if method is not None else None
    elif isinstance(called, ast.Name) and called.id in flow.functions:
        node = flow.functions[called.id].node
    else:
        start = called.value if isinstance(called, ast.Attribute) else called
        target = flow.imports.names.get(last_name(start)) if isinstance(start, ast.Name) else None
        qualname = f"{target}.{called.attr}" if isinstance(called, ast.Attribute) else target
        found = flow.find(qualname) if target is not None and qualname is not None else None
        function = found.function if found is not None and found.kind == "function" else None
        node = function.node if function is not None else None
    return node if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) else None


def keeps(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a function makes a parameter an attribute or an item of something: `setattr(parent, last, module)`."""
    for node in walk(function):
        if isinstance(node, ast.Call) and last_name(node.func) in _REGISTERS:
            if any(is_name(each, name) for each in node.args):
                return True
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name) and node.value.id == name:
            if any(isinstance(t, ast.Subscript) or is_attribute_of_other(t) for t in node.targets):
                return True
    return False


def is_attribute_of_other(target: ast.expr) -> bool:
    return isinstance(target, ast.Attribute) and not is_self_attribute(target)
