"""What moves a value out of sight: correct programs are left alone, and what a call does not reach is still found."""

from __future__ import annotations

from typing import Final

import pytest

from tests.inference.cases import findings, marks, reported
from tests.inference.effects import EFFECTS, OUT_OF_REACH

#: What the inference gets wrong, by program.
FAULTS: Final[dict[str, str]] = {
    "list_replaced_by_slice": "a write to a slice is not read",
    "list_popped_and_appended": "after `pop` the numbered items are taken to be the same",
    "hook_moves_the_inputs": "hooks of a module are not read",
    "flag_ends_the_loop_with_the_move": "a flag that ends the loop does not end it",
}


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=name, marks=marks(FAULTS.get(name))) for name, text in EFFECTS.items()]
)
def test_nothing_is_said(text: str) -> None:
    assert findings(text) == []


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=name, marks=marks(FAULTS.get(name))) for name, text in OUT_OF_REACH.items()]
)
def test_what_a_call_does_not_reach_is_found(text: str) -> None:
    assert reported(text)


def test_every_fault_is_of_a_program() -> None:
    assert FAULTS.keys() <= EFFECTS.keys() | OUT_OF_REACH.keys()
