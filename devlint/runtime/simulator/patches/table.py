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
    subclassing,
    tensors,
    threads,
)
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation

_PARTS = (
    storages,
    sharing,
    tensors,
    subclassing,
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

_HIGHER_ORDER = (
    "torch._dynamo._trace_wrapped_higher_order_op",
    "torch._higher_order_ops.base_hop",
    "torch._higher_order_ops.cond",
    "torch._higher_order_ops.invoke_subgraph",
    "torch._higher_order_ops.scan",
    "torch._higher_order_ops.strict_mode",
)

# Modules that are patched when the program imports them, since importing them costs time or fails.
LATE_PATCHES: Final[dict[str, LatePatches]] = {
    "torch.utils.cpp_extension": compiling.extension_patches,
    "triton.runtime.jit": compiling.triton_patches,
    **dict.fromkeys(_HIGHER_ORDER, subclassing.plain_implementation_patches),
}
