"""The spellings of the calls that devlint is there for: how many of them the new inference finds, and silence on the others."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import mission_calls  # the folder of benchmarks is no package

OPTIONS = ["--inference", "new"]
#: How many of the 40 programs of a kind are found.
FOUND = {"optimizer_to": 40, "its_kin": 38, "cuda_0": 36, "timing": 37}


@pytest.mark.parametrize("kind", mission_calls.KINDS)
def test_each_kind_has_forty_programs_that_differ_from_their_twins(kind: str) -> None:
    programs = mission_calls.read(kind)
    assert len({program.name for program in programs}) == 40
    assert all(program.faulty.files != program.repaired.files for program in programs)


@pytest.mark.parametrize("kind", FOUND)
def test_spellings_are_found_and_their_twins_are_quiet(kind: str) -> None:
    rows = [mission_calls.measure(program, OPTIONS) for program in mission_calls.read(kind)]
    assert sum(1 for row in rows if row.codes) >= FOUND[kind], [row.name for row in rows if not row.codes]
    own = [row.name for row in rows if any(said.split()[-1] in mission_calls.KINDS[kind] for said in row.false)]
    assert own == []
