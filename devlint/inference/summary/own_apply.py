"""Classes that define `_apply` themselves: torch calls it for every part of a module that is moved.

Source: torch/nn/modules/module.py, `Module._apply`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.inference.objects.heap import Heap
from devlint.inference.program.definitions import Class, Function
from devlint.inference.summary.frame import Frame
from devlint.inference.terms.places import Path, Places, place_of, single
from devlint.inference.terms.values import Identity, Value

NAME = "_apply"
#: How deep the parts of a module are looked through.
_DEPTH = 5


def is_one(function: Function) -> bool:
    """Whether a method is such an `_apply`."""
    return function.name == NAME and function.owner is not None and function.owner.may_be_module


def mover(path: Path) -> Value:
    """The function that such a method is given."""
    return Value("mover", single(place_of(path)), path=path)


def run(frame: Frame, node: ast.AST, base: Value, places: Places) -> bool:
    """Run `_apply` of the parts of a module that was moved to `places`, and tell whether there are any.

    The method gets a function that moves one tensor there.
    """
    found = [each for whole in base.objects for each in _overriding(frame.heap, whole, _DEPTH)]
    for identity in found:
        thing = frame.heap.get(identity)
        method = thing.class_.method(NAME)
        frame.heap.put(identity, thing._replace(many=False))  # all that it stands for are moved
        frame.analyser.call(frame, method, Value("module", objects=(identity,)), [Value("mover", places)], node)
        frame.heap.put(identity, frame.heap.get(identity)._replace(many=thing.many))
    return bool(found)


def _overriding(heap: Heap, identity: Identity, depth: int) -> Iterator[Identity]:
    """The parts of a module, itself included, whose class defines the method."""
    thing = heap.get(identity)
    if isinstance(thing.class_, Class) and thing.class_.method(NAME) is not None:
        yield identity
    if depth == 0:
        return
    parts = list(thing.fields.values())
    for entry, like in thing.template.thing.fields.items() if thing.template is not None else ():
        if entry not in thing.fields and _has_one(thing.template.heap, like, depth - 1):  # type: ignore[union-attr]
            parts += filter(None, [heap.field(identity, entry)])
    for value in parts:
        for part in value.objects if value.kind == "module" else ():
            yield from _overriding(heap, part, depth - 1)


def _has_one(heap: Heap, value: Value, depth: int) -> bool:
    return value.kind == "module" and any(True for each in value.objects for _ in _overriding(heap, each, depth))
