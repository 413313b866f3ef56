"""Correct programs in which something moves a value out of sight are left alone."""

from __future__ import annotations

from typing import Final

import pytest

from tests.inference.cases import findings, marks
from tests.inference.effects import EFFECTS

#: What the inference gets wrong, by program.
FAULTS: Final[dict[str, str]] = {}


@pytest.mark.parametrize(
    "text", [pytest.param(text, id=name, marks=marks(FAULTS.get(name))) for name, text in EFFECTS.items()]
)
def test_nothing_is_said(text: str) -> None:
    assert findings(text) == []


def test_every_fault_is_of_a_program() -> None:
    assert FAULTS.keys() <= EFFECTS.keys()
