"""Patches of everything that makes tensors: each result is on the device that was asked for."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
import torch.fft
import torch.nested
import torch.utils._device

from devlint.runtime.simulator import messages, unwritten
from devlint.runtime.simulator.cards import Card
from devlint.runtime.simulator.generators import check_generator
from devlint.runtime.simulator.marks import CPU, WILD, card_of, mark_of, set_mark, set_pinned
from devlint.runtime.simulator.messages import DTYPES_BY_NAME
from devlint.runtime.simulator.patches.base import Patch, always, documented
from devlint.runtime.simulator.patches.tensors import device_of_place, move_or_leave
from devlint.runtime.simulator.simulation import Simulation
from devlint.runtime.simulator.subclasses import faking, takes_operators

_Tensor = torch.Tensor

# torch.utils._device._device_constructors() without those that take data.
_FACTORIES = [
    "empty",
    "empty_permuted",
    "empty_strided",
    "empty_quantized",
    "ones",
    "arange",
    "bartlett_window",
    "blackman_window",
    "eye",
    "full",
    "hamming_window",
    "hann_window",
    "kaiser_window",
    "linspace",
    "logspace",
    "rand",
    "randn",
    "randint",
    "randperm",
    "range",
    "tril_indices",
    "triu_indices",
    "zeros",
    "scalar_tensor",
]
# With the number of arguments that are indices; the values follow.
_SPARSE = {
    "sparse_coo_tensor": 1,
    "sparse_compressed_tensor": 2,
    "sparse_csr_tensor": 2,
    "sparse_csc_tensor": 2,
    "sparse_bsr_tensor": 2,
    "sparse_bsc_tensor": 2,
}
_LIKE = ["empty_like", "ones_like", "zeros_like", "full_like", "rand_like", "randn_like", "randint_like"]
_NEW = ["new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full"]
_LEGACY_TYPES = ["Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool"]


def patches(simulation: Simulation) -> Iterator[Patch]:
    """Factories, ``*_like``, ``new_*``, constructors from data, legacy constructors."""
    plain, like = _Factory(simulation, from_self=False), _Factory(simulation, from_self=True)
    for name in _FACTORIES:
        yield Patch(torch, name, plain.wrap)
    for name, indices in _SPARSE.items():
        yield Patch(torch, name, functools.partial(_sparse, simulation, plain, name, indices))
    for name in ("fftfreq", "rfftfreq"):
        yield Patch(torch.fft, name, plain.wrap)
    for name in _LIKE:
        yield Patch(torch, name, like.wrap)
    for name in _NEW:
        yield Patch(_Tensor, name, like.wrap)
    yield Patch(torch.nested, "nested_tensor", functools.partial(_nested, simulation, plain))
    yield Patch(torch, "normal", lambda original: _normal(original, plain.wrap(original)))
    yield from _from_data(simulation)
    yield from _legacy(simulation)


class _Factory:
    """Wraps a factory: resolve the device, build with CPU kernels, mark the result."""

    def __init__(self, simulation: Simulation, from_self: bool) -> None:
        self._simulation = simulation
        self._from_self = from_self

    def wrap(self, original: Any) -> Any:
        simulation, from_self = self._simulation, self._from_self
        name = getattr(original, "__name__", "")
        allocates = name in unwritten.ALLOCATING

        @documented("input", original)
        def factory(*args: Any, **kwargs: Any) -> Any:
            if faking() or (from_self and args and isinstance(args[0], _Tensor) and takes_operators(args[0])):
                return _without_memory(simulation, original, from_self, args, kwargs)
            device = kwargs.pop("device", None)
            place: Card | torch.device | None
            if device is not None:
                place = simulation.place(device)
            elif not from_self:
                place = simulation.default_place()
            elif args and isinstance(args[0], _Tensor) and mark_of(args[0]) is not WILD and not args[0].is_meta:
                place = card_of(args[0])
            else:
                return original(*args, **kwargs)
            if isinstance(place, torch.device):
                return original(*args, device=place, **kwargs)
            if kwargs.get("generator") is not None:
                check_generator(simulation, (), kwargs, place)
            pin = kwargs.pop("pin_memory", False)
            if pin and place is not None:
                simulation.fault(RuntimeError, "Only dense CPU tensors can be pinned")
            with simulation.building_on(place):
                result = original(*args, device=CPU, **kwargs)
            if kwargs.get("out") is None and mark_of(result) is not place:
                set_mark(result, place)
            if pin:
                set_pinned(result)
            if allocates and place is not None and kwargs.get("out") is None:
                unwritten.allocated(simulation, result, name)
            return result

        return factory


def _without_memory(
    simulation: Simulation, original: Any, from_self: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A fake tensor's mode, or the class of a tensor, is told the device as on a real card."""
    device = kwargs.get("device")
    if device is None and from_self:
        return original(*args, **kwargs)
    place = simulation.default_place() if device is None else simulation.place(device)
    kwargs = {**kwargs, "device": device_of_place(place)}
    with simulation.building_on(place if isinstance(place, Card) else None):
        return original(*args, **kwargs)


def _normal(original: Any, factory: Any) -> Any:
    """``torch.normal`` is a factory only when mean and standard deviation are numbers.

    It does not follow the default device: it is not among the constructors that ``torch.utils._device`` redirects.
    """

    @documented("mean", original)
    def normal(*args: Any, **kwargs: Any) -> Any:
        tensors = any(isinstance(value, _Tensor) for value in (*args, kwargs.get("std")))
        if tensors:
            return original(*args, **kwargs)
        return factory(*args, **{**kwargs, "device": CPU if kwargs.get("device") is None else kwargs["device"]})

    return normal


def _from_data(simulation: Simulation) -> Iterator[Patch]:
    def wrap(name: str, copies: bool, first: str = "data") -> Any:
        def make(original: Any) -> Any:
            @documented(first, original)
            def construct(data: Any, *args: Any, **kwargs: Any) -> Any:
                device = kwargs.pop("device", None)
                if device is not None:
                    place = simulation.place(device)
                else:
                    place = card_of(data) if isinstance(data, _Tensor) else simulation.default_place()
                if isinstance(place, torch.device):
                    return original(data, *args, device=place, **kwargs)
                if faking():
                    made = original(data, *args, device=CPU, **kwargs)
                    return move_or_leave(simulation, made, place, None, False, None, name)
                if isinstance(data, _Tensor) and card_of(data) is not place and not data.is_meta:
                    return _moved(simulation, name, data, place, copies, args, kwargs)
                return _built(simulation, name, original, data, place, copies, args, kwargs)

            return construct

        return make

    yield Patch(torch, "tensor", wrap("tensor", copies=True))
    yield Patch(torch, "as_tensor", wrap("as_tensor", copies=False))
    yield Patch(torch, "asarray", wrap("asarray", copies=False, first="obj"))

    def new_tensor(original: Any) -> Any:
        def new_tensor(self: torch.Tensor, data: Any, **kwargs: Any) -> torch.Tensor:
            if not isinstance(data, _Tensor) and kwargs.get("dtype") is None:
                kwargs["dtype"] = self.dtype
            if kwargs.get("device") is None:
                kwargs["device"] = simulation.device_of(self)
            return torch.tensor(data, **kwargs)

        return new_tensor

    yield Patch(_Tensor, "new_tensor", new_tensor)


def _moved(
    simulation: Simulation,
    name: str,
    data: torch.Tensor,
    place: Card | None,
    copies: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> torch.Tensor:
    """A tensor as data for another device: a transfer."""
    dtype = kwargs.get("dtype") or (args[0] if args else None)
    source = data.detach() if copies else data
    result = move_or_leave(simulation, source, place, dtype, False, None, name)
    if kwargs.get("requires_grad"):
        result.requires_grad_(True)
    return result


def _built(
    simulation: Simulation,
    name: str,
    original: Any,
    data: Any,
    place: Card | None,
    copies: bool,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> torch.Tensor:
    """Host data: a host tensor first and, for a card, a blocking copy of it."""
    pin = kwargs.pop("pin_memory", False)
    on_device = isinstance(data, _Tensor)
    with simulation.building_on(place if on_device else None):
        result: torch.Tensor = original(data, *args, device=CPU, **kwargs)
    if place is not None and not on_device:
        if not copies:
            result = result.clone()  # as_tensor shares memory with an array; a card cannot
        set_mark(result, place)
        simulation.transferred(name, "h2d", result.numel() * result.element_size(), place, blocking=True)
    elif simulation.thread.tracing is not None:  # a constant of the trace, on the card like the rest of it
        set_mark(result, WILD)
    elif mark_of(result) is not place:
        set_mark(result, place)
    if pin:
        set_pinned(result)
    return result


def _sparse(simulation: Simulation, plain: _Factory, name: str, indices: int, original: Any) -> Any:
    """A sparse tensor is where its values are, unless a device is given (torch/csrc/utils/tensor_new.cpp).

    That of coordinates wants its indices there as well: the exact check of the sparse card's kernel.
    """
    factory = plain.wrap(original)

    @functools.wraps(original)
    def sparse(*args: Any, **kwargs: Any) -> Any:
        values = kwargs.get("values", args[indices] if len(args) > indices else None)
        if kwargs.get("device") is not None or not isinstance(values, _Tensor) or mark_of(values) is WILD:
            return factory(*args, **kwargs)
        at = kwargs.get("indices", args[0] if args else None)
        if name == "sparse_coo_tensor" and isinstance(at, _Tensor) and mark_of(at) is not WILD:
            here, there = simulation.device_of(at), simulation.device_of(values)
            if here != there:
                kernel = "wrapper_SparseCUDA___sparse_coo_tensor_with_dims_and_tensors"
                simulation.fault(RuntimeError, messages.exact("values", there, here, kernel))
        return factory(*args, **{**kwargs, "device": simulation.device_of(values)})

    return sparse


def _nested(simulation: Simulation, plain: _Factory, original: Any) -> Any:
    """A nested tensor is where the first of its tensors is, unless a device is given.

    That of the jagged layout is put together in Python, by functions that are patched themselves.
    """
    factory = plain.wrap(original)

    @functools.wraps(original)
    def nested_tensor(tensor_list: Any, **kwargs: Any) -> Any:
        if kwargs.get("device") is None:
            first = next((value for value in tensor_list if isinstance(value, _Tensor)), None)
            if first is not None:
                kwargs["device"] = simulation.device_of(first)
        return (original if kwargs.get("layout") is torch.jagged else factory)(tensor_list, **kwargs)

    return nested_tensor


def _legacy(simulation: Simulation) -> Iterator[Patch]:
    def new(original: Any) -> Any:
        def new(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            result = original(self, *args, **kwargs)
            place = card_of(self)
            if place is not None or mark_of(result) is WILD:
                set_mark(result, place)
            return result

        return new

    yield Patch(_Tensor, "new", new)

    def set_default_tensor_type(original: Any) -> Any:
        def set_default_tensor_type(t: Any) -> None:
            name = t if isinstance(t, str) else f"{t.__module__}.{t.__name__}"
            short = name.rpartition(".")[2].removesuffix("Tensor")
            torch.set_default_dtype(DTYPES_BY_NAME[short])
            simulation.builds_on_card = f".{simulation.kind}." in name

        return set_default_tensor_type

    yield Patch(torch, "set_default_tensor_type", set_default_tensor_type)
    module = getattr(torch, simulation.kind)
    for name in _LEGACY_TYPES:
        host_type = getattr(torch, f"{name}Tensor", None)
        if host_type is None:
            continue
        for owner, on_card in ((torch, False), (module, True)):
            made = _legacy_type(simulation, name, DTYPES_BY_NAME[name], host_type, on_card)
            yield Patch(owner, f"{name}Tensor", always(made))


def _legacy_type(simulation: Simulation, name: str, dtype: torch.dtype, host_type: Any, on_card: bool) -> Any:
    """A class such as ``torch.cuda.FloatTensor``: calling makes a tensor, isinstance asks for both."""

    class LegacyType(type):
        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            result = host_type(*args, **kwargs)
            if on_card:
                return move_or_leave(simulation, result, simulation.current, None, False, None, f"{name}Tensor")
            if mark_of(result) is WILD:
                set_mark(result, None)
            return result

        def __instancecheck__(cls, value: Any) -> bool:
            return isinstance(value, _Tensor) and value.dtype is dtype and (card_of(value) is not None) == on_card

    module = f"torch.{simulation.kind}" if on_card else "torch"
    return LegacyType(f"{name}Tensor", (), {"dtype": dtype, "__module__": module})
