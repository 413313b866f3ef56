"""Patches of ``torch.Tensor``: where a tensor says it is, moving it, and reading it on the host."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils.dlpack

from devlint.runtime.simulator import messages, unwritten
from devlint.runtime.simulator.cards import Card
from devlint.runtime.simulator.errors import CannotSimulate
from devlint.runtime.simulator.marks import (
    CPU,
    WILD,
    card_of,
    has_storage,
    is_pinned,
    mark_of,
    set_mark,
    set_pinned,
    storage_of,
)
from devlint.runtime.simulator.patches.base import Patch, documented, overridable
from devlint.runtime.simulator.simulation import Simulation
from devlint.runtime.simulator.subclasses import takes_operators
from devlint.runtime.simulator.transfer import move

_Tensor = torch.Tensor
_Base: Any = torch._C.TensorBase
_WithoutDispatch: Any = torch._C._DisableTorchDispatch


def patches(simulation: Simulation) -> Iterator[Patch]:
    """Device attributes, moves, host reads, pinning."""
    yield from _device_attributes(simulation)
    yield from _moves(simulation)
    yield from _host_reads(simulation)
    yield from _pinning(simulation)
    # after the others: what lazy modules' parameters allow, by the functions that are in place by then
    yield Patch(torch.nn.parameter.UninitializedTensorMixin, "_allowed_methods", _with_replacements)


def _with_replacements(methods: list[Any]) -> list[Any]:
    """Methods of a tensor, and what stands for them in a simulation."""
    return [*methods, *(getattr(torch.Tensor, method.__name__, method) for method in methods)]


def _device_attributes(simulation: Simulation) -> Iterator[Patch]:
    device_of = simulation.device_of

    def device(original: Any) -> Any:
        def read(self: torch.Tensor) -> torch.device:
            try:
                mark = storage_of(self)._devlint_mark
            except (NotImplementedError, RuntimeError, ValueError):
                return device_of(self)
            return mark.device if mark.__class__ is Card else device_of(self)

        return property(read)

    def is_on(kind: str) -> Any:
        return lambda original: property(lambda self: device_of(self).type == kind)

    def get_device(original: Any) -> Any:
        def index(self: torch.Tensor) -> int:
            found = device_of(self).index
            return -1 if found is None else found

        return index

    yield Patch(_Tensor, "device", device)
    for kind in ("cpu", "cuda", "xpu", "mps", "mtia"):
        yield Patch(_Tensor, f"is_{kind}", is_on(kind))
    yield Patch(_Tensor, "get_device", get_device)
    yield Patch(torch, "get_device", lambda original: documented("input", original)(get_device(original)))


def _moves(simulation: Simulation) -> Iterator[Patch]:
    def as_subclass(original: Any) -> Any:
        # Older versions refuse an alias that comes back from a dispatch mode.
        def as_subclass(self: torch.Tensor, cls: Any) -> Any:
            with _WithoutDispatch():
                return original(self, cls)

        return as_subclass

    def to(original: Any) -> Any:
        @overridable(original)
        def to(self: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
            if (not args and "device" not in kwargs and "tensor" not in kwargs) or (
                args and isinstance(args[0], torch.dtype)
            ):
                only_dtype: torch.Tensor = _Base.to(self, *args, **kwargs)
                return only_dtype
            place, dtype, non_blocking, copy, memory_format = _target_of_to(simulation, self, args, dict(kwargs))
            return move_or_leave(simulation, self, place, dtype, non_blocking, memory_format, "to", copy)

        return to

    def to_card(original: Any) -> Any:
        @overridable(original)
        def to_card(
            self: torch.Tensor,
            device: Any = None,
            non_blocking: bool = False,
            memory_format: torch.memory_format | None = None,
        ) -> torch.Tensor:
            place = simulation.place(simulation.kind if device is None else device)
            if not isinstance(place, Card):
                raise RuntimeError(f"Invalid device, must be {simulation.kind} device")
            return move_or_leave(simulation, self, place, None, non_blocking, memory_format, simulation.kind)

        return to_card

    def to_host(original: Any) -> Any:
        @overridable(original)
        def cpu(self: torch.Tensor, memory_format: torch.memory_format | None = None) -> torch.Tensor:
            return move_or_leave(simulation, self, None, None, False, memory_format, "cpu")

        return cpu

    def legacy_type(original: Any) -> Any:
        @overridable(original)
        def type(self: torch.Tensor, dtype: Any = None, non_blocking: bool = False, **kwargs: Any) -> Any:
            if dtype is None:
                return messages.type_name(self.dtype, simulation.device_of(self))
            if isinstance(dtype, torch.dtype):
                return _Base.type(self, dtype, non_blocking, **kwargs)
            name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
            on_card = simulation.builds_on_card if name == "torch.Tensor" else f".{simulation.kind}." in name
            place = simulation.current if on_card else None
            if name == "torch.Tensor":  # the default type
                return move_or_leave(simulation, self, place, torch.get_default_dtype(), non_blocking, None, "type")
            short = name.rpartition(".")[2].removesuffix("Tensor")
            if short not in messages.DTYPES_BY_NAME:
                raise ValueError(f"invalid type: '{name}'")
            wanted = messages.DTYPES_BY_NAME[short]
            return move_or_leave(simulation, self, place, wanted, non_blocking, None, "type")

        return type

    def type_as(original: Any) -> Any:
        # it moves as well: `self.to(other.options())` [aten/src/ATen/native/TensorConversions.cpp]
        @overridable(original)
        def type_as(self: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
            moved: torch.Tensor = self.to(other)
            return moved

        return type_as

    def copy_(original: Any) -> Any:
        @overridable(original)
        def copy_(self: torch.Tensor, other: Any, non_blocking: bool = False) -> torch.Tensor:
            source = other
            # Autograd would hand the source a gradient on self's device; a followed transfer does not.
            followed = isinstance(source, _Tensor) and source.requires_grad and torch.is_grad_enabled()
            if (
                followed
                and card_of(source) is not card_of(self)
                and not (takes_operators(source) or takes_operators(self))
            ):
                source = move(simulation, source, card_of(self), None, non_blocking, None, "copy_")
            copied: torch.Tensor = _Base.copy_(self, source, non_blocking)
            return copied

        return copy_

    def parse_to(original: Any) -> Any:
        # Module.to hands its arguments here; C++ knows of no accelerator that an int could name, or a tensor be on.
        def _parse_to(*args: Any, **kwargs: Any) -> Any:
            like = args[0] if args else kwargs.get("tensor")
            if isinstance(like, _Tensor):
                return (simulation.device_of(like), *original(*args, **kwargs)[1:])
            if args and type(args[0]) is int:
                args = (simulation.device(args[0]), *args[1:])
            if type(kwargs.get("device")) is int:
                kwargs["device"] = simulation.device(kwargs["device"])
            return original(*args, **kwargs)

        return _parse_to

    def resize_(original: Any) -> Any:
        @overridable(original)
        def resize_(self: torch.Tensor, *size: Any, **kwargs: Any) -> torch.Tensor:
            was_empty = has_storage(self) and storage_of(self).nbytes() == 0
            resized: torch.Tensor = _Base.resize_(self, *size, **kwargs)
            if was_empty and card_of(resized) is not None:
                unwritten.allocated(simulation, resized, "resize_")
            return resized

        return resize_

    yield Patch(_Tensor, "resize_", resize_)
    yield Patch(torch._C._nn, "_parse_to", parse_to)
    yield Patch(_Tensor, "as_subclass", as_subclass)
    yield Patch(_Tensor, "to", to)
    yield Patch(_Tensor, simulation.kind, to_card, create=True)
    yield Patch(_Tensor, "cpu", to_host)
    yield Patch(_Tensor, "type", legacy_type)
    yield Patch(_Tensor, "type_as", type_as)
    yield Patch(_Tensor, "copy_", copy_)


def move_or_leave(
    simulation: Simulation,
    tensor: torch.Tensor,
    place: Card | torch.device | None,
    dtype: torch.dtype | None,
    non_blocking: bool,
    memory_format: torch.memory_format | None,
    what: str,
    copy: bool = False,
) -> torch.Tensor:
    """Move between host and cards; leave foreign devices such as ``meta`` to torch."""
    if takes_operators(tensor):
        return _moved_by_its_class(simulation, tensor, place, dtype, non_blocking, memory_format, copy)
    if isinstance(place, torch.device):
        foreign: torch.Tensor = _Base.to(tensor, device=place, dtype=dtype or tensor.dtype, copy=copy)
        return foreign
    if tensor.is_meta:
        raise NotImplementedError(
            "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
            "torch.nn.Module.to() when moving module from meta to a different device."
        )
    if torch.nn.parameter.is_lazy(tensor):  # a tensor without elements, whose class refuses to say so
        with torch._C.DisableTorchFunctionSubclass(), _WithoutDispatch():
            tensor = _Base.as_subclass(_Base.detach(tensor), _Tensor)
    return move(simulation, tensor, place, dtype, non_blocking, memory_format, what, copy)


def device_of_place(place: Card | torch.device | None) -> torch.device:
    """The device of a card, of a device itself, and of no place: the host."""
    if isinstance(place, torch.device):
        return place
    return CPU if place is None else place.device


def _moved_by_its_class(
    simulation: Simulation,
    tensor: torch.Tensor,
    place: Card | torch.device | None,
    dtype: torch.dtype | None,
    non_blocking: bool,
    memory_format: torch.memory_format | None,
    copy: bool,
) -> torch.Tensor:
    """What C++ would do on a real card: nothing, or hand ``_to_copy`` to the tensor's class."""
    device = device_of_place(place)
    kept = memory_format in (None, torch.preserve_format)
    if not copy and kept and simulation.device_of(tensor) == device and dtype in (None, tensor.dtype):
        return tensor
    formats: dict[str, Any] = {} if memory_format is None else {"memory_format": memory_format}
    with simulation.building_on(place if isinstance(place, Card) else None):
        moved: torch.Tensor = torch.ops.aten._to_copy.default(
            tensor, dtype=dtype, device=device, non_blocking=non_blocking, **formats
        )
    return moved


def _target_of_to(
    simulation: Simulation, tensor: torch.Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, torch.dtype | None, bool, bool, torch.memory_format | None]:
    """Place, dtype, non_blocking, copy and memory format of any call form of ``Tensor.to``."""
    copy = bool(kwargs.pop("copy", False))
    memory_format = kwargs.get("memory_format")
    # `other` in the documentation is `tensor` to torch (tools/autograd/templates/python_variable_methods.cpp)
    other = args[0] if args and isinstance(args[0], _Tensor) else kwargs.pop("tensor", None)
    if other is not None:
        rest = args[1:] if args and args[0] is other else args
        non_blocking = bool(rest[0] if rest else kwargs.get("non_blocking", False))
        copy = copy or (len(rest) > 1 and bool(rest[1]))
        return simulation.place(simulation.device_of(other)), other.dtype, non_blocking, copy, memory_format
    # to(device, dtype, non_blocking, copy): torch's own parser does not know the last one.
    positional = list(args)
    if len(positional) > 3:
        copy = bool(positional.pop())
    if positional:
        positional[0] = _explicit_device(simulation, tensor, positional[0])
    if "device" in kwargs:
        kwargs["device"] = _explicit_device(simulation, tensor, kwargs["device"])
    device, dtype, non_blocking, memory_format = torch._C._nn._parse_to(*positional, **kwargs)
    if device is None:  # to(float): Python's own types are dtypes too
        device = simulation.device_of(tensor)
    return simulation.place(device), dtype, non_blocking, copy, memory_format


def _explicit_device(simulation: Simulation, tensor: torch.Tensor, device: Any) -> torch.device | str:
    if device is None:
        return simulation.device_of(tensor)
    if isinstance(device, int) and not isinstance(device, bool):
        return simulation.device(device)
    explicit: torch.device | str = device
    return explicit


def _host_reads(simulation: Simulation) -> Iterator[Patch]:
    def refuse_numpy(tensor: torch.Tensor) -> None:
        simulation.fault(TypeError, messages.to_numpy(simulation.device_of(tensor)))

    def numpy(original: Any) -> Any:
        @overridable(original)
        def numpy(self: torch.Tensor, *, force: bool = False) -> Any:
            if card_of(self) is not None:
                if not force:
                    refuse_numpy(self)
                self = move(simulation, self.detach(), None, what="numpy")
            simulation.check_copy_finished(self, "numpy")
            return _Base.numpy(self, force=force)

        return numpy

    def array(original: Any) -> Any:
        @overridable(original)
        def __array__(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if card_of(self) is not None:
                refuse_numpy(self)
            return original(self, *args, **kwargs)

        return __array__

    def tolist(original: Any) -> Any:
        @overridable(original)
        def tolist(self: torch.Tensor) -> Any:
            card = card_of(self)
            if card is not None:
                simulation.transferred("tolist", "d2h", self.numel() * self.element_size(), card, blocking=True)
            else:
                simulation.check_copy_finished(self, "tolist")
            with _WithoutDispatch():
                return _Base.tolist(self)

        return tolist

    def representation(original: Any) -> Any:
        def __repr__(self: torch.Tensor, **kwargs: Any) -> Any:
            card = card_of(self)
            if card is None:
                return original(self, **kwargs)
            simulation.wait("print", card)
            with simulation.recorder.paused():
                text = original(self, **kwargs)
                simulation.wait("print", card)
            return text

        return __repr__

    def from_dlpack(original: Any) -> Any:
        @functools.wraps(original)
        def from_dlpack(ext_tensor: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
            if isinstance(ext_tensor, _Tensor) and card_of(ext_tensor) is not None:
                return ext_tensor.detach()
            result: torch.Tensor = original(ext_tensor, *args, **kwargs)
            return result

        return from_dlpack

    def dlpack(original: Any) -> Any:
        def __dlpack__(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if card_of(self) is not None:
                raise CannotSimulate(
                    "DLPack of a tensor on a card", "another library would need its real device memory"
                )
            return original(self, *args, **kwargs)

        return __dlpack__

    yield Patch(_Tensor, "__dlpack__", dlpack)
    for owner in (torch, torch.utils.dlpack):
        yield Patch(owner, "from_dlpack", from_dlpack)
    yield Patch(_Tensor, "numpy", numpy)
    yield Patch(_Tensor, "__array__", array)
    yield Patch(_Tensor, "tolist", tolist)
    yield Patch(_Tensor, "__repr__", representation)


def _pinning(simulation: Simulation) -> Iterator[Patch]:
    def pin_memory(original: Any) -> Any:
        @overridable(original)
        def pin_memory(self: torch.Tensor, device: Any = None) -> torch.Tensor:
            if card_of(self) is not None:
                name = messages.type_name(self.dtype, simulation.device_of(self))
                simulation.fault(RuntimeError, f"cannot pin '{name}' only dense CPU tensors can be pinned")
            if is_pinned(self):
                return self
            with _WithoutDispatch():
                pinned = self.detach().clone(memory_format=torch.preserve_format)
            set_pinned(pinned)
            return pinned

        return pin_memory

    def is_pinned_method(original: Any) -> Any:
        return lambda self, device=None: is_pinned(self)

    def share_memory_(original: Any) -> Any:
        def share_memory_(self: torch.Tensor) -> Any:
            return self if card_of(self) is not None else original(self)

        return share_memory_

    def legacy_constructor(original: Any) -> Any:
        # torch.Tensor(2, 3) is filled by C++ without saying where; it is on the host.
        def __init__(self: torch.Tensor, *args: Any, **kwargs: Any) -> None:
            if has_storage(self) and mark_of(self) is WILD:
                set_mark(self, None)

        return __init__

    yield Patch(_Tensor, "pin_memory", pin_memory)
    yield Patch(_Tensor, "is_pinned", is_pinned_method)
    yield Patch(_Tensor, "record_stream", lambda original: lambda self, stream: None)
    yield Patch(_Tensor, "share_memory_", share_memory_)
    yield Patch(_Tensor, "__init__", legacy_constructor)


__all__ = ["CPU", "move_or_leave", "patches"]
