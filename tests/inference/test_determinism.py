"""What is said of a program depends on what it means alone: not on the run, and not on the names that it chose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pytest

from tests.inference.cases import PRELUDE, findings
from tests.inference.conditions import CONDITIONS
from tests.inference.effects import EFFECTS, OUT_OF_REACH
from tests.inference.objects import OBJECTS
from tests.inference.renaming import old_names, renamed

#: More tests than one condition keeps.
WIDE: Final = (
    PRELUDE
    + """
def run(a: bool, b: bool, c: bool, d: bool, e: bool, f: bool, g: bool, h: bool):
    bias = torch.rand(3)
    if a and b and c and d and e and f and g and h:
        bias = bias.cuda()
    if a and b and c and d and e and f and g:
        return torch.rand(3).cuda() + bias
    return None
"""
)


def programs() -> Iterator[tuple[str, str]]:
    for case in (*OBJECTS, *CONDITIONS):
        yield case.name, case.wrong
        yield case.name + "_repaired", case.right
    yield from EFFECTS.items()
    yield from OUT_OF_REACH.items()
    yield "condition_that_is_too_wide", WIDE


PARAMETERS: Final = [pytest.param(text, id=name) for name, text in programs()]


@pytest.mark.parametrize("text", PARAMETERS)
def test_two_runs_say_the_same_in_the_same_order(text: str) -> None:
    assert findings(text) == findings(text)


@pytest.mark.parametrize("text", PARAMETERS)
def test_other_names_change_nothing(text: str) -> None:
    other, _ = renamed(text)
    assert [each[:5] for each in findings(other)] == [each[:5] for each in findings(text)]


@pytest.mark.parametrize("text", PARAMETERS)
def test_other_names_are_named_in_the_message(text: str) -> None:
    other, names = renamed(text)
    back = [(old_names(each.when, names), old_names(each.clause, names)) for each in findings(other)]
    expected = [(each.when, each.clause) for each in findings(text)]
    assert [(_parts(when), clause) for when, clause in back] == [(_parts(when), clause) for when, clause in expected]


def _parts(when: str) -> set[str]:
    """The literals of a condition; their order follows the names."""
    return set(when.split(" and ")) if when else set()
