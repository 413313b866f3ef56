"""What a program asked of its accelerator: bounded, aggregated events, each at the user's line.

The recorder knows nothing of torch.  The simulator and the observer call :meth:`Recorder.record`;
reports and verdicts read :meth:`Recorder.events`.
"""

from __future__ import annotations

import json
import os
import sys
import sysconfig
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Literal, NamedTuple, TypeAlias

from devlint.runtime import waiting

Kind: TypeAlias = Literal["sync", "transfer", "clock", "race", "fault", "unwritten"]
Direction: TypeAlias = Literal["h2d", "d2h", "d2d"]

_DEVLINT = str(Path(__file__).resolve().parent.parent) + os.sep
# `timeit` compiles its loop under this name; its clock reads belong to whoever called timeit.
_TIMEIT = "<timeit-src>"
_clock = time.perf_counter  # the real one: a simulation puts another in its place


@dataclass(frozen=True, slots=True)
class Event:
    """One kind of happening at one user line, aggregated over the run.

    kind:
        ``sync``      the host waited for the card: ``.item()``, ``nonzero``, printing, ``synchronize()`` ...
        ``transfer``  bytes moved between host and card or between cards; a blocking one also waits
        ``clock``     the user read a clock, or the time between two accelerator events
        ``race``      the host read the result of a non-blocking copy before waiting for it
        ``unwritten`` memory of the card was read that was allocated and never written
        ``fault``     an error that names devices was raised; ``what`` is its message
    what: the operation or call, for a fault the message.
    file, line: the nearest frame of user code; ``None`` and 0 when no user frame was on the stack.
    count: how often it happened.
    bytes: sum over all of them (0 where nothing was copied).
    direction, blocking: for transfers; ``None`` otherwise.
    pending: largest number of kernels queued on the card and not waited for at that moment.
        For a clock, more than 0 means that unfinished work was not waited for; reads with and
        without unfinished work are kept apart.
    device: the card, such as ``cuda:0``; empty when it concerns all of them.
    again: for transfers, how often the memory was copied by this line shortly before and not written since.
    """

    kind: Kind
    what: str
    file: str | None
    line: int
    count: int = 1
    bytes: int = 0
    direction: Direction | None = None
    blocking: bool | None = None
    pending: int = 0
    device: str = ""
    again: int = 0


class Happening(NamedTuple):
    """One entry of the ordered log: `seconds` since the recorder was made, the rest as in Event."""

    seconds: float
    kind: Kind
    what: str
    file: str | None
    line: int
    bytes: int
    direction: Direction | None
    blocking: bool
    pending: int
    device: str


_Key: TypeAlias = tuple[Kind, str, "str | None", int, "Direction | None", "bool | None", str, bool]


class Source(NamedTuple):
    """What a transfer reads. copies: kept with the memory, so that it dies with it; state: differs after a write."""

    copies: dict[Any, tuple[Any, int]]
    state: Any


# Pairs of clock reads, and reads of each, whose kernels are kept.
_MOST_TIMED = 100
# A line may copy so many other things between two copies of the same.
_MOST_BETWEEN = 4


class Recorder:
    """Collects events; safe to call from any thread and in forked children.

    user_roots: folders or files of the user's program.  Without any, every file counts as the
        user's that is not part of the standard library, an installed package or devlint.
    max_events: upper bound on distinct events; what comes later is counted in ``dropped``.
    kernel_lines: also count kernels per user line (``kernels``), at some cost per kernel.
    max_log: also keep the first so many happenings one by one, in their order (``log``).
    """

    def __init__(
        self,
        user_roots: Iterable[str | os.PathLike[str]] = (),
        *,
        max_events: int = 10_000,
        kernel_lines: bool = True,
        max_log: int = 0,
    ) -> None:
        self.user_roots: tuple[str, ...] = tuple(os.path.realpath(root) for root in user_roots)
        self.max_events = max_events
        self.kernel_lines = kernel_lines
        self.dropped = 0
        # Called after something was recorded that was not there before.
        self.on_news: Callable[[], object] | None = None
        self.max_log = max_log
        self.log: list[Happening] = []
        self._began = _clock()
        self._paused = 0
        # Kernels per (code object, offset of the instruction that queued them).  Code objects are
        # known by id, since hashing one takes time in proportion to its size; the two dictionaries of
        # frames that are the user's, and of others, keep them alive.
        self.kernels: dict[tuple[int, int], int] = {}
        self.user_code: dict[int, CodeType] = {}
        self.other_code: dict[int, CodeType] = {}
        self._counters: dict[_Key, list[int]] = {}
        # How many kernels were queued between a clock read and the one before it, by the lines of both.
        self._last_clock: tuple[str | None, int, int] | None = None
        self._timed: dict[tuple[str | None, int, str | None, int], list[int]] = {}
        self._library_roots = _library_roots()

    # ------------------------------------------------------------------ attribution

    def is_user(self, code: CodeType) -> bool:
        """Whether a frame running this code is the user's; remembered per code object."""
        identity = id(code)
        if identity in self.user_code:
            return True
        if identity in self.other_code:
            return False
        answer = self.is_user_file(code.co_filename)
        (self.user_code if answer else self.other_code)[identity] = code
        return answer

    def is_user_file(self, filename: str) -> bool:
        """Whether a source file is the user's."""
        if filename.startswith("<"):
            return filename in ("<stdin>", "<string>") and not self.user_roots
        path = _real_path(filename)
        if path.startswith(_DEVLINT) or f"{os.sep}site-packages{os.sep}" in path:
            return False
        if f"{os.sep}dist-packages{os.sep}" in path:
            return False
        if self.user_roots:
            return any(path == root or path.startswith(root.rstrip(os.sep) + os.sep) for root in self.user_roots)
        return not path.startswith(self._library_roots)

    def locate(self, frame: FrameType | None = None) -> tuple[str | None, int]:
        """File and line of the nearest user frame, outward from `frame` (default: the caller)."""
        if frame is None:
            frame = sys._getframe(1)
        other = self.other_code
        while frame is not None:
            code = frame.f_code
            if id(code) not in other and self.is_user(code):
                return code.co_filename, frame.f_lineno
            frame = frame.f_back
        return None, 0

    def is_user_clock(self, frame: FrameType) -> bool:
        """Whether a clock read in this frame is the user's own: their code, or `timeit` for them."""
        return self.is_user(frame.f_code) or frame.f_code.co_filename == _TIMEIT

    # ------------------------------------------------------------------ recording

    def record(
        self,
        kind: Kind,
        what: str,
        *,
        bytes: int = 0,
        direction: Direction | None = None,
        blocking: bool | None = None,
        pending: int = 0,
        device: str = "",
        at: tuple[str | None, int] | None = None,
        source: Source | None = None,
    ) -> None:
        """Count one happening at the user's line (`at`, or found on the stack); `source` is what a transfer reads.

        Raises HostWaited in a region of `waiting.no_sync` if the happening makes the host wait.
        """
        if self._paused:
            return
        file, line = self.locate(sys._getframe(1)) if at is None else at
        if kind == "clock":
            self._time(file, line)
        if waiting.forbidden():
            waiting.check(kind, what, direction, blocking, file, line)
        if len(self.log) < self.max_log:
            seconds = _clock() - self._began
            self.log.append(
                Happening(seconds, kind, what, file, line, bytes, direction, blocking is True, pending, device)
            )
        key: _Key = (kind, what, file, line, direction, blocking, device, kind == "clock" and pending > 0)
        counters = self._counters.get(key)
        if counters is None:
            if len(self._counters) >= self.max_events:
                self.dropped += 1
                return
            counters = self._counters.setdefault(key, [0, 0, 0, 0])
        counters[0] += 1
        counters[1] += bytes
        counters[2] = max(counters[2], pending)
        if source is not None and source.state is not None:
            state, number = source.copies.get(key, (None, 0))
            if state == source.state and counters[0] - number <= _MOST_BETWEEN:
                counters[3] += 1
            source.copies[key] = source.state, counters[0]
        if counters[0] == 1 and self.on_news is not None:
            self.on_news()

    def _time(self, file: str | None, line: int) -> None:
        """A clock is read: note how many kernels came since the last time."""
        queued = sum(list(self.kernels.values()))
        if self._last_clock is not None:
            before, at, number = self._last_clock
            if len(self._timed) < _MOST_TIMED:
                counts = self._timed.setdefault((before, at, file, line), [])
                counts += [queued - number] if len(counts) < _MOST_TIMED else []
        self._last_clock = file, line, queued

    def forget(self) -> None:
        """Start anew: in a forked child, what happened before is the parent's."""
        self._counters.clear()
        self.kernels.clear()
        self._timed.clear()
        self._last_clock = None
        self.log.clear()
        self.dropped = 0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Record nothing inside: what follows is part of something already recorded."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    # ------------------------------------------------------------------ reading

    def events(self) -> list[Event]:
        """All events, in order of first occurrence."""
        return [
            Event(kind, what, file, line, count, size, direction, blocking, pending, device, again)
            for (kind, what, file, line, direction, blocking, device, _), (count, size, pending, again) in list(
                self._counters.items()
            )
        ]

    def kernels_by_line(self) -> dict[tuple[str, int], int]:
        """Kernels queued per (file, line) of the user's code; empty when `kernel_lines` is off."""
        lines: dict[tuple[str, int], int] = {}
        for (identity, offset), count in list(self.kernels.items()):
            code = self.user_code[identity]
            place = (code.co_filename, _line_at(code, offset))
            lines[place] = lines.get(place, 0) + count
        return lines

    def to_json(self) -> str:
        """One JSON object: ``events`` (rows with the fields of Event), ``kernels``, ``log``, ``timed`` and ``dropped``."""
        kernels = [
            {"file": file, "line": line, "count": count} for (file, line), count in self.kernels_by_line().items()
        ]
        return json.dumps(
            {
                "events": [asdict(event) for event in self.events()],
                "kernels": kernels,
                "log": self.log,
                "timed": [[*places, counts] for places, counts in list(self._timed.items())],
                "dropped": self.dropped,
            }
        )


# Many recorders ask about the same files, and each answer costs a look at every folder above.
_real_path = lru_cache(maxsize=None)(os.path.realpath)


def _line_at(code: CodeType, offset: int) -> int:
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


@lru_cache(maxsize=1)
def _library_roots() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    roots = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib") if name in paths}
    roots.add(os.path.dirname(os.__file__))
    return tuple(os.path.realpath(root) + os.sep for root in roots)
