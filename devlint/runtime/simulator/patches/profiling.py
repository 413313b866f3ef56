"""Patches of the profiler: it records the CPU kernels that ran, and no card's activity."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
import torch.profiler

from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation


def patches(simulation: Simulation) -> Iterator[Patch]:
    """Leave out the activities that only a real card has; C++ complains about each event otherwise."""

    def init(original: Any) -> Any:
        def __init__(self: Any, *args: Any, activities: Any = None, **kwargs: Any) -> None:
            if activities is not None:
                simulation.note("torch.profiler: only CPU activity is recorded")
                activities = [torch.profiler.ProfilerActivity.CPU]
            original(self, *args, activities=activities, **kwargs)

        return __init__

    def legacy_init(original: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            for name in ("use_cuda", "use_device"):
                if kwargs.get(name):
                    simulation.note("torch.profiler: only CPU activity is recorded")
                    del kwargs[name]
            original(self, *args, **kwargs)

        return __init__

    # Each class fixes its base's signature, so the outermost and the innermost suffice.
    yield Patch(torch.profiler.profile, "__init__", init)
    yield Patch(torch.autograd.profiler.profile, "__init__", legacy_init)
