"""Patches of `torch.multiprocessing`: memory of a card is sent to another process as shared memory, with its mark.

A real card's memory is opened by its handle in the other process (torch/multiprocessing/reductions.py); here the host
memory behind the mark is shared, and the other process, which is simulated too, marks it with the same card.
"""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import torch
import torch.multiprocessing.reductions as reductions

from devlint.runtime.simulator.cards import Card, Lease
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation


class _Reducer:
    """What `ForkingPickler` does with objects of a type, as an attribute."""

    __qualname__ = "ForkingPickler"

    def __init__(self, kind: type) -> None:
        object.__setattr__(self, "_kind", kind)

    def __getattr__(self, name: str) -> Any:
        table: Any = ForkingPickler
        return table._extra_reducers[self._kind]

    def __setattr__(self, name: str, value: Any) -> None:
        ForkingPickler.register(self._kind, value)


def patches(simulation: Simulation) -> Iterator[Patch]:
    """The reducers of tensors, parameters and storages."""

    def as_host(original: Any) -> Any:
        def reduce_tensor(tensor: torch.Tensor) -> Any:
            with simulation.as_host():
                return original(tensor)

        return reduce_tensor

    def reduce_storage(original: Any) -> Any:
        def reduce_storage(storage: Any) -> Any:
            with simulation.as_host():
                rebuild, arguments = original(storage)
            mark = storage._devlint_mark
            return (
                (rebuild_on_card, (rebuild, arguments, mark.index)) if isinstance(mark, Card) else (rebuild, arguments)
            )

        return reduce_storage

    yield Patch(reductions, "reduce_tensor", as_host)
    yield Patch(reductions, "reduce_storage", reduce_storage)
    for kind in (torch.Tensor, torch.nn.Parameter):
        yield Patch(_Reducer(kind), "reduce", as_host)
    yield Patch(_Reducer(torch.UntypedStorage), "reduce", reduce_storage)


def rebuild_on_card(rebuild: Any, arguments: Any, index: int) -> Any:
    """In the other process: the storage, on the card of this index if that process is simulated."""
    from devlint.runtime.simulator.session import active_simulation

    storage = rebuild(*arguments)
    simulation = active_simulation()
    if simulation is not None and storage._devlint_mark is None:
        card = simulation.card_at(index)
        storage._devlint_mark = card
        storage._devlint_lease = Lease(card, storage.nbytes())
    return storage
