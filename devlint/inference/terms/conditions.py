"""Conditions: conjunctions of literals over a closed list of tests.

A literal is a test with the outcome that it must have. A test is a tuple whose first entry says what is asked:

    ("none", subject)        the subject is None
    ("truth", subject)       the subject is true
    ("equal", subject, text) the subject equals a constant
    ("order", subject, operator, number)  the subject is less, or more, than a number
    ("type", subject, text)  the subject is an instance of a class
    ("device", path, type)   what is at an access path is on a device of that type
    ("names", path, type)    what is at an access path names a device of that type
    ("all", tests)           all of these literals hold
    ("raised", place)        the `try` at this place was left by an error
    ("again", place)         the loop at this place is in a later round than its first
    ACCELERATOR              an accelerator is there
    ("same", atoms)          these two places are one
    SAME                     two devices that are not known were compared and are the same

A subject names one version of a name or an access path, so that a later binding is another subject.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import Any, Final, TypeAlias

Test: TypeAlias = tuple[Any, ...]
Literal: TypeAlias = tuple[Test, bool]
Condition: TypeAlias = frozenset[Literal]

ALWAYS: Final[Condition] = frozenset()
ACCELERATOR: Final[Test] = ("accelerator",)
SAME: Final[Test] = ("same",)
#: In place of a class: whether something is data of the host, such as a list, a number or an array.
DATA: Final = "host data"
#: The tests that ask for devices.
_OF_DEVICES: Final = frozenset({"accelerator", "same", "device"})
#: Literals that one condition may have. More are dropped, and what held under them is only likely.
WIDTH: Final = 6


#: In place of a name in the versions of a subject: the round of a loop.
ROUND: Final = "round"


def of_a_round(condition: Condition) -> Condition:
    """The literals that hold in one round of a loop."""
    return frozenset(literal for literal in condition if len(literal[0]) > 1 and _is_of_a_round(literal[0][1]))


def _is_of_a_round(subject: Any) -> bool:
    return (
        isinstance(subject, tuple)
        and len(subject) == 2
        and isinstance(subject[1], tuple)
        and any(isinstance(each, tuple) and each[0] == ROUND for each in subject[1])
    )


#: Comparisons by size, by the types of their operators.
ORDERS: Final = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}


def is_ordered(number: float, sign: str, bound: float) -> bool:
    """Whether a number stands on the side of a bound that a comparison says."""
    if sign in ("<", ">"):
        return number < bound if sign == "<" else number > bound
    return number <= bound if sign == "<=" else number >= bound


@lru_cache(maxsize=1 << 14)
def contradicts(condition: Condition) -> bool:
    """Whether a condition holds a test with both outcomes, or all members of what it says not to hold."""
    for test, outcome in condition:
        if (test, not outcome) in condition:
            return True
        if test[0] == "all" and not outcome and test[1] <= condition:
            return True
    return False


def compatible(*conditions: Condition) -> bool:
    """Whether all conditions can hold together."""
    given = [condition for condition in conditions if condition]
    if len(given) == 0:
        return True
    if len(given) == 1:
        return not contradicts(given[0])
    union = given[0].union(*given[1:])
    return not contradicts(union)


def both(a: Condition, b: Condition) -> tuple[Condition, bool]:
    """The conjunction, and whether it is complete: False when literals were dropped for its width."""
    if not a or a == b:
        return b, True
    if not b:
        return a, True
    union = a | b
    if len(union) <= WIDTH:
        return union, True
    return _narrowed(a, union), False


def _narrowed(first: Condition, union: Condition) -> Condition:
    """What stays of a condition that is too wide: what is said of devices, then the first part, then the rest, each whole.

    So no name decides what stays.
    """
    devices = frozenset(literal for literal in union if literal[0][0] in _OF_DEVICES)
    kept: Condition = ALWAYS
    for part in (devices, first, union):
        if len(kept | part) <= WIDTH:
            kept |= part
    return kept


def needs_no_accelerator(condition: Condition) -> bool:
    """Whether a condition holds only where no accelerator is."""
    return (ACCELERATOR, False) in condition
