"""Modules with hooks that run before their `forward`: what these do may well be to bring the weights to the input.

    for name, layer in model.named_modules():
        layer.register_forward_pre_hook(load_weights(name))

Asked before a finding is reported.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Meet
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites

_REGISTERS = frozenset({"register_forward_pre_hook", "register_module_forward_pre_hook"})


def is_hooked(sites: CallSites, event: Meet) -> bool:
    """Whether the function that uses a module, or the one that made it, registers hooks that run before a `forward`.

    Also where a function of the file does, and one of them hands it what has the module's name.
    """
    if event.off.value.kind != "module":
        return False
    name = last_name(event.off.node)
    starts = {origin.span.start for origin in event.off.value.because if origin.path is None}
    bodies = [sites.body(event.function), *(each.node for start in starts for each in sites.functions_around(start))]
    for body in (each for each in bodies if each is not None):
        if registers(body):
            return True
        for call in (node for node in walk(body) if isinstance(node, ast.Call)):
            helper = sites.function(last_name(call.func)) if name and name in map(last_name, call.args) else None
            if helper is not None and registers(helper.node):
                return True
    return False


def registers(scope: ast.AST) -> bool:
    return any(isinstance(node, ast.Attribute) and node.attr in _REGISTERS for node in walk(scope))
