"""Every clock that Python code can read, and how to set them apart in a run that is repeated.

Two runs of one program may read times that agree by chance: within a tolerance, in the digits that are printed, or
because both ran within one minute. In a run that is repeated to see what varies, all clocks are therefore set apart:
what a clock says, and whatever the program makes of it, surely differs there. Free of torch.
"""

from __future__ import annotations

import copyreg
import datetime
import functools
import os
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

CLOCKS = (
    "time",
    "time_ns",
    "perf_counter",
    "perf_counter_ns",
    "monotonic",
    "monotonic_ns",
    "process_time",
    "process_time_ns",
)
_OTHERS = ("thread_time", "thread_time_ns", "clock_gettime", "clock_gettime_ns")
_WALL = ("time", "time_ns")
#: Time of day: year, month, day of the month and of the week, hour, minute and second all change.
_APART = 400 * 86400 + 7 * 3600 + 31 * 60 + 13.87
#: Each read of the program's own moves the clocks on: hours, minutes and seconds of what lies between two reads change.
_EACH = 3661.73
_MOST_MOVES = 7000
_RECORDING = os.path.join(os.path.dirname(__file__), "simulator", "patches", "clocks.py")

Around = Callable[[Any], Any]


def places(around: Around, names: tuple[str, ...] = CLOCKS) -> Iterator[tuple[Any, str, Around]]:
    """Where the clocks of `time` are found, those among them that `timeit` took: owner, name, and how to replace it.

    around: makes the replacement of one clock.
    """
    replaced: dict[Any, Any] = {}

    def replace(original: Any) -> Any:
        replaced[original] = around(original)
        return replaced[original]

    def replacement(original: Any) -> Any:
        return replaced.get(original, original)

    for name in names:
        if hasattr(time, name):
            yield time, name, replace
    yield timeit, "default_timer", replacement
    # Timer took its default clock when timeit was imported.
    for function in (timeit.Timer.__init__, timeit.timeit, timeit.repeat):
        yield function, "__defaults__", lambda defaults: tuple(map(replacement, defaults))


def set_apart(is_user: Callable[[FrameType], bool]) -> None:
    """Set all clocks of this process apart, for the rest of it.

    The time of day is earlier for everybody: nothing grows old by it, so that no program deletes what it keeps for some
    days. The other clocks are later, for the program's own code alone: libraries wait by them. is_user: whether a clock
    that is read in a frame is read by the program.
    """
    _Apart(is_user).install()


class _Apart:
    def __init__(self, is_user: Callable[[FrameType], bool]) -> None:
        self._is_user = is_user
        self._moves = 0

    def install(self) -> None:
        now = time.time
        for owner, name, make in list(places(self._around, CLOCKS + _OTHERS)):
            setattr(owner, name, make(getattr(owner, name)))
        for name in ("localtime", "gmtime", "ctime"):
            setattr(time, name, self._without_seconds(getattr(time, name), now))
        time.asctime = self._without_tuple(time.asctime, 0)
        time.strftime = self._without_tuple(time.strftime, 1)
        _replace_dates(self, now)

    def _around(self, original: Any) -> Any:
        wall, unit = original.__name__ in _WALL, 1_000_000_000 if original.__name__.endswith("_ns") else 1

        @functools.wraps(original)
        def read(*arguments: Any) -> Any:
            mine = self._read_by_user(sys._getframe(1))
            apart = self.moved(mine) + (-_APART if wall else _APART if mine else 0.0)
            return original(*arguments) + (int(apart * unit) if unit > 1 else apart)

        return read

    def _read_by_user(self, frame: FrameType | None) -> bool:
        while frame is not None and frame.f_code.co_filename == _RECORDING:  # what notes the read passes it on
            frame = frame.f_back
        return frame is not None and self._is_user(frame)

    def moved(self, mine: bool) -> float:
        """How far reads of the program have moved the clocks, this one among them; libraries do not see it."""
        if not mine:
            return 0.0
        self._moves += 1
        return min(self._moves, _MOST_MOVES) * _EACH + max(self._moves - _MOST_MOVES, 0)

    def of_day(self, now: Callable[[], float], frame: FrameType) -> float:
        """The time of day, as read in a frame."""
        return now() - _APART + self.moved(self._read_by_user(frame))

    def _without_seconds(self, original: Any, now: Callable[[], float]) -> Any:
        @functools.wraps(original)
        def read(seconds: Any = None) -> Any:
            return original(self.of_day(now, sys._getframe(1)) if seconds is None else seconds)

        return read

    def _without_tuple(self, original: Any, at: int) -> Any:
        @functools.wraps(original)
        def read(*arguments: Any) -> Any:
            return original(*arguments) if len(arguments) > at else original(*arguments, time.localtime())

        return read


class _Never:
    """A class without instances."""


def _replace_dates(apart: _Apart, now: Callable[[], float]) -> None:
    """Put classes in the place of `datetime.datetime` and `datetime.date` whose instances are those of the real ones."""
    stamp, day = datetime.datetime, datetime.date
    real_of: dict[type, Any] = {}

    class Whole(type):
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, real_of.get(cls, _Never)) or super().__instancecheck__(instance)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, real_of.get(cls, _Never)) or super().__subclasscheck__(subclass)

    class Date(day, metaclass=Whole):
        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            return day.__new__(real_of.get(cls, cls), *arguments, **named)

        @classmethod
        def today(cls) -> Any:
            return day.fromtimestamp(apart.of_day(now, sys._getframe(1)))

    class Stamp(stamp, metaclass=Whole):
        def __new__(cls, *arguments: Any, **named: Any) -> Any:
            return stamp.__new__(real_of.get(cls, cls), *arguments, **named)

        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return stamp.fromtimestamp(apart.of_day(now, sys._getframe(1)), tz)

        @classmethod
        def today(cls) -> Any:
            return stamp.fromtimestamp(apart.of_day(now, sys._getframe(1)))

        @classmethod
        def utcnow(cls) -> Any:
            return stamp.fromtimestamp(apart.of_day(now, sys._getframe(1)), datetime.timezone.utc).replace(tzinfo=None)

    real_of.update({Date: day, Stamp: stamp})
    for made, real in real_of.items():
        made.__name__, made.__qualname__, made.__module__ = real.__name__, real.__qualname__, real.__module__
        # What is pickled names the class, which is found under its name alone.
        copyreg.pickle(real, functools.partial(_rebuilt, made))
    datetime.date, datetime.datetime = Date, Stamp  # type: ignore[misc]


def _rebuilt(made: Any, value: Any) -> tuple[Any, tuple[Any, ...]]:
    return made, value.__reduce__()[1]
