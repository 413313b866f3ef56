"""Patches of how classes of tensors that take operators themselves are made, and of fake tensors.

See ``subclasses``: C++ is told that such a tensor is on the CPU, and Python where it is.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensor

from devlint.runtime.simulator.cards import Card
from devlint.runtime.simulator.marks import storage_of
from devlint.runtime.simulator.mode import SimulatedDevice
from devlint.runtime.simulator.patches.base import Entry, Patch
from devlint.runtime.simulator.simulation import Simulation
from devlint.runtime.simulator.subclasses import device_for_native_code

_ASKED: Any = torch.ops.prim.device.default
_DEVICE_OF_WRAPPER = 7  # the position of `device` among the arguments of `_make_wrapper_subclass`
_DEVICE_OF_SUBCLASS = 5  # that of `device_for_backend_keys` among those of `_make_subclass`


def patches(simulation: Simulation) -> Iterator[Patch]:
    """How classes of tensors are made, and what a fake tensor answers C++."""
    yield Patch(torch.Tensor, "__new__", _constructor)
    yield Patch(torch.Tensor, "_make_wrapper_subclass", functools.partial(_wrapper, simulation))
    yield Patch(torch.Tensor, "_make_subclass", functools.partial(_subclass, simulation))
    yield Patch(FakeTensor, "__torch_dispatch__", functools.partial(_answers, simulation))
    handlers = fake_tensor._DISPATCH_META_HANDLERS
    yield Patch(
        Entry("fake_tensor._DISPATCH_META_HANDLERS", handlers, _ASKED), "value", functools.partial(_answer, simulation)
    )


def _constructor(original: Any) -> Any:
    """A class called on what makes a tensor: C++ refuses to name a tensor anew that a dispatch mode has handed out."""

    def __new__(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if cls is torch.Tensor:
            return original(cls, *args, **kwargs)
        made = original(torch.Tensor, *args, **kwargs)
        return made if isinstance(made, cls) else made.as_subclass(cls)

    return staticmethod(__new__)


def _wrapper(simulation: Simulation, original: Any) -> Any:
    def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs, device = _for_native_code(simulation, args, kwargs, "device", _DEVICE_OF_WRAPPER)
        made = original(cls, *args, **kwargs)
        place = simulation.place(device) if device is not None else None
        if isinstance(place, Card):
            storage: Any = storage_of(made)
            storage._devlint_mark = place  # without bytes on the card: those are of the tensors inside
        return made

    return staticmethod(make)


def _subclass(simulation: Simulation, original: Any) -> Any:
    def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs, _ = _for_native_code(simulation, args, kwargs, "device_for_backend_keys", _DEVICE_OF_SUBCLASS)
        return original(cls, *args, **kwargs)

    return staticmethod(make)


def _for_native_code(
    simulation: Simulation, args: tuple[Any, ...], kwargs: dict[str, Any], name: str, position: int
) -> tuple[tuple[Any, ...], dict[str, Any], Any]:
    """The arguments with a device that C++ has, and the device that was given. `position` counts the class."""
    position -= 1
    if len(args) > position:
        device = args[position]
        told = device_for_native_code(device, simulation.kind)
        return (*args[:position], told, *args[position + 1 :]), kwargs, device
    device = kwargs.get(name)
    if device is None:
        return args, kwargs, None
    return args, {**kwargs, name: device_for_native_code(device, simulation.kind)}, device


def _answers(simulation: Simulation, original: Any) -> Any:
    """C++ asks a fake tensor for its device when autograd follows it, and stops at a card that it does not know."""
    function = original.__func__

    def __torch_dispatch__(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = function(cls, func, types, args, kwargs or {})
        return device_for_native_code(answer, simulation.kind) if func is _ASKED else answer

    return classmethod(__torch_dispatch__)


def _answer(simulation: Simulation, original: Any) -> Any:
    return lambda args: device_for_native_code(original(args), simulation.kind)


def plain_implementation_patches(simulation: Simulation, module: ModuleType) -> Iterator[Patch]:
    """Modules of ``torch._higher_order_ops``, whose plain implementations refuse to run below a dispatch mode.

    They may run below the one of the simulation, which is there all the time.
    """

    def current(original: Any) -> Any:
        def _get_current_dispatch_mode() -> Any:
            mode = original()
            return None if isinstance(mode, SimulatedDevice) else mode

        return _get_current_dispatch_mode

    yield Patch(module, "_get_current_dispatch_mode", current)
