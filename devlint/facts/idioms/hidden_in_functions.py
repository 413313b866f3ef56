"""Modules that a module wraps in a plain function, and keeps nowhere else: `self.net = lru_cache(maxsize=9)(net)`.

What `functools` gives is no module, so that nothing registers the one inside: `partial(net, scale=2)`, `cache(net)`
[torch/nn/modules/module.py, `Module.__setattr__` registers parameters, modules and nothing else]. What is wrapped is a
module by the annotation of an argument, or is made right there. Where `__init__` reads the argument a second time, it may
register it, and where no method calls the attribute, it may be there for another reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.idioms.given_modules import Items, is_module, is_registered_by_callers
from devlint.facts.idioms.uses import holds_nothing
from devlint.facts.text.classes import ClassFacts, Unregistered
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import is_own_attribute
from devlint.facts.text.signatures import named_parameters
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.flow import Flow

_WRAPPERS = frozenset({"functools.partial", "functools.lru_cache", "functools.cache"})
#: What is read from such a function to get at the module inside.
_INSIDE = frozenset({"func", "__wrapped__"})


def hidden_in_functions(flow: Flow, class_: ClassFacts) -> Iterator[tuple[str, Unregistered]]:
    """The attributes of a module that keep a module inside a function of `functools`."""
    init = class_.methods.get("__init__")
    if init is None or "functools" not in flow.source.text:
        return
    noted = {a.arg: a for a in named_parameters(init.args)}
    for node in statements(init):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Attribute):
            continue
        inside = wrapped(flow, node.value) if is_own_attribute(target, target.attr) else None
        if inside is None or not is_called(class_, target.attr):
            continue
        if isinstance(inside, ast.Name):
            argument = noted.get(inside.id)
            reads = [n for n in walk(init) if isinstance(n, ast.Name) and n.id == inside.id]
            if argument is None or argument.annotation is None or len(reads) != 1:
                continue
            if not is_module(flow, argument.annotation, Items(class_, target.attr)):
                continue
            if is_registered_by_callers(flow, class_, inside.id):
                continue
        elif not is_made_module(flow, inside):
            continue
        value = Value("function", because=(flow.origin(inside, "the function wraps this module"),))
        yield target.attr, Unregistered(node, target, node.value, value, "modules", "function")


def wrapped(flow: Flow, node: ast.expr) -> ast.expr | None:
    """What a function of `functools` wraps; None for any other expression."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    maker = node.func.func if isinstance(node.func, ast.Call) else node.func  # `lru_cache(maxsize=9)(net)`
    name = flow.qualify(maker) if isinstance(maker, (ast.Name, ast.Attribute)) else None
    return node.args[0] if name in _WRAPPERS else None


def is_made_module(flow: Flow, node: ast.expr) -> bool:
    """Whether an expression makes a module: of a class of the file, or of torch."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, (ast.Name, ast.Attribute)):
        return False
    class_ = flow.class_named(node.func)
    if class_ is not None:
        return class_.is_module and not holds_nothing(class_)
    known = knowledge.cls(flow.qualify(node.func) or "")
    affine = any(keyword.arg in ("affine", "elementwise_affine") for keyword in node.keywords)
    return known is not None and known.family == "Module" and known.takes_device and not affine


def is_called(class_: ClassFacts, name: str) -> bool:
    """Whether methods call `self.name`, and nothing gets at what is inside it."""
    nodes = [n for method in class_.methods.values() for n in walk(method)]
    if any(isinstance(n, ast.Attribute) and n.attr in _INSIDE and is_own_attribute(n.value, name) for n in nodes):
        return False
    return any(isinstance(n, ast.Call) and is_own_attribute(n.func, name) for n in nodes)
