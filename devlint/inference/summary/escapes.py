"""CPU tensors that leave a function beside, or instead of, what is where an argument is.

Nothing fails where they leave. They are judged there, since the caller cannot see why its tensor is on the CPU.
"""

from __future__ import annotations

from devlint.inference.summary.frame import Frame, in_use
from devlint.inference.summary.model import Constraint, How, Operand
from devlint.inference.summary.zero_dim import SHAPED
from devlint.inference.terms.conditions import Condition
from devlint.inference.terms.places import CPU, Alternative, Origin
from devlint.inference.terms.values import Value

Leaving = tuple[int, Value, Condition]


def record(frame: Frame) -> None:
    """Record what leaves through the results of a function."""
    leaving = list(_leaving(frame))
    for position, value, condition in leaving:
        if not value.is_tensor:
            continue
        for each in in_use(frame.site, value.places, ()):
            origin = each.origin
            if each.atom != CPU or origin is None or origin.why != "factory" or each.soft or origin.node is None:
                continue
            if origin.file != frame.path:
                continue  # it left the function that made it, in another file
            _judge(frame, position, each, origin, condition, leaving)


def _leaving(frame: Frame) -> list[Leaving]:
    found: list[Leaving] = []
    for value, condition, state in frame.returns:
        if value.kind == "tuple" and value.parts is not None:
            found += [(i, state.heap.settled(part), condition) for i, part in enumerate(value.parts)]
        else:
            found.append((0, value, condition))
    return found


def _judge(
    frame: Frame, position: int, each: Alternative, origin: Origin, condition: Condition, leaving: list[Leaving]
) -> None:
    for place, other, _ in leaving:
        far = (
            [p for p in other.places if p.atom.tag == "place" and not p.atom.key[0].startswith("%")]
            if other.is_tensor
            else []
        )
        if place == position and far:
            _need(frame, "paths", each, origin, far[0], condition)
            return
    extent = [p for p in origin.extent if p.atom.tag == "place" and not p.atom.key[0].startswith("%")]
    if extent and origin.name in SHAPED:
        _need(frame, "size", each, origin, extent[0], condition)
        return
    filled = frame.fills.get(origin)
    if filled is not None:
        far = [p for p in filled.places if p.atom != CPU]
        if far:
            _need(frame, "copy", each, origin, far[0], condition)


def _need(frame: Frame, how: How, each: Alternative, origin: Origin, far: Alternative, condition: Condition) -> None:
    node = origin.node
    assert node is not None
    first, second = Operand(node, "tensor", (each,)), Operand(node, "tensor", (far._replace(condition=frozenset()),))
    frame.constraints.append(Constraint(how, "exact", origin.name, first, second, node, frame.site, condition))
