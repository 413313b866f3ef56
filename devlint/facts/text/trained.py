"""Tensors that a class makes to train them itself: `self.log_alpha = torch.zeros(1, requires_grad=True)`."""

from __future__ import annotations

import ast
import re
from typing import TypeGuard

from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_own_attribute, is_self_attribute, last_name

_OPTIMIZER = re.compile(r"optim|adam|sgd", re.IGNORECASE)


def is_trained(node: ast.expr) -> TypeGuard[ast.Call]:
    """Whether a call makes a tensor with gradients."""
    return isinstance(node, ast.Call) and any(
        k.arg == "requires_grad" and isinstance(k.value, ast.Constant) and k.value.value is True for k in node.keywords
    )


def trains_tensors(class_: ClassFacts) -> bool:
    """Whether a plain class trains a tensor of its own: it gets log probabilities and losses from networks beside it."""
    if class_.is_module:
        return False
    assigned = (node for method in class_.methods.values() for node in walk(method) if isinstance(node, ast.Assign))
    made = (target for node in assigned if is_trained(node.value) for target in node.targets)
    return any(isinstance(t, ast.Attribute) and is_optimized(class_, t.attr) for t in made if is_self_attribute(t))


def is_optimized(class_: ClassFacts, name: str) -> bool:
    """Whether methods of a class give `self.name` to an optimizer: `Adam([self.log_alpha])`, `get_optim(self.log_alpha)`."""
    return any(
        isinstance(node, ast.Call)
        and _OPTIMIZER.search(last_name(node.func)) is not None
        and any(
            is_own_attribute(part, name) for given in node.args for part in walk(given) if isinstance(part, ast.expr)
        )
        for method in class_.methods.values()
        for node in walk(method)
    )


def stores(class_: ClassFacts, name: str) -> int:
    """How many places of a class, and of its bases in this file, set an attribute."""
    return sum(
        isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_own_attribute(node, name)
        for each in lineage(class_)
        for method in each.methods.values()
        for node in walk(method)
    )
