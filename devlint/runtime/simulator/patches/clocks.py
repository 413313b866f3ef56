"""Patches of the clocks: a read by the user's code is recorded with the work still queued."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from typing import Any

from devlint.runtime.clocks import CLOCKS, places
from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation


def patches(simulation: Simulation) -> Iterator[Patch]:
    """The clocks of ``time``, and those that ``timeit`` took from it."""
    yield from clock_patches(simulation.recorder, lambda: simulation.pending)


def clock_patches(recorder: Recorder, pending: Any) -> Iterator[Patch]:
    """Patches that record each clock read of user code with ``pending()`` kernels unfinished."""

    def watched(original: Any) -> Any:
        @functools.wraps(original)
        def read() -> Any:
            frame = sys._getframe(1)
            if recorder.is_user_clock(frame):
                recorder.record("clock", original.__name__, pending=pending(), at=recorder.locate(frame))
            return original()

        return read

    for place in places(watched):
        yield Patch(*place)


__all__ = ["CLOCKS", "clock_patches", "patches"]
