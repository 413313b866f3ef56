"""Records whose tensors the whole project makes on the CPU: what is assumed of them does not hold.

    @dataclass
    class Page:
        sequence: Tensor

        def checksum(self):
            return hash_of(self.sequence.numpy())    # each page is made with `sequence=torch.empty(256)`, and keeps it

Asked before a finding is reported. Nothing is concluded where a construction does not show, or a field is bound anew.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Meet
from devlint.facts.idioms.unplaced import brings_to_host
from devlint.facts.objections.flags import is_handed_on, is_quoted, makes_own
from devlint.facts.text.nodes import walk
from devlint.facts.text.records import TENSORS_HELD, fields, is_record, tensor_fields
from devlint.facts.text.references import is_nothing, last_name
from devlint.facts.text.results import is_made_on_host
from devlint.facts.text.signatures import given_at

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.calling.neighbours import Looked
    from devlint.facts.events import Use
    from devlint.facts.text.classes import ClassFacts

#: What makes other objects of a record that is there, with some fields of their own.
_COPIES = frozenset({"replace", "_replace", "evolve"})
_DEFAULT = "set_default_device"


def is_of_record_of_host(sites: CallSites, event: Meet | Use) -> bool:
    """Whether what an event assumes to be on an accelerator is held by a record whose tensors all are made on the CPU."""
    operand = event.other if isinstance(event, Meet) else event.operand
    origin = operand.value.because[0] if operand.value.because else None
    if origin is None or origin.path is not None or not origin.text.endswith(TENSORS_HELD):
        return False
    found = (each for each in sites.classes.values() if not each.abroad and sites.span(each.node) == origin.span)
    class_ = next(found, None)
    return class_ is not None and is_made_of_host(sites, class_)


def is_made_of_host(sites: CallSites, class_: ClassFacts) -> bool:
    """Whether the project makes such records, gives them tensors of the CPU alone, and binds their fields to no others."""
    name, files = class_.name, sites.files
    if class_.local_bases or not is_record(class_) or not files.reads_all(name):
        return False
    if _DEFAULT in sites.text or files.mentioned_in(_DEFAULT) or any(map(makes_own, calls_in(class_.node))):
        return False
    held, home = tensor_fields(class_, sites.imports), files.look(sites.path)
    if home is None:
        return False
    made = False
    for looked in files.mentioning(name):
        calls = list(sites.made(looked, home, name))
        given = [each for site in calls for each in given_to(site.call, class_, held)]
        if not all(each is not None and is_host_data(looked, each) for each in given):
            return False
        if any(binds(looked, field) for field in held):
            return False
        if is_quoted(looked, name) or is_handed_on(sites, looked, home, name, calls):
            return False
        made = made or (not looked.flow.facts.is_test and not all(each is None or is_nothing(each) for each in given))
    return made


def calls_in(class_: ast.ClassDef) -> list[ast.Call]:
    return [node for node in walk(class_) if isinstance(node, ast.Call)]


def given_to(call: ast.Call, class_: ClassFacts, held: Collection[str]) -> Iterator[ast.expr | None]:
    """What a construction gives each of some fields, or their defaults; None where that does not show."""
    for place, field in enumerate(fields(class_)):
        name = last_name(field.target)
        if name in held:
            yield given_at(call, name, place, field.value)


def is_host_data(looked: Looked, node: ast.expr) -> bool:
    return is_nothing(node) or brings_to_host(node) or is_made_on_host(node, looked.loaded.imports.names)


def binds(looked: Looked, field: str) -> bool:
    """Whether a file binds an attribute of a name, or copies records with another one."""
    if any(isinstance(each, ast.Attribute) and not isinstance(each.ctx, ast.Load) for each in looked.named(field)):
        return True
    copies = (site.call for copy in _COPIES for site in looked.loaded.scan.calls.get(copy, ()))
    return any(keyword.arg in (field, None) for call in copies for keyword in call.keywords)
