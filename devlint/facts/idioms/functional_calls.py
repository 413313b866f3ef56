"""Modules that are called with parameters from elsewhere: `functional_call(model, parameters, (x,))`.

The inputs meet the parameters that are given, which are taken for those of a module that was moved, or made of them, unless
they are known to be on another device [torch/nn/utils/stateless.py, `_functional_call`].
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.frozen import replace
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.values import CPU, NOTHING, UNKNOWN, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.module_calls import ModuleCalls

NAMES = frozenset(
    {"torch.func.functional_call", "torch.nn.utils.stateless.functional_call", "torch.nn.utils.functional_call"}
)


def call(machine: ModuleCalls, node: ast.Call, arguments: Arguments) -> Value:
    """What the module gives: as if it were called with the inputs."""
    module = arguments.get("module", 0)
    inputs = inputs_of(arguments)
    if module is None or module[1].kind != "module" or inputs is None or arguments.star:
        machine.escape(node, arguments)
        return NOTHING
    value = module[1]
    never_moved = not value.moved and value.device in (CPU, UNKNOWN)  # the parameters may be moved copies
    if never_moved or places_of(arguments.get("parameter_and_buffer_dicts", 1)) - {value.device}:
        value = replace(value, device=UNKNOWN)
    return machine.call_module(node, machine.operand(module[0], value), inputs)


def inputs_of(arguments: Arguments) -> Arguments | None:
    """What the module is called with: a tuple of its inputs, or the only one; None where it is not known."""
    given, named = arguments.get("args", 2), arguments.get("kwargs", 3)
    found = Arguments()
    if named is not None and named[1].kind != "none":
        if not isinstance(named[0], ast.Dict) or not isinstance(named[1].elements, dict):
            return None
        for key, node in zip(named[0].keys, named[0].values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                found.keywords[key.value] = node, named[1].elements.get(key.value, NOTHING)
    if given is None or given[1].kind == "none":
        return found
    node, value = given
    if value.kind == "tuple" and isinstance(value.elements, tuple):
        written = node.elts if isinstance(node, ast.Tuple) and len(node.elts) == len(value.elements) else None
        found.nodes, found.values = written or [node] * len(value.elements), list(value.elements)
    elif value.is_tensor:
        found.nodes, found.values = [node], [value]
    else:
        return None
    return found


def places_of(parameters: tuple[ast.expr, Value] | None) -> set[frozenset[object]]:
    """Where the parameters are that are given, as far as it is known."""
    if parameters is None:
        return set()
    given = parameters[1]
    return {part.device for part in (given, *given.parts) if part.is_tensor and part.device}
