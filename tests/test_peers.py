"""The scripts that other tools were compared on: one device bug each, and two that are clean.

A line with `# expect: CODE` must give exactly that finding; every other line must be silent, so the clean scripts are
silent as a whole. Scripts whose rule does not exist yet have no marker and name the code in their docstring.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.engine import Linter
from devlint.settings import Settings
from devlint.source import decode
from devlint.testing.markers import read_fixture
from devlint_rules import RULES

SCRIPTS = sorted((Path(__file__).parents[1] / "fixtures" / "peers").glob("*.py"))


@pytest.fixture(scope="module")
def linter() -> Linter:
    return Linter(tuple(rule() for rule in RULES), Settings())


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_each_bug_is_found_and_nothing_else(path: Path, linter: Linter) -> None:
    fixture = read_fixture(path.read_bytes(), path.name)
    assert fixture.problems == []
    expected = sorted((m.row, m.expected.code) for m in fixture.of("expect") if m.expected is not None)
    result = linter.check(decode(fixture.raw, path.name))
    assert result.crashes == []
    assert sorted((d.start.row, d.code) for d in result.diagnostics) == expected


def test_all_the_scripts_are_there() -> None:
    assert [int(path.name[:2]) for path in SCRIPTS] == list(range(1, 28))
