"""`devlint reveal FILE:LINE`: what is known of the values on a line, and why the rest is not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from devlint.cli import main

PROGRAM = """\
import torch
from mylib import load, to_card

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.zeros(3).to(device)
y = load() + x
z = load()  # devlint: device=cpu
w = to_card(torch.ones(2), device)
print(x, z, w)


def f(a, b: torch.Tensor):
    return a, b
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return str(path)


def reveal(place: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["reveal", place]) == 0
    return capsys.readouterr().out


def test_a_moved_tensor_with_its_trail(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = reveal(f"{program}:5", capsys)
    assert "  x: tensor on `device`, not 0-dim\n      line 5: moved to `device` here" in out
    assert "  torch.zeros(3): tensor on the CPU, not 0-dim\n      line 5: created on the CPU here" in out


def test_a_device_variable_names_its_device(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "  device: device names `device`" in reveal(f"{program}:4", capsys)


def test_the_reason_why_a_call_is_unknown(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "  load(): device unknown: devlint does not know what `load` returns" in reveal(f"{program}:6", capsys)


def test_a_comment_that_states_the_device_is_believed(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = reveal(f"{program}:9", capsys)
    assert "  z: tensor on the CPU\n      line 7: stated to be on the CPU by a comment here" in out


def test_an_argument_that_nothing_shows_to_be_a_tensor(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    out = reveal(f"{program}:13", capsys)
    assert "  a: device unknown: `a` is an argument, and nothing shows that it is a tensor" in out
    assert "  b: tensor on an accelerator" in out


def test_settings_teach_a_function_that_moves(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    settings = '[functions]\n"mylib.to_card" = { moves = 0, to = 1 }\n'
    Path(program).with_name("devlint.toml").write_text(settings, encoding="utf-8")
    assert "  w: tensor on `device`, not 0-dim" in reveal(f"{program}:9", capsys)


def test_json_rows(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reveal", f"{program}:5", "--output-format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows[0]["text"] == "x"
    assert rows[0]["device"] == ["device"]
    assert rows[0]["trail"] == [{"path": program, "row": 5, "message": "moved to `device` here"}]


def test_a_line_without_devices(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "no value with a device on this line" in reveal(f"{program}:3", capsys)


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("program.py", "expected FILE:LINE, not program.py"),
        ("program.py:x", "expected FILE:LINE, not program.py:x"),
        ("missing.py:3", "missing.py:1:1:"),
    ],
)
def test_a_place_that_is_none(place: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reveal", place]) == 2
    assert message in capsys.readouterr().err


def test_a_line_past_the_end(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reveal", f"{program}:99"]) == 2
    assert "has 13 lines, not 99" in capsys.readouterr().err


# -- the new inference


def test_the_new_inference_answers_where_it_is_switched_on(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(program).with_name("devlint.toml").write_text('inference = "new"\n', encoding="utf-8")
    out = reveal(f"{program}:5", capsys)
    assert "  torch.zeros(3): tensor on the CPU, not 0-dim\n      line 5: created on the CPU here" in out


def test_why_names_the_call_that_could_not_be_read(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reveal", f"{program}:6", "--why"]) == 0
    out = capsys.readouterr().out
    assert "  why `load() + x` is not reported\n      nobody knows where `load()` is" in out


def test_why_of_a_line_without_tensors(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reveal", f"{program}:1", "--why"]) == 0
    assert "  no operation on tensors on this line" in capsys.readouterr().out


def test_why_follows_a_call_into_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "parts.py").write_text("import torch\n\n\ndef ones():\n    return torch.ones(3)\n", encoding="utf-8")
    (tmp_path / "main.py").write_text(
        "import torch\nfrom parts import ones\n\nprint(ones() + torch.ones(3).cuda())\n", encoding="utf-8"
    )
    assert main(["reveal", str(tmp_path / "main.py:4"), "--why"]) == 0
    out = capsys.readouterr().out
    assert "reported as DEV101 (error): the code names both places on one path" in out
    assert f"{tmp_path / 'parts.py'} line 5: created on the CPU here" in out


def test_json_of_why(program: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reveal", f"{program}:6", "--why", "--output-format", "json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [each["text"] for each in answer["operations"]] == ["load() + x"]
    assert answer["operations"][0]["code"] is None


def test_why_names_the_call_in_another_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "import torch\n\n\ndef add(x: torch.Tensor):\n    return x + torch.ones(3)\n"
    (tmp_path / "parts.py").write_text(body, encoding="utf-8")
    call = "import torch\nfrom parts import add\n\nadd(torch.ones(3).cuda())\n"
    (tmp_path / "main.py").write_text(call, encoding="utf-8")
    assert main(["reveal", str(tmp_path / "parts.py:5"), "--why"]) == 0
    out = capsys.readouterr().out
    assert "reported as DEV102 (error): a call in the project hands over such a value" in out
    assert f"{tmp_path / 'main.py'}:4 calls `add`" in out
