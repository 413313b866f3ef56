"""The run of one function on symbolic arguments: its state, its names, and what it records.

The modules of this folder are functions on a `Frame`: statements, expressions, tests, calls.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from devlint.inference.objects.heap import Heap, Thing, merge_heaps, merge_values
from devlint.inference.program.definitions import Class, File, Function, dotted
from devlint.inference.summary.model import Constraint, How, LeftBehind, Mixing, Operand, Site
from devlint.inference.summary.watching import Needless, Watch
from devlint.inference.terms.conditions import ALWAYS, Condition, both
from devlint.inference.terms.conflicts import clash
from devlint.inference.terms.places import (
    Alternative,
    Path,
    Places,
    is_accelerator,
    place_of,
    single,
    unread_root,
    with_zero_dim,
)
from devlint.inference.terms.values import NOTHING, TENSORS, Identity, Value, given


class Summaries(Protocol):
    """What gives a run the summaries of other functions, the module level of files, and new objects."""

    @property
    def watch(self) -> Watch | None: ...

    def module_level(self, file: File) -> Frame: ...

    def nest(self, node: ast.AST, definition: Function | Class) -> None: ...

    def call(self, frame: Frame, function: Function, me: Value | None, arguments: Any, node: ast.AST) -> Value: ...

    def summary(self, function: Function, receiver: Class | None) -> Any: ...

    def construct(self, frame: Frame, class_: Class, arguments: Any, node: ast.AST) -> Value: ...


@dataclass(slots=True)
class State:
    """What holds at one point: the value of each name, the heap, and whether the point is reached."""

    names: dict[str, Value] = field(default_factory=dict)
    heap: Heap = field(default_factory=Heap)
    dead: bool = False
    kept: Any = None  # what a watch keeps along the paths; it has `merged`

    def copy(self) -> State:
        return State(dict(self.names), self.heap.copy(), self.dead, self.kept)


def merge_states(a: State, b: State, if_a: Condition = ALWAYS, if_b: Condition = ALWAYS) -> State:
    """The state after two paths. A path that ended does not count."""
    if a.dead:
        return b
    if b.dead:
        return a
    heap = merge_heaps(a.heap, b.heap, if_a, if_b)
    names: dict[str, Value] = {}
    for name in {**a.names, **b.names}:
        x, y = a.names.get(name), b.names.get(name)
        names[name] = x if x is y and x is not None else merge_values(x, y, a.heap, b.heap, heap, if_a, if_b)
    kept = a.kept.merged(b.kept) if a.kept is not None and b.kept is not None else None
    return State(names, heap, kept=kept)


@dataclass(slots=True)
class Loop:
    """The states in which a loop was left or gone on with before the end of its body."""

    breaks: list[State] = field(default_factory=list)
    continues: list[State] = field(default_factory=list)


@dataclass(eq=False, slots=True)
class Frame:
    """One run of a function, or of the module level of a file (`function` is None)."""

    analyser: Summaries
    file: File
    function: Function | None
    receiver: Class | None
    outer: Frame | None
    site: Site
    state: State = field(default_factory=State)
    condition: Condition = ALWAYS
    constraints: list[Constraint] = field(default_factory=list)
    returns: list[tuple[Value, Condition, State]] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    loops: list[Loop] = field(default_factory=list)
    walks: list[Any] = field(default_factory=list)  # the loops around this point that go through all items of something
    versions: dict[str, int] = field(default_factory=dict)
    shared_names: set[str] = field(default_factory=set)  # those that are declared global or nonlocal
    rebound: dict[str, Value] = field(default_factory=dict)
    default: Places | None = None  # the default device, where the code sets one
    given: dict[str, Value] = field(default_factory=dict)
    self_name: str | None = None
    fills: dict[Any, Value] = field(default_factory=dict)  # by the origin of a new tensor: what is written into it
    statement: ast.stmt | None = None
    depth: int = 0
    stops: list[Condition] = field(default_factory=list)  # where calls so far surely failed

    @property
    def heap(self) -> Heap:
        return self.state.heap

    @property
    def path(self) -> str:
        return self.file.path

    # -- names

    def bind(self, name: str, value: Value) -> None:
        self.versions[name] = self.versions.get(name, 0) + 1
        self.state.names[name] = value
        if name in self.shared_names:
            self.rebound[name] = value

    def read(self, name: str) -> Value | None:
        """The value of a name: a local one, one of a function around this one, or one of the module level."""
        local = self.state.names.get(name)
        if local is not None:
            return local
        free = self.free_name(name)
        if free is not None and (free.path is not None or free.objects):
            self.state.names[name] = free
        return free

    def free_name(self, name: str) -> Value | None:
        """A name of an outer scope, as something given. None where no scope that is read binds it."""
        if self.function is None:
            return None
        around = self.outer
        while around is not None:
            value = around.state.names.get(name)
            if value is not None:
                return self.as_given(value, ("@" + name,), around.heap, rebound=False)
            around = around.outer
        top = self.analyser.module_level(self.file)
        value = top.state.names.get(name)
        if value is None:
            return None
        path = (f"@{self.file.path}:{name}",)
        return self.as_given(value, path, top.heap, rebound=name in self.file.rebound)

    def as_given(self, value: Value, path: Path, source: Heap, rebound: bool) -> Value:
        """A value of another scope: like it, and wherever it will be when this function runs."""
        if value.kind in ("function", "class", "library", "record", "partial", "bound"):
            return value
        if rebound and value.kind in ("none", "number", "string", "bool", "unknown", "tuple"):
            return given(path)
        return self.heap.symbolic(value, path, source)

    def version(self, text: str) -> int:
        return self.versions.get(text, 0)

    # -- objects

    def new_thing(self, node: ast.AST, thing: Thing) -> Identity:
        """Something that this expression makes. In a loop it stands for all of them."""
        identity: Identity = (
            "new",
            self.site.file,
            getattr(node, "lineno", 0),
            getattr(node, "col_offset", 0),
            thing.kind,
        )
        self.heap.put(identity, thing)
        return identity

    def home(self, value: Value) -> Places:
        """Where the parameters of a module are."""
        from devlint.inference.terms.places import join

        found: Places = ()
        for identity in self._with_state(value.objects):
            home = self.heap.home(identity)
            found = join(found, home) if found else home
        return found

    def _with_state(self, objects: tuple[Identity, ...]) -> tuple[Identity, ...]:
        """The modules that have parameters or buffers; all of them where none has."""
        return tuple(each for each in objects if not self.heap.get(each).stateless) or objects

    def parameters(self, value: Value) -> Places:
        """Where each parameter of a module is."""
        home = self.home(value)
        layers = any(self.heap.has_layers(each) for each in value.objects)
        return with_zero_dim(home, False) if layers else home

    def gives_dimensions(self, value: Value) -> bool:
        """Whether a module gives tensors that have dimensions, whichever of its objects it is."""
        return bool(value.objects) and all(self.heap.gives_dimensions(each) for each in value.objects)

    def is_stateless(self, value: Value) -> bool:
        """Whether a module has no parameters or buffers: it may get inputs from anywhere."""
        return bool(value.objects) and all(self.heap.get(identity).stateless for identity in value.objects)

    def class_of(self, value: Value) -> Any:
        """The class of an object, where all that it may be have one; a class of the project or a qualified name."""
        classes = {id(c): c for identity in value.objects for c in [self.heap.get(identity).class_]}
        return next(iter(classes.values())) if len(classes) == 1 else None

    # -- what is recorded

    def asks(self, value: Value) -> None:
        """The function reads where something given is, to put other things there."""
        for each in value.places:
            if each.atom.tag == "place":
                self.site.asks.add(each.atom.key[0])
        if value.path is not None:
            self.site.asks.add(value.path[0])

    def operand(self, node: ast.AST, value: Value) -> Operand:
        if value.kind in ("module", "instance") and value.objects:
            return Operand(node, "module", self.home(value), True, value.path)
        return Operand(node, value.kind, value.places, value.proved, value.path)

    def need(
        self, how: How, mixing: Mixing, operation: str, first: Operand, second: Operand, node: ast.AST, *,
        condition: Condition = ALWAYS, guessed: bool = False,
    ) -> None:  # fmt: skip
        """Record that two values must be on one device."""
        why = _needless(first.places, second.places)
        if why is not None:
            self._tell(node, operation, first, second, why)
            return
        if self.site.switches:
            first, second = (
                one._replace(places=in_use(self.site, one.places, other.places))
                for one, other in ((first, second), (second, first))
            )
            if not first.places or not second.places:
                self._tell(node, operation, first, second, "unused")
                return
        joined, whole = both(self.condition, condition)
        left = _left_behind(self.site, first, second)
        self.constraints.append(
            Constraint(
                how,
                mixing,
                operation,
                first,
                second,
                node,
                self.site,
                joined,
                not whole,
                (),
                left,
                (first, second),
                guessed=guessed,
            )
        )
        if self.analyser.watch is not None:
            self.analyser.watch.needed(self.constraints[-1])

    def _tell(self, node: ast.AST, operation: str, first: Operand, second: Operand, why: Needless) -> None:
        """Tell who watches why two operands leave no constraint."""
        if self.analyser.watch is not None:
            both_ = [(each.node, Value(each.kind, each.places, path=each.path)) for each in (first, second)]
            self.analyser.watch.needless(self, node, operation, both_, why)

    def is_reached(self, failing: Constraint) -> bool:
        """Whether a call that surely fails may be reached: none before it surely fails wherever it does."""
        if any(each <= failing.condition for each in self.stops):
            return False
        operands = (failing.first, failing.second)
        if all(each.path is None and not any(at.condition for at in each.places) for each in operands):
            self.stops.append(failing.condition)
        return True

    def together(
        self,
        how: How,
        mixing: Mixing,
        operation: str,
        operands: Sequence[tuple[ast.AST, Value]],
        node: ast.AST,
        guessed: bool = False,
    ) -> None:
        """Record that all of these must be on one device, two by two."""
        taking = [(n, v) for n, v in operands if v.may_be_tensor and v.places]
        proved = any(v.kind in TENSORS for _, v in taking)
        if self.analyser.watch is not None and (len(taking) < 2 or not (proved or mixing == "exact")):
            self.analyser.watch.needless(self, node, operation, list(operands), "alone" if len(taking) < 2 else "kind")
        for i, (n, v) in enumerate(taking):
            for m, w in taking[i + 1 :]:
                if proved or mixing == "exact":
                    self.need(how, mixing, operation, self.operand(n, v), self.operand(m, w), node, guessed=guessed)


def in_use(site: Site, places: Places, others: Places) -> Places:
    """The alternatives of an operand but for those where a switch is off, so that no accelerator is used."""
    off = {(test, not outcome) for test, outcome in site.switches if (test, not outcome) not in site.switches}
    if any(is_accelerator(each.atom) and off.isdisjoint(each.condition) for each in others):
        return places
    return tuple(each for each in places if off.isdisjoint(each.condition))


def _needless(a: Places, b: Places) -> Needless | None:
    """Why two values need no constraint, by where they are."""
    if not a or not b:
        return "nothing"
    if a == b:
        return "same"
    if not _may_fail(a, b):
        return "agree"
    return "choice" if _is_one_choice(a, b) else None


def _may_fail(a: Places, b: Places) -> bool:
    """Whether the two clash, or may do so at a call."""
    return any(
        x.atom != y.atom and (_is_open(x) or _is_open(y) or clash(x.atom, y.atom) is not None) for x in a for y in b
    )


def _is_one_choice(a: Places, b: Places) -> bool:
    """Whether both are at one of the same places under the same conditions: one choice put both there."""
    return len(a) > 1 and {(x.atom, x.condition) for x in a} == {(y.atom, y.condition) for y in b}


def _left_behind(site: Site, first: Operand, second: Operand) -> LeftBehind | None:
    """Whether one operand is a part of something of which another part was moved to where the other operand is."""
    if not site.moved:
        return None
    for part, there, is_first in ((first, second, True), (second, first, False)):
        for each in part.places:
            moves = site.moved.get(each.atom.key[:-1], ()) if each.atom.tag == "place" else ()
            for other in there.places:
                if other.origin is not None and other.origin.why == "moved" and other.origin.node in moves:
                    assert other.origin.node is not None
                    return LeftBehind(is_first, other.origin.node)
    return None


def _is_open(each: Alternative) -> bool:
    return each.atom.tag in ("place", "names")


def unread_at(node: ast.AST) -> str:
    """The start of the path of what an expression gives that cannot be read."""
    words = f"{dotted(node.func) or ast.unparse(node.func)}(...)" if isinstance(node, ast.Call) else dotted(node)
    return unread_root(f"{getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)}", words or "(...)")


def unread(node: ast.AST, entry: str = "") -> Value:
    """What an expression gives that cannot be read: a value with a path of its own."""
    root = unread_at(node.value if isinstance(node, ast.Attribute) and entry == "." + node.attr else node)
    path: Path = (root, entry) if entry else (root,)
    return Value("unknown", single(place_of(path)), path=path)


__all__ = ["NOTHING", "Frame", "Loop", "State", "merge_states", "unread", "unread_at"]
