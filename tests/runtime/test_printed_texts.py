"""What `run`, `verify` and the plugin say of texts of a program steers neither the terminal nor the log of a service."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from devlint.runtime import everywhere, verify
from devlint.runtime.bench import Report

ESCAPE, TURN = "\x1b[2J", "\u202e"
PROGRAM = f"""
import torch
try:
    torch.zeros(3).to("cuda:0") + torch.ones(3)  # {TURN}##vso[task.complete]
except RuntimeError:
    pass
print("{ESCAPE}own")
raise ValueError("{ESCAPE}\\n::error::{TURN}")
"""


def steers(text: str) -> bool:
    return any(part in text for part in ("\x1b", TURN, "\n::error", "##vso["))


@pytest.mark.parametrize("name", [f"a{ESCAPE}b.py", f"a{TURN}b.py", "a\n::error::b.py", "a##vso[b.py"])
@pytest.mark.parametrize("option", [[], ["--json"]], ids=["text", "json"])
def test_verify_prints_no_name_that_steers(
    name: str, option: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / name
    path.write_text("x = 1\n")
    monkeypatch.setattr(verify, "_verify", lambda request, options: Report(request.script, notes=[name]))
    verify.main([str(path), *option])
    out = capsys.readouterr().out
    assert not steers(out)
    assert not option or json.loads(out)["notes"] == [name]


def test_error_of_verify_does_not_steer(capsys: pytest.CaptureFixture[str]) -> None:
    assert verify.main([f"a{ESCAPE}{TURN}.py"]) == 2
    assert not steers(capsys.readouterr().err)


def test_table_of_all_machines_does_not_steer() -> None:
    stop = everywhere.Stop(everywhere.MACHINES[0], 1, f"ValueError: {ESCAPE}\n::error::{TURN}", "a.py:3")
    assert not steers(everywhere._as_text(f"a{ESCAPE}.py", [stop], {}))


def test_run_quotes_the_program_without_what_steers_and_passes_its_own_output_on(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "devlint", "run", "--device", "sim", "train.py"],
        cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert f"{ESCAPE}own" in done.stdout
    own, _, report = done.stderr.partition("devlint: simulated")
    assert "ValueError" in own
    assert "torch.ones(3)  # " in report
    assert not steers(report)


def test_tab_in_a_quoted_line_is_shown_as_blanks() -> None:
    stop = everywhere.Stop(everywhere.MACHINES[0], 1, "ValueError: a\tb", "a.py:3")
    assert "a    b" in everywhere._as_text("a.py", [stop], {})
