"""The one table of patches that a simulation applies."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.runtime.simulator.patches import (
    autocasting,
    clocks,
    compiling,
    composites,
    deviceclass,
    devices,
    factories,
    gradients,
    parallel,
    profiling,
    randomness,
    storages,
    tensors,
    threads,
)
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation

_PARTS = (
    storages,
    tensors,
    factories,
    randomness,
    gradients,
    composites,
    devices,
    parallel,
    profiling,
    autocasting,
    compiling,
    clocks,
    threads,
    deviceclass,
)


def patch_table(simulation: Simulation) -> Iterator[Patch]:
    """Every patch, in the order of application."""
    for part in _PARTS:
        yield from part.patches(simulation)
