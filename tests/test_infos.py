"""What is info fails no run, and a report shows little of it until somebody asks for all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]  # of conftest.py
#: Nothing but infos: the cache is emptied in each step of a loop.
LOOP = "import torch\n\n\ndef f{}(items: list):\n    for x in items:\n        x.cpu()\n        torch.cuda.empty_cache()\n\n\n"
INFO = ("--select", "DEV506")


def write(number: int) -> None:
    Path("a.py").write_text("".join(LOOP.format(i) for i in range(number)))


def test_an_info_fails_no_run(cli: Cli) -> None:
    write(1)
    done = cli(*INFO)
    assert done.code == 0
    assert done.out.splitlines()[-1] == "No device problems found in 1 file."


@pytest.mark.parametrize("form", ["full", "concise", "grouped"])
def test_three_infos_are_shown_a_line_each_and_the_rest_is_counted(cli: Cli, form: str) -> None:
    write(5)
    lines = cli(*INFO, "--output-format", form).out.splitlines()
    assert [line.split(": ")[1][:16] for line in lines if line.startswith("a.py:")] == ["DEV506 info"] * 3 or (
        sum("DEV506" in line and " info: " in line for line in lines) == 3
    )
    assert "2 more with severity `info`: `--min-severity info` shows all." in lines


def test_no_more_than_three_need_no_count(cli: Cli) -> None:
    write(3)
    assert "more with severity `info`" not in cli(*INFO).out


def test_the_switch_shows_and_counts_all(cli: Cli) -> None:
    write(5)
    done = cli(*INFO, "--min-severity", "info")
    assert done.code == 1
    assert sum("DEV506" in line for line in done.out.splitlines()) == 5
    assert "Found 5 problems" in done.out


def test_the_setting_is_the_switch(cli: Cli) -> None:
    write(1)
    Path("devlint.toml").write_text('min-severity = "info"\n')
    assert cli(*INFO).code == 1


def test_a_higher_lowest_severity_shows_none(cli: Cli) -> None:
    write(1)
    assert "DEV506" not in cli(*INFO, "--min-severity", "warning").out


def test_a_problem_beside_infos_fails_the_run_and_is_counted_alone(cli: Cli) -> None:
    Path("a.py").write_text('import torch\n\nx = torch.zeros(3).to("cuda")\n\n\n' + LOOP.format(0))
    done = cli("--select", "DEV501,DEV506")
    assert done.code == 1
    assert "Found 1 problem in 1 file." in done.out


def test_an_info_that_the_settings_make_a_warning_fails(cli: Cli) -> None:
    write(1)
    Path("devlint.toml").write_text('severity = { DEV506 = "warning" }\n')
    assert cli(*INFO).code == 1


@pytest.mark.parametrize("form", ["json", "json-lines", "sarif", "rdjson", "gitlab", "github", "azure", "pylint"])
def test_formats_for_programs_hold_every_info(cli: Cli, form: str) -> None:
    write(5)
    done = cli(*INFO, "--output-format", form)
    assert done.code == 0
    shown = json.loads(done.out)["runs"][0]["results"] if form == "sarif" else done.out
    assert str(shown).count("empties the cache") >= 5 or str(shown).count("DEV506") >= 5


def test_junit_counts_no_info_as_a_failure(cli: Cli) -> None:
    write(2)
    assert 'tests="2" failures="0"' in cli(*INFO, "--output-format", "junit").out


def test_a_baseline_holds_infos_too(cli: Cli) -> None:
    write(2)
    assert cli(*INFO, "--write-baseline").out.startswith("Wrote 2 problems")
    assert "DEV506" not in cli(*INFO).out


@pytest.mark.parametrize("code", ["DEV215", "DEV508", "DEV604", "DEV606"])
def test_rules_that_are_mostly_wrong_are_infos(code: str) -> None:
    from devlint_rules import RULES

    assert {rule.meta.severity.value for rule in RULES if rule.meta.code == code} == {"info"}


def severities(cli: Cli, text: str, code: str) -> list[str]:
    Path("a.py").write_text(text)
    return [row["severity"] for row in json.loads(cli("--select", code, "--output-format", "json").out)]


@pytest.mark.parametrize(
    ("work", "severity"),
    [
        ("y = x @ x\n    torch.cuda.synchronize()\n    z = y @ y", "info"),
        ("for _ in range(3):\n        y = x @ x\n        print(y.sum().item())\n        z = y @ y", "info"),
        ("for _ in range(3):\n        y = x @ x\n        y.cpu()\n        x = x + 1", "info"),
        ("y = x @ x", "warning"),
        ("for _ in range(3):\n        x = x @ x", "warning"),
    ],
)
def test_a_clock_over_work_that_was_partly_waited_for_is_an_info(cli: Cli, work: str, severity: str) -> None:
    text = (
        "import time\n\nimport torch\n\n\ndef f(x: torch.Tensor):\n    start = time.perf_counter()\n    "
        f"{work}\n    return time.perf_counter() - start\n"
    )
    assert severities(cli, text, "DEV401") == [severity]


def test_a_wait_before_the_clock_starts_is_no_part_of_the_interval(cli: Cli) -> None:
    text = (
        "import time\n\nimport torch\n\n\ndef f(x: torch.Tensor):\n    y = x @ x\n    torch.cuda.synchronize()\n"
        "    start = time.perf_counter()\n    y = x @ y\n    return y, time.perf_counter() - start\n"
    )
    assert severities(cli, text, "DEV401") == ["warning"]


@pytest.mark.parametrize(
    ("test", "severity"), [("x.device.index or 1", "info"), ("1 if x.device.index else 2", "warning")]
)
def test_an_index_or_another_is_an_info(cli: Cli, test: str, severity: str) -> None:
    text = f"import torch\n\n\ndef f(x: torch.Tensor):\n    return {test}\n"
    assert severities(cli, text, "DEV207") == [severity]


@pytest.mark.parametrize(
    ("call", "severity"),
    [
        ("def wrap(net):\n    return nn.DataParallel(net, device_ids=[0, 1])\n\n\nwrap(MODULE)", "info"),
        ("def wrap(*, net, n=2):\n    return nn.DataParallel(net, device_ids=[0, 1])\n\n\nwrap(net=MODULE)", "info"),
        ("net = nn.DataParallel(MODULE, device_ids=[0, 1])", "warning"),
        ("def wrap():\n    return nn.DataParallel(MODULE, device_ids=[0, 1])", "warning"),
    ],
)
def test_cards_that_the_caller_decides_are_an_info(cli: Cli, call: str, severity: str) -> None:
    text = "import torch\nfrom torch import nn\n\n\n" + call.replace("MODULE", 'nn.Linear(2, 3).to("cuda:1")') + "\n"
    assert severities(cli, text, "DEV601") == [severity]
