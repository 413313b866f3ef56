"""Patches of the clocks: a read by the user's code is recorded with the work still queued."""

from __future__ import annotations

import functools
import sys
import time
import timeit
from collections.abc import Iterator
from typing import Any

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation

CLOCKS = (
    "time",
    "time_ns",
    "perf_counter",
    "perf_counter_ns",
    "monotonic",
    "monotonic_ns",
    "process_time",
    "process_time_ns",
)


def patches(simulation: Simulation) -> Iterator[Patch]:
    """The clocks of ``time``, and those that ``timeit`` took from it."""
    yield from clock_patches(simulation.recorder, lambda: simulation.pending)


def clock_patches(recorder: Recorder, pending: Any) -> Iterator[Patch]:
    """Patches that record each clock read of user code with ``pending()`` kernels unfinished."""
    replaced: dict[Any, Any] = {}

    def watched(original: Any) -> Any:
        @functools.wraps(original)
        def read() -> Any:
            frame = sys._getframe(1)
            if recorder.is_user_clock(frame):
                recorder.record("clock", original.__name__, pending=pending(), at=recorder.locate(frame))
            return original()

        replaced[original] = read
        return read

    def replacement(original: Any) -> Any:
        return replaced.get(original, original)

    for name in CLOCKS:
        yield Patch(time, name, watched)
    yield Patch(timeit, "default_timer", replacement)
    # Timer took its default clock when timeit was imported.
    for function in (timeit.Timer.__init__, timeit.timeit, timeit.repeat):
        yield Patch(function, "__defaults__", lambda defaults: tuple(map(replacement, defaults)))


__all__ = ["CLOCKS", "clock_patches", "patches"]
