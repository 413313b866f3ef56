"""Timing: what is queued when the user's program reads a clock, and waits, copies and races."""

from __future__ import annotations

import threading
import time
import timeit
from collections.abc import Iterator
from time import perf_counter as early_bound

import pytest

pytest.importorskip("torch")

import torch

from devlint.runtime.observe import observe
from devlint.runtime.recorder import Event, Recorder
from devlint.runtime.simulator import DeviceSpec, simulate

pytestmark = pytest.mark.runtime


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder([__file__])
    with simulate(DeviceSpec("cuda", 2), recorder):
        yield recorder


def work() -> torch.Tensor:
    """Three kernels on card 0."""
    made = torch.randn(8, 8, device="cuda")
    return (made @ made).relu()


def of_kind(recorder: Recorder, kind: str) -> list[Event]:
    return [event for event in recorder.events() if event.kind == kind]


def unfinished_reads(recorder: Recorder) -> list[str]:
    return [event.what for event in of_kind(recorder, "clock") if event.pending]


@pytest.mark.parametrize(
    "clock", ["time", "perf_counter", "monotonic", "process_time", "time_ns", "perf_counter_ns", "monotonic_ns"]
)
def test_clock_read_behind_queued_work(recorder: Recorder, clock: str) -> None:
    read = getattr(time, clock)
    read()
    work()
    read()

    before, after = of_kind(recorder, "clock")
    assert (before.what, before.pending) == (clock, 0)
    assert (after.what, after.pending) == (clock, 3)
    assert after.file == __file__


def test_synchronize_before_the_read(recorder: Recorder) -> None:
    work()
    torch.cuda.synchronize()
    time.perf_counter()

    assert unfinished_reads(recorder) == []


def test_synchronizing_one_card_leaves_the_other(recorder: Recorder) -> None:
    torch.randn(3, device="cuda:1").relu()
    torch.cuda.synchronize(0)
    time.perf_counter()
    assert unfinished_reads(recorder) == ["perf_counter"]


@pytest.mark.skipif(not hasattr(torch, "accelerator"), reason="torch.accelerator came with 2.6")
def test_generic_synchronize(recorder: Recorder) -> None:
    work()
    torch.accelerator.synchronize()
    time.time()

    assert unfinished_reads(recorder) == []


def test_item_waits(recorder: Recorder) -> None:
    work().sum().item()
    time.perf_counter()

    assert unfinished_reads(recorder) == []
    (sync,) = of_kind(recorder, "sync")
    assert (sync.what, sync.pending, sync.bytes) == ("item", 4, 4)


def test_copy_to_the_host_waits(recorder: Recorder) -> None:
    work().cpu()
    time.perf_counter()

    assert unfinished_reads(recorder) == []


def test_host_work_is_never_unfinished(recorder: Recorder) -> None:
    torch.randn(8, 8) @ torch.randn(8, 8)
    time.perf_counter()

    assert unfinished_reads(recorder) == []


def test_timeit_is_the_users_clock(recorder: Recorder) -> None:
    made = torch.randn(8, 8, device="cuda")
    timeit.timeit(lambda: made @ made, number=2)

    reads = [event for event in of_kind(recorder, "clock") if event.pending]
    assert [read.file for read in reads] == [__file__]


def test_clock_read_by_a_library_is_not_the_users() -> None:
    recorder = Recorder(["/nowhere"])
    with simulate(recorder=recorder):
        work()
        time.perf_counter()

    assert of_kind(recorder, "clock") == []


def test_clock_taken_by_name_before_the_simulation(recorder: Recorder) -> None:
    work()
    early_bound()

    assert unfinished_reads(recorder) == ["perf_counter"]


def event_pair() -> tuple[torch.cuda.Event, torch.cuda.Event]:
    return torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)


def test_elapsed_time_of_finished_events(recorder: Recorder) -> None:
    start, end = event_pair()
    start.record()
    work()
    end.record()
    torch.cuda.synchronize()

    assert start.elapsed_time(end) > 0
    assert unfinished_reads(recorder) == []


def test_elapsed_time_after_waiting_for_the_last_event(recorder: Recorder) -> None:
    start, end = event_pair()
    start.record()
    work()
    end.record()
    work()
    end.synchronize()

    assert start.elapsed_time(end) > 0
    assert unfinished_reads(recorder) == []
    time.perf_counter()
    assert unfinished_reads(recorder) == ["perf_counter"]


def test_elapsed_time_of_unfinished_events(recorder: Recorder) -> None:
    start, end = event_pair()
    start.record()
    work()
    end.record()
    with pytest.raises(RuntimeError, match=r"^Both events must be completed before calculating elapsed time\.$"):
        start.elapsed_time(end)

    assert [event.what for event in of_kind(recorder, "fault")] == [
        "Both events must be completed before calculating elapsed time."
    ]
    assert of_kind(recorder, "clock") == []


def test_elapsed_time_of_an_event_never_recorded(recorder: Recorder) -> None:
    start, end = event_pair()
    start.record()
    with pytest.raises(ValueError, match=r"^Both events must be recorded before calculating elapsed time\.$"):
        start.elapsed_time(end)

    assert [event.what for event in of_kind(recorder, "clock")] == ["event.elapsed_time of an event never recorded"]


def test_elapsed_time_of_events_without_timing(recorder: Recorder) -> None:
    start, end = torch.cuda.Event(), torch.cuda.Event()
    start.record()
    end.record()
    with pytest.raises(ValueError, match=r"^Both events must be created with argument 'enable_timing=True'\.$"):
        start.elapsed_time(end)


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("bool", lambda x: bool(x.sum() > 0)),
        ("int", lambda x: int(x.sum())),
        ("format", lambda x: f"{x.sum():.2f}"),
        ("if", lambda x: 1 if x.sum() > 0 else 0),
        ("nonzero", lambda x: x.nonzero()),
        ("boolean mask", lambda x: x[x > 0]),
        ("masked_select", lambda x: x.masked_select(x > 0)),
        ("unique", lambda x: x.unique()),
        ("bincount", lambda x: x.abs().long().flatten().bincount()),
        ("equal", lambda x: torch.equal(x, x)),
        ("repeat_interleave", lambda x: x[0].repeat_interleave(torch.arange(8, device="cuda"))),
        ("linalg check", lambda x: torch.linalg.inv(x + 10 * torch.eye(8, device="cuda"))),
        ("print", lambda x: repr(x)),
    ],
)
def test_host_waits_for(recorder: Recorder, name: str, line: object) -> None:
    made = torch.randn(8, 8, device="cuda")
    assert callable(line)
    line(made)

    names = {"bool": "item", "int": "item", "format": "item", "if": "item"}
    assert names.get(name, name) in [event.what for event in of_kind(recorder, "sync")]


@pytest.mark.parametrize(
    "line",
    [
        lambda x: x + 1,
        lambda x: x.view(64),
        lambda x: x[0],
        lambda x: x[torch.arange(3, device="cuda")],
        lambda x: x.__setitem__(x > 0, 0.0),
        lambda x: x.shape,
        lambda x: x.sum(),
    ],
)
def test_host_does_not_wait_for(recorder: Recorder, line: object) -> None:
    made = torch.randn(8, 8, device="cuda")
    assert callable(line)
    line(made)

    assert of_kind(recorder, "sync") == []


def transfers(recorder: Recorder) -> list[tuple[str, str | None, bool | None, int]]:
    return [(event.what, event.direction, event.blocking, event.bytes) for event in of_kind(recorder, "transfer")]


def test_transfers_with_their_bytes(recorder: Recorder) -> None:
    host = torch.ones(10)
    card = host.to("cuda")
    card.cpu()
    card.to("cuda:1")
    torch.empty(10, device="cuda").copy_(host)
    torch.tensor([1.0, 2.0], device="cuda")
    card.tolist()

    assert transfers(recorder) == [
        ("to", "h2d", True, 40),
        ("cpu", "d2h", True, 40),
        ("to", "d2d", False, 40),
        ("copy_", "h2d", True, 40),
        ("tensor", "h2d", True, 8),
        ("tolist", "d2h", True, 40),
    ]


def test_non_blocking_copy_from_pinned_memory(recorder: Recorder) -> None:
    torch.ones(10).pin_memory().to("cuda", non_blocking=True)

    assert transfers(recorder) == [("to", "h2d", False, 40)]


def test_non_blocking_copy_from_pageable_memory_is_named(recorder: Recorder) -> None:
    torch.ones(10).to("cuda", non_blocking=True)

    assert transfers(recorder) == [("to from pageable memory", "h2d", False, 40)]


def test_moving_to_the_same_place_is_no_transfer(recorder: Recorder) -> None:
    card = torch.ones(3, device="cuda")
    assert card.to("cuda:0") is card
    torch.ones(3).cpu()

    assert transfers(recorder) == []


def test_host_index_is_a_hidden_transfer(recorder: Recorder) -> None:
    torch.randn(5, device="cuda")[torch.tensor([0, 1])]

    assert transfers(recorder) == [("host index", "h2d", True, 16)]


@pytest.mark.parametrize(
    "read", [lambda t: t.numpy(), lambda t: t.tolist(), lambda t: t.sum(), lambda t: t.max().item()]
)
def test_reading_an_unfinished_copy_is_a_race(recorder: Recorder, read: object) -> None:
    copied = torch.ones(4, device="cuda").to("cpu", non_blocking=True)
    assert callable(read)
    read(copied)

    assert of_kind(recorder, "race")


def test_copy_into_pageable_memory_waits(recorder: Recorder) -> None:
    host = torch.empty(4)
    host.copy_(torch.ones(4, device="cuda"), non_blocking=True)
    host.sum()

    assert of_kind(recorder, "race") == []
    assert transfers(recorder) == [("copy_", "d2h", True, 16)]


def test_copy_into_pinned_memory_does_not(recorder: Recorder) -> None:
    host = torch.empty(4, pin_memory=True)
    host.copy_(torch.ones(4, device="cuda"), non_blocking=True)
    host.sum()

    assert len(of_kind(recorder, "race")) == 1


def test_printing_is_one_event(recorder: Recorder) -> None:
    made = torch.rand(3, device="cuda")
    repr(made)
    time.perf_counter()

    assert [event.what for event in of_kind(recorder, "sync")] == ["print"]
    assert unfinished_reads(recorder) == []


def test_reading_a_copy_after_synchronize_is_none(recorder: Recorder) -> None:
    copied = torch.ones(4, device="cuda").to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    copied.sum()

    assert of_kind(recorder, "race") == []


def test_loop_is_one_event_with_a_count(recorder: Recorder) -> None:
    made = torch.ones(4, device="cuda")
    for _ in range(5):
        made.sum().item()

    (sync,) = of_kind(recorder, "sync")
    assert sync.count == 5


def test_threads_queue_on_the_same_card(recorder: Recorder) -> None:
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    time.perf_counter()

    assert [event.pending for event in of_kind(recorder, "clock")] == [3]


def test_kernels_are_attributed_to_lines(recorder: Recorder) -> None:
    work()

    first = work.__code__.co_firstlineno
    lines = {line - first: count for (_, line), count in recorder.kernels_by_line().items()}
    assert lines == {2: 1, 3: 2}


def test_observing_without_an_accelerator_changes_nothing() -> None:
    recorder = Recorder([__file__])
    clock = time.perf_counter
    with observe(recorder) as same:
        assert same is recorder
        if not torch.cuda.is_available():
            assert time.perf_counter is clock
        torch.ones(3).sum().item()

    assert time.perf_counter is clock
    assert of_kind(recorder, "sync") == []
