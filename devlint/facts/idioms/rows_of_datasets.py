"""Where the rows of a data set are that a loader batches, and so the batches: the collator stacks them where they are.

    rows = Rows(features, labels)          # of a class that keeps what it is given
    loader = DataLoader(rows, 32)          # tensors of the device make batches of the device

    rows = torch.load(path)                # on the device that saved them
    loader = DataLoader(rows, 4)

A data set reads its rows on the host where it is given nothing that says otherwise.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.idioms.beside_new import only_binding
from devlint.facts.text.references import chain
from devlint.facts.values import CPU, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine


def may_be_elsewhere(machine: Machine, dataset: ast.expr) -> bool:
    """Whether the rows of a data set may be anywhere: it is restored, or made of what may be on a device."""
    for part in chain(made_of(machine, dataset)):
        if not isinstance(part, ast.Call):
            continue
        if machine.qualify(part.func) == "torch.load":
            return not puts_on_host(machine, part)
        given = [*part.args, *(k.value for k in part.keywords)]
        if any(says_device(machine, each) for each in given):
            return True
    return False


def made_of(machine: Machine, dataset: ast.expr) -> ast.expr:
    """What a data set is bound to, where it is a name, or a part of a name, that is bound once."""
    *_, start = chain(dataset)
    if not isinstance(start, ast.Name):
        return dataset
    if machine.function is None:
        given = machine.bindings.given.get(start.id, [])
        return given[0] if len(given) == 1 else dataset
    own = machine.scan.functions.get(id(machine.function.node))
    bound = only_binding(own, start.id, dataset) if own is not None else None
    return bound if bound is not None else dataset


def puts_on_host(machine: Machine, load: ast.Call) -> bool:
    """Whether `torch.load` brings everything to the CPU."""
    place = [k.value for k in load.keywords if k.arg == "map_location"] or load.args[1:2]
    return bool(place) and machine.evaluate(place[0]).device == CPU


def says_device(machine: Machine, node: ast.expr) -> bool:
    """Whether what a data set is made of is a device, or a tensor that may be on one."""
    if isinstance(node, (ast.List, ast.Tuple)):
        return any(says_device(machine, part) for part in node.elts)
    path = machine.path(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
    value = machine.lookup(path) if path is not None else None
    return value is not None and any(is_placed(each) for each in (value, *value.parts))


def is_placed(value: Value) -> bool:
    """Whether a value is a device, or a tensor that is not surely on the CPU."""
    return value.kind == "device" or (value.is_tensor and value.device != CPU)
