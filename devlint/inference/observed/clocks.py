"""Clocks and waits as an automaton: between two readings of a clock, is work queued on a device that nobody waited for?

What it keeps goes along the paths of a run (`State.kept`). Two paths agree on work only if both queued it; a wait on one of
them is enough. A call does to its caller what the called function keeps at its end, in terms of the call's arguments.
"""

from __future__ import annotations

import ast
import builtins
from typing import Final, NamedTuple, TypeAlias

from devlint import knowledge
from devlint.inference.summary.dispatch import peek
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.instantiate import Instance
from devlint.inference.terms.places import Alternative, Path, Places, is_accelerator
from devlint.inference.terms.values import Value

#: One reading of a clock, by the place of its call.
Reading: TypeAlias = tuple[str, int, int]
#: Methods of any object that wait for the device [torch.cuda.Event, torch.cuda.Stream, torch.Tensor].
_WAITS: Final = frozenset({"synchronize", "wait", "barrier"})


class Open(NamedTuple):
    """A difference of two readings that only a caller can judge: where the work is (`places`), or what came after the first
    reading, which somebody else took (`start`: the reading, or the access path that holds it). `around`: the function yielded
    between the two readings, so that the work is in the `with` statement that it makes the context of."""

    start: Reading | Path | None
    places: Places
    node: ast.AST
    file: str
    around: bool = False


class Kept(NamedTuple):
    """What holds at one point of a run. `dirty`: the readings after which work was queued, and where. `queued`: where work is
    that nobody waited for. `waited`: whether the run waited on some path. `yielded`: the readings before a `yield` after which
    nobody waited."""

    readings: frozenset[Reading] = frozenset()
    dirty: tuple[tuple[Reading, Places], ...] = ()
    queued: Places = ()
    waited: bool = False
    open: frozenset[Open] = frozenset()
    yielded: frozenset[Reading] = frozenset()

    def merged(self, other: Kept) -> Kept:
        mine, theirs = dict(self.dirty), dict(other.dirty)
        both = tuple((each, places) for each, places in mine.items() if each in theirs)
        return Kept(
            self.readings | other.readings,
            both,
            self.queued if other.queued else (),
            self.waited or other.waited,
            self.open | other.open,
            self.yielded & other.yielded,
        )

    def works(self, places: Places) -> Kept:
        dirty = dict(self.dirty)
        for each in self.readings:
            dirty.setdefault(each, places)
        return self._replace(dirty=tuple(dirty.items()), queued=self.queued or places)

    def waits(self) -> Kept:
        return self._replace(dirty=(), queued=(), waited=True, yielded=frozenset())


EMPTY: Final = Kept()


class Clocks:
    """The automaton. `found`: by the node of a reading, where the work is that it does not wait for."""

    def __init__(self) -> None:
        self.found: dict[int, Places] = {}
        # by the run: what held when a clock was read, and the call that read it there
        self.before: dict[tuple[int, Reading], tuple[Kept, ast.AST]] = {}
        self.read: set[int] = set()  # the calls that lead to functions of the project
        # by the run and the call that makes a context: the readings from which it measures the `with` statement
        self.contexts: dict[tuple[int, int], frozenset[Reading]] = {}
        self.handed: Instance | None = None  # the call whose values the function is run with

    def saw(self, frame: Frame, node: ast.expr, value: Value, operands: tuple[Value, ...]) -> None:
        """An expression was evaluated. `operands`: the sides of an operator, or the receiver and arguments of a call."""
        kept = frame.state.kept or EMPTY
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Sub):
                self._difference(frame, node, operands)
            elif value.is_tensor and _is_somewhere(value.places):
                frame.state.kept = kept.works(value.places)
            return
        if isinstance(node, ast.Yield):
            frame.state.kept = kept._replace(yielded=kept.readings)
        if not isinstance(node, ast.Call):
            return
        measured = _measured(frame, node)
        if measured:
            self.contexts[id(frame), id(node)] = measured
            frame.state.kept = kept._replace(readings=kept.readings | measured)
            return
        reading = reading_of(value)
        if reading is not None:
            self.before[id(frame), reading] = kept, node
            frame.state.kept = kept._replace(readings=kept.readings | {reading})
        elif _waits(frame, node, operands) or (id(node) not in self.read and _may_wait(frame, node, value, operands)):
            frame.state.kept = kept.waits()
        elif value.is_tensor and _is_somewhere(value.places) and _is_work(frame, node, operands):
            frame.state.kept = kept.works(value.places)

    def _difference(self, frame: Frame, node: ast.BinOp, operands: tuple[Value, ...]) -> None:
        end, start = reading_of(operands[0]), reading_of(operands[1])
        if end is None or (id(frame), end) not in self.before:
            return
        kept, place = self.before[id(frame), end]
        places = dict(kept.dirty).get(start) if start is not None else None
        if places is not None and self.handed is not None and self.handed.summary.function is frame.function:
            places = _at_call(self.handed, places)
        now = frame.state.kept or EMPTY
        if places is not None and is_decided(places):
            self.found[id(place)] = places
        elif places is not None:
            frame.state.kept = now._replace(open=now.open | {Open(None, places, place, frame.path)})
        elif start is not None and start in kept.yielded:
            frame.state.kept = now._replace(open=now.open | {Open(start, (), place, frame.path, around=True)})
        elif not kept.waited and (start is None or start not in kept.readings):
            taken = start or operands[1].path
            if taken is not None:
                frame.state.kept = now._replace(open=now.open | {Open(taken, kept.queued, place, frame.path)})

    def called(self, instance: Instance) -> None:
        """A function of the project was called: what it keeps at its end goes on in its caller."""
        self.read.add(id(instance.node))
        frame, ran = instance.frame, instance.summary.frame
        there: Kept | None = ran.state.kept if ran is not None else None
        if there is None:
            return
        kept = frame.state.kept or EMPTY
        left: set[Open] = set()
        for each in there.open:
            still = self._judge(instance, kept, each)
            if still is not None:
                left.add(still)
        for reading in there.readings:
            self.before[id(frame), reading] = kept, instance.node
        if there.waited:
            kept = kept.waits()
        queued = _at_call(instance, there.queued) if there.queued else ()
        if queued:
            kept = kept.works(queued)
        frame.state.kept = kept._replace(readings=kept.readings | there.readings, open=kept.open | left)

    def left(self, frame: Frame, node: ast.expr) -> None:
        """A `with` statement was left: what a generator measured around its `yield` is the body."""
        kept = frame.state.kept or EMPTY
        for each in self.contexts.pop((id(frame), id(node)), ()):
            places = dict(kept.dirty).get(each, ())
            if is_decided(places):
                self.found[id(node)] = places
            elif places:
                kept = kept._replace(open=kept.open | {Open(None, places, node, frame.path)})
        frame.state.kept = kept

    def _judge(self, instance: Instance, kept: Kept, each: Open) -> Open | None:
        """A difference of a called function: found, or open still, or neither."""
        if each.start is None:
            node = each.node if each.file == instance.frame.path else instance.node
            places = _at_call(instance, each.places)
        else:
            node, start = instance.node, each.start
            if not _is_reading(start):
                value = instance.resolve(start)  # type: ignore[arg-type]
                taken = reading_of(value) or value.path
                if taken is None:
                    return None
                start = taken
            places = dict(kept.dirty).get(start, ()) if _is_reading(start) else ()  # type: ignore[arg-type]
            if not places:
                return (
                    None if start in kept.readings else each._replace(start=start, node=node, file=instance.frame.path)
                )
        if is_decided(places):
            self.found[id(node)] = places
            return None
        return Open(None, places, node, instance.frame.path) if places else None


#: What makes a context of a generator [contextlib].
_MAKERS: Final = frozenset({"contextlib.contextmanager", "contextlib.asynccontextmanager"})


def _measured(frame: Frame, node: ast.Call) -> frozenset[Reading]:
    """The readings from which a function of the project measures what is done at its `yield`, where it makes a context."""
    callee = peek(frame, node.func)
    function = callee.ref[0] if callee is not None and callee.kind == "function" and callee.ref else None
    if function is None or not _MAKERS.issuperset(decorators := list(function.decorators())) or not decorators:
        return frozenset()
    summary = frame.analyser.summary(function, function.owner)
    kept: Kept | None = summary.frame.state.kept if summary is not None and summary.frame is not None else None
    around = [each.start for each in kept.open if each.around] if kept is not None else []
    return frozenset(each for each in around if each is not None and _is_reading(each))  # type: ignore[misc]


def _is_reading(start: Reading | Path) -> bool:
    return len(start) == 3 and isinstance(start[1], int)


def _at_call(instance: Instance, places: Places) -> Places:
    """Places of a function at a call of it. A name of the function around it is what that function left in it."""
    function = instance.summary.function
    around = function.outer.state.names if function is not None and function.outer is not None else {}
    found: list[Alternative] = []
    for each in places:
        root = each.atom.key[0] if each.atom.tag in ("place", "names") and len(each.atom.key) == 1 else ""
        value = around.get(root[1:]) if isinstance(root, str) and root.startswith("@") and ":" not in root else None
        found += value.places if value is not None and value.places else instance.places((each,))
    return tuple(found)


def reading_of(value: Value) -> Reading | None:
    """The reading of a clock that a value is."""
    ref = value.ref
    return ref[1] if isinstance(ref, tuple) and len(ref) == 2 and ref[0] == "clock" else None


def is_decided(places: Places) -> bool:
    """Whether the code says that the place may be an accelerator: it names one, or a device that is chosen."""
    return any(is_accelerator(each.atom) or each.atom.tag == "names" for each in places)


def _is_somewhere(places: Places) -> bool:
    return any(is_accelerator(each.atom) or each.atom.tag in ("names", "place", "home") for each in places)


def _waits(frame: Frame, node: ast.Call, operands: tuple[Value, ...]) -> bool:
    """Whether a call waits for the device."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in _WAITS:
        return True
    name = frame.file.qualified(node.func) or ""
    record = knowledge.function(name) if name else None
    receiver = operands[0] if operands and isinstance(node.func, ast.Attribute) and not name else None
    if receiver is not None and receiver.is_tensor and isinstance(node.func, ast.Attribute):
        record = knowledge.method("Tensor", node.func.attr)
        if node.func.attr in ("to", "cuda") and record is not None:
            return False
    if record is not None:
        return record.sync == "always"
    if isinstance(node.func, ast.Name) and node.func.id in ("print", "float", "int", "bool", "str"):
        return any(each.is_tensor for each in operands)
    return False


def _may_wait(frame: Frame, node: ast.Call, value: Value, operands: tuple[Value, ...]) -> bool:
    """Whether a call cannot be read and gets what may be a tensor or module: then it may wait."""
    if value.is_tensor or frame.file.qualified(node.func) is not None:
        return False
    if isinstance(node.func, ast.Name) and hasattr(builtins, node.func.id):
        return False
    is_method = isinstance(node.func, ast.Attribute)
    if is_method and operands and operands[0].kind not in ("unknown", "other", "instance"):
        return False
    return any(each.is_tensor or each.kind in ("module", "unknown", "instance") for each in operands)


def _is_work(frame: Frame, node: ast.Call, operands: tuple[Value, ...]) -> bool:
    """Whether a call that gives a tensor of a device queues work there: a copy that waits for the host's memory does not."""
    if isinstance(node.func, ast.Attribute) and node.func.attr in ("to", "cuda"):
        return any(each.arg == "non_blocking" for each in node.keywords)
    return True
