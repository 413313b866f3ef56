"""What is not of the class that it seems to be of: tensors of another framework, a `self` that is another object, an argument
whose annotation is called like tensors.

Asked before a finding is reported.

import paddle

class PaddleParam:
    def grad(self):
        return self.param.grad.numpy()      # paddle's tensors copy themselves from the card

class Net(nn.Module):
    def validate(self):
        model = self.rebuild_model(...)     # nothing gives a `Net` this attribute
        x = x.to(self.device)               # so whoever has both borrows the function: `Net.validate(runner)`

def dummies(self, framework: TensorType):   # `class TensorType(Enum)` of the project
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.text.annotations import is_tensor_annotation, knows_other_tensors
from devlint.facts.text.classes import MODULE, lineage
from devlint.facts.text.nodes import classes, walk
from devlint.facts.text.references import chain, is_own_attribute, is_self_attribute, last_name, stored_names
from devlint.facts.text.returned import own_nodes
from devlint.facts.text.signatures import named_parameters, parameter_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Call, Use
    from devlint.facts.text.classes import ClassFacts
    from devlint.facts.text.defined import Function

_ROOTS = MODULE | {"object"}


def is_of_another_framework(sites: CallSites, event: Use) -> bool:
    """Whether a file knows other frameworks, whose tensors have `numpy()`, and this one is an argument, or kept from one, of
    which nothing says that it is torch's."""
    if event.consumer != "numpy" or event.level != "assume" or not knows_other_tensors(sites.imports):
        return False
    parts = [*chain(event.operand.node)]
    function, start = sites.body(event.function), parts[-1]
    if any(isinstance(part, ast.Call) for part in parts) or not isinstance(start, ast.Name):
        return False  # torch's `detach` says whose it is
    if not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if start.id == "self" and len(parts) > 1 and isinstance(parts[-2], ast.Attribute):
        class_ = sites.class_of(event.function)
        return class_ is not None and is_kept_argument(class_, parts[-2].attr)
    return start.id in unannotated(function) or is_item_of_argument(function, start.id)


def unannotated(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """The parameters of which no annotation says anything."""
    return {each.arg for each in named_parameters(function.args) if each.annotation is None}


def is_item_of_argument(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str) -> bool:
    """Whether a name is bound by loops alone that go through such a parameter: `for part in layer.named_parameters()`."""
    loops = [node for node in walk(function) if isinstance(node, ast.For) and name in stored_names(node.target)]
    others = [node for node in walk(function) if isinstance(node, ast.Assign) and name in stored_names(node)]
    given_ones = unannotated(function)
    names = [{n.id for n in walk(loop.iter) if isinstance(n, ast.Name)} for loop in loops]
    return bool(loops) and not others and all(not each.isdisjoint(given_ones) for each in names)


def is_kept_argument(class_: ClassFacts, attribute: str) -> bool:
    """Whether a class, or a base of it, keeps such a parameter of its constructor under a name."""
    found = class_.method("__init__")
    if found is None or class_.is_module:
        return False
    _, init = found
    kept = (node for node in walk(init) if isinstance(node, ast.Assign))
    values = [node.value for node in kept if any(is_own_attribute(target, attribute) for target in node.targets)]
    given_ones = unannotated(init)
    if values:
        return all(isinstance(value, ast.Name) and value.id in given_ones for value in values)
    return any(is_kept_argument(base, attribute) for base in class_.local_bases)


def is_of_plain_class(sites: CallSites, function: Function, name: str) -> bool:
    """Whether a parameter is annotated with a class of the project that no class of tensors is a base of."""
    parameter = parameter_of(function.node.args, name)
    if parameter is None or parameter.annotation is None or is_tensor_annotation(parameter.annotation, sites.imports):
        return False
    parts = [part for part in walk(parameter.annotation) if isinstance(part, ast.Name) and "Tensor" in part.id]
    return bool(parts) and all(is_plain(sites, sites.path, part.id) for part in parts)


def is_plain(sites: CallSites, path: str, name: str) -> bool:
    """Whether a name in a file stands for a class of the project that is made of no class of tensors."""
    looked = sites.files.look(path)
    target = looked.loaded.imports.names.get(name) if looked is not None else None
    found = sites.files.place(path, target) if target is not None else None
    path, name = found if found is not None else (path, name)
    looked = sites.files.look(path)
    every = classes(looked.loaded.tree) if looked is not None else ()
    class_ = next((each for each in every if each.name == name), None)
    return class_ is not None and not any("Tensor" in last_name(base) for base in class_.bases)


def is_another_object(sites: CallSites, event: Call) -> bool:
    """Whether a module's method calls another one on `self` that neither its class nor torch has."""
    node, class_, function = event.node, sites.class_of(event.function), sites.body(event.function)
    if class_ is None or function is None or not isinstance(node, ast.Attribute) or not is_self_attribute(node):
        return False
    family = lineage(class_)
    names = {each.name for each in family}
    if event.function.endswith(".forward") or any(b not in _ROOTS | names for each in family for b in each.bases):
        return False
    calls = (part.func for part in own_nodes(function) if isinstance(part, ast.Call) and is_self_attribute(part.func))
    called = {part.attr for part in calls if isinstance(part, ast.Attribute) and not part.attr.startswith("__")}
    known = {name for each in family for name in names_of(each)}
    return not called <= {node.attr, *known, *knowledge.methods("Module"), *knowledge.attributes("Module")}


def names_of(class_: ClassFacts) -> Iterator[str]:
    """The names in the text of a class under which it may have an attribute: its methods, what it binds, and its texts, by
    which parts are registered."""
    yield from class_.method_names
    for node in walk(class_.node):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
