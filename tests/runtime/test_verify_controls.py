"""verify can say no: wrong fixes are refuted, inert ones are not reproduced, unreachable ones are not reached."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from devlint.dev.confirmed_by import has_fix, shipped
from devlint.runtime.correction import FixCase, case_from_row
from devlint.runtime.places import Lines
from devlint.runtime.runs import Verdict
from devlint.runtime.verify import Report

tomllib = pytest.importorskip("tomllib")  # Python 3.11 and later
pytestmark = pytest.mark.runtime

CONTROLS = Path(__file__).parents[2] / "fixtures" / "runtime" / "controls"
DEVICES = {"f_data_parallel.py": "sim:2", "h_three_cards.py": "sim:3", "s_second_card.py": "sim:2"}


def _controls(name: str) -> list[Any]:
    rows = tomllib.loads((CONTROLS / f"{name}.toml").read_text(encoding="utf-8"))["control"]
    return [pytest.param(row, id=row["name"].replace(" ", "-")) for row in rows]


def _verdict(row: dict[str, Any], verify_program: Callable[..., Report]) -> tuple[Verdict, str]:
    def change(text: str, cases: list[FixCase]) -> list[FixCase]:
        if row.get("alone"):
            return [case_from_row(row["fix"], text)]
        lines = Lines(text)
        kept = [case for case in cases if f"{case.code}:{lines.line(case.span.start)}" != row.get("instead_of")]
        assert ("instead_of" in row) == (len(kept) < len(cases)), "the linter has no such fix"
        return [*kept, case_from_row(row["fix"], text)]

    program = row["program"]
    report = verify_program(
        program, DEVICES.get(program, "sim"), arguments=tuple(row.get("arguments", ())), change=change
    )
    fix = next(each for each in report.fixes if not each.case.name)  # the linter's fixes carry their rule's name
    return fix.judgement.verdict, "\n".join(fix.judgement.evidence)


@pytest.mark.parametrize("name", ["refuted", "not_reproduced", "not_reached"])
def test_every_family_of_rules_with_a_fix_has_a_control(name: str) -> None:
    families = {meta.code[:4] for meta in shipped() if has_fix(meta)}
    rows = tomllib.loads((CONTROLS / f"{name}.toml").read_text(encoding="utf-8"))["control"]
    assert families - {row["fix"]["code"][:4] for row in rows} == set()


@pytest.mark.parametrize("row", _controls("refuted"))
def test_wrong_fix_is_refuted(row: dict[str, Any], verify_program: Callable[..., Report]) -> None:
    verdict, evidence = _verdict(row, verify_program)
    assert verdict is Verdict.REFUTED, evidence
    assert row["because"] in evidence


@pytest.mark.parametrize("row", _controls("not_reproduced"))
def test_inert_fix_is_not_reproduced(row: dict[str, Any], verify_program: Callable[..., Report]) -> None:
    verdict, evidence = _verdict(row, verify_program)
    assert verdict is Verdict.NOT_REPRODUCED, evidence


@pytest.mark.parametrize("row", _controls("not_reached"))
def test_unreachable_fix_is_not_reached(row: dict[str, Any], verify_program: Callable[..., Report]) -> None:
    verdict, evidence = _verdict(row, verify_program)
    assert verdict is Verdict.NOT_REACHED, evidence
