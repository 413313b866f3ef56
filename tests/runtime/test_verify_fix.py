"""`verify --fix`, and how a verification ends: what is written, what is let through, what a corrected program lacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from devlint.runtime import verify as module
from devlint.runtime.processes import _Input

pytestmark = pytest.mark.runtime

PROGRAM = """\
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
weight = torch.ones(3, device=device)
shift = torch.arange(3.0)
total = weight + shift
scale = torch.arange(3.0, 6.0)
print((total * scale).sum().item())
"""
SHIFT = {
    "code": "DEV102",
    "at": "torch.arange(3.0)",
    "replace": [["3.0)", "3.0, device=device)"]],
    "related": ["total"],
}
SCALE = {"code": "DEV102", "at": "torch.arange(3.0, 6.0)", "replace": [["6.0)", "6.0, device=device)"]]}
WRONG_SCALE = {"code": "DEV102", "at": "torch.arange(3.0, 6.0)", "replace": [["6.0)", "6.0, device=device) * 0"]]}


@pytest.fixture
def program(tmp_path: Path, shared_launcher: None) -> Path:
    path = tmp_path / "train.py"
    path.write_text(PROGRAM, encoding="utf-8")
    return path


def verify(program: Path, *fixes: dict[str, Any], options: tuple[str, ...] = ()) -> int:
    hand = program.with_suffix(".json")
    hand.write_text(json.dumps(fixes), encoding="utf-8")
    return module.main([str(program), "--device", "sim", "--fixes", str(hand), *options])


def test_confirmed_fixes_are_written(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, SHIFT, SCALE, options=("--fix",)) == 0
    text = program.read_text(encoding="utf-8")
    assert text == PROGRAM.replace("(3.0)", "(3.0, device=device)").replace("6.0)", "6.0, device=device)")
    assert "wrote 2 confirmed fixes.\nThe program with these fixes reaches its intended end." in capsys.readouterr().out


def test_a_refuted_fix_is_not_written(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, SHIFT, WRONG_SCALE, options=("--fix",)) == 1
    assert program.read_text(encoding="utf-8") == PROGRAM.replace("(3.0)", "(3.0, device=device)")
    out = capsys.readouterr().out
    assert (
        "wrote 1 confirmed fix.\nThe program with these fixes does not reach its intended end: it stops at line 8"
        in out
    )


def test_a_program_without_confirmed_fixes_stays(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, WRONG_SCALE, options=("--fix",)) == 1
    assert program.read_text(encoding="utf-8") == PROGRAM
    assert "Nothing was written." in capsys.readouterr().out


def test_a_program_that_runs_and_has_no_fix_exits_0(program: Path) -> None:
    program.write_text("import torch\n\nprint(torch.ones(2).sum().item())\n", encoding="utf-8")
    assert verify(program, options=("--fix",)) == 0


def test_a_read_only_file_is_refused_before_anything_runs(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if os.access("/", os.W_OK):
        pytest.skip("everything can be written here")
    program.chmod(0o400)
    assert verify(program, SHIFT, options=("--fix",)) == 2
    assert "read-only" in capsys.readouterr().err


def test_a_corrected_program_that_still_stops_is_no_success(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(program, SHIFT) == 1
    assert "The corrected program does not reach its intended end: it stops at line 8" in (capsys.readouterr().out)


def test_an_end_that_is_meant_is_a_success(program: Path) -> None:
    program.write_text(PROGRAM + "raise SystemExit(3)\n", encoding="utf-8")
    assert verify(program, SHIFT, SCALE) == 0


LATE = """\
import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
weight = torch.ones(3, device=device)
missed = weight {missed}
shift = torch.arange(3.0)
total = weight + shift
print(total.sum().item())
"""


@pytest.mark.parametrize("missed", ["+ torch.ones(3)", "* torch.arange(3)", ".cumsum(0).numpy()"])
def test_a_missed_fault_blocks_no_other_fix(missed: str, program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(LATE.replace("{missed}", missed), encoding="utf-8")
    assert verify(program, SHIFT) == 1
    out = capsys.readouterr().out
    assert "1 confirmed." in out
    assert "note: line 5: no fix addresses this fault; it was ignored to judge the other fixes" in out


def test_where_both_runs_stop_at_import_nothing_more_is_started(
    program: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program.write_text("import torch\nimport no_such_module_here\n" + PROGRAM, encoding="utf-8")
    assert verify(program, SHIFT, options=("--json",)) == 3
    row = json.loads(capsys.readouterr().out)
    assert len(row["runs"]) == 2
    assert row["fixes"][0]["verdict"] == "could not judge"


WORKER = """\
import torch
from torch.utils.data import DataLoader, Dataset


class Rows(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return torch.ones(2).cuda()


weight = torch.ones(2).cuda()
for batch in DataLoader(Rows(), batch_size=2, num_workers=1):
    print(batch.sum().item())
"""


def test_a_device_that_a_worker_touches_is_a_device_fault(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program.write_text(WORKER, encoding="utf-8")
    fix = {
        "code": "DEV501",
        "at": "torch.ones(2).cuda()\nfor",
        "replace": [["torch.ones(2).cuda()\nf", "torch.ones(2, device='cuda')\nf"]],
    }
    verify(program, fix, options=("--json",))
    row = json.loads(capsys.readouterr().out)
    assert row["runs"][0]["outcome"] == "stopped by a device fault"
    assert "in forked subprocess" in row["falls_short"]


def test_progress_shows_in_a_pipe(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    verify(program, SHIFT, SCALE)
    assert capsys.readouterr().err.startswith(
        "devlint verify: run 1: original\ndevlint verify: run 2: corrected (2 fixes)\n"
    )


def test_a_notebook_is_refused_with_a_way_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text("{}", encoding="utf-8")
    assert module.main([str(path), "--device", "sim"]) == 2
    assert "takes no notebooks" in capsys.readouterr().err


def test_a_command_after_the_file_runs_it(
    program: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(program.parent)
    (program.parent / "drive.py").write_text("import train\n", encoding="utf-8")
    assert module.main(["train.py", "--device", "sim", "--", "python", "drive.py"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("python drive.py, run on:")
    assert "2 confirmed." in out


def test_standard_input_is_handed_on_to_every_run(tmp_path: Path) -> None:
    text = "import sys\nimport torch\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\nn = int(input())\n"
    text += "print(sys.stdin.read().split(), (torch.ones(n, device=device) + torch.arange(float(n))).sum().item())\n"
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "devlint", "verify", "train.py", "--device", "sim"],
        cwd=tmp_path, input="4\na b\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 confirmed." in done.stdout


def test_input_is_given_from_its_beginning_each_time_and_may_stay_open() -> None:
    end, start = os.pipe()
    given = _Input(end)
    os.write(start, b"one\n")
    for _ in range(2):
        reading = given.give()
        assert os.read(reading, 100) == b"one\n"
        os.close(reading)
    os.close(start)
