"""Patches of storages: with them torch's own save, load, map_location, deepcopy and pickle are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from devlint.runtime.simulator.cards import Card, Lease
from devlint.runtime.simulator.marks import CPU, STORAGE_DEFAULTS
from devlint.runtime.simulator.patches.base import Patch, always
from devlint.runtime.simulator.simulation import Simulation

_Untyped: Any = torch.UntypedStorage
_Typed: Any = torch.storage.TypedStorage
_Base: Any = torch._C.StorageBase


def patches(simulation: Simulation) -> Iterator[Patch]:
    """The attributes that hold marks, and the storage methods that know of devices."""
    for name, default in STORAGE_DEFAULTS.items():
        yield Patch(_Untyped, name, always(default), create=True)

    def place_of(storage: Any) -> Card | None:
        mark = storage._devlint_mark
        return mark if isinstance(mark, Card) and not simulation.thread.as_host else None

    def device(original: Any) -> Any:
        def read(self: Any) -> torch.device:
            place = place_of(self)
            if place is not None:
                return place.device
            real: torch.device = original.__get__(self) if original is not None else CPU
            return real

        return property(read)

    def copied(storage: Any, place: Card | None) -> Any:
        result = _Untyped(storage.nbytes())
        _Base.copy_(result, storage, False)
        result._devlint_mark = place
        result._devlint_lease = Lease(place, storage.nbytes()) if place is not None else None
        return result

    def moved(storage: Any, wanted: Any, what: str, non_blocking: bool = False) -> Any:
        place, origin = simulation.place(wanted), place_of(storage)
        if isinstance(place, torch.device):
            return _Base.to(storage, device=place)
        if place is origin:
            return storage
        result = copied(storage, place)
        size = storage.nbytes()
        if place is None and origin is not None:
            simulation.transferred(what, "d2h", size, origin, blocking=not non_blocking)
        elif place is not None:
            direction: Any = "h2d" if origin is None else "d2d"
            simulation.transferred(what, direction, size, place, blocking=not non_blocking)
        return result

    def is_card(original: Any) -> Any:
        return property(lambda self: place_of(self) is not None)

    def to_card(original: Any) -> Any:
        def to_card(self: Any, device: Any = None, non_blocking: bool = False) -> Any:
            return moved(self, simulation.kind if device is None else device, "storage", non_blocking)

        return to_card

    def new_shared(original: Any) -> Any:
        def _new_shared(cls: Any, size: int, *, device: Any = "cpu") -> Any:
            place = simulation.place(device)
            if not isinstance(place, Card):
                return original(size, device=device)
            result = _Untyped(size)
            result._devlint_mark, result._devlint_lease = place, Lease(place, size)
            return result

        return classmethod(_new_shared)

    def is_shared(original: Any) -> Any:
        # Memory of a card can be opened by any process (torch/csrc/StorageSharing.cpp).
        return lambda self: True if place_of(self) is not None else original(self)

    yield Patch(_Untyped, "device", device)
    yield Patch(_Untyped, "is_shared", is_shared)
    yield Patch(_Untyped, "_new_shared", new_shared)
    yield Patch(_Untyped, f"is_{simulation.kind}", is_card, create=True)
    yield Patch(_Untyped, "clone", lambda original: lambda self: copied(self, place_of(self)))
    yield Patch(
        _Untyped,
        "to",
        lambda original: lambda self, *, device, non_blocking=False: moved(self, device, "storage", non_blocking),
        create=True,
    )
    yield Patch(_Untyped, simulation.kind, to_card, create=True)
    yield Patch(_Untyped, "cpu", lambda original: lambda self: moved(self, "cpu", "storage"))
    yield Patch(
        _Typed,
        f"is_{simulation.kind}",
        lambda original: property(lambda self: place_of(self._untyped_storage) is not None),
        create=True,
    )
