"""`devlint explain -`: a pasted traceback, the cause, and the line to change."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from devlint.cli import main
from devlint.commands.explain import FAMILIES, recognise, users_frame

TORCH_FRAME = (
    '  File "/usr/lib/site-packages/torch/nn/modules/linear.py", line 134, in forward\n    return F.linear(input)\n'
)
ADDMM = (
    "RuntimeError: Expected all tensors to be on the same device, but got mat1 is on cpu, different from other tensors "
    "on cuda:0 (when checking argument in method wrapper_CUDA_addmm)\n"
)


def explain(text: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    return main(["explain", "-"])


def test_the_cause_and_the_finding_that_leads_to_the_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "run.py"
    path.write_text(
        "import torch\nmodel = torch.nn.Linear(2, 2).cuda()\nx = torch.ones(1, 2)\nprint(model(x))\n", encoding="utf-8"
    )
    traceback = f'Traceback:\n  File "{path}", line 4, in <module>\n    print(model(x))\n{TORCH_FRAME}{ADDMM}'
    assert explain(traceback, monkeypatch) == 0
    out = capsys.readouterr().out
    assert "cause:  one operand of the operation is on the CPU, the others are on cuda:0" in out
    assert f"where:  {path}:4 in <module>" in out
    assert re.search(r"run\.py:3:5: DEV102 `torch\.ones` makes a CPU tensor", out)


def test_an_error_without_the_source_at_hand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "TypeError: can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor"
    assert explain(text, monkeypatch) == 0
    out = capsys.readouterr().out
    assert "numpy reads host memory, and the tensor is on cuda:0" in out
    assert ".detach().cpu().numpy()" in out


def test_an_error_that_is_none_of_devices(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert explain("ValueError: too many values to unpack", monkeypatch) == 1
    assert "no device error that devlint knows" in capsys.readouterr().out


def test_the_last_error_of_a_chain_counts() -> None:
    family, _ = recognise(ADDMM + "During handling of the above exception, another exception occurred:\n"
                          "AttributeError: 'Adam' object has no attribute 'to'\n")  # fmt: skip
    assert family is not None
    assert family.codes == ("DEV301",)


def test_the_innermost_frame_of_the_user() -> None:
    frame = users_frame(
        f'  File "train.py", line 7, in main\n    step()\n  File "train.py", line 3, in step\n{TORCH_FRAME}'
    )
    assert frame is not None
    assert (frame.path, frame.row, frame.name) == ("train.py", 3, "step")


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!", "DEV101"),
        (
            "Input type (torch.FloatTensor) and weight type (torch.cuda.FloatTensor) should be the same or input should "
            "be a MKLDNN tensor",
            "DEV103",
        ),
        (
            "Input and hidden tensors are not at the same device, found input tensor at cuda:0 and hidden tensor at cpu",
            "DEV102",
        ),
        ("indices should be either on cpu or on the same device as the indexed tensor (cpu)", "DEV104"),
        ("Expected a 'cuda' device type for generator but found 'cpu'", "DEV110"),
        ("'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor", "DEV112"),
        ("Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False.", "DEV208"),
        ("AssertionError: Torch not compiled with CUDA enabled", "DEV201"),
        ("RuntimeError: Cannot access accelerator device when none is available.", "DEV212"),
        ("Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing", "DEV605"),
        ("module must have its parameters and buffers on device cuda:0 (device_ids[0])", "DEV601"),
        ("AttributeError: 'DataLoader' object has no attribute 'cuda'", "DEV301"),
    ],
)
def test_each_family_is_recognised_by_torchs_wording(text: str, code: str) -> None:
    family, match = recognise(text)
    assert family is not None and match is not None
    assert code in family.codes
    assert family.meaning.format(**match.groupdict())


def test_every_family_names_a_remedy() -> None:
    assert all(family.remedy and family.codes for family in FAMILIES)


def test_a_file_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "no-such-file.txt"]) == 2
    assert "no-such-file.txt" in capsys.readouterr().err
