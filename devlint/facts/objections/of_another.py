"""What is not of the class that it seems to be of: tensors of another framework, a `self` that is another object.

Asked before a finding is reported.

import paddle

class PaddleParam:
    def grad(self):
        return self.param.grad.numpy()      # paddle's tensors copy themselves from the card

class Net(nn.Module):
    def validate(self):
        model = self.rebuild_model(...)     # nothing gives a `Net` this attribute
        x = x.to(self.device)               # so whoever has both borrows the function: `Net.validate(runner)`
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.text.annotations import is_tensor_annotation, knows_other_tensors
from devlint.facts.text.classes import lineage
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain, is_self_attribute
from devlint.facts.text.signatures import named_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Call, Use
    from devlint.facts.text.classes import ClassFacts

_ROOTS = frozenset({"torch.nn.Module", "torch.nn.modules.module.Module", "object"})


def is_of_another_framework(sites: CallSites, event: Use) -> bool:
    """Whether a file knows other frameworks, whose tensors have `numpy()`, and nothing says that this one is torch's."""
    if event.consumer != "numpy" or event.level != "assume" or not knows_other_tensors(sites.imports):
        return False
    *_, start = chain(event.operand.node)
    function = sites.body(event.function)
    if not isinstance(start, ast.Name) or not isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    said = (each.annotation for each in named_parameters(function.args) if each.arg == start.id)
    return not any(is_tensor_annotation(each, sites.imports) for each in said)


def is_another_object(sites: CallSites, event: Call) -> bool:
    """Whether a module's method reads further attributes of `self` that neither its class nor torch gives it."""
    node, class_ = event.node, sites.class_of(event.function)
    if class_ is None or not isinstance(node, ast.Attribute) or not is_self_attribute(node):
        return False
    family = lineage(class_)
    if any(base not in _ROOTS and base not in {each.name for each in family} for each in family for base in each.bases):
        return False
    function = sites.body(event.function)
    read = (
        {n.attr for n in walk(function) if isinstance(n, ast.Attribute) and is_self_attribute(n)} if function else set()
    )
    known = {name for each in family for name in given(each)}
    return not read <= {node.attr, *known, *knowledge.methods("Module"), *knowledge.attributes("Module")}


def given(class_: ClassFacts) -> Iterator[str]:
    """The attributes that a class has by its own text: its methods, the names of its body, and what is set on `self`.

    What is registered under a name, or set by one, has that name in the text as well.
    """
    yield from class_.method_names
    for node in walk(class_.node):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
