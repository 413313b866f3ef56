"""Attributes that stand for methods of the same class: `self.loss = self.huber_loss`, in one arm or another."""

from __future__ import annotations

import ast

from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.nodes import every, statements, walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.values import CHOICES


def named_methods(owner: ClassFacts, name: str) -> tuple[str, ...]:
    """The methods of a class that an attribute of `self` stands for; none where something else is bound to it as well."""
    if owner.named_methods is None:
        owner.named_methods = _named(owner)
    return owner.named_methods.get(name, ())


def _named(owner: ClassFacts) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None] | None] = {}
    for class_ in lineage(owner):
        for statement in statements(class_.node):
            if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
                targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
                method = _method(owner, statement.value)
                for target in targets:
                    for part in target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]:
                        if isinstance(part, ast.Attribute) and is_self_attribute(part):
                            known = found.setdefault(part.attr, {})
                            if method is None or part is not target:
                                found[part.attr] = None
                            elif known is not None:
                                known[method] = None
    methods = {name: tuple(each) for name, each in found.items() if each and len(each) <= CHOICES}
    otherwise = _bound_otherwise(owner, set(methods))
    return {name: each for name, each in methods.items() if name not in otherwise}


def _bound_otherwise(owner: ClassFacts, names: set[str]) -> set[str]:
    """Which attributes of `self` a class binds by something other than an assignment: a loop, `with`, `setattr`."""
    found: set[str] = set()
    for node in (node for class_ in lineage(owner) for node in every(class_.node)) if names else ():
        targets: list[ast.expr] = []
        if isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            targets = [node.target]
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            targets = [node.optional_vars]
        elif isinstance(node, ast.Call) and last_name(node.func) in ("setattr", "__setattr__"):
            given = (
                node.args[-2] if len(node.args) in (2, 3) else None
            )  # `object.__setattr__(self, name, value)` or without it
            found |= names & {str(given.value)} if isinstance(given, ast.Constant) else names
        for target in targets:
            found |= {n.attr for n in walk(target) if isinstance(n, ast.Attribute) and is_self_attribute(n)}
    return found


def _method(owner: ClassFacts, value: ast.expr | None) -> str | None:
    """The method that `self.method` names, which is called as it is written."""
    if not isinstance(value, ast.Attribute) or not is_self_attribute(value):
        return None
    method = owner.method(value.attr)
    plain = method is not None and value.attr not in method[0].properties and not method[1].decorator_list
    return value.attr if plain else None
