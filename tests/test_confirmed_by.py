"""docs/confirmed-by.md says what the tests of verify assert, for every rule with a fix."""

from __future__ import annotations

from pathlib import Path

from devlint.dev.confirmed_by import REASONS, confirmed, has_fix, refuted, render, shipped
from devlint.model import RuleMeta

ROOT = Path(__file__).resolve().parents[1]  # not the installed package's, which has no docs


def test_table_is_up_to_date() -> None:
    text = (ROOT / "docs" / "confirmed-by.md").read_text(encoding="utf-8")
    assert text == render(shipped(), ROOT), "run: python -m devlint.dev.confirmed_by > docs/confirmed-by.md"


def test_every_rule_with_a_fix_is_listed() -> None:
    text = render(shipped(), ROOT)
    assert [m.code for m in shipped() if m.fix in ("always", "sometimes") and f"| {m.code} |" not in text] == []


def test_every_rule_with_a_fix_is_confirmed_by_a_program_or_has_a_reason() -> None:
    programs = confirmed(ROOT)
    lacking = [m.code for m in shipped() if has_fix(m) and m.code not in programs and m.code not in REASONS]
    assert lacking == []


def test_every_rule_that_a_program_confirms_has_a_wrong_fix_that_is_refuted() -> None:
    wrong = refuted(ROOT)
    assert [code for code in confirmed(ROOT) if code not in wrong] == []


def test_a_reason_is_given_only_where_no_program_confirms() -> None:
    rows = {
        row.split(" | ")[0].strip("| "): row for row in render(shipped(), ROOT).splitlines() if row.startswith("| DEV")
    }
    assert [code for code in REASONS if code in rows and "static only" not in rows[code]] == []


def test_result_of_a_card_names_it_with_its_date(tmp_path: Path) -> None:
    meta: RuleMeta = next(meta for meta in shipped() if meta.code == "DEV101")
    (tmp_path / "benchmarks" / "gpu").mkdir(parents=True)
    (tmp_path / "benchmarks" / "gpu" / "a.json").write_text(
        '{"date": "2030-01-02", "card": "Card 9", "loops": [{"fixes": [{"code": "DEV101", "verdict": "confirmed"}]}]}'
    )
    assert "| Card 9, 2030-01-02 |" in render([meta], tmp_path)
