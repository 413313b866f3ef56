"""The programs of the other tests, run on one simulated card: what they are said to be is true."""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from devlint.runtime.simulator import DeviceSpec, simulate
from tests.inference.cases import Case
from tests.inference.conditions import CONDITIONS
from tests.inference.effects import EFFECTS, OUT_OF_REACH, SOMEWHERE
from tests.inference.objects import OBJECTS

pytestmark = pytest.mark.runtime


@pytest.fixture(scope="module", autouse=True)
def card() -> Iterator[None]:
    with simulate(DeviceSpec("cuda", 1)):
        yield


def run(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("case")
    monkeypatch.setitem(sys.modules, "case", module)
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(text, "case.py", "exec", dont_inherit=True), vars(module))


@pytest.mark.parametrize("case", (*OBJECTS, *CONDITIONS), ids=lambda case: case.name)
def test_program_fails_for_its_devices_and_its_twin_runs(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    run(case.right + case.drive_right, monkeypatch)
    with pytest.raises(RuntimeError, match="device"):
        run(case.wrong + case.drive_wrong, monkeypatch)


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in EFFECTS.items()])
def test_correct_program_runs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_somewhere(monkeypatch)
    run(text, monkeypatch)


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in OUT_OF_REACH.items()])
def test_program_that_no_call_mends_fails(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_somewhere(monkeypatch)
    with pytest.raises(RuntimeError, match="device"):
        run(text, monkeypatch)


def with_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the module that the inference cannot read."""
    somewhere = ModuleType("somewhere")
    exec(SOMEWHERE, vars(somewhere))
    monkeypatch.setitem(sys.modules, "somewhere", somewhere)
