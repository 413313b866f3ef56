"""Methods that an attribute stands for, where other code of the project binds something else to it.

    def __init__(self):
        self.criterion = self.absolute

    trainer = Trainer()
    trainer.criterion = on_host         # what `self.criterion(x)` gives in `Trainer` is not known

Asked before a finding is reported that rests on what such a method gives.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.text.named_methods import named_methods
from devlint.facts.text.nodes import every, walk
from devlint.facts.text.references import is_self_attribute, last_name, stored_names

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.calling.neighbours import Looked
    from devlint.facts.events import Meet, Operand, Use


def rests_on_replaced(sites: CallSites, event: Meet | Use, operands: list[Operand]) -> bool:
    """Whether an operand is computed from what a method gives that other code replaces."""
    class_, function = sites.class_of(event.function), sites.body(event.function)
    home = sites.files.look(sites.path)
    if class_ is None or function is None or home is None:
        return False
    called: dict[int, str] = {}  # the calls of such attributes, by identity
    for node in every(function):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_self_attribute(node.func):
            if named_methods(class_, node.func.attr):
                called[id(node)] = node.func.attr
    if not called:
        return False
    given: dict[str, set[str]] = {}  # the names that get what they give
    for node in every(function):
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            attributes = {called[id(part)] for part in walk(node.value) if id(part) in called}
            for name in stored_names(node) if attributes else ():
                given.setdefault(name, set()).update(attributes)
    used: set[str] = set()
    for part in (part for operand in operands for part in walk(operand.node)):
        used |= {called[id(part)]} if id(part) in called else set()
        used |= given.get(part.id, set()) if isinstance(part, ast.Name) else set()
    if not used:
        return False
    return any(
        are_replaced_in(sites, looked, home, class_.name, used) for looked in sites.files.mentioning(class_.name)
    )


def are_replaced_in(sites: CallSites, looked: Looked, home: Looked, class_name: str, names: set[str]) -> bool:
    """Whether a file binds one of some attributes of what it calls objects of a class, or of the class itself."""
    bound = {last_name(store.value) for store in looked.loaded.scan.stores if store.attr in names}
    bound -= {"self", ""}
    return bool(bound) and not bound.isdisjoint(sites.callers.objects(looked, home, class_name) | {class_name})
