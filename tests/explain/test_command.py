"""`devlint explain -`: what it prints of a pasted traceback, and its exit codes."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest

from tests.conftest import Run

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from explained_errors import answers_in

TORCH_FRAME = (
    '  File "/usr/lib/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return F.linear(input)\n'
)
ADDMM = (
    "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors "
    "on cuda:0 (when checking argument in method wrapper_CUDA_addmm)\n"
)
TRACEBACK = f'Traceback:\n  File "run.py", line 4, in <module>\n    print(model(x))\n{TORCH_FRAME}{ADDMM}'
RUN = "import torch\nmodel = torch.nn.Linear(2, 2).cuda()\nx = torch.ones(1, 2)\nprint(model(x))\n"


@pytest.fixture
def explain(run: Run) -> Run:
    """Gives a text to `devlint explain -`."""
    return lambda text: run("explain", "-", stdin=text.encode())


def test_the_cause_and_the_finding_that_leads_to_the_line(tmp_path: Path, explain: Run) -> None:
    (tmp_path / "run.py").write_text(RUN, encoding="utf-8")
    result = explain(TRACEBACK)
    assert result.code == 0
    assert "cause:  one operand of the operation is on the CPU, and the other operands are on cuda:0\n" in result.out
    assert "remedy: move this operand to the device of the other operands before this line\n" in result.out
    assert "where:  run.py:4 in <module>\n" in result.out
    assert re.search(r"^run\.py:3:5: DEV102 `torch\.ones` makes a CPU tensor", result.out, re.MULTILINE)
    assert "    x = torch.ones(1, 2)\n" in result.out


def test_the_fix_of_a_finding(tmp_path: Path, explain: Run) -> None:
    text = "import torch\n\n\ndef add(x):\n    h = torch.zeros(3)\n    return x + h\n"
    (tmp_path / "run.py").write_text(text.replace("x)", "x: torch.Tensor)"), encoding="utf-8")
    result = explain(f'  File "run.py", line 6, in add\n    return x + h\n{ADDMM}')
    assert re.search(r"^run\.py:5:\d+: DEV102 ", result.out, re.MULTILINE)
    assert re.search(r"^    (?:\w+ fix|suggestion): .*device", result.out, re.MULTILINE)


def test_a_suspect_that_no_rule_finds(tmp_path: Path, explain: Run) -> None:
    text = "def train(model, loader):\n    for x, y in loader:\n        out = model(x)\n"
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    result = explain(f'  File "train.py", line 3, in train\n    out = model(x)\n{ADDMM}')
    assert (
        "train.py:2:5: `x` comes from a data loader: its batches stay on the CPU until they are moved\n" in result.out
    )
    assert "    for x, y in loader:\n" in result.out


def test_the_latest_place_where_a_value_can_be_moved(tmp_path: Path, explain: Run) -> None:
    (tmp_path / "helpers.py").write_text("import torch\n\n\ndef mask(n):\n    return torch.ones(n)\n", encoding="utf-8")
    text = "from helpers import mask\n\n\ndef main(x):\n    m = mask(3)\n    return x * m\n"
    (tmp_path / "run.py").write_text(text, encoding="utf-8")
    result = explain(f'  File "run.py", line 6, in main\n    return x * m\n{ADDMM}')
    assert "helpers.py:5:12: `torch.ones` creates a tensor on the CPU\n" in result.out
    assert "    run.py:5: `m` is assigned here; this is the last place to move it\n" in result.out
    # The benchmark counts this place as well.
    assert answers_in(result.out)[0] == {("helpers.py", 5), ("run.py", 5)}


def test_a_file_below_the_current_directory(tmp_path: Path, explain: Run) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "run.py").write_text(RUN, encoding="utf-8")
    result = explain(TRACEBACK.replace("run.py", "/home/me/project/src/run.py"))
    assert f"where:  {Path('src/run.py')}:4 in <module>\n" in result.out


def test_an_error_without_a_traceback(explain: Run) -> None:
    result = explain("TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor")
    assert result.code == 0
    assert "numpy reads host memory, but the tensor is on cuda:0" in result.out
    assert ".detach().cpu().numpy()" in result.out
    assert "where:" not in result.out


def test_an_error_without_the_source_at_hand(explain: Run) -> None:
    result = explain(TRACEBACK)
    assert result.code == 0
    assert "where:  run.py:4 in <module>, but its source is missing or cannot be parsed\n" in result.out


def test_an_error_that_is_none_of_devices(explain: Run) -> None:
    result = explain("ValueError: too many values to unpack")
    assert result.code == 1
    assert "finds no known device error" in result.out


def test_nothing(explain: Run) -> None:
    assert explain("").code == 1


def test_a_traceback_in_a_file(tmp_path: Path, run: Run) -> None:
    (tmp_path / "run.py").write_text(RUN, encoding="utf-8")
    (tmp_path / "log.txt").write_text(TRACEBACK, encoding="utf-8")
    result = run("explain", "log.txt")
    assert result.code == 0
    assert "where:  run.py:4 in <module>\n" in result.out


def test_standard_input_without_a_name(run: Run) -> None:
    assert run("explain", stdin=ADDMM.encode()).code == 0


def test_a_file_that_is_missing(run: Run) -> None:
    result = run("explain", "no-such-file.txt")
    assert result.code == 2
    assert "no-such-file.txt" in result.err


def test_bytes_that_are_no_text(run: Run) -> None:
    assert run("explain", stdin=b"\xff\xfe " + ADDMM.encode()).code == 0


def test_a_file_of_powershell(tmp_path: Path, run: Run) -> None:
    (tmp_path / "error.txt").write_bytes(ADDMM.encode("utf-16"))
    assert run("explain", "error.txt").code == 0


@pytest.mark.parametrize("path", ["a" * 5_000 + ".py", "ru\0n.py", "."])
def test_a_path_that_no_file_can_have(path: str, explain: Run) -> None:
    assert explain(TRACEBACK.replace("run.py", path)).code == 0


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_with_the_name_of_a_file(tmp_path: Path, explain: Run) -> None:
    os.mkfifo(tmp_path / "run.py")
    assert explain(TRACEBACK).code == 0


def test_source_that_cannot_be_parsed(tmp_path: Path, explain: Run) -> None:
    (tmp_path / "run.py").write_text('print "a"\n', encoding="utf-8")
    assert "where:  run.py:4 in <module>, but its source is missing or cannot be parsed\n" in explain(TRACEBACK).out
