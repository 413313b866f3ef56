"""`devlint events FILE[:LINE]`: what a rule can subscribe to, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devlint.cli import main

PROGRAM = """\
import torch

model = torch.nn.Linear(3, 3)
optimizer = torch.optim.Adam(model.parameters())
optimizer.to("cpu")
same = model.weight.device == "cpu"
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return str(path)


def test_line_is_shown_with_its_parts(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", f"{program}:5"]) == 0
    out = capsys.readouterr().out
    assert 'call `optimizer.to("cpu")`, which has no `to`' in out
    assert "receiver: optimizer (torch.optim.Adam), proved" in out


def test_file_is_shown_whole(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", program]) == 0
    out = capsys.readouterr().out
    assert all(word in out for word in ("assignment `model", "comparison `model.weight", "attribute `model.weight"))


def test_line_without_events_says_so(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", f"{program}:2"]) == 0
    assert "no events" in capsys.readouterr().out


def test_json_has_the_events(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "--output-format", "json", f"{program}:5"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["event"], row["name"], row["exists"], row["discarded"]) == ("InferredCall", "to", False, True)
    assert row["parts"]["arguments['0']"]["constant"] == "cpu"


@pytest.mark.parametrize("place", ["missing.py", "missing.py:3"])
def test_file_that_is_missing_is_wrong_usage(place: str) -> None:
    assert main(["events", place]) == 2


def test_line_beyond_the_file_is_wrong_usage(program: str) -> None:
    assert main(["events", f"{program}:99"]) == 2
