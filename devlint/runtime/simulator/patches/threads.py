"""Patch of threads: dispatch modes belong to a thread, so each new one enters the simulation."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

from devlint.runtime.simulator.mode import SimulatedDevice
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation


def patches(simulation: Simulation) -> Iterator[Patch]:
    """``threading.Thread``, which executors and DataParallel use too."""

    def bootstrap(original: Any) -> Any:
        def _bootstrap_inner(self: threading.Thread) -> None:
            with SimulatedDevice(simulation):
                original(self)

        return _bootstrap_inner

    yield Patch(threading.Thread, "_bootstrap_inner", bootstrap)
