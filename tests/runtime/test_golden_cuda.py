"""`benchmarks/golden_cuda.py` on a machine without a card, and its way of going on after a card is lost."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.runtime

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "golden_cuda.py"


@pytest.fixture(scope="module")
def golden() -> ModuleType:
    spec = importlib.util.spec_from_file_location("golden_cuda", SCRIPT)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has a card")
def test_without_a_card_it_says_so_and_succeeds() -> None:
    ended = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=120, check=False)
    assert ended.returncode == 0
    assert ended.stdout.startswith("skipped: ")


def test_child_that_loses_the_card_is_started_again_behind_that_entry(
    golden: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child.py"
    child.write_text(
        "import json, os, sys\n"
        "first, name = int(sys.argv[3]), sys.argv[4]\n"
        "for index in range(first, 4):\n"
        "    with open(name, 'a') as rows:\n"
        "        print(json.dumps({'index': index, 'name': str(index)}), file=rows)\n"
        "    if index == 1:\n"
        "        os._exit(1)\n",
        encoding="utf-8",
    )
    monkeypatch.setattr(golden, "__file__", str(child))
    rows, notes = golden._run("snippets", rehearse=False)
    assert [row["name"] for row in rows] == ["0", "1", "2", "3"]
    assert notes == []


def test_child_that_cannot_start_is_reported(
    golden: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = tmp_path / "child.py"
    child.write_text("raise SystemExit('no such table')\n", encoding="utf-8")
    monkeypatch.setattr(golden, "__file__", str(child))
    rows, notes = golden._run("mixed", rehearse=False)
    assert rows == []
    assert "no such table" in notes[0]


@pytest.mark.parametrize("part", ["snippets", "mixed", "waits", "claims", "programs", "verdicts"])
def test_every_part_is_a_module(golden: ModuleType, part: str) -> None:
    assert part in golden.PARTS
    assert (SCRIPT.parent / "golden" / f"{part}.py").exists()


def test_snippets_of_the_second_card_are_known(golden: ModuleType) -> None:
    from benchmarks.golden.snippets import needs_second_card

    assert needs_second_card((lambda w: w.x + w.other_x).__code__)
    assert needs_second_card((lambda w: [w.x.to(name) for name in ("cuda:1",)]).__code__)
    assert not needs_second_card((lambda w: w.x + w.host_x).__code__)
