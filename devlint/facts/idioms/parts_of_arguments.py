"""Parts of arguments that are tensors by what the function says of them or does with them: `x = data.x`, `x.size(0)`.

Only where nothing else is known of them, in functions that run beside a model: such a tensor may be where arguments are.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.text.annotations import is_tensor_annotation
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import HOME, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine


def stated(machine: Machine, node: ast.AnnAssign, value: Value) -> Value:
    """What an annotated variable holds where its value says nothing: `query: torch.LongTensor = batch.query`."""
    source = node.value
    if not is_unknown(value) or not isinstance(node.target, ast.Name) or source is None:
        return value
    if not is_tensor_annotation(node.annotation, machine.imports.names):
        return value
    return part(machine, node.target, source) or value


def used(machine: Machine, target: ast.Name, source: ast.expr | None, value: Value) -> Value:
    """What a variable of a module's method holds that is used as only a tensor can be: `x = data.x`, `x.unsqueeze(1)`."""
    if not isinstance(source, ast.Attribute) or not isinstance(source.value, ast.Name) or not is_unknown(value):
        return value
    function = machine.function
    evidence = machine.evidence.get(id(function.node)) if function is not None else None
    if function is None or evidence is None or target.id not in evidence.used_as_tensors:
        return value
    if not machine.callers.is_method_of_module(function):
        return value
    return part(machine, target, source) or value


def is_unknown(value: Value) -> bool:
    """Whether nothing is known of a value."""
    return value.kind == "unknown" and not value.device and value.type_name is None


def part(machine: Machine, target: ast.Name, source: ast.expr) -> Value | None:
    """A tensor that is a part of an argument; None where the source is none, or such parts may stay on the host."""
    function = machine.function
    if function is None or machine.host or not machine.assume or not machine.knows_torch:
        return None
    root = source
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if root is source or not isinstance(root, ast.Name) or root.id in ("self", "cls"):
        return None
    if parameter_of(function.node.args, root.id) is None:
        return None
    evidence = machine.evidence.get(id(function.node))
    if not machine.callers.is_plausible(function, False) or evidence is None or root.id in evidence.parted:
        return None  # of a batch of the host only those parts move that the function moves
    origin = Origin(machine.span(target), f"this is a part of the argument `{root.id}`, which may be on an accelerator")
    machine.assumed[origin.span] = (function, root.id)
    return Value("tensor", HOME, None, because=(origin,))
