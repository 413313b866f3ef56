"""Programs that mix devices: the simulated card raises what CUDA raises, word for word."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("torch")
pytest.importorskip("numpy")

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import DeviceSpec, simulate
from tests.runtime import lines, lines_of_training
from tests.runtime.lines import Case, World

pytestmark = pytest.mark.runtime
CASES = lines.CASES + lines_of_training.CASES
FILES = (lines.__file__, lines_of_training.__file__)


@pytest.fixture
def recorder() -> Recorder:
    return Recorder(user_roots=FILES)


@pytest.fixture
def world(recorder: Recorder) -> Iterator[World]:
    with simulate(DeviceSpec("cuda", 2), recorder):
        yield World()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_line_ends_as_on_a_card(case: Case, world: World, recorder: Recorder) -> None:
    error = None
    try:
        case.run(world)
    except (RuntimeError, TypeError, ValueError) as raised:
        error = str(raised)

    assert error == case.error
    faults = [event for event in recorder.events() if event.kind == "fault"]
    assert [fault.what for fault in faults] == ([] if case.error is None or case.by_python else [case.error])
    assert all(fault.file in FILES and fault.line > 0 for fault in faults)


def test_names_are_unique() -> None:
    names = [case.name for case in CASES]
    assert len(names) == len(set(names)) >= 200
