"""Conditions that belong together: a fault on one path is found, a path that does not exist is no fault."""

from __future__ import annotations

from typing import Final

import pytest

from tests.inference.cases import findings, halves, reported
from tests.inference.conditions import CONDITIONS

#: What the inference gets wrong, by case and half.
FAULTS: Final[dict[str, str]] = {
    "isinstance_asked_twice:wrong": "a tensor made of a list is not known to have a dimension",
}


@pytest.mark.parametrize("text", halves(CONDITIONS, "wrong", FAULTS))
def test_fault_is_found(text: str) -> None:
    assert reported(text)


@pytest.mark.parametrize("text", halves(CONDITIONS, "right", FAULTS))
def test_repaired_twin_is_silent(text: str) -> None:
    assert findings(text) == []
