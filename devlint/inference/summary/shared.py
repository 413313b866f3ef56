"""What is found of a function once and holds for every checked file of a process.

The law: what is found of a file is what a fresh process would find that checks this file alone. So nothing is taken from an
earlier check that could come out differently now.

A *reading* is the summary of a function, the story of a class or the module level of a file, by its key. While it is made,
everything that it does to what is known, and all that it asks of it, is written down as events. It is *whole* when it met no
other reading that was being made around it, and none that only such a one accounts for. Only whole readings are kept; one
inside a whole one that is not whole itself is an event of it. A kept reading is taken again where

- each reading that it rests on is there as the same object, or not there at all, so that it can be taken as well;
- each question that depends on what was read before has the same answer: what constructors were given, whether something
  is being read, for how many classes of its arguments a function was read;
- calls are not too deep for making it anew;
- none of it stands in the file that a watch looks at: that one has to see the readings being made.

Taking it repeats its events in their order. What cannot be taken is read anew.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from devlint.inference.summary.analyser import Analyser

#: A summary's key, ("story", class) or ("top", file).
Key: TypeAlias = tuple[Any, ...]
#: What happened while something was read: see `EVENTS`.
Event: TypeAlias = tuple[Any, ...]
#: "needs" (reading): it rests on a whole reading. "starts", "ends" (key, path), (key, result): one inside that is not whole.
#: "drops" (key): it is to be read again. "looks" (path, file): an answer follows from a file. "idle" (key): it is not being
#: read. "asks" (class, name, answer): of which class an argument of its constructor is. "gives" (class, name, class): such an
#: argument. "called" (instance), "calls" (function), "hands" (operation, status), "nests" (node, definition): see `Analyser`.
Kind: TypeAlias = Literal[
    "needs", "starts", "ends", "drops", "looks", "idle", "asks", "gives", "called", "calls", "hands", "nests"
]


class Reading:
    """A whole reading. `height`: how deep the calls of functions go that making it anew needs."""

    __slots__ = ("events", "height", "key", "path", "result")

    def __init__(self, key: Key, path: str, result: Any, events: tuple[Event, ...], height: int) -> None:
        self.key = key
        self.path = path
        self.result = result
        self.events = events
        self.height = height


class _Open:
    """A reading that is being made. `lowest`: the place of the outermost reading in the making that it met."""

    __slots__ = ("height", "inside", "key", "looked", "lowest", "needed", "owner", "path", "place", "start")

    def __init__(self, key: Key, path: str, place: int, start: int, lowest: int) -> None:
        self.key = key
        self.path = path
        self.place = place
        self.start = start
        self.lowest = lowest
        self.height = 0
        self.needed: set[int] = set()
        self.looked: set[str] = set()
        self.owner: _Open | None = None  # once it is made and not whole: which reading accounts for it


#: The place of what no reading in the making accounts for.
_NOBODY: Final = -1


class Shared:
    """The whole readings of a process, and the state of the check that goes on."""

    def __init__(self) -> None:
        self.kept: dict[Key, Reading] = {}
        self.begin("")

    def begin(self, watched: str) -> None:
        """A new check. `watched`: the path of the file that a watch looks at, "" without one."""
        self.watched = watched
        self.epoch = 0  # changes with the reading that is innermost
        self._open: list[_Open] = []
        self._places: dict[Key, int] = {}
        self._events: list[Event] = []
        self._whole: dict[Key, Reading] = {}  # what is there and whole
        self._parts: dict[Key, _Open | None] = {}  # what is there and not whole
        self._unfit: set[int] = set()  # kept readings that cannot be taken in this check

    def forget(self) -> None:
        """Keep nothing of earlier checks."""
        self.kept.clear()

    # -- while something is read

    def start(self, key: Key, path: str) -> None:
        """The reading of something begins."""
        place = len(self._open)
        lowest = _NOBODY if path == self.watched else place
        self._open.append(_Open(key, path, place, len(self._events), lowest))
        self._places[key] = place
        self._events.append(("starts", key, path))
        self.epoch += 1

    def end(self, result: Any, is_call: bool = False) -> None:
        """The innermost reading is made. `is_call`: it is that of a function."""
        made = self._open.pop()
        del self._places[made.key]
        self.epoch += 1
        height = made.height + is_call
        above = self._open[-1] if self._open else None
        if made.lowest >= made.place:
            reading = Reading(made.key, made.path, result, tuple(self._events[made.start + 1 :]), height)
            del self._events[made.start :]
            self._whole[made.key] = self.kept[made.key] = reading
            self._need(reading)
            return
        made.owner = self._open[made.lowest] if made.lowest >= 0 else None
        self._parts[made.key] = made.owner
        self._events.append(("ends", made.key, result))
        if above is None:
            self._events.clear()
            return
        above.lowest = min(above.lowest, made.lowest)
        above.height = max(above.height, height)
        above.needed |= made.needed
        above.looked |= made.looked

    def stop(self) -> None:
        """The innermost reading ends by an error."""
        made = self._open.pop()
        self._places.pop(made.key, None)
        self.fails()

    def fails(self) -> None:
        """What is being read is not what it would be elsewhere: a bound of this check cut it."""
        for each in self._open:
            each.lowest = _NOBODY

    def reads(self, key: Key) -> None:
        """Something is asked for that is there, or is being read."""
        if not self._open:
            return
        above = self._open[-1]
        place = self._places.get(key)
        if place is None:
            reading = self._whole.get(key)
            if reading is not None:
                self._need(reading)
                return
            place = self._place_of(self._parts.get(key))
        if place < above.lowest:
            above.lowest = place

    def _need(self, reading: Reading) -> None:
        if self._open:
            above = self._open[-1]
            if id(reading) not in above.needed:
                above.needed.add(id(reading))
                above.height = max(above.height, reading.height)
                self._events.append(("needs", reading))

    def _place_of(self, owner: _Open | None) -> int:
        """The place of the reading that accounts for one which is not whole."""
        while owner is not None:
            if owner.place < len(self._open) and self._open[owner.place] is owner:
                return owner.place
            owner = owner.owner
        return _NOBODY

    def idle(self, key: Key) -> None:
        """Something was found not to be in the making."""
        self.note("idle", key)

    def note(self, *event: Any) -> None:
        """Write an event down."""
        if self._open:
            self._events.append(event)

    def looks(self, path: str, file: Any) -> None:
        """An answer follows from a file."""
        if self._open and path not in self._open[-1].looked:
            self._open[-1].looked.add(path)
            self._events.append(("looks", path, file))

    def drop(self, key: Key) -> None:
        """A reading counts no more."""
        self._whole.pop(key, None)
        self._parts.pop(key, None)
        self.note("drops", key)

    # -- what was read before

    def take(self, analyser: Analyser, key: Key) -> bool:
        """Take what an earlier check read, where it would come out the same now."""
        reading = self.kept.get(key)
        if reading is None or id(reading) in self._unfit:
            return False
        trial = _Trial(self, analyser)
        if not trial.fits(reading):
            self._unfit.add(id(reading))
            return False
        self._repeat(analyser, reading)
        self._need(reading)
        return True

    def _repeat(self, analyser: Analyser, reading: Reading) -> None:
        if reading.key in self._whole:
            return
        self._whole[reading.key] = reading
        analyser.put(reading.key, None)
        for event in reading.events:
            kind = event[0]
            if kind == "needs":
                self._repeat(analyser, event[1])
            elif kind == "starts":
                self._parts[event[1]] = None
                analyser.put(event[1], None)
            elif kind == "ends":
                analyser.put(event[1], event[2])
            elif kind == "drops":
                self._whole.pop(event[1], None)
                self._parts.pop(event[1], None)
                analyser.remove(event[1])
            else:
                analyser.repeat(event)
        analyser.put(reading.key, reading.result)

    def is_there(self, key: Key) -> bool:
        """Whether something is there, or being read."""
        return key in self._places or key in self._whole or key in self._parts

    def is_open(self, key: Key) -> bool:
        return key in self._places


class _Trial:
    """Whether readings can be taken: their events are gone through, and nothing is done yet."""

    def __init__(self, shared: Shared, analyser: Analyser) -> None:
        self._shared = shared
        self._analyser = analyser
        self._seen: set[int] = set()
        self._given: dict[tuple[int, str], list[Any]] = {}
        self._shapes: dict[Any, set[Any]] = {}

    def fits(self, reading: Reading) -> bool:
        """Whether a reading with all that it rests on fits."""
        return self._analyser.depth + reading.height <= self._analyser.DEEPEST and self._fits(reading)

    def _fits(self, reading: Reading) -> bool:
        known = self._shared._whole.get(reading.key)
        if known is not None or id(reading) in self._seen:
            return known is None or known is reading
        self._seen.add(id(reading))
        if id(reading) in self._shared._unfit or not self._may_start(reading.key, reading.path):
            return False
        return all(self._holds(event) for event in reading.events)

    def _may_start(self, key: Key, path: str) -> bool:
        if path == self._shared.watched or self._shared.is_there(key):
            return False
        if len(key) != 3 or not key[2]:
            return True
        shapes = self._shapes.setdefault(key[0], set(self._analyser.shapes.get(key[0], ())))
        shapes.add(key[2])
        return len(shapes - {()}) <= self._analyser.VARIANTS

    def _holds(self, event: Event) -> bool:
        kind = event[0]
        if kind == "needs":
            return self._fits(event[1])
        if kind == "starts":
            return self._may_start(event[1], event[2])
        if kind == "looks":
            return bool(self._analyser.project.is_current(event[1], event[2]))
        if kind == "idle":
            return not self._shared.is_open(event[1])
        if kind == "gives":
            self._given.setdefault((id(event[1]), event[2]), []).append(event[3])
        elif kind == "asks":
            given = self._given.get((id(event[1]), event[2]), [])
            return self._analyser.only_class(event[1], event[2], given) is event[3]
        return True
