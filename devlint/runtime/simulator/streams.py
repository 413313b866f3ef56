"""Streams and events of a simulated card.  All streams of a card share its one queue."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

from devlint.runtime.simulator import messages
from devlint.runtime.simulator.cards import Card
from devlint.runtime.simulator.simulation import Simulation

_clock: Callable[[], float] = time.perf_counter
_stream_ids = itertools.count(1)


def make_stream_class(simulation: Simulation, event_class: type) -> type:
    """A class for ``torch.<kind>.Stream`` and ``torch.Stream``."""

    class Stream:
        """A stream of the current card, or of `device`."""

        def __init__(self, device: Any = None, priority: int = 0, **kwargs: Any) -> None:
            self._card = card_from(simulation, device)
            self.device = self._card.device
            self.device_index = self._card.index
            self.device_type = 1
            self.priority = priority
            self.stream_id = self.cuda_stream = self.sycl_queue = next(_stream_ids)

        def synchronize(self) -> None:
            simulation.wait("stream.synchronize", self._card)

        def query(self) -> bool:
            return self._card.pending == 0

        def wait_stream(self, stream: Any) -> None:
            pass

        def wait_event(self, event: Any) -> None:
            pass

        def record_event(self, event: Any = None) -> Any:
            event = event if event is not None else event_class()
            event.record(self)
            return event

        def is_capturing(self) -> bool:
            return False

        def __enter__(self) -> Any:
            self._outer = simulation.thread.current
            simulation.thread.current = self._card.index
            return self

        def __exit__(self, *exception: object) -> None:
            simulation.thread.current = self._outer

        def __eq__(self, other: object) -> bool:
            return getattr(other, "stream_id", None) == self.stream_id

        def __hash__(self) -> int:
            return hash((self.device, self.stream_id))

    return Stream


def make_event_class(simulation: Simulation) -> type:
    """A class for ``torch.<kind>.Event`` and ``torch.Event``; the rules are those of c10/cuda/CUDAEvent.h."""

    class Event:
        """A mark in a card's queue.  It has happened when the host waited past it."""

        def __init__(
            self,
            *args: Any,
            enable_timing: bool = False,
            blocking: bool = False,
            interprocess: bool = False,
            **kwargs: Any,
        ) -> None:
            # torch.cuda.Event takes enable_timing first, torch.Event the device.
            positional = next((value for value in args if isinstance(value, bool)), enable_timing)
            self.enable_timing = bool(positional)
            self.blocking = blocking
            self._card: Card | None = None
            self._position = 0
            self._moment = 0.0

        def record(self, stream: Any = None) -> None:
            self._card = stream._card if hasattr(stream, "_card") else simulation.current
            self._position = self._card.queued
            self._moment = _clock()

        @property
        def unfinished(self) -> int:
            """Kernels before this event that nobody waited for."""
            return 0 if self._card is None else max(0, self._position - self._card.done)

        def query(self) -> bool:
            return self.unfinished == 0

        def wait(self, stream: Any = None) -> None:
            pass

        def synchronize(self) -> None:
            if self._card is None:
                return
            pending = self.unfinished
            self._card.done = max(self._card.done, self._position)
            if self._card.pending == 0:
                self._card.unread_copies = 0
                simulation.settle_copies()
            simulation.recorder.record("sync", "event.synchronize", pending=pending, device=str(self._card.device))

        def elapsed_time(self, end: Any) -> float:
            if not (self.enable_timing and end.enable_timing):
                simulation.fault(ValueError, messages.EVENTS_WITHOUT_TIMING)
            if self._card is None or end._card is None:
                simulation.recorder.record("clock", "event.elapsed_time of an event never recorded")
                simulation.fault(ValueError, messages.EVENTS_NOT_RECORDED)
            pending = max(self.unfinished, end.unfinished)
            if pending:
                simulation.fault(RuntimeError, messages.EVENTS_NOT_COMPLETED)
            simulation.recorder.record("clock", "event.elapsed_time", device=str(end._card.device))
            elapsed: float = end._moment - self._moment
            return max(elapsed * 1e3, 1e-4)

    return Event


def card_from(simulation: Simulation, device: Any) -> Card:
    """The card a device argument names; the current one for None."""
    if device is None:
        return simulation.current
    if hasattr(device, "_card"):
        found: Card = device._card
        return found
    place = simulation.place(device)
    if not isinstance(place, Card):
        raise ValueError(f"Expected a {simulation.kind} device, but got: {device}")
    return place
