"""`devlint events FILE[:LINE]`: what a rule can subscribe to, as text and as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devlint import api
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


def test_types_of_events_are_listed_without_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events"]) == 0
    rows = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert rows["InferredCall"] == 'A call (`inference = "new"`)'
    assert "new" not in rows["Create"]
    assert {name for name in vars(api) if is_event(name)} - {"Event"} == rows.keys()


def is_event(name: str) -> bool:
    kind = getattr(api, name)
    return isinstance(kind, type) and issubclass(kind, api.Event)


def test_types_of_events_are_listed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["events", "--output-format", "json"]) == 0
    (row,) = [each for each in json.loads(capsys.readouterr().out) if each["event"] == "DeviceMismatch"]
    assert row["needs_inference"] is True


@pytest.mark.parametrize(("settings", "notes"), [("", 1), ('inference = "new"\n', 0)])
def test_settings_without_the_new_inference_are_named(
    program: str, capsys: pytest.CaptureFixture[str], settings: str, notes: int
) -> None:
    (Path(program).parent / "devlint.toml").write_text(settings, encoding="utf-8")
    assert main(["events", program]) == 0
    assert capsys.readouterr().err.count("`devlint check` emits these events") == notes


def test_place_with_a_condition_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "program.py"
    path.write_text(
        "import torch\n\n\ndef f(fast):\n    x = torch.ones(3)\n    if fast:\n        x = x.cuda()\n    x.half()\n"
    )
    assert main(["events", f"{path}:8"]) == 0
    assert "receiver: tensor, on cpu if `fast` is false or cuda if `fast` is true, proved" in capsys.readouterr().out
