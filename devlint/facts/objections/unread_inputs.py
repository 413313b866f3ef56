"""Inputs that a module of the project does not read under the constants that a call gives it.

    model(image, text, test=True)       # whose `forward` reads `text` under `if not test:` alone

Asked before a finding is reported.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.idioms.ignored_inputs import is_ignored
from devlint.facts.text.constants import given_constants
from devlint.facts.text.signatures import positional_names

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Meet


def is_unread(sites: CallSites, event: Meet) -> bool:
    """Whether a module, or its method that is called, computes with an input under no condition that the call leaves open."""
    call = event.node
    module, given = (event.off, event.other) if event.off.value.kind == "module" else (event.other, event.off)
    class_ = sites.classes.get(module.value.type_name or "")
    if class_ is None or not isinstance(call, ast.Call):
        return False
    name = event.operation if class_.method(event.operation) is not None else "forward"
    found = class_.method(name)
    if found is None:
        return False
    names = {id(node): taken for taken, node in zip(positional_names(found[1].args)[1:], call.args, strict=False)}
    names |= {id(keyword.value): keyword.arg for keyword in call.keywords if keyword.arg is not None}
    constants = given_constants(found[1], call, {})
    return bool(constants) and is_ignored(sites.classes, class_, name, names.get(id(given.node)), 0, constants)
