"""The gates of the surveys save time and hide nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.facts.analysis import analyse
from devlint.facts.surveys import survey
from devlint.settings import Settings
from devlint.source import decode, parse
from devlint.testing import read_fixture

FIXTURES = Path(__file__).parents[2] / "fixtures"
CODES = ("DEV502", "DEV503", "DEV504", "DEV505", "DEV506", "DEV507", "DEV508", "DEV509", "DEV510", "DEV601", "DEV602",
         "DEV603", "DEV604", "DEV605")  # fmt: skip
CASES = [path for code in CODES for path in sorted((FIXTURES / code).glob("*.py"))]


def found(path: Path) -> list[tuple[str, int, int]]:
    source = decode(read_fixture(path.read_bytes(), path.name).raw, path.name)
    facts = analyse(parse(source), source, Settings())
    return [(type(event).__name__, *event.span) for event in facts.events]


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_without_gates_the_same_is_found(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gated = found(path)
    monkeypatch.setattr(survey, "SURVEYS", tuple((run, survey.words("")) for run, _ in survey.SURVEYS))
    assert found(path) == gated


LOOP = """
def f(model, xs):
    total = 0
    for x in xs:
        loss = model(x)
        loss.backward()
        total += loss
"""


def test_a_file_without_torch_is_not_surveyed() -> None:
    kinds = []
    for text in (LOOP, "import torch\n" + LOOP):
        source = decode(text.encode(), "case.py")
        kinds.append({type(event).__name__ for event in analyse(parse(source), source, Settings()).events})
    assert "Retained" not in kinds[0]
    assert "Retained" in kinds[1]
