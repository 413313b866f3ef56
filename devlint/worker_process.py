"""The main program of a worker process: tasks come on standard input, outcomes go to what was standard output.

It ends at once when its input ends, which happens when the process that started it does, however that ends.
"""

from __future__ import annotations

import os
import pickle
import queue
import signal
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import BinaryIO

from devlint import worker
from devlint.worker import Task

WRITING = 4.0  # seconds that a file takes to be written at most


def main() -> None:
    """Answer until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that started this one
    replies = _replies()
    chunks: queue.SimpleQueue[Sequence[Task]] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(sys.stdin.buffer, chunks), daemon=True).start()
    with suppress(OSError):  # nobody reads any more
        _answer(replies, "ready")
        while True:
            _answer(replies, worker.run_tasks(chunks.get()))
    os._exit(0)  # the other thread holds standard input


def _answer(replies: BinaryIO, what: object) -> None:
    pickle.dump(what, replies)
    replies.flush()


def _replies() -> BinaryIO:
    """Where outcomes go. What a rule prints goes to standard error from here on."""
    replies = os.fdopen(os.dup(1), "wb")
    with suppress(OSError):
        os.dup2(2, 1)
    sys.stdout = sys.stderr
    return replies


def _read(stream: BinaryIO, chunks: queue.SimpleQueue[Sequence[Task]]) -> None:
    """Take in tasks while the main thread works, and end the process when there will be no more."""
    try:
        while True:
            chunks.put(pickle.load(stream))
    except (EOFError, OSError, pickle.UnpicklingError):
        writing = sys.modules.get("devlint.fix.write")
        if writing is not None:  # a file that is being written is written whole
            writing.WRITING.acquire(timeout=WRITING)
        os._exit(0)
