"""Modules of classes that cannot be read: they show by their names, and by what the class does with them.

`self.models = []`, in `__init__` also `self.models.append(WideResNet())`, and in `forward` `self.models[i](x)`: a plain list.
`self.embed = TimeEmbedding(8)`, and in `forward` `self.embed(x)`: a part that moves with the module. So is
`self.embed = self.build_embedding(8)` where that method makes and gives back one, and no class of the file overrides it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.text.classes import ClassFacts, Container, Kept, Unregistered, lineage
from devlint.facts.text.method_names import REGISTERS
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import is_name, is_own_attribute
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.flow import Flow

_DEPTH = 3
#: How the classes of networks and of their parts are called.
_NETWORK = re.compile(
    r"^(?=[A-Z])\w*(Net|Model|Block|Layer|Conv|Encoder|Decoder|Attention|Transformer|Backbone|Head|MLP|Embedding|Linear|Module)"
    r"(V?\d+[dD]?|_\w+)?$"
)
#: Packages whose classes of such names are no modules of torch.
_OTHERS = frozenset({"keras", "tensorflow", "flax", "haiku", "jax", "sklearn", "mxnet", "paddle", "mlx", "torch"})
#: What registers the modules of a list after all.
_REGISTERING = REGISTERS | {"ModuleList", "ModuleDict", "Sequential"}


def unseen_modules(flow: Flow, class_: ClassFacts) -> Iterator[tuple[str, Unregistered]]:
    """The attributes of a module that hold modules of classes that cannot be read, in a plain list."""
    init = class_.methods.get("__init__")
    if init is None or any(called(call) in _REGISTERING for call in flow.scan.calls_in(init)):
        return
    for node in statements(init):
        target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
        if not isinstance(node, ast.Assign) or not isinstance(target, ast.Attribute):
            continue
        name = target.attr
        if name in class_.unregistered or not is_own_attribute(target, name):
            continue
        made = list(held(init, node.value, name))
        if made and all(is_network(flow, part) for part in made) and is_called(class_, name):
            container: Container = "comprehension" if isinstance(node.value, ast.ListComp) else "list"
            appended = isinstance(node.value, ast.List) and not node.value.elts
            value = Value("list", because=(flow.origin(made[0], "made here"),))
            yield name, Unregistered(node, target, node.value, value, "modules", container, appended=appended)


def is_part(flow: Flow, class_: ClassFacts, node: ast.expr) -> bool:
    """Whether `self.name` is such a module, made in `__init__` alone."""
    if not isinstance(node, ast.Attribute) or not is_own_attribute(node, node.attr) or not class_.is_module:
        return False
    init = class_.methods.get("__init__")
    if id(class_) not in flow.kept:
        flow.kept[id(class_)] = kept(class_)
    made = flow.kept[id(class_)].get(node.attr, ())
    return bool(made) and all(method is init and is_built(flow, class_, method, value) for method, value in made)


def is_built(flow: Flow, class_: ClassFacts, method: ast.AST, node: ast.expr, depth: int = _DEPTH) -> bool:
    """Whether an expression in a method makes such a module, is the one name for it, or asks an own method for a new one."""
    if isinstance(node, ast.Name):
        own = flow.scan.functions.get(id(method))
        if own is None or not depth or own.bound.get(node.id) != 1 or node.id in parameter_names(own.node):
            return False
        alone = [a for a in own.assigns if isinstance(a, ast.Assign) and any(is_name(t, node.id) for t in a.targets)]
        return bool(alone) and is_built(flow, class_, method, alone[0].value, depth - 1)
    maker = node.func if isinstance(node, ast.Call) else None
    if not isinstance(maker, ast.Attribute) or not isinstance(maker.value, ast.Name):
        return is_network(flow, node)
    called_method = class_.methods.get(maker.attr) if maker.value.id in ("self", "cls", class_.name) else None
    if called_method is None:
        return is_network(flow, node)
    if maker.value.id != class_.name and is_overridden(flow, class_, maker.attr):
        return False
    given = [each.value for each in statements(called_method) if isinstance(each, ast.Return)]
    return bool(depth and given) and all(
        value is not None and is_built(flow, class_, called_method, value, depth - 1) for value in given
    )


def is_overridden(flow: Flow, class_: ClassFacts, name: str) -> bool:
    """Whether a class that the file derives from this one has a method of that name."""
    return any(
        name in heir.methods and class_ in lineage(heir)[1:] for heir in list(flow.classes.values()) if not heir.abroad
    )


def kept(class_: ClassFacts) -> Kept:
    """What the methods of a class assign to the attributes of `self`, by attribute, each with the method."""
    found: Kept = {}
    for method in class_.methods.values():
        for each in statements(method):
            if not isinstance(each, ast.Assign):
                continue
            for target in each.targets:
                if isinstance(target, ast.Attribute) and is_own_attribute(target, target.attr):
                    found.setdefault(target.attr, []).append((method, each.value))
    return found


def called(node: ast.AST) -> str:
    """The last name of what a call calls; nothing for what is no call."""
    function = node.func if isinstance(node, ast.Call) else None
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def held(init: ast.AST, value: ast.expr, name: str) -> Iterator[ast.expr]:
    """What a list is made of: its items, or those that `__init__` appends."""
    if isinstance(value, ast.ListComp):
        yield value.elt
    elif isinstance(value, ast.List):
        yield from value.elts
        for node in walk(init):
            if isinstance(node, ast.Call) and called(node) == "append" and isinstance(node.func, ast.Attribute):
                if is_own_attribute(node.func.value, name):
                    yield from node.args


def is_network(flow: Flow, node: ast.expr) -> bool:
    """Whether an expression makes an object of an imported class that cannot be read, and is called like a network."""
    if not isinstance(node, ast.Call):
        return False
    qualname = flow.qualify(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else None
    return qualname is not None and "." in qualname and looks_like_network(flow, qualname)


def looks_like_network(flow: Flow, qualname: str) -> bool:
    """Whether a qualified name is called like a network, and of a class that cannot be read."""
    if _NETWORK.match(qualname.rpartition(".")[2]) is None:
        return False
    unknown = knowledge.cls(qualname) is None and flow.find(qualname) is None
    return unknown and qualname.partition(".")[0] not in _OTHERS


def is_called(class_: ClassFacts, name: str) -> bool:
    """Whether a method calls the items of `self.name`: `self.name[i](x)`, `for layer in self.name: x = layer(x)`."""
    for method_name, method in class_.methods.items():
        if method_name == "__init__":
            continue
        turns: set[str] = set()
        calls: set[str] = set()
        for node in walk(method):
            if isinstance(node, (ast.For, ast.comprehension)):
                if any(isinstance(n, ast.expr) and is_own_attribute(n, name) for n in walk(node.iter)):
                    turns |= {n.id for n in walk(node.target) if isinstance(n, ast.Name)}
            elif isinstance(node, ast.Call):
                function = node.func
                if isinstance(function, ast.Name):
                    calls.add(function.id)
                elif isinstance(function, ast.Subscript) and is_own_attribute(function.value, name):
                    return True
        if turns & calls:
            return True
    return False
