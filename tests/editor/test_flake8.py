"""The flake8 plugin, run by flake8 itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("flake8", reason="flake8 is not installed")


def flake8(path: Path, *options: str) -> str:
    command = [sys.executable, "-m", "flake8", "--isolated", "--select", "DEV", *options, path.name]
    return subprocess.run(command, cwd=path.parent, capture_output=True, text=True, check=False).stdout


def test_findings_come_under_their_codes(tmp_path: Path) -> None:
    path = tmp_path / "run.py"
    path.write_text('import torch\n\nx = torch.zeros(3).to("cuda")\n', encoding="utf-8")
    rows = flake8(path).splitlines()
    assert [row.split(" ", 1)[0] + " " + row.split(" ", 2)[1] for row in rows] == [
        "run.py:3:5: DEV501",
        "run.py:3:23: DEV201",
    ]


def test_flake8s_own_noqa_silences(tmp_path: Path) -> None:
    path = tmp_path / "run.py"
    path.write_text('import torch\n\nx = torch.zeros(3).to("cuda")  # noqa: DEV501, DEV201\n', encoding="utf-8")
    assert flake8(path) == ""


def test_devlints_settings_hold(tmp_path: Path) -> None:
    (tmp_path / "devlint.toml").write_text('ignore = ["DEV2"]\n', encoding="utf-8")
    path = tmp_path / "run.py"
    path.write_text('import torch\n\nx = torch.zeros(3).to("cuda")\n', encoding="utf-8")
    assert "DEV201" not in flake8(path)
