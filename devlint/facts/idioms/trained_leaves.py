"""Tensors that a plain class trains itself: `self.log_alpha = torch.zeros(1, requires_grad=True)`, in whichever method.

What an optimizer holds stays where it was made: a moved copy would be another tensor. So it is there in every method, if the
class sets it in one place alone.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.events import Creation
from devlint.facts.text.factory_names import OF_SIZES
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_own_attribute
from devlint.facts.text.trained import is_optimized, is_trained, stores
from devlint.facts.values import CPU, MADE_ON_CPU, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.text.classes import ClassFacts

_OF_SHAPES = OF_SIZES | {"torch.full"}
_OF_DATA = frozenset({"torch.tensor"})


def trained_leaves(machine: Machine, class_: ClassFacts, set_outside: Collection[str]) -> Iterator[tuple[str, Value]]:
    """The attributes of a plain class that are such tensors, made on the CPU by a method other than `__init__`."""
    if "requires_grad" not in machine.source.text or machine.default is not None:
        return
    for method_name, method in class_.methods.items():
        for node in walk(method) if method_name != "__init__" else ():
            target = node.targets[0] if isinstance(node, ast.Assign) and len(node.targets) == 1 else None
            if not isinstance(node, ast.Assign) or not isinstance(target, ast.Attribute):
                continue
            if not is_own_attribute(target, target.attr) or target.attr in class_.attributes:
                continue
            qualname = factory(machine, node.value)
            if (
                qualname is None
                or not is_optimized(class_, target.attr)
                or stores(class_, target.attr) > 1
                or target.attr in set_outside
            ):
                continue
            assert isinstance(node.value, ast.Call)
            span = machine.span(node.value)
            creation = Creation(span, qualname, node.value, {}, False, True)
            because = (Origin(span, MADE_ON_CPU),)
            yield target.attr, Value("tensor", CPU, False, because=because, made=(creation,))


def factory(machine: Machine, node: ast.expr) -> str | None:
    """The function of torch that makes a tensor to be trained, on the default device and of one dimension at least."""
    if not is_trained(node) or any(k.arg in ("device", None) for k in node.keywords) or not node.args:
        return None
    qualname = machine.qualify(node.func) if isinstance(node.func, (ast.Name, ast.Attribute)) else None
    first = node.args[0]
    if qualname in _OF_DATA:
        return qualname if isinstance(first, (ast.List, ast.Tuple)) else None
    if qualname not in _OF_SHAPES or knowledge.function(qualname) is None:
        return None
    return None if isinstance(first, (ast.Tuple, ast.List)) and not first.elts else qualname
