"""The table of what other tools have: its cells about devlint are what devlint does."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import peers

PRINTED = (Path(peers.__file__).with_suffix(".md")).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> peers.Programs:
    folder = tmp_path_factory.mktemp("peers")
    peers.prepare(folder)
    return peers.Programs([str(Path(sys.executable).parent)], folder)


def cell(row: peers.Row) -> str:
    """What the table says of devlint."""
    (found,) = re.findall(rf"(?m)^\| {re.escape(row.what)} \|.*\| (\w+) \|$", PRINTED.partition(heading(row))[2])[:1]
    return str(found)


def heading(row: peers.Row) -> str:
    return "## Language server" if row in peers.SERVER else "## Command line"


@pytest.mark.slow
@pytest.mark.parametrize("row", peers.COMMAND_LINE, ids=lambda row: row.what)
def test_a_cell_of_the_command_line_is_true(row: peers.Row, programs: peers.Programs) -> None:
    assert programs.has("devlint", row.tries[-1]) is (cell(row) == "yes")


@pytest.mark.slow
@pytest.mark.parametrize("row", peers.SERVER, ids=lambda row: row.what)
def test_a_cell_of_the_server_is_true(row: peers.Row, programs: peers.Programs) -> None:
    pytest.importorskip("pygls")
    assert programs.has("devlint", row.tries[-1]) is (cell(row) == "yes")


def test_the_table_has_every_row() -> None:
    rows = [*peers.COMMAND_LINE, *peers.SERVER]
    assert [row.what for row in rows] == re.findall(r"(?m)^\| (.*?) \| (?:yes|no) \|", PRINTED)
