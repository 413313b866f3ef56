"""What each thread of each process prints, apart from what the others print.

Several writers share one standard output, in an order that is a race: lines of one stand between those of others, even
inside them. Each writer's text is therefore kept in a file of its own as well. Free of torch.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

MOST_PRINTED = 256 * 1024
"""Bytes kept from the beginning of what one thread prints."""
_PREFIX = "printed"


class Printed:
    """Notes what is written to standard output, in files in a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._here = threading.local()

    def install(self) -> None:
        """From now on, note; also in forked children."""
        stream: Any = sys.stdout
        plain = getattr(stream, "write", None)
        if plain is None:
            return

        def write(text: str) -> Any:
            self._note(text)
            return plain(text)

        with contextlib.suppress(AttributeError, TypeError):  # a stream of another make
            stream.write = write

    def _note(self, text: str) -> None:
        here, pid = self._here, os.getpid()
        with contextlib.suppress(OSError, UnicodeError, TypeError):
            if getattr(here, "pid", None) != pid:
                here.pid, here.left = pid, MOST_PRINTED
                here.path = os.path.join(self._folder, f"{_PREFIX}.{pid}.{threading.get_ident()}")
            data = text.encode(errors="replace")[: here.left]
            if data:
                here.left -= len(data)
                _append(here.path, data)


def _append(path: str, data: bytes) -> None:
    """Opened each time: a program may close files that it did not open."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, data)
    finally:
        os.close(file)


def read_printed(folder: Path) -> Iterator[str]:
    """The texts that were noted in a folder, one for each thread that printed something, in no certain order."""
    for path in sorted(folder.glob(f"{_PREFIX}.*")):
        with contextlib.suppress(OSError):
            yield path.read_text(encoding="utf-8", errors="replace")
