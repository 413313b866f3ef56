"""The recorder: aggregation, bounds, and whose line an event belongs to."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import FrameType

import pytest

from devlint.runtime.recorder import Event, Recorder

pytestmark = pytest.mark.runtime

HERE = ("train.py", 7)


def frame_of(filename: str, source: str = "import sys\nframe = sys._getframe()") -> FrameType:
    names: dict[str, FrameType] = {}
    exec(compile(source, filename, "exec"), names)
    return names["frame"]


def test_same_event_at_same_line_is_counted_once_with_sums() -> None:
    recorder = Recorder()
    for pending in (1, 5, 2):
        recorder.record(
            "transfer", "to", bytes=10, direction="h2d", blocking=True, pending=pending, device="cuda:0", at=HERE
        )

    assert recorder.events() == [Event("transfer", "to", "train.py", 7, 3, 30, "h2d", True, 5, "cuda:0")]


def test_events_of_different_lines_stay_apart() -> None:
    recorder = Recorder()
    recorder.record("sync", "item", at=("train.py", 7))
    recorder.record("sync", "item", at=("train.py", 8))

    assert [event.line for event in recorder.events()] == [7, 8]


def test_clock_reads_with_and_without_unfinished_work_stay_apart() -> None:
    recorder = Recorder()
    recorder.record("clock", "perf_counter", pending=0, at=HERE)
    recorder.record("clock", "perf_counter", pending=3, at=HERE)

    assert [event.pending for event in recorder.events()] == [0, 3]


def test_distinct_events_are_bounded() -> None:
    recorder = Recorder(max_events=5)
    for line in range(8):
        recorder.record("sync", "item", at=("train.py", line))
    recorder.record("sync", "item", at=("train.py", 0))

    assert len(recorder.events()) == 5
    assert recorder.events()[0].count == 2
    assert recorder.dropped == 3


def test_json_holds_the_events() -> None:
    recorder = Recorder()
    recorder.record("race", "numpy of an unfinished copy", pending=2, device="cuda:0", at=HERE)

    report = json.loads(recorder.to_json())

    assert report["dropped"] == 0
    assert report["events"] == [
        {
            "kind": "race",
            "what": "numpy of an unfinished copy",
            "file": "train.py",
            "line": 7,
            "count": 1,
            "bytes": 0,
            "direction": None,
            "blocking": None,
            "pending": 2,
            "device": "cuda:0",
            "again": 0,
        }
    ]


def test_event_is_recorded_at_the_calling_user_line() -> None:
    recorder = Recorder([__file__])
    recorder.record("sync", "item")

    assert recorder.events()[0].file == __file__
    assert recorder.events()[0].line == sys._getframe().f_lineno - 3


def test_without_roots_any_file_outside_libraries_is_the_users(tmp_path: Path) -> None:
    recorder = Recorder()

    assert recorder.is_user(frame_of(str(tmp_path / "train.py")).f_code)
    assert not recorder.is_user(frame_of(json.__file__).f_code)
    assert not recorder.is_user(frame_of(str(tmp_path / "site-packages" / "torch" / "nn.py")).f_code)


def test_devlint_itself_is_never_the_user() -> None:
    import devlint.runtime.recorder as module

    assert not Recorder().is_user(frame_of(str(module.__file__)).f_code)


def test_with_roots_only_files_below_them_are_the_users(tmp_path: Path) -> None:
    recorder = Recorder([tmp_path / "project"])

    assert recorder.is_user(frame_of(str(tmp_path / "project" / "pkg" / "model.py")).f_code)
    assert not recorder.is_user(frame_of(str(tmp_path / "project2" / "model.py")).f_code)
    assert not recorder.is_user(frame_of(str(tmp_path / "project" / "venv" / "site-packages" / "x.py")).f_code)


def test_location_without_a_user_frame_is_empty(tmp_path: Path) -> None:
    recorder = Recorder([tmp_path])

    assert recorder.locate(sys._getframe()) == (None, 0)


def test_kernels_are_counted_by_line(tmp_path: Path) -> None:
    script = str(tmp_path / "train.py")
    frame = frame_of(script, "import sys\n\nframe = sys._getframe()\n")
    recorder = Recorder([tmp_path])
    assert recorder.is_user(frame.f_code)
    offset = next(start for start, _, line in frame.f_code.co_lines() if line == 3)

    recorder.kernels[id(frame.f_code), offset] = 4

    assert recorder.kernels_by_line() == {(script, 3): 4}


def test_log_keeps_the_first_happenings_in_order() -> None:
    recorder = Recorder(max_log=2)
    for what in ("a", "b", "a"):
        recorder.record("sync", what, pending=3, at=("train.py", 7))
    assert [(each.what, each.line, each.pending) for each in recorder.log] == [("a", 7, 3), ("b", 7, 3)]
    assert recorder.log[0].seconds <= recorder.log[1].seconds


def test_log_is_off_by_default() -> None:
    recorder = Recorder()
    recorder.record("sync", "a", at=("train.py", 7))
    assert recorder.log == []
