"""The one table of patches that a simulation applies, and those for modules imported later."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Final, TypeAlias

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
    sharing,
    storages,
    tensors,
    threads,
)
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation

_PARTS = (
    storages,
    sharing,
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


LatePatches: TypeAlias = Callable[[Simulation, ModuleType], Iterator[Patch]]

# Modules that are patched when the program imports them, since importing them costs time or fails.
LATE_PATCHES: Final[dict[str, LatePatches]] = {
    "torch.utils.cpp_extension": compiling.extension_patches,
    "triton.runtime.jit": compiling.triton_patches,
}
