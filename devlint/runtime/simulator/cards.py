"""A simulated card: its device, its queue as counts, and the bytes that live on it."""

from __future__ import annotations

import torch


class Card:
    """One simulated card.  Its queue is logical: how many kernels were queued, how many waited for.

    Cards are interned by kind and index (see :func:`card`), so that a mark can be compared by
    identity and a tensor that outlives one simulation is understood by the next.
    """

    __slots__ = ("allocated", "device", "done", "index", "kind", "leases", "peak", "queued", "unread_copies")

    def __init__(self, kind: str, index: int) -> None:
        self.kind = kind
        self.index = index
        self.device = torch.device(kind, index)
        self.queued = 0
        self.done = 0
        self.allocated = 0
        self.peak = 0
        self.leases = 0  # how often memory was taken on the card
        self.unread_copies = 0

    @property
    def pending(self) -> int:
        """Kernels queued and not waited for."""
        return self.queued - self.done

    def reset(self) -> None:
        """Empty the queue and forget the peak; bytes still alive stay counted."""
        self.queued = self.done = self.unread_copies = 0
        self.peak = self.allocated

    def wait(self) -> int:
        """Wait for everything queued; returns how many kernels that were."""
        waited = self.queued - self.done
        self.done = self.queued
        self.unread_copies = 0
        return waited

    def __repr__(self) -> str:
        return f"Card({self.device}, pending={self.pending})"


_cards: dict[tuple[str, int], Card] = {}


def card(kind: str, index: int) -> Card:
    """The one Card of this kind and index in this process."""
    found = _cards.get((kind, index))
    if found is None:
        found = _cards.setdefault((kind, index), Card(kind, index))
    return found


class Lease:
    """The bytes of one storage on a card; given back when the storage dies."""

    __slots__ = ("_card", "_size")

    def __init__(self, owner: Card, size: int) -> None:
        self._card = owner
        self._size = size
        owner.allocated += size
        owner.leases += 1
        if owner.allocated > owner.peak:
            owner.peak = owner.allocated

    def __del__(self) -> None:
        self._card.allocated -= self._size
