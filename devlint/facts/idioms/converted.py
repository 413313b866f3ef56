"""An argument that its function makes a tensor where it is none: on the other path it is one, and wherever it was.

if not torch.is_tensor(x):
    x = torch.from_numpy(x)  # a new tensor of the CPU
scale = torch.tensor([1.0, 2.0])
return x * scale             # and here, where `x` was a tensor, what the caller has

`x = torch.arange(x) if isinstance(x, int) else x` says the same, and so does a method that tensors alone have on the other
arm: `y = torch.tensor(x) if isinstance(x, list) else x.clone()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Set
from typing import TYPE_CHECKING

from devlint.facts.frozen import replace
from devlint.facts.text.annotations import is_tensor_annotation
from devlint.facts.text.factory_names import CONVERSIONS
from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.parameters import TENSOR_ONLY
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import CPU, HOME, NO_TENSOR, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.idioms.guards import Condition
    from devlint.facts.interpreter.machine import Machine, State

#: Methods that a tensor has, and a list, an array or a number has not.
_OF_TENSORS = TENSOR_ONLY - {"numpy"} | {"clone", "float", "double", "half"}


def settle(machine: Machine, condition: Condition, then: State, otherwise: State) -> None:
    """After both branches of an `if`: an argument that one of them made a tensor is a tensor after the other one."""
    for paths, made, kept in ((condition.no_tensor, then, otherwise), (condition.else_no_tensor, otherwise, then)):
        for path in paths:
            if made.dead or kept.dead or not is_new(made.env.get(path)):
                continue
            found = as_tensor(machine, path, kept.env.get(path))
            if found is not None:
                kept.env[path] = found


def ahead(machine: Machine, paths: Set[str], other: list[ast.stmt]) -> None:
    """Before a branch where arguments are tensors: `x = x.float()`, where the other one is `x = torch.tensor(x)`."""
    for statement in other if paths else ():
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or target.id not in paths:
            continue
        if any(isinstance(n, ast.Call) and machine.qualify(n.func) in CONVERSIONS for n in walk(statement.value)):
            found = as_tensor(machine, target.id, machine.state.env.get(target.id))
            if found is not None:
                machine.state.env[target.id] = found


def of_choice(machine: Machine, node: ast.IfExp, condition: Condition, body: Value, orelse: Value) -> Value | None:
    """The other side of a choice one side of which makes a tensor of an argument; None where it is no such choice."""
    for paths, made, kept, known in (
        (condition.no_tensor, body, node.orelse, orelse),
        (condition.else_no_tensor, orelse, node.body, body),
    ):
        if isinstance(kept, ast.Name) and kept.id in paths and is_new(made):
            return as_tensor(machine, kept.id, known)
    return None


def beside_conversion(machine: Machine, node: ast.expr, method: str, value: Value) -> Value | None:
    """An argument with a method that it has as a tensor alone, on the arm of a condition whose other arm converts it."""
    if not isinstance(node, ast.Name) or method not in _OF_TENSORS or machine.function is None:
        return None
    function = machine.function.node
    evidence = machine.evidence.get(id(function))
    if evidence is None or node.id not in evidence.converted:
        return None
    key = (id(function), node.id)
    if key not in machine.beside_conversions:
        machine.beside_conversions[key] = []  # to find the arms, calls of methods on them may be read
        machine.beside_conversions[key] = [*arms_beside(machine, function, node.id)]
    if any(holds(part, node) for arm in machine.beside_conversions[key] for part in arm):
        return as_tensor(machine, node.id, value)
    return None


def arms_beside(machine: Machine, function: ast.AST, name: str) -> Iterator[list[ast.AST]]:
    """The arms of the conditions of a function whose other arm makes a tensor of a name."""
    for outer in walk(function):
        if isinstance(outer, (ast.If, ast.IfExp)):
            arms = [arm if isinstance(arm, list) else [arm] for arm in (outer.body, outer.orelse)]
            for own, other in (arms, arms[::-1]):
                if own and any(converts(machine, part, name) for part in other):
                    yield [*own]


def converts(machine: Machine, node: ast.AST, name: str) -> bool:
    """Whether something makes a tensor of a name: `torch.tensor(x)`, `torch.from_numpy(np.asarray(x))`."""
    for call in walk(node):
        if isinstance(call, ast.Call) and call.args and machine.qualify(call.func) in CONVERSIONS:
            first = call.args[0]
            while isinstance(first, ast.Call) and first.args:
                first = first.args[0]
            if isinstance(first, ast.Name) and first.id == name:
                return True
    return False


def is_new(value: Value | None) -> bool:
    return value is not None and value.kind == "tensor" and bool(value.made) and value.device == CPU


def as_tensor(machine: Machine, name: str, value: Value | None) -> Value | None:
    """A parameter of which nothing is known but that it is a tensor here; None for any other value."""
    function = machine.function
    if (
        function is None
        or len(machine.stack) != 1
        or not machine.assume
        or machine.host
        or isinstance(function.node, ast.Lambda)
    ):
        return None
    known = machine.assumed.get(value.because[0].span) if value is not None and value.because else None
    if known is not None and known[1] == name and known[0].node is function.node:
        note(machine, name)
        return None  # what else shows that it may be a tensor says the same
    if value is not None and (value.kind != "unknown" or value.device or value.type_name not in (None, NO_TENSOR)):
        return None
    argument = parameter_of(function.node.args, name)
    if argument is None:
        return None
    annotated = is_tensor_annotation(argument.annotation, machine.imports.names)
    if not machine.callers.is_plausible(function, annotated):
        return None
    origin = Origin(machine.span(argument), f"`{name}` is an argument, which may be on an accelerator")
    machine.assumed[origin.span] = (function, name)
    note(machine, name)
    return replace(value or Value("tensor"), kind="tensor", device=HOME, type_name=None, because=(origin,))


def note(machine: Machine, name: str) -> None:
    """An array that the function makes a tensor of does not show that it is given arrays alone."""
    evidence = machine.evidence.get(id(machine.function.node)) if machine.function is not None else None
    if evidence is not None:
        evidence.either.add(name)
