"""Patch of ``torch.device``: ``torch.device(1)`` is card 1, though C++ knows of no accelerator.

The replacement makes real device objects and passes for the real class in ``isinstance``, comparison and
pickles, which name it ``torch.device`` as ever.
"""

from __future__ import annotations

import copyreg
from collections.abc import Iterator
from typing import Any

import torch

from devlint.runtime.simulator.patches.base import Entry, Patch, always
from devlint.runtime.simulator.simulation import Simulation


def patches(simulation: Simulation) -> Iterator[Patch]:
    """``torch.device`` and how its objects are pickled."""
    real: Any = torch.device

    class DeviceType(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if len(args) == 1 and type(args[0]) is int and not kwargs:
                return real(simulation.kind, args[0])
            return real(*args, **kwargs)

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, real)

        def __subclasscheck__(cls, other: type) -> bool:
            return issubclass(other, real)

        def __eq__(cls, other: object) -> bool:
            return other is real or other is cls

        def __hash__(cls) -> int:
            return hash(real)

    replacement = DeviceType("device", (), {"__module__": "torch", "__doc__": real.__doc__})

    def reduce(device: Any) -> Any:
        return (replacement, (device.type,) if device.index is None else (device.type, device.index))

    yield Patch(torch, "device", always(replacement))
    # Pickle looks a class up by name and insists on finding the same object.
    yield Patch(Entry("copyreg.dispatch_table", copyreg.dispatch_table, real), "value", always(reduce), create=True)
