"""One running simulation: its cards, the current card of each thread, waits, copies and faults."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn, TypeAlias

import torch

from devlint.runtime.recorder import Direction, Recorder, Source
from devlint.runtime.simulator import messages
from devlint.runtime.simulator.autocast import AutocastPolicy
from devlint.runtime.simulator.cards import Card, card
from devlint.runtime.simulator.marks import CPU, WILD, card_of, has_storage, mark_of, real_device_of, storage_of
from devlint.runtime.simulator.spec import DeviceSpec
from devlint.runtime.simulator.subclasses import inner_part, is_fake

# What a user's device argument can be.
DeviceLike: TypeAlias = torch.device | str | int


class _ThreadState(threading.local):
    """Per thread: the current card, and where a patched factory wants its result."""

    current = 0
    # A one-element tuple holds the wanted place (a Card, or None for the host); None: nothing asked.
    target: tuple[Card | None] | None = None
    # Whether storages say that they are on the host, as they are for C++.
    as_host = False
    # While `torch.jit.trace` runs without the dispatch mode, nothing carries marks on: every tensor is on this card.
    tracing: Card | None = None


class Simulation:
    """The state that dispatch mode and patches share.  Made by ``simulate``.

    spec: what is simulated.  recorder: where events go.  cards: one per simulated card.
    notes: what was replaced by something simpler, such as ``torch.compile``, in order.
    """

    def __init__(self, spec: DeviceSpec, recorder: Recorder) -> None:
        self.spec = spec
        self.kind = spec.kind
        self.recorder = recorder
        self.cards = [card(spec.kind, index) for index in range(spec.count)]
        for each in self.cards:
            each.reset()
        self.thread = _ThreadState()
        self.notes: list[str] = []
        # Set by `torch.set_default_tensor_type(torch.cuda.FloatTensor)`.
        self.builds_on_card = False
        # Whether a non-blocking copy to the host was not waited for yet.
        self.copies_in_flight = False
        # How much memory on the cards was allocated and never written; see `unwritten`.
        self.unwritten = 0
        # Whether this process has initialized the device; a child forked after that cannot use it.
        self.touched = False
        self.bad_fork = False
        self.autocast = AutocastPolicy(spec.kind)

    @property
    def description(self) -> str:
        """How a report names it: ``simulated cuda x2, CPU kernels``."""
        return self.spec.description

    # ------------------------------------------------------------------ devices

    @property
    def current(self) -> Card:
        """The current card of this thread."""
        self.touch()
        return self.cards[self.thread.current]

    def card_at(self, index: int) -> Card:
        """The card of this index; raises what CUDA raises when there is none."""
        if not 0 <= index < len(self.cards):
            error = getattr(torch, "AcceleratorError", RuntimeError)
            self.fault(error, "CUDA error: invalid device ordinal")
        self.touch()
        return self.cards[index]

    def touch(self) -> None:
        """Initialize the device in this process; raises CUDA's error in a child forked after that (cuda/__init__.py)."""
        if self.bad_fork:
            self.fault(RuntimeError, messages.forked(self.kind))
        self.touched = True

    def check_launch(self) -> None:
        """Raise what the driver answers to work on memory of a card that a forked child took over."""
        if self.bad_fork:
            error = getattr(torch, "AcceleratorError", RuntimeError)
            self.fault(error, messages.NOT_INITIALIZED)

    def device(self, device: DeviceLike) -> torch.device:
        """A user's device argument as a torch.device; an int is a card of the simulated kind."""
        if isinstance(device, torch.device):
            return device
        return torch.device(self.kind, device) if isinstance(device, int) else torch.device(device)

    def place(self, device: DeviceLike) -> Card | torch.device | None:
        """Where a device argument points: a Card, None for the host, or a foreign device (``meta``)."""
        wanted = self.device(device)
        if wanted.type == self.kind:
            return self.card_at(self.thread.current if wanted.index is None else wanted.index)
        return None if wanted.type == "cpu" else wanted

    def device_of(self, tensor: torch.Tensor) -> torch.device:
        """What ``tensor.device`` answers: a WILD tensor reads ``cpu``."""
        if is_fake(tensor):
            return tensor.device
        mark = mark_of(tensor)
        if mark is None and (inside := inner_part(tensor)) is not None:
            return self.device_of(inside)
        if self.thread.tracing is not None:
            return self.thread.tracing.device
        if mark is None:
            real: torch.device = real_device_of(tensor)
            return real
        return mark.device if isinstance(mark, Card) else CPU

    def default_place(self) -> Card | torch.device | None:
        """Where a factory without ``device=`` builds: the innermost default device, else the host."""
        depth = torch._C._len_torch_function_stack()
        for level in range(depth - 1, -1, -1):
            mode = torch._C._get_function_stack_at(level)
            if isinstance(mode, torch.utils._device.DeviceContext):
                return self.place(mode.device)
        device = torch.utils._device.CURRENT_DEVICE
        if device is not None:
            return self.place(device)
        return self.current if self.builds_on_card else None

    @contextmanager
    def building_on(self, place: Card | None) -> Iterator[None]:
        """Inside, C++ factories that say ``cpu`` mean this place."""
        before = self.thread.target
        self.thread.target = (place,)
        try:
            yield
        finally:
            self.thread.target = before

    @contextmanager
    def as_host(self) -> Iterator[None]:
        """Inside, storages on a card say that they are on the host, in this thread."""
        self.thread.as_host = True
        try:
            yield
        finally:
            self.thread.as_host = False

    @contextmanager
    def tracing(self, on: Card | None) -> Iterator[None]:
        """Inside, every tensor of this thread is on this card; None: as it is marked."""
        before, self.thread.tracing = self.thread.tracing, on or self.thread.tracing
        try:
            yield
        finally:
            self.thread.tracing = before

    # ------------------------------------------------------------------ queue

    @property
    def pending(self) -> int:
        """Kernels queued on any card and not waited for."""
        return sum(each.pending for each in self.cards)

    def wait(self, what: str, on: Card | None = None, size: int = 0) -> None:
        """The host waits for a card (or all): record a synchronization."""
        waited = [on] if on is not None else self.cards
        pending = sum(each.wait() for each in waited)
        self.settle_copies()
        self.recorder.record("sync", what, pending=pending, bytes=size, device=_name(on))

    def settle_copies(self) -> None:
        """After a wait: see whether any copy is still in flight."""
        if self.copies_in_flight:
            self.copies_in_flight = any(each.unread_copies for each in self.cards)

    def transferred(
        self,
        what: str,
        direction: Direction,
        size: int,
        on: Card,
        *,
        blocking: bool,
        through: str = "",
        source: Source | None = None,
    ) -> None:
        """Bytes were copied; a blocking copy also waits for the card, another one queues.

        through: what of its memory makes a copy wait that was asked not to, as the ends of names in `waiting`.
        """
        self.check_launch()
        pending = on.pending
        if blocking:
            on.wait()
            self.settle_copies()
        else:
            on.queued += 1
            what += through
        self.recorder.record(
            "transfer",
            what,
            bytes=size,
            direction=direction,
            blocking=blocking,
            pending=pending,
            device=_name(on),
            source=source,
        )

    def check_copy_finished(self, tensor: torch.Tensor, reader: str) -> None:
        """The host reads this memory: record a race if a non-blocking copy into it was not waited for."""
        if not has_storage(tensor):
            return
        stamp = storage_of(tensor)._devlint_copy
        if stamp is not None and stamp[0].done < stamp[1]:
            self.recorder.record(
                "race", f"{reader} of an unfinished copy", pending=stamp[0].pending, device=_name(stamp[0])
            )

    # ------------------------------------------------------------------ faults

    def fault(self, error: type[Exception], text: str, operands: Sequence[Any] = ()) -> NoReturn:
        """Record a device error at the user's line and raise it as the real card would.

        The exception carries ``devlint_operands``: what was compared, as (argument, tensor's device,
        shape, data pointer), for reports that name the user's variable.
        """
        self.recorder.record("fault", text, at=self.recorder.locate(sys._getframe(1)))
        exception = error(text)
        setattr(exception, "devlint_operands", tuple(operands))  # noqa: B010 - exceptions declare no such field
        raise exception

    def note(self, text: str) -> None:
        """Remember, once, what was replaced by something simpler."""
        if text not in self.notes:
            self.notes.append(text)


def _name(on: Card | None) -> str:
    return "" if on is None else str(on.device)


__all__ = ["CPU", "WILD", "DeviceLike", "Simulation", "card_of"]
