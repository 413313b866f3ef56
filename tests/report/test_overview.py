"""What a report of many findings says before and after them: a table by rule, and how to adopt devlint."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devlint.report.overview import MANY

Cli = Callable[..., Any]  # of conftest.py
RULES = ("--select", "DEV501,DEV201")


def project(number: int, folder: str = "src") -> None:
    """Files with one finding of DEV501 and one of DEV201 each. Both have safe fixes."""
    Path(folder).mkdir(exist_ok=True)
    for index in range(number):
        Path(folder, f"f{index:03}.py").write_text(f'import torch\n\nx = torch.zeros({index}).to("cuda")\n')


def text(run: Cli, *arguments: str) -> str:
    out: str = run("check", "--isolated", "--no-cache", *RULES, *arguments).out
    return out


@pytest.fixture
def many(run: Cli) -> Cli:
    project(MANY // 2 + 1)  # two findings in each file
    return run


def test_many_findings_begin_with_a_table_by_rule(many: Cli) -> None:
    lines = text(many, "src").splitlines()
    assert lines[0] == "52 problems in 26 files. [*]: `--fix` fixes all of them, [-]: some of them."
    assert lines[1:3] == [
        "26  DEV201  [*] accelerator is written as a literal",
        "26  DEV501  [*] tensor is made on the CPU, then moved",
    ]
    assert lines[3] == "" and lines[4].startswith("DEV")


def test_many_findings_end_with_how_to_adopt(many: Cli) -> None:
    assert text(many, "src").splitlines()[-2:] == [
        "To report only new findings from now on: `devlint --write-baseline src`.",
        "To check only the lines that a branch changes: `devlint --diff-base origin/main src`.",
    ]


def test_fifty_findings_are_few(run: Cli) -> None:
    project(MANY // 2)
    out = text(run, "src")
    assert out.startswith("DEV501") and "Found 50 problems" in out and "baseline" not in out


@pytest.mark.parametrize("arguments", [("-q",), ("--output-format=concise",), ("--output-format=grouped",)])
def test_quiet_and_other_formats_have_neither(many: Cli, arguments: tuple[str, ...]) -> None:
    out = text(many, "src", *arguments)
    assert "[-]" not in out and "baseline" not in out


@pytest.mark.parametrize("form", ["json", "sarif", "github", "junit", "pylint"])
def test_formats_for_programs_have_neither(many: Cli, form: str) -> None:
    out = text(many, "src", "--output-format", form)
    assert "`--fix` fixes" not in out and "--write-baseline" not in out


def test_statistics_are_the_table_alone(many: Cli) -> None:
    out = text(many, "src", "--statistics")
    assert "`--fix` fixes" not in out and "baseline" not in out


def test_who_has_a_baseline_is_not_told_of_it(many: Cli) -> None:
    many("check", "--no-cache", *RULES, "--write-baseline", "src")
    project(MANY, "new")
    out = many("check", "--no-cache", *RULES).out
    assert "`--fix` fixes" in out and "--write-baseline" not in out


def test_who_compares_with_a_branch_is_not_told_of_it(many: Cli) -> None:
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    for command in ("init -q", "-c user.name=a -c user.email=b commit -q --allow-empty -m x"):
        subprocess.run(["git", *command.split()], check=True, env=environment)
    out = text(many, "--diff-base", "HEAD", "src")
    assert "`--fix` fixes" in out and "--diff-base" not in out


def test_a_path_with_a_blank_is_quoted(run: Cli) -> None:
    project(MANY // 2 + 1, "my code")
    assert "`devlint --write-baseline 'my code'`." in text(run, "my code")


def test_no_path_is_this_folder(many: Cli) -> None:
    assert "`devlint --write-baseline .`." in text(many)


def test_many_paths_are_not_repeated(many: Cli) -> None:
    names = [str(path) for path in sorted(Path("src").iterdir())]
    assert "`devlint --write-baseline .`." in text(many, *names)


def test_standard_input_is_not_a_project(run: Cli) -> None:
    lines = "".join(f'torch.zeros({index}).to("mps:{index}")\n' for index in range(MANY))
    out = run("check", "--no-cache", *RULES, "-", stdin=f"import torch\n\n{lines}".encode()).out
    assert "`--fix` fixes" in out and "--write-baseline" not in out


def test_the_table_is_the_same_from_the_cache(many: Cli) -> None:
    many("check", *RULES, "src")
    out = many("check", *RULES, "src").out
    assert out.splitlines()[1:3] == text(many, "src").splitlines()[1:3]


def test_the_table_says_which_fixes_need_to_be_allowed(run: Cli) -> None:
    """A move behind the creation is a fix; a card that is not the first is not."""
    lines = "".join(f'a{index} = torch.zeros(3, device="mps:{index}")\n' for index in range(MANY + 1))
    Path("a.py").write_text(f"import torch\n\n{lines}")
    assert "  DEV201  [ ] " in text(run, "a.py").splitlines()[1]


def test_a_rule_with_fixes_for_some_has_a_dash(many: Cli) -> None:
    Path("src", "hint.py").write_text('import torch\n\nx = torch.zeros(3, device="mps:1")\n')
    rows = text(many, "src").splitlines()[1:3]
    assert [row.partition("  ")[2][:11] for row in rows] == ["DEV201  [-]", "DEV501  [*]"]
