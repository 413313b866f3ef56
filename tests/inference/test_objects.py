"""Objects that keep a model, a device and data: each fault is found, and its repaired twin is left alone."""

from __future__ import annotations

from typing import Final

import pytest

from tests.inference.cases import findings, halves, reported
from tests.inference.objects import OBJECTS

#: What the inference gets wrong, by case and half.
FAULTS: Final[dict[str, str]] = {
    "agent_samples_its_memory:wrong": "what a tensor of an argument is on is not known where it is kept in a deque",
    "hidden_state_reset_on_the_cpu:wrong": "a field that one method makes and another rebinds is nowhere known",
}


@pytest.mark.parametrize("text", halves(OBJECTS, "wrong", FAULTS))
def test_fault_is_found(text: str) -> None:
    assert reported(text)


@pytest.mark.parametrize("text", halves(OBJECTS, "right", FAULTS))
def test_repaired_twin_is_silent(text: str) -> None:
    assert findings(text) == []
