"""What one decision settles is one finding of a report, and what is never reached belongs to what stops before it."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devlint.folding import dominates, ways

Cli = Callable[..., Any]  # of conftest.py
ALL = ("--select", "DEV2,DEV901", "--ignore", "DEV211,DEV213")
TWELVE = "import torch\n\n" + "".join(f'x{i} = torch.rand(3).to("cuda:0")\n' for i in range(12))


def reported(cli: Cli, text: str, *arguments: str) -> list[str]:
    Path("a.py").write_text(text)
    return [line for line in cli(*ALL, *arguments).out.splitlines() if line.startswith("a.py:")]


def test_twelve_lines_are_one_finding(cli: Cli) -> None:
    assert reported(cli, TWELVE) == ["a.py:3:23: DEV201 [*] device is hardcoded to `cuda:0` (12 times: lines 3-14)"]


def test_one_fix_settles_all_of_them(cli: Cli) -> None:
    Path("a.py").write_text(TWELVE)
    done = cli(*ALL, "--fix")
    assert done.out.startswith("Fixed 1 problem; none left")
    assert Path("a.py").read_text().count(".to(device)") == 12


def test_the_fix_of_the_finding_holds_every_edit_and_the_definition_once(cli: Cli) -> None:
    Path("a.py").write_text(TWELVE)
    (row,) = json.loads(cli(*ALL, "--output-format", "json").out)
    assert len(row["fix"]["edits"]) == 13
    assert [each["location"]["row"] for each in row["folded"]] == list(range(4, 15))


def test_both_ways_to_name_a_card_are_one_decision(cli: Cli) -> None:
    text = 'import torch\n\nx = torch.rand(3).cuda()\ny = torch.rand(3, device="cuda:0")\n'
    assert reported(cli, text) == [
        "a.py:3:5: DEV202 [*] `.cuda()` raises an error on a machine without CUDA (twice: lines 3 and 4)"
    ]


def test_places_in_several_functions_are_one_decision(cli: Cli) -> None:
    text = (
        "import torch\n\n\ndef f():\n    return torch.rand(3).cuda()\n\n\ndef g():\n    return torch.rand(2).cuda()\n"
    )
    assert len(reported(cli, text)) == 1


def test_each_of_several_cards_is_a_decision(cli: Cli) -> None:
    line = 'torch.rand(3, device="cuda:{}")\n'
    text = "import torch\n\n" + line.format(0) * 2 + line.format(1) * 3
    assert [line.partition("`cuda:")[2][3:] for line in reported(cli, text)] == [
        "(twice: lines 3 and 4)",
        "(3 times: lines 5-7)",
    ]


def test_what_a_machine_never_reaches_is_folded(cli: Cli) -> None:
    text = "import torch\n\n\ndef f():\n    x = torch.rand(3).cuda()\n    torch.cuda.synchronize()\n    return x\n"
    assert reported(cli, text) == [
        "a.py:5:9: DEV202 `.cuda()` raises an error on a machine without CUDA; this finding includes line 6 (DEV205), which "
        "has the same problem"
    ]


@pytest.mark.parametrize(
    "body",
    [
        "if a:\n        torch.rand(3).cuda()\n    torch.cuda.synchronize()",
        "torch.rand(3).cuda() if a else None\n    torch.cuda.synchronize()",
        "for i in a:\n        torch.rand(3).cuda()\n    torch.cuda.synchronize()",
        "torch.cuda.synchronize()\n    return torch.rand(3).cuda()",
    ],
)
def test_what_another_path_reaches_stands_for_itself(cli: Cli, body: str) -> None:
    text = f"import torch\n\n\ndef f(a):\n    {body}\n"
    assert any("DEV205" in line and "this finding includes" not in line for line in reported(cli, text))


def test_what_is_wrong_on_every_machine_stands_for_itself(cli: Cli) -> None:
    text = 'import torch\n\n\ndef f():\n    x = torch.rand(3).cuda()\n    return x.device == "cuda"\n'
    assert [line.split()[1] for line in reported(cli, text)] == ["DEV202", "DEV207"]


# Comments and baselines know each place


def test_a_comment_on_a_folded_line_is_used(cli: Cli) -> None:
    text = "import torch\n\nx = torch.rand(3).cuda()\ny = torch.rand(3).cuda()  # devlint: ignore[DEV202]\n"
    assert reported(cli, text) == ["a.py:3:5: DEV202 [*] `.cuda()` raises an error on a machine without CUDA"]


def test_a_comment_on_the_first_line_leaves_the_others(cli: Cli) -> None:
    text = "import torch\n\nx = torch.rand(3).cuda()  # devlint: ignore[DEV202]\ny = torch.rand(3).cuda()\n"
    assert reported(cli, text) == ["a.py:4:5: DEV202 [*] `.cuda()` raises an error on a machine without CUDA"]


def test_a_baseline_with_every_place_stays_whole(cli: Cli) -> None:
    Path("a.py").write_text(TWELVE)
    assert cli(*ALL, "--write-baseline").out.startswith("Wrote 12 problems")
    assert cli(*ALL).code == 0


def test_a_new_place_beside_those_of_a_baseline_is_reported_alone(cli: Cli) -> None:
    Path("a.py").write_text(TWELVE)
    cli(*ALL, "--write-baseline")
    found = reported(cli, TWELVE + "z = torch.rand(2).cuda()\n")
    assert found == ["a.py:15:5: DEV202 [*] `.cuda()` raises an error on a machine without CUDA"]


def test_blocks_of_a_document_decide_each_for_itself(cli: Cli) -> None:
    block = "```python\nimport torch\nx = torch.rand(3).cuda()\n```\n"
    Path("a.md").write_text(block + "\ntext\n\n" + block)
    lines = cli(*ALL, "--markdown", "a.md").out.splitlines()
    assert sum(line.startswith("a.md:") for line in lines) == 2


# Ways


def way_of(text: str, line: int) -> tuple[int, ...]:
    module = ast.parse(text)
    (found,) = [n for n in ast.walk(module) if isinstance(n, ast.stmt) and n.lineno == line]
    return ways(module)[id(found)]


@pytest.mark.parametrize(
    ("text", "first", "second", "expected"),
    [
        ("a\nb\n", 1, 2, True),
        ("b\na\n", 2, 1, False),
        ("a\nif c:\n    b\n", 1, 3, True),
        ("if c:\n    a\nb\n", 2, 3, False),
        ("if c:\n    a\nelse:\n    b\n", 2, 4, False),
        ("with c:\n    a\nb\n", 2, 3, True),
        ("with c:\n    with d:\n        a\n    b\n", 3, 4, True),
        ("while a:\n    b\n", 1, 2, True),
        ("try:\n    a\nexcept E:\n    pass\nb\n", 2, 5, False),
        ("a\ndef f():\n    b\n", 1, 3, False),
        ("def f():\n    a\n    b\n", 2, 3, True),
        ("def f():\n    a\ndef g():\n    b\n", 2, 4, False),
        ("match a:\n    case 1:\n        b\n    case 2:\n        c\n", 3, 5, False),
    ],
)
def test_a_place_dominates_what_runs_only_after_it(text: str, first: int, second: int, expected: bool) -> None:
    assert dominates(way_of(text, first), way_of(text, second)) is expected


# Findings that are wrong on every machine

LOADED = """import torch
from torch.utils.data import DataLoader, Dataset

device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")


class Rows(Dataset):
    def __getitem__(self, i):
{moves}

"""
LOADER = "\n\ndef loader(rows):\n    return DataLoader(Rows(), num_workers=4)\n"


def moved(cli: Cli, text: str) -> list[str]:
    Path("a.py").write_text(text)
    return [line for line in cli("--select", "DEV605").out.splitlines() if line.startswith("a.py:")]


def test_the_moves_of_one_dataset_are_one_finding(cli: Cli) -> None:
    moves = "        x = torch.zeros(3).to(device)\n        y = torch.ones(3).to(device)\n        return x, y"
    assert moved(cli, LOADED.format(moves=moves) + LOADER) == [
        "a.py:9:13: DEV605 `__getitem__` uses the accelerator, but it runs in a worker process of the data loader "
        "(twice, lines 9 and 10)"
    ]


def test_moves_in_both_arms_of_a_choice_are_one_finding(cli: Cli) -> None:
    moves = (
        "        if i:\n            return torch.tensor(i, device=device)\n"
        "        return torch.tensor([0, 0], device=device), torch.tensor([1, 0]).to(device)"
    )
    (line,) = moved(cli, LOADED.format(moves=moves) + LOADER)
    assert line.endswith(" (3 times, lines 10 and 11)")


def test_each_dataset_is_a_decision(cli: Cli) -> None:
    moves = "        return torch.zeros(3).to(device)"
    other = LOADED.format(moves=moves).partition("class ")[2].replace("Rows", "Others")
    lines = moved(cli, LOADED.format(moves=moves) + "\nclass " + other + LOADER)
    assert [line.split(":")[1] for line in lines] == ["9", "14"]


def test_the_moves_of_one_collate_function_are_one_finding(cli: Cli) -> None:
    text = (
        "import torch\nfrom torch.utils.data import DataLoader\n\n\n"
        "def collate(rows):\n    x = torch.stack(rows).to('cuda')\n    return x, torch.zeros(3, device='cuda')\n\n\n"
        "def loader(rows):\n    return DataLoader(rows, collate_fn=collate, num_workers=4)\n"
    )
    (line,) = moved(cli, text)
    assert line.endswith(" (twice, lines 6 and 7)")


def test_a_folded_finding_of_a_dataset_lists_the_others(cli: Cli) -> None:
    moves = "        return torch.zeros(3).to(device), torch.ones(3).to(device)"
    Path("a.py").write_text(LOADED.format(moves=moves) + LOADER)
    (row,) = json.loads(cli("--select", "DEV605", "--output-format", "json").out)
    assert [each["location"]["row"] for each in row["folded"]] == [9]
