"""A baseline: old findings are not reported, new ones are, and stale entries are named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Cli = Callable[..., Any]  # of conftest.py
FIRST = 'x = torch.zeros(3).to("cuda")\n'
SECOND = 'y = torch.ones(2).to("cuda")\n'
NAME = "devlint-baseline.json"


def write(name: str, *statements: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text("import torch\n" + "".join(statements))


def test_a_written_baseline_silences_what_is_there(cli: Cli) -> None:
    write("a.py", FIRST)
    done = cli("--write-baseline")
    assert (done.code, done.out) == (0, f"Wrote 1 problem to {NAME}.\n")
    done = cli()
    assert (done.code, done.out) == (
        0,
        f"No device problems found in 1 file.\n1 problem in {NAME} not shown.\n",
    )


def test_the_file_holds_no_row_numbers_and_is_sorted(cli: Cli) -> None:
    write("b/é.py", FIRST)
    write("a.py", FIRST, SECOND, "def f():\n    " + FIRST, "    " + FIRST)
    cli("--write-baseline")
    data = json.loads(Path(NAME).read_text(encoding="utf-8"))
    assert list(data["findings"]) == ["a.py", "b/é.py"]
    entries = data["findings"]["a.py"]
    assert sorted(entries.values()) == [1, 1, 2]
    assert next(entry for entry, number in entries.items() if number == 2).startswith("DEV501 f:")
    assert "é" in Path(NAME).read_text(encoding="utf-8")


def test_a_new_finding_is_reported_and_an_old_one_that_moved_is_not(cli: Cli) -> None:
    write("a.py", FIRST)
    cli("--write-baseline")
    write("a.py", "\n\n# more\n", SECOND, FIRST.replace(")\n", ")  # note\n"))
    done = cli()
    assert done.code == 1
    assert [line for line in done.out.splitlines() if "DEV501" in line] == [
        "a.py:5:5: DEV501 [*] tensor is made on the CPU, then copied to `cuda`"
    ]


def test_a_further_equal_finding_is_new(cli: Cli) -> None:
    write("a.py", FIRST)
    cli("--write-baseline")
    write("a.py", FIRST, FIRST)
    assert cli().out.startswith("a.py:3:5: DEV501")


def test_a_stale_entry_is_named_and_pruned(cli: Cli) -> None:
    write("a.py", FIRST, SECOND)
    cli("--write-baseline")
    write("a.py", FIRST)
    done = cli()
    assert done.code == 0
    assert done.err == f"warning: {NAME}: 1 entry matches no problem any more; --prune-baseline removes old entries\n"
    done = cli("--prune-baseline")
    assert f"Removed 1 entry from {NAME}: no problem matches any more.\n" in done.out
    assert cli().err == ""
    assert len(json.loads(Path(NAME).read_text())["findings"]["a.py"]) == 1


def test_entries_of_a_deleted_file_are_stale(cli: Cli) -> None:
    write("a.py", FIRST)
    write("b.py", FIRST)
    cli("--write-baseline")
    Path("b.py").unlink()
    assert "1 entry matches no problem" in cli("a.py").err


def test_entries_of_files_and_rules_that_were_not_checked_are_kept(cli: Cli) -> None:
    write("a.py", FIRST)
    write("b.py", FIRST)
    cli("--write-baseline")
    before = Path(NAME).read_text()
    assert cli("a.py").err == ""
    cli("a.py", "--write-baseline")
    assert cli("--select", "DEV101").err == ""
    cli("--select", "DEV101", "--write-baseline")
    assert Path(NAME).read_text() == before


def test_the_baseline_of_the_settings_and_of_the_command_line(cli: Cli) -> None:
    write("a.py", FIRST)
    Path("devlint.toml").write_text('baseline = "old/known.json"\n')
    Path("old").mkdir()
    cli("--write-baseline")
    assert list(json.loads(Path("old/known.json").read_text())["findings"]) == ["../a.py"]
    assert cli().code == 0
    cli("--write-baseline", "--baseline", "mine.json")
    assert list(json.loads(Path("mine.json").read_text())["findings"]) == ["a.py"]


def test_it_is_found_from_a_directory_below(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    write("sub/a.py", FIRST)
    cli("--write-baseline")
    monkeypatch.chdir("sub")
    assert cli().code == 0
    assert cli("--isolated").code == 1


def test_fixes_leave_the_baseline_alone(cli: Cli) -> None:
    write("a.py", FIRST)
    cli("--write-baseline")
    write("a.py", FIRST, SECOND)
    done = cli("--fix")
    assert done.code == 0
    assert Path("a.py").read_text() == "import torch\n" + FIRST + 'y = torch.ones(2, device="cuda")\n'


def test_a_file_that_cannot_be_parsed_is_never_in_it(cli: Cli) -> None:
    Path("a.py").write_text("import torch\nx = (\n")
    assert cli("--write-baseline").code == 1
    assert cli().code == 1


def test_a_notebook_is_in_it_even_with_a_cell_that_does_not_parse(cli: Cli) -> None:
    cells = [{"cell_type": "code", "source": source} for source in ("import torch", FIRST, "x = (")]
    Path("n.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    assert cli("--write-baseline").code == 1
    done = cli()
    assert [line.split(" ")[2] for line in done.out.splitlines() if line.startswith("n.ipynb")] == ["DEV900"]


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"version": 2, "findings": {}}', '{"version": 1, "findings": {"a": 1}}']
)
def test_a_file_that_is_no_baseline_is_an_error(cli: Cli, content: str) -> None:
    Path(NAME).write_text(content)
    done = cli()
    assert done.code == 2
    assert f"{NAME}: not a baseline" in done.err


@pytest.mark.parametrize(
    "arguments",
    [
        "--baseline none.json", "--prune-baseline", "--write-baseline --fix", "--write-baseline --diff",
        "--write-baseline --diff-base HEAD", "--write-baseline --prune-baseline", "--prune-baseline --fix",
    ],
)  # fmt: skip
def test_wrong_usage(cli: Cli, arguments: str) -> None:
    assert cli(*arguments.split()).code == 2
