"""Patch of ``torch.device``: ``torch.device(1)`` is card 1, though C++ knows of no accelerator.

The class stays the object that it is, since programs compare with it (``type(device) is torch.device``). What changes
is the class of the class, which says what a call of it does.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any

import torch

from devlint.runtime.simulator.patches.base import Patch, always
from devlint.runtime.simulator.simulation import Simulation


class ClassOf:
    """The class of a class that C made, as the attribute ``value``.

    Python lets nobody assign it, so it is written where CPython keeps it: last in the head of each object
    [Include/object.h].
    """

    __qualname__ = "class"

    def __init__(self, owner: type) -> None:
        self._owner = owner

    @property
    def value(self) -> type:
        """The class of the class."""
        return type(self._owner)

    @value.setter
    def value(self, kind: type) -> None:
        address = id(self._owner) + object.__basicsize__ - ctypes.sizeof(ctypes.c_void_p)
        ctypes.c_void_p.from_address(address).value = id(kind)


def patches(simulation: Simulation) -> Iterator[Patch]:
    """What a call of ``torch.device`` does."""

    def __call__(cls: type, *args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and type(args[0]) is int and not kwargs:
            args = (simulation.kind, args[0])
        return type.__call__(cls, *args, **kwargs)

    real = torch.device
    # What a class of classes says of itself hides what the class would say: pickle asks for the module.
    own = {"__module__": real.__module__, "__doc__": real.__doc__, "__call__": __call__}
    yield Patch(ClassOf(real), "value", always(type("DeviceType", (type,), own)))
