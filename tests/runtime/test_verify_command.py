"""The command: arguments, exit codes, the text for people and the JSON for programs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from devlint.runtime import verify as module

pytestmark = pytest.mark.runtime

PROGRAM = """\
import sys

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
weight = torch.nn.Parameter(torch.ones(3, device=device))
optimizer = torch.optim.SGD([weight], lr=0.1)
for step in range(4):
    shift = torch.arange(3.0)
    loss = ((weight + shift) ** 2).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
assert sys.argv[1:] == ["--flag", "5"]
"""
RIGHT = {"code": "DEV102", "at": "torch.arange(3.0)", "replace": [["3.0)", "3.0, device=device)"]]}
WRONG = {
    "code": "DEV102",
    "at": "torch.arange(3.0)",
    "replace": [["3.0)", "3.0, device='cpu')"]],
    "related": ["loss ="],
}
UNREACHED = {"code": "DEV101", "at": "assert sys", "replace": [['"--flag"', "'--flag'"]]}


@pytest.fixture
def program(tmp_path: Path, shared_launcher: None) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def verify(program: Path, *fixes: dict[str, Any], options: tuple[str, ...] = ()) -> int:
    hand = program.with_suffix(".json")
    hand.write_text(json.dumps(fixes), encoding="utf-8")
    return module.main([str(program), "--device", "sim", "--fixes", str(hand), *options, "--", "--flag", "5"])


def test_confirmed_fix_exits_0(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, RIGHT) == 0
    text = capsys.readouterr().out
    assert f"{program}:9:13: DEV102 (unsafe fix): CONFIRMED on simulated cuda" in text
    assert "without the fix, line 10: RuntimeError: Expected all tensors to be on the same device" in text
    assert "with it, that line ran 4 times" in text
    assert text.endswith("1 fix: 1 confirmed.\n")


def test_fault_that_two_fixes_remove_confirms_both(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = {"code": "DEV101", "at": "weight + shift", "replace": [["shift", "shift.to(device)"]]}
    assert verify(program, RIGHT, other) == 0
    text = capsys.readouterr().out
    assert text.count("another fix removes the same fault") == 2
    assert text.endswith("2 fixes: 2 confirmed.\n")


def test_losses_that_vary_by_themselves_are_not_compared(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = PROGRAM.replace("device = ", "torch.seed()\ndevice = ").replace("arange(3.0)", "rand(3)")
    program.write_text(text, encoding="utf-8")
    assert verify(program, {"code": "DEV102", "at": "torch.rand(3)", "replace": [["(3)", "(3, device=device)"]]}) == 0
    out = capsys.readouterr().out
    assert "1 confirmed" in out
    assert "note: the losses differ between runs with the same seed" in out


def test_refuted_fix_exits_1(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, WRONG) == 1
    assert "REFUTED on simulated cuda" in capsys.readouterr().out


def test_nothing_judged_exits_3(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, UNREACHED) == 3
    assert "COULD NOT JUDGE" in capsys.readouterr().out


def test_no_fix_exits_0(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program) == 0
    assert capsys.readouterr().out == "No fix to verify.\n"


def test_hint_is_listed_and_not_judged(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, {"code": "DEV502", "at": "loss.backward()", "message": "a hint"}) == 0
    assert f"{program}:12:5: DEV502 a hint" in capsys.readouterr().out


def test_steps_limit_the_runs(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, RIGHT, options=("--steps", "2")) == 0
    assert "limit reached: 2 optimizer steps" in capsys.readouterr().out


def test_json(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, RIGHT, options=("--json",)) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["exit_code"] == 0
    assert row["device"] == "simulated cuda, CPU kernels"
    assert [(run["run"], run["outcome"]) for run in row["runs"]][:2] == [
        ("original", "stopped by a device fault"),
        ("corrected (1 fix)", "finished"),
    ]
    fix = row["fixes"][0]
    assert (fix["verdict"], fix["location"], fix["then"]) == ("confirmed", {"row": 9, "column": 13}, None)
    assert fix["end_location"] == {"row": 9, "column": 30}


def test_fixes_that_break_the_syntax_are_named(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, {"code": "DEV101", "at": "weight + shift", "replace": [["+", "+)"]]}) == 2
    assert "DEV101 at line 10 breaks the syntax" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ([], "the following arguments are required: PATH"),
        (["missing.py"], "missing.py is not a file"),
        (["train.py", "other.py"], "give a command after --"),
        (["."], "give a command after --"),
        (["train.py", "--memory", "much"], "must be a size such as 500M or 4G"),
        (["train.py", "--device", "tpu"], "known devices: auto, cpu"),
        (["train.py", "--device", "sim:0"], "number of simulated cards"),
        (["train.py", "--steps", "0"], "must be at least 1"),
        (["train.py", "--timeout", "-1"], "must be more than 0"),
    ],
)
def test_wrong_usage_exits_2(arguments: list[str], error: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert module.main(arguments) == 2
    assert error in capsys.readouterr().err


def test_program_that_is_no_python_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "broken.py"
    path.write_text("import torch\ndef f(:\n", encoding="utf-8")
    assert module.main([str(path), "--device", "sim"]) == 2
    assert f"{path}:2" in capsys.readouterr().err


def test_device_that_is_not_there_exits_2(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    torch = pytest.importorskip("torch")
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        pytest.skip("this machine has an xpu")
    hand = program.with_suffix(".json")
    hand.write_text(json.dumps([RIGHT]), encoding="utf-8")
    assert module.main([str(program), "--device", "xpu", "--fixes", str(hand)]) == 2
    assert "no xpu device" in capsys.readouterr().err


def test_many_fixes_cost_fewer_runs_than_fixes(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Twelve fixes that each are needed, and three that are not."""
    names = [f"s{number}" for number in range(15)]
    moved = [
        f"{name} = weight.detach() + torch.arange({number}.0, {number + 3}.0)" for number, name in enumerate(names)
    ]
    moved[12:] = [f"{name} = weight.detach() + weight.detach()" for name in names[12:]]
    program.write_text("\n".join([*PROGRAM.splitlines()[:6], *moved, ""]), encoding="utf-8")
    fixes: list[dict[str, Any]] = [
        {"code": "DEV102", "at": text, "replace": [[".0)", ".0, device=device)"]]} for text in moved[:12]
    ]
    fixes += [
        {"code": "DEV101", "at": text, "replace": [["detach() +", "detach().to(device) +"]]} for text in moved[12:]
    ]
    assert verify(program, *fixes, options=("--json",)) == 0
    row = json.loads(capsys.readouterr().out)
    assert [fix["verdict"] for fix in row["fixes"]] == ["confirmed"] * 12 + ["not reproduced"] * 3
    on_card = [run for run in row["runs"] if "plain CPU" not in run["run"]]
    assert len(on_card) < len(fixes)
    assert not any("without DEV102" in run["run"] for run in on_card)
    assert any("judged by 7 runs. Each run left out a group" in note for note in row["notes"])


def test_page_and_trace_are_written(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, trace = program.with_name("report.html"), program.with_name("trace.json")
    assert verify(program, RIGHT, options=("--html", str(page), "--trace", str(trace))) == 0
    assert page.read_text(encoding="utf-8").count("<svg") >= 2
    assert any(row.get("cat") == "fault" for row in json.loads(trace.read_text(encoding="utf-8"))["traceEvents"])


def test_page_that_cannot_be_written_exits_2_before_anything_runs(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(program, RIGHT, options=("--html", str(program.parent / "missing" / "report.html"))) == 2
    assert "cannot write" in capsys.readouterr().err
