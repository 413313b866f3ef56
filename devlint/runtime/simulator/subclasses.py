"""Tensors whose class takes operators itself: wrappers with ``__torch_dispatch__``, fake tensors, distributed tensors.

Such a tensor is told where it is, in Python, and C++ is told that it is on the CPU, as every tensor is here.  The
operators that its class calls on the tensors inside come to the dispatch mode one by one.  A fake tensor has a shape
and a device, but no memory; its own mode knows the rules for devices and is left to apply them.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import torch
from torch._subclasses.fake_tensor import FakeTensor

from devlint.runtime.simulator.marks import CPU

_Tensor = torch.Tensor
_PLAIN: Final = frozenset({torch.Tensor, torch.nn.Parameter})
_NO_DISPATCH: Final = torch._C._disabled_torch_dispatch_impl
_KEYS: Final = torch._C._TorchDispatchModeKey
_active_mode: Any = torch._C._get_dispatch_mode
_FAKE: Final = _KEYS.FAKE
_LOCAL: Final = "_local_tensor"  # what a distributed tensor holds on this rank


def takes_operators(tensor: torch.Tensor) -> bool:
    """Whether the tensor's class has a ``__torch_dispatch__`` of its own."""
    kind = tensor.__class__
    return kind not in _PLAIN and kind.__torch_dispatch__ is not _NO_DISPATCH


def by_class(kinds: Any) -> bool:
    """Whether one of these classes of tensors takes operators itself; torch lists its own class at times."""
    return any(kind.__torch_dispatch__ is not _NO_DISPATCH for kind in kinds)


def is_fake(tensor: Any) -> bool:
    """Whether it is a shape with a device, without memory."""
    return isinstance(tensor, FakeTensor)


def faking() -> bool:
    """Whether a FakeTensorMode takes the operators of this thread."""
    return _active_mode(_FAKE) is not None


def tracing_modes() -> bool:
    """Whether one of torch's own modes below takes operators: fake tensors, proxies of a graph, functionalization."""
    return any(_active_mode(key) is not None for key in (_FAKE, _KEYS.PROXY, _KEYS.FUNCTIONAL))


def inner_part(tensor: torch.Tensor) -> torch.Tensor | None:
    """The tensor inside one that C++ made around it, which says where it is.

    That is what functionalization sees, or the part of a distributed tensor on this rank.
    """
    if torch._is_functional_tensor(tensor):
        inside: torch.Tensor = torch._from_functional_tensor(tensor)
        return inside
    module: Any = sys.modules.get("torch.distributed.tensor")
    if module is None or not isinstance(tensor, getattr(module, "DTensor", ())):
        return None
    part = getattr(tensor, _LOCAL, None)
    return part if isinstance(part, _Tensor) else None


def run_on_fakes(kind: str, wanted: Any, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Hand an operator to the FakeTensorMode below.

    C++ asks for ``cpu`` where it means the device of its inputs, since it sees only CPU tensors: such a device becomes
    the inputs', and a tensor that C++ makes without inputs goes with its first partner.
    kind: of the simulated cards.  wanted: what a patched factory asks for; None: nothing.
    """
    fakes = [value for value in _tensors_in((args, tuple(kwargs.values()))) if is_fake(value)]
    known = next((fake.fake_device for fake in fakes if not _is_adaptable(fake)), None)
    if known is not None:
        for fake in fakes:
            if _is_adaptable(fake):
                fake.fake_device = known
                fake._devlint_adapts = False
    device = kwargs.get("device")
    unasked = device is not None and device.type == "cpu" and wanted is None
    if unasked and known is not None and known.type == kind:
        kwargs = {**kwargs, "device": known}
    result = func(*args, **kwargs)
    if unasked and not fakes:
        for made in _tensors_in((result,)):
            if is_fake(made):
                made._devlint_adapts = True
    return result


def _is_adaptable(fake: Any) -> bool:
    return bool(getattr(fake, "_devlint_adapts", False))


def _tensors_in(values: Any) -> list[Any]:
    found: list[Any] = []
    for value in values:
        if isinstance(value, _Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors_in(value)
    return found


def device_for_native_code(device: Any, kind: str) -> Any:
    """The device that C++ is told for a tensor of this device: a card of the simulated kind is not there for it."""
    if device is None:
        return None
    named = torch.device(device)
    return CPU if named.type == kind else named
