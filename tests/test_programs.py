"""Whole programs with one device bug each, as users write them: what is found in them, and silence once it is repaired.

`fixtures/programs/labels.json` says where a reader would point. `missed` is true for the bugs that are not found yet;
`benchmarks/prove_programs.py` runs each program on the simulated accelerator.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from devlint.engine import Linter
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES

PROGRAMS = Path(__file__).parents[1] / "fixtures" / "programs"
LABELS: list[dict[str, Any]] = json.loads((PROGRAMS / "labels.json").read_text(encoding="utf-8"))
#: Families that speak of bugs; the others are about hard-coded devices, timing and cost.
ABOUT_BUGS = ("DEV1", "DEV3", "DEV6")
#: Rules of other families that name the bug of a program of theirs.
TOO = ("DEV205", "DEV207", "DEV208", "DEV509")


@cache
def linter() -> Linter:
    codes = tuple(rule.meta.code for rule in RULES if not rule.meta.opt_in)
    return Linter(tuple(rule() for rule in RULES), Settings(select=codes))


def findings(program: Path) -> list[tuple[int, str]]:
    source = decode(program.read_bytes(), str(program))
    result = linter().check(source)
    return [
        (source.row(d.span.start), d.code)
        for d in result.diagnostics
        if d.code.startswith(ABOUT_BUGS) or d.code in TOO
    ]  # fmt: skip


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label["program"])
def test_bug_is_found_where_a_reader_would_point(label: dict[str, Any]) -> None:
    found = [code for row, code in findings(PROGRAMS / label["program"]) if row in label["lines"]]
    if label.get("missed"):
        assert not found, "it is found: take `missed` out of labels.json"
    else:
        assert found


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label["program"])
def test_nothing_is_said_of_the_repaired_program(label: dict[str, Any]) -> None:
    repaired = PROGRAMS / label["program"].replace(".py", ".good.py")
    assert [f for f in findings(repaired) if f[1] not in TOO] == []


def test_every_program_has_a_label() -> None:
    written = {p.relative_to(PROGRAMS).as_posix() for p in PROGRAMS.rglob("*.py") if not p.name.endswith(".good.py")}
    assert written == {label["program"] for label in LABELS}
