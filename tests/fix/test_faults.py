"""Small programs that safe fixes once broke: each prints the same after its safe fixes as before."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.source import Source, decode
from devlint_rules import RULES

FOLDER = Path(__file__).parents[1] / "data" / "fixes"
PROGRAMS = sorted(FOLDER.glob("*.py"))
#: Programs that say in their first line that nothing is to be reported.
QUIET = ("copy_of_a_tensor", "either_by_version", "number_of_a_moved_object", "two_bindings_of_an_import")


def source(path: Path) -> Source:
    return decode(path.read_bytes(), path.name)


def linter() -> Linter:
    return Linter(tuple(rule() for rule in RULES))


def printed(text: str) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(text, "program.py", "exec"), {"__name__": "__main__"})
    return out.getvalue()


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_program_prints_the_same_after_its_safe_fixes(path: Path) -> None:
    pytest.importorskip("torch")
    before = source(path)
    after = fix_source(linter(), before).text
    assert printed(after) == printed(before.text)


@pytest.mark.parametrize("name", QUIET)
def test_nothing_is_said_of_what_is_right(name: str) -> None:
    assert not linter().check(source(FOLDER / f"{name}.py")).diagnostics


def test_fix_of_a_comparison_with_a_converting_property_is_not_made() -> None:
    before = source(FOLDER / "setter_that_converts.py")
    assert fix_source(linter(), before).text == before.text


def test_device_of_a_record_is_not_read() -> None:
    assert "found.device" not in fix_source(linter(), source(FOLDER / "output_object_has_no_device.py")).text
