"""Random generators on cards: each is a CPU generator that remembers which device it was made for.

C++ hands back a fresh Python object for a generator it was given, so the device is remembered by
the address of the C++ object.
"""

from __future__ import annotations

from typing import Any

import torch

from devlint.runtime.simulator import messages
from devlint.runtime.simulator.cards import Card
from devlint.runtime.simulator.marks import CPU
from devlint.runtime.simulator.simulation import Simulation

_devices: dict[int, torch.device] = {}


def remember(generator: torch.Generator, device: torch.device) -> None:
    """Note the device a generator was made for."""
    _devices[generator._cdata] = device


def generator_device(generator: torch.Generator) -> torch.device:
    """The device a generator was made for; the host unless noted otherwise."""
    return _devices.get(generator._cdata, CPU)


def check_generator(simulation: Simulation, args: Any, kwargs: dict[str, Any], place: Card | None) -> None:
    """Raise CUDA's error when an operator on `place` is given a generator of another device type."""
    device = CPU if place is None else place.device
    for value in (*args, kwargs.get("generator")):
        if isinstance(value, torch._C.Generator):
            found = generator_device(value)
            if found.type != device.type:
                simulation.fault(RuntimeError, messages.generator(device, found))
