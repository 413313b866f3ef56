"""The training loops of fixtures/runtime: what verify says of each fix and of each run, as written beside the loop."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from devlint.runtime.verify import Report

if TYPE_CHECKING:
    from collections.abc import Callable

tomllib = pytest.importorskip("tomllib")  # Python 3.11 and later
pytestmark = pytest.mark.runtime

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "runtime"
LOOPS = sorted(path.stem for path in PROGRAMS.glob("*.toml"))


def _expected(loop: str) -> dict[str, Any]:
    row: dict[str, Any] = tomllib.loads((PROGRAMS / f"{loop}.toml").read_text(encoding="utf-8"))
    return row


@pytest.fixture(scope="module")
def reports(verify_program: Callable[..., Report]) -> Callable[[str], Report]:
    made: dict[str, Report] = {}

    def report(loop: str) -> Report:
        if loop not in made:
            made[loop] = verify_program(f"{loop}.py", _expected(loop)["device"])
        return made[loop]

    return report


def test_every_loop_has_its_expectation() -> None:
    loops = {path.stem for path in PROGRAMS.glob("*.py") if not path.name.endswith(".fixed.py")}
    assert loops == set(LOOPS)


@pytest.mark.parametrize("loop", LOOPS)
def test_verdicts(loop: str, reports: Callable[[str], Report]) -> None:
    seen = [(fix.case.code, fix.start.row, fix.judgement.verdict.value) for fix in reports(loop).fixes]
    assert seen == [(row["code"], row["line"], row["verdict"]) for row in _expected(loop).get("fix", [])]


@pytest.mark.parametrize("loop", LOOPS)
def test_what_shows_the_fault_of_a_confirmed_fix(loop: str, reports: Callable[[str], Report]) -> None:
    for fix, row in zip(reports(loop).fixes, _expected(loop).get("fix", []), strict=True):
        if row["verdict"] == "confirmed":
            assert fix.judgement.device == row["on"], row
            assert row["shows"] in "\n".join(fix.judgement.evidence), row


@pytest.mark.parametrize("loop", LOOPS)
def test_later_stops(loop: str, reports: Callable[[str], Report]) -> None:
    for fix, row in zip(reports(loop).fixes, _expected(loop).get("fix", []), strict=True):
        then = fix.judgement.then
        assert (f"{then.where}: {then.text}" if then else "").startswith(row.get("then", "")), row
        assert bool(then) == ("then" in row), row


@pytest.mark.parametrize("loop", LOOPS)
def test_outcomes(loop: str, reports: Callable[[str], Report]) -> None:
    outcomes = {label: run.outcome.value for label, run in reports(loop).runs}
    for label, outcome in _expected(loop).get("outcomes", {}).items():
        assert outcomes[label] == outcome, label


@pytest.mark.parametrize("loop", LOOPS)
def test_hints(loop: str, reports: Callable[[str], Report]) -> None:
    seen = [(case.code, at.row) for case, at in reports(loop).hints]
    assert seen == [(row["code"], row["line"]) for row in _expected(loop).get("hint", [])]


@pytest.mark.parametrize("loop", LOOPS)
def test_corrected_form(loop: str, reports: Callable[[str], Report]) -> None:
    fixed = PROGRAMS / f"{loop}.fixed.py"
    source = fixed if fixed.exists() else PROGRAMS / f"{loop}.py"
    assert reports(loop).corrected == source.read_text(encoding="utf-8")
