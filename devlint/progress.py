"""How far a long run is: one line on standard error, only on a terminal with a person in front of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TextIO, TypeVar

T = TypeVar("T")

QUIET = 1.0  # seconds that a run takes before it says anything
_CLEAR = "\r\x1b[2K"


def is_wanted(stream: TextIO | None, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether to show progress on this stream."""
    unattended = any(environ.get(name) for name in ("CI", "PRE_COMMIT"))
    return stream is not None and not unattended and environ.get("TERM") != "dumb" and stream.isatty()


def watched(items: Iterable[T], total: int, stream: TextIO, clock: Callable[[], float] = time.monotonic) -> Iterator[T]:
    """The items, with a line that counts them while they come; it is gone whenever an item is handed out."""
    begun = clock()
    shown = False
    for done, item in enumerate(items, start=1):
        if shown:
            stream.write(_CLEAR)
            stream.flush()
        yield item
        shown = done < total and clock() - begun >= QUIET
        if shown:
            stream.write(f"{done} of {total} files")
            stream.flush()
