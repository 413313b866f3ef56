"""Starting and stopping a simulation."""

from __future__ import annotations

from typing import Any

import torch

# Both make inventories of torch's functions when first used, and must not find the patched ones.
import torch._dynamo
import torch.utils._device

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator.mode import SimulatedDevice
from devlint.runtime.simulator.patches.base import PatchSet
from devlint.runtime.simulator.patches.table import patch_table
from devlint.runtime.simulator.simulation import Simulation
from devlint.runtime.simulator.spec import DeviceSpec

_active: list[tuple[Simulation, PatchSet, Any]] = []


def start(spec: DeviceSpec, recorder: Recorder) -> Simulation:
    """Apply the patches and enter the dispatch mode; on an error nothing stays changed."""
    if _active:
        raise RuntimeError(f"an accelerator is already simulated in this process: {_active[0][0].description}")
    torch.utils._device._device_constructors()
    simulation = Simulation(spec, recorder)
    patches = PatchSet()
    patches.apply(patch_table(simulation))
    mode = SimulatedDevice(simulation)
    try:
        mode.__enter__()
    except BaseException:
        patches.undo()
        raise
    _active.append((simulation, patches, mode))
    return simulation


def stop(simulation: Simulation) -> None:
    """Leave the mode and undo every patch."""
    for entry in list(_active):
        active, patches, mode = entry
        if active is simulation:
            _active.remove(entry)
            try:
                mode.__exit__(None, None, None)
            finally:
                simulation.autocast.remove()
                patches.undo()


def active_simulation() -> Simulation | None:
    """The simulation of this process, if one is active."""
    return _active[0][0] if _active else None
