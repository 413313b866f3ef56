"""The first failure: what an operation surely stops, so that no later one is reached.

Two places are supposed to differ where a mismatch is judged: the CPU, and an accelerator that something given may be on. An
operation before it that surely fails on the same supposition fails first.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from devlint.inference.summary.model import LEAVING, Constraint, Operand
from devlint.inference.terms.conditions import Condition, compatible
from devlint.inference.terms.conflicts import clash
from devlint.inference.terms.places import CPU, Alternative, Atom, is_accelerator


class Supposition(NamedTuple):
    """What is taken to be so where two values are said to differ.

    `condition`: the literals that hold. `there`: the places that are on an accelerator.
    """

    condition: Condition
    there: frozenset[Atom]


def supposed(condition: Condition, x: Alternative, y: Alternative) -> Supposition:
    """What is taken to be so where `x` and `y` differ: one that is not named is on an accelerator beside the CPU."""
    atoms = [(x, y), (y, x)]
    there = {
        atom
        for each, other in atoms
        if other.atom == CPU
        for atom in (each.atom, each.also)
        if atom is not None and atom.tag in ("place", "names", "home")
    }
    return Supposition(condition, frozenset(there))


def fails_before(earlier: Iterable[Constraint], supposition: Supposition) -> bool:
    """Whether one of these operations surely fails, and stops the program."""
    return any(_surely_fails(each, supposition) for each in earlier)


def always_fails(constraint: Constraint) -> bool:
    """Whether an operation fails wherever its condition holds, whoever calls the function."""
    return _surely_fails(constraint, Supposition(constraint.condition, frozenset()))


def _surely_fails(each: Constraint, supposition: Supposition) -> bool:
    if each.how in LEAVING or each.caught or each.is_likely or not each.condition <= supposition.condition:
        return False
    first, second = (_possible(operand, supposition.condition) for operand in (each.first, each.second))
    return bool(first and second) and all(_differ(each, x, y, supposition) for x in first for y in second)


def _possible(operand: Operand, condition: Condition) -> list[Alternative]:
    """The places of an operand that a condition allows."""
    return [each for each in operand.places if compatible(each.condition, condition)]


def _differ(each: Constraint, x: Alternative, y: Alternative, supposition: Supposition) -> bool:
    """Whether two places surely differ, in an operation that torch refuses then."""
    if x.soft or y.soft:
        return False
    if clash(x.atom, y.atom) != "named" and not any(
        host.atom == CPU and other.atom in supposition.there for host, other in ((x, y), (y, x))
    ):
        return False
    first_is_off = is_off(x, y)
    return is_refused(each, x if first_is_off else y, first_is_off)


def is_off(x: Alternative, y: Alternative) -> bool:
    """Whether the first of two is the one to move: the one on the CPU, or the one on the card with an index."""
    return x.atom == CPU if CPU in (x.atom, y.atom) else is_accelerator(x.atom)


def is_refused(each: Constraint, off: Alternative, off_is_first: bool) -> bool:
    """Whether torch refuses the operation: a CPU index may read an accelerator's tensor, a 0-dim tensor may meet any."""
    if each.mixing == "index" and not off_is_first:
        return False
    if each.mixing == "host":
        return off_is_first
    if each.how == "inplace" and off_is_first:
        return True  # the result stays where the target is, whatever its dimensions
    return not (each.mixing in ("scalar", "expanded") and off.zero_dim is not False)
