"""`--verbose`: what is left alone on purpose, with the reason, and why a fix is not applied; all on standard error."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from devlint.cli import main

HEAD = "import torch\n"


class Said(NamedTuple):
    """What a command line printed."""

    out: str
    err: str


Cli = Callable[..., Said]


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs `devlint check` on files of an empty directory, one line a problem."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Said:
        form = () if "--output-format" in arguments else ("--output-format", "concise")
        main(["check", "--color", "never", *form, *arguments])
        return Said(*capsys.readouterr())

    return run


def write(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


CASES = {
    "a condition that names the accelerator": (
        """
        def f(x, use_cuda):
            return x.cuda() if use_cuda else x
        """,
        "3:12: DEV202 left alone: it only runs under the condition `use_cuda`",
    ),
    "a proved guard": (
        """
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        """,
        "3:5: DEV205 left alone: it only runs under the condition `torch.cuda.is_available()`",
    ),
    "a test that is skipped without CUDA": (
        """
        import pytest

        @pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a card")
        def test_move():
            make().cuda()
        """,
        "6:5: DEV202 left alone: a check for cuda comes before this code, or before every call of it",
    ),
    "a file whose tests are marked": (
        """
        import pytest
        pytestmark = pytest.mark.gpu

        def move(x):
            return x.cuda()
        """,
        "6:12: DEV202 left alone: the tests of this file are marked for an accelerator (line 3)",
    ),
    "a kernel": (
        """
        import triton

        x = torch.zeros(3, device="cuda")
        """,
        "4:27: DEV201 left alone: the file imports `triton`, which contains CUDA kernels (line 2)",
    ),
    "a compiled extension": (
        """
        import roi_align_cuda

        def f(x):
            return roi_align_cuda.forward(x.cuda())
        """,
        "5:35: DEV202 left alone: the file imports `roi_align_cuda`, which contains CUDA kernels (line 2)",
    ),
    "captured graphs": (
        """
        def capture(step, seed):
            graph = torch.cuda.CUDAGraph()
            torch.cuda.synchronize()
        """,
        "4:5: DEV205 left alone: the file captures CUDA graphs (line 3)",
    ),
    "a function that is named so": (
        """
        def to_cuda(batch):
            return [x.cuda() for x in batch]
        """,
        "3:13: DEV202 left alone: `to_cuda` is written for cuda, as its name says",
    ),
    "a function that raises nothing": (
        """
        def f(x):
            torch.cuda.empty_cache()
        """,
        "3:5: DEV205 left alone: it raises no error without CUDA",
    ),
    "a seed": (
        """
        torch.cuda.manual_seed_all(0)
        """,
        "2:1: DEV205 left alone: it raises no error without CUDA",
    ),
    "a call whose error is caught": (
        """
        try:
            torch.cuda.synchronize()
        except Exception:
            pass
        """,
        "3:5: DEV205 left alone: a `try` around it catches the error that it raises without CUDA",
    ),
    "one arm of a choice": (
        """
        x = torch.zeros(3, device="cuda" if torch.cuda.is_available() else "cpu")
        """,
        "2:27: DEV201 left alone: the code chooses another device where this one is absent",
    ),
    "a name that is bound under a condition": (
        """
        if torch.cuda.is_available():
            name = "cuda"
        else:
            name = "cpu"
        """,
        "3:12: DEV201 left alone: it only runs under the condition `torch.cuda.is_available()`",
    ),
    "an arm that is bound": (
        """
        é = "cuda:0" if torch.cuda.device_count() > 0 else "cpu"
        """,
        "2:5: DEV201 left alone: it only runs under the condition `torch.cuda.device_count() > 0`",
    ),
    "where a checkpoint was saved": (
        """
        def load(path, place):
            return torch.load(path, map_location={"cuda:0": place})
        """,
        "3:43: DEV201 left alone: it names where the tensors were saved, not where they go",
    ),
    "a default": (
        """
        def load(path, device="cuda"):
            return torch.load(path, map_location=device)
        """,
        "2:23: DEV201 left alone: it is a default that a caller may replace; DEV213 reports defaults, and is off by default",
    ),
    "mixed precision": (
        """
        def step(model, x):
            with torch.autocast("cuda", dtype=torch.bfloat16):
                return model(x)
        """,
        "3:25: DEV201 left alone: torch disables mixed precision for an absent device type, with a warning",
    ),
    "a legacy type under a condition": (
        """
        def f(x, gpu):
            return x.type(torch.cuda.FloatTensor) if gpu else x
        """,
        "3:19: DEV203 left alone: it only runs under the condition `gpu`",
    ),
}


@pytest.mark.parametrize(("code", "note"), CASES.values(), ids=CASES)
def test_what_is_left_alone_on_purpose_is_named_with_its_reason(cli: Cli, code: str, note: str) -> None:
    write("a.py", HEAD + textwrap.dedent(code).lstrip("\n"))
    assert f"a.py:{note}" in cli("-v", "--select", "DEV2", "a.py").err.splitlines()


@pytest.mark.parametrize(("code", "note"), CASES.values(), ids=CASES)
def test_nothing_of_it_is_said_without_the_option(cli: Cli, code: str, note: str) -> None:
    write("a.py", HEAD + textwrap.dedent(code).lstrip("\n"))
    assert "left alone" not in cli("--select", "DEV2", "a.py").err


def test_a_finding_is_not_left_alone(cli: Cli) -> None:
    write("a.py", HEAD + "def f(x):\n    return x.cuda()\n")
    assert "left alone" not in cli("-v", "a.py").err


def test_a_rule_that_is_not_selected_gives_no_reasons(cli: Cli) -> None:
    write("a.py", HEAD + "def to_cuda(x):\n    return x.cuda()\n")
    assert "left alone" not in cli("-v", "--select", "DEV1", "a.py").err


def test_a_placement_on_several_cards_is_why_its_fix_is_a_hint(cli: Cli) -> None:
    write("a.py", HEAD + 'a = torch.zeros(3, device="cuda:0")\nb = torch.zeros(3, device="cuda:1")\n')
    place = (
        "the rule only suggests a change: the file distributes work over several devices, for example cuda:1 (line 3)"
    )
    assert f"a.py:2:27: DEV201 not fixed: {place}" in cli("-v", "a.py").err


def test_a_call_whose_result_is_used_is_why_its_fix_is_a_hint(cli: Cli) -> None:
    write("a.py", HEAD + "def card():\n    return torch.cuda.current_device()\n")
    why = "the rule only suggests a change: the result is used, and the code provides no other value"
    assert f"a.py:3:12: DEV205 not fixed: {why}" in cli("-v", "a.py").err


@pytest.mark.parametrize(
    "line",
    [
        "start = torch.cuda.Event(enable_timing=True)",
        "side = torch.cuda.Stream()",
        "name = torch.cuda.get_device_name()",
    ],
)
def test_a_line_that_needs_the_card_whatever_is_chosen_is_why_no_device_is_chosen(cli: Cli, line: str) -> None:
    write("a.py", HEAD + f'device = torch.device("cuda")\n{line}\nx = torch.zeros(3, device=device)\n')
    assert "a.py:2:23: DEV201 not fixed: the rule only suggests a change: line 3 needs the GPU" in cli("-v", "a.py").err


def test_an_unsafe_fix_says_how_to_apply_it(cli: Cli) -> None:
    write("a.py", HEAD + "def f(x):\n    return x.cuda()\n")
    note = "a.py:3:12: DEV202 not fixed: the fix is unsafe; `--unsafe-fixes` applies it"
    assert note in cli("--fix", "-v", "a.py").err
    assert note not in cli("--fix", "--unsafe-fixes", "--diff", "-v", "a.py").err


def test_a_fix_that_would_lose_a_comment_says_so(cli: Cli) -> None:
    write("a.py", HEAD + "def f(x):\n    torch.cuda.synchronize(  # all of it\n    )\n    return x\n")
    assert "DEV205 not fixed: the rule only suggests a change" in cli("-v", "a.py").err


def test_reports_for_machines_stay_as_they_are(cli: Cli) -> None:
    write("a.py", HEAD + "def to_cuda(x):\n    return x.cuda()\n")
    said = cli("-v", "--output-format", "json", "a.py")
    assert json.loads(said.out) == []
    assert "a.py:3:12: DEV202 left alone" in said.err


def test_a_notebook_names_the_cell(cli: Cli) -> None:
    cells = ["import torch\nimport triton", "x = torch.zeros(3).cuda()"]
    notebook = {
        "cells": [
            {"cell_type": "code", "metadata": {}, "outputs": [], "execution_count": None, "source": text}
            for text in cells
        ],
        "metadata": {"language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    write("a.ipynb", json.dumps(notebook))
    place = "the file imports `triton`, which contains CUDA kernels (line 2 of cell 1)"
    assert f"a.ipynb:cell 2:1:5: DEV202 left alone: {place}" in cli("-v", "a.ipynb").err


def test_results_of_a_run_without_the_option_are_not_taken_for_an_explanation(cli: Cli) -> None:
    write("a.py", HEAD + "def to_cuda(x):\n    return x.cuda()\n")
    cli("a.py")
    assert "left alone" in cli("-v", "a.py").err
    assert "left alone" in cli("-v", "a.py").err
    assert "left alone" not in cli("a.py").err


def test_several_processes_say_the_same(cli: Cli) -> None:
    for number in range(6):
        write(f"m{number}.py", HEAD + "def to_cuda(x):\n    return x.cuda()\n")
    assert cli("-v", "-j", "2", ".").err == cli("-v", "-j", "1", ".").err
