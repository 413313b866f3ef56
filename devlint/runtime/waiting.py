"""Regions of code in which the host must not wait for the card.

    from devlint.runtime.waiting import no_sync

    with no_sync():
        step(batch)

A wait inside ends the region by `HostWaited`, at the line of the program that waits, with the reason. It is seen where
something records: in a test on a device of devlint (`@pytest.mark.devlint_no_sync` marks a whole test), and under
`devlint run`. Elsewhere a region costs nothing and says nothing. Free of torch.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Final

# What the end of a copy's name says of its memory; the host then waits although it was asked not to.
PAGEABLE: Final = " from pageable memory"
STRIDED: Final = " from pinned memory with gaps"
CONVERTED: Final = " from pinned memory of another type"
_WHY: Final = {
    PAGEABLE: "it copies from memory that is not pinned: pin it",
    STRIDED: "it copies from pinned memory with gaps, through a buffer that is not pinned: make it contiguous first",
    CONVERTED: "it converts while it copies, through a buffer that is not pinned: convert on the card",
}
_SIZES: Final = frozenset(
    {"nonzero", "masked_select", "boolean mask", "unique", "bincount", "repeat_interleave", "linalg check"}
)


class HostWaited(AssertionError):
    """The host waited for the card inside `no_sync`. what: the call that waits; reason: why it does."""

    def __init__(self, what: str, reason: str, where: str) -> None:
        super().__init__(f"the host waits for the card{where}: {what}; {reason}")
        self.what = what
        self.reason = reason


class _Regions(threading.local):
    depth = 0


_regions = _Regions()


@contextlib.contextmanager
def no_sync() -> Iterator[None]:
    """Inside, in this thread, the host must not wait for the card. Raises HostWaited when it does."""
    _regions.depth += 1
    try:
        yield
    finally:
        _regions.depth -= 1


@contextlib.contextmanager
def waiting_allowed() -> Iterator[None]:
    """Inside a region, a part that may wait: the one place where a result is read."""
    before, _regions.depth = _regions.depth, 0
    try:
        yield
    finally:
        _regions.depth = before


def forbidden() -> bool:
    """Whether this thread is in a region."""
    return _regions.depth > 0


def check(kind: str, what: str, direction: str | None, blocking: bool | None, file: str | None, line: int) -> None:
    """Raise HostWaited if a recorded happening makes the host wait; called in regions only."""
    reason = _reason(kind, what, direction, blocking)
    if reason is not None:
        raise HostWaited(what, reason, f" at {file}:{line}" if file else "")


def _reason(kind: str, what: str, direction: str | None, blocking: bool | None) -> str | None:
    if kind == "sync":
        if what in _SIZES:
            return "the size of its result is known on the card only"
        return "it is made to wait" if "synchronize" in what else "its value is read on the host"
    if kind != "transfer" or direction == "d2d":
        return None
    why = next((text for end, text in _WHY.items() if what.endswith(end)), None)
    if why is not None or not blocking:
        return why
    if direction == "d2h":
        return "it copies to the host and waits for the copy"
    return "it copies from the host without non_blocking=True"
