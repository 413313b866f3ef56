"""Findings that a call in another file brings about: where they stand, when they are reported, and what they depend on."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from devlint import project_files
from devlint.engine import Linter
from devlint.inference.program.neighbours import CALLERS
from devlint.settings import Settings
from devlint_rules import RULES

Cli = Callable[..., Any]  # of conftest.py
NEW: Final = ("--inference", "new", "--select", "DEV101,DEV102,DEV103,DEV104,DEV109", "--min-severity", "info")
PARTS: Final = "import torch\n\n\ndef add_noise(x: torch.Tensor):\n    return x + torch.rand(3)\n"
CALLER: Final = "import torch\n\nfrom parts import add_noise\n\nadd_noise(torch.ones(3).cuda())\n"
HOST_CALLER: Final = CALLER.replace(".cuda()", "")


def write(**files: str) -> None:
    for name, text in files.items():
        Path(f"{name}.py").write_text(text, encoding="utf-8")


def said(cli: Cli, *arguments: str) -> list[tuple[str, int, str, str]]:
    rows = json.loads(cli(*NEW, *arguments, "--output-format", "json").out)
    return [(each["filename"], each["location"]["row"], each["code"], each["evidence"]) for each in rows]


def test_a_call_in_another_file_says_so_at_the_definition(cli: Cli) -> None:
    write(parts=PARTS, main=CALLER)
    assert said(cli, "parts.py") == [("parts.py", 5, "DEV102", "called")]
    assert "`add_noise` gets such values from main.py:5" in cli(*NEW, "parts.py").out


def test_a_run_over_the_callers_file_alone_reports_it_too(cli: Cli) -> None:
    write(parts=PARTS, main=CALLER)
    assert said(cli, "main.py") == [("parts.py", 5, "DEV102", "called")]


def test_both_files_named_report_it_once(cli: Cli) -> None:
    write(parts=PARTS, main=CALLER)
    assert said(cli, "main.py", "parts.py") == [("parts.py", 5, "DEV102", "called")]


def test_other_findings_of_the_definitions_file_are_not_reported(cli: Cli) -> None:
    write(parts=PARTS + "\n\ndef scale(y: torch.Tensor):\n    return y @ torch.rand(3)\n", main=CALLER)
    assert said(cli, "main.py") == [("parts.py", 5, "DEV102", "called")]


def test_a_method_called_by_way_of_an_imported_class(cli: Cli) -> None:
    body = "import torch\n\n\nclass Noise:\n    def add(self, x: torch.Tensor):\n        return x + torch.rand(3)\n"
    write(parts=body, main="import torch\nfrom parts import Noise\n\nNoise().add(torch.ones(3).cuda())\n")
    assert said(cli, "main.py") == [("parts.py", 6, "DEV102", "called")]


def test_a_module_called_in_a_method_of_who_keeps_it(cli: Cli) -> None:
    body = """import torch
from torch import nn


class Net(nn.Module):
    def forward(self, x):
        return x + torch.rand(3)
"""
    caller = """import torch
import parts


class Trainer:
    def __init__(self):
        self.net = parts.Net()

    def run(self, device):
        return self.net(torch.ones(3).to(device))
"""
    write(parts=body, main=caller)
    assert said(cli, "parts.py") == said(cli, "main.py") == [("parts.py", 7, "DEV102", "called")]


def test_host_data_from_every_caller_leaves_nothing_to_say(cli: Cli) -> None:
    write(parts=PARTS, main=HOST_CALLER)
    assert said(cli, "parts.py") == []


@pytest.mark.parametrize(("number", "evidence"), [(CALLERS, []), (CALLERS + 1, ["contract"])])
def test_more_callers_than_are_read_prove_nothing(cli: Cli, number: int, evidence: list[str]) -> None:
    write(parts=PARTS, **{f"main{i}": HOST_CALLER for i in range(number)})
    assert [each[3] for each in said(cli, "parts.py")] == evidence


def test_a_caller_that_cannot_be_parsed_proves_nothing(cli: Cli) -> None:
    write(parts=PARTS, main=HOST_CALLER, broken=HOST_CALLER + "def (\n")
    assert said(cli, "parts.py") == [("parts.py", 5, "DEV102", "contract")]


def test_an_excluded_definition_is_not_reported(cli: Cli) -> None:
    write(parts=PARTS, main=CALLER)
    assert said(cli, "main.py", "--exclude", "parts.py") == []


def test_an_ignore_comment_at_the_definition_holds(cli: Cli) -> None:
    ignored = PARTS.replace("torch.rand(3)", "torch.rand(3)  # devlint: ignore[DEV102]")
    write(parts=ignored, main=CALLER)
    assert said(cli, "main.py") == []


def test_a_fix_is_not_written_to_a_file_that_nobody_named(cli: Cli) -> None:
    write(parts=PARTS, main=CALLER)
    cli(*NEW, "--fix", "--unsafe-fixes", "main.py")
    assert Path("parts.py").read_text() == PARTS


def test_the_cache_notices_a_new_caller(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(project_files, "FRESH", 0.0)  # both runs are of one process
    write(parts=PARTS)
    assert said(cli, "parts.py") == [("parts.py", 5, "DEV102", "contract")]
    write(main=CALLER)
    assert said(cli, "parts.py") == [("parts.py", 5, "DEV102", "called")]


def test_the_cache_notices_that_a_caller_changed(cli: Cli) -> None:
    write(parts=PARTS, main=CALLER)
    assert said(cli, "main.py") == [("parts.py", 5, "DEV102", "called")]
    write(main=HOST_CALLER)
    assert said(cli, "main.py") == said(cli, "parts.py") == []


# -- changed rows


def git(*arguments: str) -> None:
    identity = ["-c", "user.name=test", "-c", "user.email=test@example.org", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", *identity, *arguments], check=True, capture_output=True)


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
class TestDiffBase:
    @pytest.fixture(autouse=True)
    def repository(self, cli: Cli) -> None:
        git("init", "-q")

    def commit(self, **files: str) -> None:
        write(**files)
        git("add", "-A")
        git("commit", "-q", "-m", "files")

    def test_a_changed_call_makes_the_finding_at_the_definition_new(self, cli: Cli) -> None:
        self.commit(parts=PARTS, main=HOST_CALLER)
        write(main=CALLER)
        assert said(cli, "--diff-base", "HEAD") == [("parts.py", 5, "DEV102", "called")]
        assert said(cli, "--diff-base", "HEAD", "main.py") == [("parts.py", 5, "DEV102", "called")]

    def test_a_new_file_with_the_call_makes_it_new(self, cli: Cli) -> None:
        self.commit(parts=PARTS)
        write(main=CALLER)
        assert said(cli, "--diff-base", "HEAD", "parts.py") == [("parts.py", 5, "DEV102", "called")]

    def test_another_row_of_the_callers_file_does_not(self, cli: Cli) -> None:
        self.commit(parts=PARTS, main=CALLER)
        write(main=CALLER + "\nprint(1)\n")
        assert said(cli, "--diff-base", "HEAD") == []


# -- what is said of a file does not depend on the run

#: Functions that a file may define, and calls of them that another one may make.
DEFINED: Final = (
    "def f{0}(x: torch.Tensor):\n    return x + torch.rand(3)\n",
    "def f{0}(x: torch.Tensor, y: torch.Tensor):\n    return x * y\n",
    "def f{0}(x, mask=None):\n    if mask is None:\n        mask = torch.ones(3)\n    return x @ mask\n",
    "class C{0}:\n    def f{0}(self, x: torch.Tensor):\n        return x - torch.arange(3)\n",
)
CALLED: Final = (
    "f{0}(torch.ones(3).cuda())\n",
    "f{0}(torch.ones(3), torch.ones(3).cuda())\n",
    "def g{0}(device):\n    return f{0}(torch.ones(3).to(device))\n",
    "C{0}().f{0}(torch.ones(3).cuda())\n",
    "f{0}(torch.ones(3))\n",
)
NAMES: Final = ("a", "b", "c")


@st.composite
def trees(draw: st.DrawFn) -> dict[str, str]:
    """Small projects: each file defines something and calls what another one defines."""
    found = {}
    for name in NAMES:
        other = draw(st.sampled_from([each for each in NAMES if each != name]))
        body = draw(st.sampled_from(DEFINED)).format(name)
        call = draw(st.sampled_from(CALLED)).format(other)
        found[name] = f"import torch\nfrom {other} import *\n\n\n{body}\n\n{call}"
    return found


def of_each(linter: Linter, names: list[str], folder: Path) -> dict[str, list[str]]:
    return {
        name: [f"{each.start.row} {each.code} {each.severity.value} {each.message}" for each in
               linter.check_file(folder / f"{name}.py").diagnostics]
        for name in names
    }  # fmt: skip


@settings(max_examples=25)
@given(trees(), st.randoms(use_true_random=False))
def test_what_is_said_of_a_file_does_not_depend_on_the_others_that_are_checked(
    tmp_path_factory: pytest.TempPathFactory, tree: dict[str, str], chance: random.Random
) -> None:
    folder = tmp_path_factory.mktemp("tree")
    for name, text in tree.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    alone = {
        name: of_each(Linter(tuple(each() for each in RULES), Settings(inference="new")), [name], folder)[name]
        for name in NAMES
    }
    order = chance.sample(NAMES, len(NAMES))
    assert of_each(Linter(tuple(each() for each in RULES), Settings(inference="new")), order, folder) == alone


@pytest.mark.parametrize("jobs", ["1", "2"])
@pytest.mark.parametrize("cache", [(), ("--no-cache",)])
def test_jobs_and_cache_change_nothing(cli: Cli, jobs: str, cache: tuple[str, ...]) -> None:
    write(parts=PARTS, main=CALLER, other=HOST_CALLER)
    expected = [("parts.py", 5, "DEV102", "called")]
    for _ in range(2):
        assert said(cli, "--jobs", jobs, *cache) == expected
        assert said(cli, "--jobs", jobs, *cache, "other.py", "main.py") == expected
