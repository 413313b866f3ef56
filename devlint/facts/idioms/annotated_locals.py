"""Annotations of local variables: `query: torch.LongTensor = batch.query` is a tensor, which may be where arguments are.

Only for parts of an argument of which nothing else is known, in functions that run beside a model.
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
    """What a variable holds, by its annotation where its value says nothing."""
    function, source = machine.function, node.value
    if value.kind != "unknown" or value.device or value.type_name is not None or not isinstance(node.target, ast.Name):
        return value
    if function is None or machine.host or not machine.assume or not machine.knows_torch:
        return value
    root = source
    while isinstance(root, (ast.Attribute, ast.Subscript)):
        root = root.value
    if (
        root is source
        or not isinstance(root, ast.Name)
        or not is_tensor_annotation(node.annotation, machine.imports.names)
    ):
        return value
    if root.id in ("self", "cls") or parameter_of(function.node.args, root.id) is None:
        return value
    evidence = machine.evidence.get(id(function.node))
    if not machine.callers.is_plausible(function, False) or evidence is None or root.id in evidence.parted:
        return value  # of a batch of the host only those parts move that the function moves
    origin = Origin(machine.span(node.target), f"a part of `{root.id}`, an argument, which may be on an accelerator")
    machine.assumed[origin.span] = (function, root.id)
    return Value("tensor", HOME, None, because=(origin,))
