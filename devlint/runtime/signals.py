"""The signal that asks a process to end: what was recorded is written first, and then the process ends by it."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any


@contextlib.contextmanager
def reported_before(report: Callable[[str], object]) -> Iterator[None]:
    """Inside, SIGTERM calls `report` with how the process ends, and then ends it as ever.

    A program that handles the signal itself replaces this, or has done so. Nothing is done outside the main thread,
    where Python lets nobody handle signals.
    """
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield
        return

    def end(number: int, frame: Any) -> None:
        with contextlib.suppress(Exception):
            report("ended by SIGTERM")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        if signal.getsignal(signal.SIGTERM) is end:
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
