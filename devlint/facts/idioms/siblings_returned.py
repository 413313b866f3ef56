"""Tensors that a function makes of host data and returns together, where all but one of them were moved to a device.

    ids = torch.tensor(sample["ids"]).to(device)
    mask = torch.tensor(sample["mask"])              # stays on the CPU
    labels = torch.tensor(sample["labels"]).to(device)
    return ids, mask, labels

Each of the others must be made in the same way in the function, and none may be left but this one. What is for the host by its
name, lengths, ids and names, may well stay there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.frozen import replace
from devlint.facts.idioms.batches import is_for_host
from devlint.facts.interpreter.factories import FROM_DATA
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name
from devlint.facts.values import CPU, MADE_ON_CPU, Value, is_assumed, may_be_accelerator
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.events import Creation
    from devlint.facts.interpreter.operations import Operations

_MOVED = 2  # of the others, at least


def note(machine: Operations, node: ast.expr, value: Value) -> None:
    """Emit `Meet` for the one tensor of a returned tuple or dict that stays on the CPU."""
    if machine.host or machine.loops or value.kind not in ("tuple", "dict", "list") or value.elements is None:
        return
    parts = list(flat(node, value))
    tensors = [(n, v) for n, v in parts if v.is_tensor]
    left = [(n, v) for n, v in tensors if is_left(v)]
    moved = [(n, side) for n, v in tensors if (side := moved_side(v)) is not None]
    if len(left) != 1 or len(moved) < _MOVED or len(left) + len(moved) < len(tensors):
        return
    (where, off), (_, other) = left[0], moved[0]
    creation = off.made[0]
    if is_named_for_host(where) or any(side.device != other.device for _, side in moved):
        return
    if sum(is_made_alike(machine, n, creation) for n, _ in moved) < _MOVED:
        return
    level = machine.conflict(CPU, other.device)
    chosen = not is_assumed(other.device) or all(str(place) == "self.device" for place in other.device)
    if level is None or not chosen:
        return
    operand = machine.operand(creation.place, replace(off, device=CPU, made=(creation,)))
    because = (
        Origin(creation.span, MADE_ON_CPU),
        machine.origin(where, "returned here"),
        *other.because[:1],
    )
    machine.emit_meet(where, "beside", "returned", operand, machine.operand(moved[0][0], other), level, because)


def flat(node: ast.expr, value: Value) -> Iterator[tuple[ast.expr, Value]]:
    """What is in a tuple, list or dict that is written out, with the values, those inside others too."""
    if isinstance(node, (ast.Tuple, ast.List)) and isinstance(value.elements, tuple):
        if len(node.elts) == len(value.elements):
            for part, given in zip(node.elts, value.elements, strict=True):
                yield from flat(part, given)
        return
    if isinstance(node, ast.Dict) and isinstance(value.elements, dict):
        for key, part in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and str(key.value) in value.elements:
                if not is_for_host(str(key.value)):
                    yield from flat(part, value.elements[str(key.value)])
        return
    yield node, value


def is_left(value: Value) -> bool:
    """Whether a tensor is as it was made of host data, on the CPU, and no scalar."""
    return (
        value.device == CPU
        and len(value.made) == 1
        and value.made[0].function in FROM_DATA
        and value.zero_dim is not True
    )


def moved_side(value: Value) -> Value | None:
    """A tensor that was moved to a device, if only on one path."""
    sides = (value,) if value.split is None else value.split[1:]
    return next((side for side in sides if side.moved and may_be_accelerator(side.device)), None)


def is_named_for_host(node: ast.expr) -> bool:
    """Whether an expression is a name of what is for the host: lengths, sizes, ids."""
    return isinstance(node, (ast.Name, ast.Attribute)) and is_for_host(last_name(node))


def is_made_alike(machine: Operations, node: ast.expr, creation: Creation) -> bool:
    """Whether what an expression moves is made in this function by the function that made another tensor."""
    wanted = creation.function.rpartition(".")[2]
    own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else None
    sources: list[ast.AST] = [node]
    if isinstance(node, ast.Name) and own is not None:
        sources = [
            each.value
            for each in own.assigns
            if isinstance(each, ast.Assign)
            and any(n.id == node.id for t in each.targets for n in walk(t) if isinstance(n, ast.Name))
        ]
    return any(
        isinstance(call, ast.Call) and last_name(call.func) == wanted for source in sources for call in walk(source)
    )
