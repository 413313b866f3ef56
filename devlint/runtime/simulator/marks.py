"""The mark: which card a tensor's memory is on, kept on the tensor's storage object.

The Python storage object lives as long as the C++ storage, so the mark is shared by views,
``detach``, ``.data``, saved tensors and parameters, moves with ``p.data = other``, and dies with
the memory.  Three values: ``None`` is host memory, a :class:`Card` is that card, and ``WILD`` is
memory made inside C++ by code that asked for "my device" and was told ``cpu``, since C++ sees only
CPU tensors here.  WILD goes with anything and takes the device of its first partner.
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch.utils.weak import WeakIdKeyDictionary

from devlint.runtime.simulator.cards import Card, Lease

CPU: Final = torch.device("cpu")
storage_of = torch._C.TensorBase.untyped_storage
real_device_of = torch._C.TensorBase.device.__get__
has_storage = torch._C._has_storage
_functorch: Any = torch._C._functorch


class _Wild:
    """Sentinel; see the module's docstring."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "WILD"


WILD: Final = _Wild()
Mark = Card | _Wild | None

# The marks of tensors without storage.  Not an attribute of the tensor: that would be saved with it.
_without_storage: Any = WeakIdKeyDictionary()

# Class defaults that the patch table puts on UntypedStorage for the time of a simulation.
STORAGE_DEFAULTS: Final[dict[str, Any]] = {
    "_devlint_mark": None,  # the mark
    "_devlint_lease": None,  # the bytes counted on the card
    "_devlint_pinned": False,  # page-locked host memory
    "_devlint_unwritten": None,  # how memory was allocated that nothing has written; see `unwritten`
    "_devlint_copy": None,  # (card, queue position) of a non-blocking copy to this host memory
}


def mark_of(tensor: torch.Tensor) -> Mark:
    """The mark of a tensor; sparse and opaque tensors carry it themselves, functorch wrappers inside."""
    try:
        found: Mark = storage_of(tensor)._devlint_mark
    except ValueError:
        # a lazy module's parameter refuses what reads it [torch/nn/parameter.py, UninitializedTensorMixin]
        found = _plain_storage(tensor)._devlint_mark
    except (NotImplementedError, RuntimeError):
        if _functorch.is_functorch_wrapped_tensor(tensor):
            return mark_of(_functorch.get_unwrapped(tensor))
        found = _without_storage.get(tensor)
    return found


def card_of(tensor: torch.Tensor) -> Card | None:
    """The card a tensor is on; None for host memory and for WILD."""
    mark = mark_of(tensor)
    return mark if isinstance(mark, Card) else None


def set_mark(tensor: torch.Tensor, mark: Mark) -> None:
    """Put the memory of a tensor on a card, on the host (None), or make it WILD."""
    while _functorch.is_functorch_wrapped_tensor(tensor):
        tensor = _functorch.get_unwrapped(tensor)
    try:
        storage: Any = storage_of(tensor)
    except ValueError:  # as above
        storage = _plain_storage(tensor)
    except (NotImplementedError, RuntimeError):
        _without_storage[tensor] = mark
        return
    storage._devlint_mark = mark
    storage._devlint_lease = Lease(mark, storage.nbytes()) if isinstance(mark, Card) else None


def _plain_storage(tensor: torch.Tensor) -> Any:
    """The storage, without asking the tensor's own class."""
    with torch._C.DisableTorchFunctionSubclass():
        return storage_of(tensor)


def is_pinned(tensor: torch.Tensor) -> bool:
    """Whether the tensor's host memory was page-locked."""
    return has_storage(tensor) and bool(storage_of(tensor)._devlint_pinned)


def set_pinned(tensor: torch.Tensor) -> None:
    """Count the tensor's host memory as page-locked."""
    storage_of(tensor)._devlint_pinned = True
