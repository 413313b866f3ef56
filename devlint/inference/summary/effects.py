"""The effects of a function on its callers: what it does to the things that it was given, or that it gives back.

What a call gives that cannot be read is a thing with a root of its own, told by its place. One that only the function itself
ever saw concerns nobody else.
"""

from __future__ import annotations

from collections.abc import Iterator

from devlint.inference.objects.heap import Thing, is_touched
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.model import Constraint, Summary
from devlint.inference.terms.places import Places
from devlint.inference.terms.values import Identity, Value


def effects_of(summary: Summary) -> list[tuple[Identity, Thing]]:
    """The things of a summary that a call changes, in the order in which they were met."""
    if summary.effects is None:
        touched = [(at, thing) for at, thing in summary.heap.things.items() if at[0] == "path" and is_touched(thing)]
        if any(_is_own(at[1][0]) for at, _ in touched):
            seen = _seen_outside(summary, touched)
            touched = [(at, thing) for at, thing in touched if not _is_own(at[1][0]) or at[1][0] in seen]
        summary.effects = touched
    return summary.effects


def _is_own(root: str) -> bool:
    """Whether a root stands for what a call at one place gives."""
    return root[:1] == "%" and root[1:2].isdigit()


def _seen_outside(summary: Summary, touched: list[tuple[Identity, Thing]]) -> set[str]:
    """The roots of which the result, an operation or another thing tells."""
    found = set(_of_value(summary.result))
    for value in summary.rebound.values():
        found.update(_of_value(value))
    for each in summary.constraints:
        found.update(_of_constraint(each))
    for at, thing in summary.heap.things.items():
        if at[0] != "path" or not _is_own(at[1][0]):
            for value in thing.fields.values():
                found.update(_of_value(value))
            found.update(_of_places(thing.home or ()))
    pending = list(found)
    while pending:
        root = pending.pop()
        for at, thing in touched:
            if at[1][0] == root:
                new = {other for value in thing.fields.values() for other in _of_value(value)} - found
                found |= new
                pending += new
    return found


def _of_value(value: Value) -> Iterator[str]:
    yield from _of_places(value.places)
    if value.path is not None:
        yield value.path[0]
    for identity in value.objects:
        if identity[0] == "path":
            yield identity[1][0]
    for part in value.parts or ():
        yield from _of_value(part)
    if isinstance(value.ref, tuple):
        for each in value.ref:
            for held in each.values() if isinstance(each, Arguments) else [each]:
                if isinstance(held, Value):
                    yield from _of_value(held)


def _of_places(places: Places) -> Iterator[str]:
    for each in places:
        for atom in (each.atom, each.also):
            if atom is not None and atom.tag in ("place", "names"):
                yield atom.key[0]
            elif atom is not None and atom.tag == "home" and atom.key[0] == "path":
                yield atom.key[1][0]


def _of_constraint(each: Constraint) -> Iterator[str]:
    for operand in (each.first, each.second):
        yield from _of_places(operand.places)
        if operand.path is not None:
            yield operand.path[0]
