"""Parameters that a module is given: `self.scale = scale` registers an `nn.Parameter`, and keeps a tensor plainly."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.references import given, last_name
from devlint.facts.text.signatures import positional_names

if TYPE_CHECKING:
    from devlint.facts.interpreter.flow import Flow


def is_given_parameter(flow: Flow, class_: ClassFacts, kept: ast.expr) -> bool:
    """Whether a call of the file gives a class an `nn.Parameter` for the argument that it keeps: that is registered."""
    init = class_.methods.get("__init__")
    names = positional_names(init.args) if init is not None else []
    if not isinstance(kept, ast.Name) or kept.id not in names:
        return False
    for call, caller in flow.scan.calls.get(class_.name, ()):
        for argument in given(call, kept.id, names.index(kept.id) - 1):
            bound = caller.assigns if caller is not None and isinstance(argument, ast.Name) else ()
            said = [
                a.value for a in bound if isinstance(a, ast.Assign) and any(same_name(t, argument) for t in a.targets)
            ]
            if any(isinstance(each, ast.Call) and last_name(each.func) == "Parameter" for each in (argument, *said)):
                return True
    return False


def same_name(node: ast.expr, other: ast.expr) -> bool:
    return isinstance(node, ast.Name) and isinstance(other, ast.Name) and node.id == other.id
