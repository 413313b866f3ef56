"""Signals that ask a run to end: SIGTERM and SIGHUP end it as Ctrl-C does, with everything put away."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_NAMES = ("SIGTERM", "SIGHUP")  # Windows has no SIGHUP


class Ended(KeyboardInterrupt):
    """A signal asked for the end of the run. `code`: the exit code that says so to a shell."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self.code = 128 + number


@contextmanager
def as_interrupts() -> Iterator[None]:
    """Within, these signals raise `Ended`. One that was ignored before, as under `nohup`, still is."""
    changed = {}
    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name, None) for name in _NAMES):
            if number is not None and signal.getsignal(number) is signal.SIG_DFL:
                changed[number] = signal.signal(number, _raise)
    try:
        yield
    finally:
        for number, before in changed.items():
            signal.signal(number, before)


def _raise(number: int, frame: FrameType | None) -> None:
    signal.signal(number, signal.SIG_IGN)  # the end takes its time, and is asked for more than once
    raise Ended(number)
