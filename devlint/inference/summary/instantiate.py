"""A summary at a call: access paths become what was given, and the effects are applied."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, Final

from devlint.inference.library.protocols import is_torch_module
from devlint.inference.objects.heap import Thing
from devlint.inference.program.definitions import Class, Function
from devlint.inference.summary.devices import device_of
from devlint.inference.summary.effects import effects_of
from devlint.inference.summary.first_failure import always_fails
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.model import LEAVING, Constraint, Operand, Step, Summary
from devlint.inference.summary.watching import Dropped
from devlint.inference.terms.conditions import (
    ACCELERATOR,
    ALWAYS,
    DATA,
    SAME,
    Condition,
    Literal,
    Test,
    both,
    compatible,
    is_ordered,
)
from devlint.inference.terms.conflicts import clash
from devlint.inference.terms.places import (
    CPU,
    DEFAULT,
    LIMIT,
    WIDTH,
    Alternative,
    Atom,
    Origin,
    Path,
    Places,
    home_of,
    is_unread,
    nowhere,
    single,
    with_zero_dim,
)
from devlint.inference.terms.values import (
    NONE,
    NOTHING,
    NUMBER,
    TENSORS,
    Identity,
    Kind,
    Value,
    given,
    merge_all,
    something,
)

#: Makes a named tuple of all its parts.
_new: Final[Callable[..., Any]] = tuple.__new__
#: Calls between a root and an operation.
CHAIN = 6
_CLOSED = frozenset({"at", "unknown", "default"})
_CONTAINERS = frozenset({"tuple", "iterator", "list", "dict"})
#: Constraints that one function keeps.
KEPT = 400


class Instance:
    """One summary in one call. `bindings`: what its roots stand for."""

    def __init__(self, frame: Frame, summary: Summary, bindings: dict[str, Value], node: ast.AST) -> None:
        self.frame = frame
        self.summary = summary
        self.bindings = bindings
        self.node = node
        self._values: dict[Path, Value] = {}
        self._copies: dict[Identity, Identity] = {}
        self._conditions: dict[Condition, Condition | None] = {}
        self._mapped: dict[tuple[int, bool], Places] = {}  # by the identity of places of the summary
        self._as_module = False  # whether what is resolved is called
        self._either: dict[Path, set[Test]] = {}  # devices that a condition asks for, of what may be at several places
        self.handed: list[tuple[int, str]] = []  # operations, with "host" or "open" for what this call hands to them
        self._place = (getattr(node, "lineno", 0), getattr(node, "col_offset", 0))

    # -- access paths

    def resolve(self, path: Path) -> Value:
        """What an access path of the function is at this call."""
        known = self._values.get(path)
        if known is None:
            known = self._values[path] = self._resolve(path)
        return known

    def _resolve(self, path: Path) -> Value:
        if len(path) > 1 and path[-1].startswith("("):
            return self._result(self.resolve(path[:-1]), path)
        if len(path) > 1:
            return step(self.frame, self.resolve(path[:-1]), path[-1], path)
        root = path[0]
        bound = self.bindings.get(root)
        if bound is not None:
            return bound
        if root.startswith("@"):
            return self._outer(root)
        return given(path)

    def _outer(self, root: str) -> Value:
        """A name of an outer scope, as the calling function sees it."""
        home, _, name = root[1:].rpartition(":")
        frame = self.frame
        if home and home != frame.path:
            return given((root,))
        if home and frame.function is None:
            return frame.state.names.get(name, NOTHING)
        value = frame.read(name)
        return value if value is not None else given((root,))

    def _result(self, callee: Value, path: Path) -> Value:
        """What a call of something given gives, where this call says what that is."""
        if callee.kind == "function" and isinstance(callee.ref, tuple):
            return self._result_of(callee.ref[0], callee.ref[1])
        if callee.kind == "unknown" and callee.path is not None:
            return given((*callee.path, path[-1]))
        if callee.kind != "module" or not callee.objects or self.frame.is_stateless(callee):
            return something()
        class_ = self.frame.class_of(callee)
        if isinstance(class_, Class):
            forward = class_.method("forward")
            return self._result_of(forward, callee) if forward is not None else something()
        return Value("tensor", self.frame.home(callee)) if is_torch_module(class_) else something()

    def _result_of(self, function: Function, me: Value | None) -> Value:
        """What a function of the project gives, whatever it gets."""
        summary = self.frame.analyser.summary(function, self.frame.class_of(me) if me is not None else function.owner)
        if summary is None:
            return something()
        bindings = {each.arg: something() for each in function.all_parameters()}
        if me is not None:
            bindings["self"] = me
        return self.frame.heap.settled(Instance(self.frame, summary, bindings, self.node).value(summary.result))

    # -- conditions

    def condition(self, condition: Condition) -> Condition | None:
        """A condition at this call; None where it does not hold."""
        if not condition:
            return condition
        if condition not in self._conditions:
            self._conditions[condition] = self._condition(condition)
        return self._conditions[condition]

    def _condition(self, condition: Condition) -> Condition | None:
        found: set[Literal] = set()
        for literal in condition:
            mapped = self._literal(literal)
            if mapped is None:
                return None
            found |= mapped
        result = frozenset(found)
        return result if compatible(result) else None

    def _literal(self, literal: Literal) -> Condition | None:
        test, outcome = literal
        if test in (ACCELERATOR, SAME):
            return frozenset({literal})
        if test[0] == "all":
            return self._conjunction(test[1], outcome)
        if test[0] == "same":
            return self._same(test[1], outcome)
        if test[0] in ("device", "names"):
            return self._on_device(test, outcome)
        if test[0] in ("none", "truth", "equal", "order", "type") and _is_path(test[1]):
            return self._about(test, outcome)
        return frozenset({((*test, self._place), outcome)})

    def _conjunction(self, members: Condition, outcome: bool) -> Condition | None:
        mapped: set[Literal] = set()
        for member in members:
            each = self._literal(member)
            if each is None:
                return None if outcome else ALWAYS
            mapped |= each
        if outcome:
            return frozenset(mapped)
        if len(mapped) == 1:
            ((test, holds),) = mapped
            return frozenset({(test, not holds)})
        return frozenset({(("all", frozenset(mapped)), False)}) if mapped else None

    def _same(self, atoms: frozenset[Atom], outcome: bool) -> Condition | None:
        """Whether two places are one at this call."""
        found = [self._atom(Alternative(each)) for each in atoms]
        if any(len(each) != 1 for each in found):
            return frozenset({(SAME, outcome)})
        (x,), (y,) = found
        if x.atom == y.atom or clash(x.atom, y.atom) == "named":
            return ALWAYS if (x.atom == y.atom) == outcome else None
        return frozenset({(("same", frozenset({x.atom, y.atom})), outcome)})

    def _on_device(self, test: tuple[Any, ...], outcome: bool) -> Condition | None:
        """Whether something is on a device of a type: the conditions under which it came there."""
        value = self.resolve(test[1])
        places = self.frame.home(value) if value.objects else device_of(value) or ()
        if len(places) == 1 and places[0].atom.tag in ("place", "names"):
            asked = test[0] if value.kind == "unknown" else "device" if places[0].atom.tag == "place" else "names"
            return frozenset({((asked, places[0].atom.key, test[2]), outcome)})
        if not places or not all(each.atom.tag == "at" for each in places):
            self._either.setdefault(test[1], set()).add(test)
            return frozenset({((*test, self._place), outcome)})
        fit = [each for each in places if (each.atom.key[0] == test[2]) == outcome]
        if not fit:
            return None
        return fit[0].condition if len(fit) == 1 and len(places) > 1 else ALWAYS

    def _about(self, test: tuple[Any, ...], outcome: bool) -> Condition | None:
        value = self.resolve(test[1])
        answer = _answer(test, value)
        if answer is not None:
            return ALWAYS if answer == outcome else None
        if test[0] == "none" and any(each.atom == DEFAULT for each in value.places):
            fit = [each for each in value.places if (each.atom == DEFAULT) == outcome]
            return fit[0].condition if fit else None
        if test[0] == "none" and value.missing is not None:
            return value.missing[0 if outcome else 1]
        if test[0] == "truth" and value.test is not None:
            return value.test[0 if outcome else 1]
        if value.path is not None:
            return frozenset({((test[0], value.path, *test[2:]), outcome)})
        return frozenset({((*test, self._place), outcome)})

    # -- places

    def _kept_places(self, places: Places) -> Places:
        """The places of an operand of the summary at this call, before the call changes anything."""
        key = (id(places), self._as_module)
        known = self._mapped.get(key)
        if known is None:
            known = self._mapped[key] = self.places(places)
        return known

    def places(self, places: Places) -> Places:
        """Places of the function at this call."""
        found: list[Alternative] = []
        for each in places:
            if each.atom.tag in _CLOSED and not each.condition and each.also is None:
                found.append(each)  # it is what it is at every call
            else:
                self._places_at(each, found)
        if len(found) < 2:
            return tuple(found)
        apart: dict[tuple[Atom, Origin | None, Condition], Alternative] = {}
        for each in found:
            apart.setdefault((each.atom, each.origin, each.condition), each)
        return tuple(apart.values()) if len(apart) <= LIMIT else nowhere(WIDTH)

    def _places_at(self, each: Alternative, found: list[Alternative]) -> None:
        condition = self.condition(each.condition)
        if condition is None:
            return
        others, soft = self._atom(each), each.soft
        if each.also is not None and all(is_unread(other.atom) for other in others):
            second = with_zero_dim(self._atom(each._replace(atom=each.also)), None)
            others, soft = (second, False) if second else (others, soft)
        elif soft and self._is_result(each.atom):
            soft = False
        for other in others:
            joined, whole = condition, True
            if other.condition or self._either:
                joined, whole = both(condition, other.condition | self._answers(each.atom, other.atom))
            if joined and not compatible(joined):
                continue
            zero_dim = each.zero_dim if each.zero_dim is not None else other.zero_dim
            also = self._also(each) or (other.also if other.also != other.atom else None)
            origin = each.origin or other.origin
            new = (other.atom, origin, joined, soft or other.soft or not whole, zero_dim, also)
            found.append(_new(Alternative, new))

    def _answers(self, atom: Atom, at: Atom) -> Condition:
        """What a device that conditions ask for is, where what is given has come to a named place."""
        asked = self._either.get(atom.key) if self._either and atom.tag == "place" and at.tag == "at" else None
        if asked is None:
            return ALWAYS
        return frozenset(((*test, self._place), at.key[0] == test[2]) for test in asked)

    def _is_result(self, atom: Atom) -> bool:
        """Whether a place is that of what a call gives, and this call tells what it gives."""
        if atom.tag != "place" or not any(entry.startswith("(") for entry in atom.key):
            return False
        value = self.resolve(atom.key)
        return value.is_tensor and value.proved and value.path is None

    def _also(self, each: Alternative) -> Atom | None:
        """The second atom of a place, where it is one place at this call too."""
        if each.also is None:
            return None
        found = self._atom(each._replace(atom=each.also))
        return found[0].atom if len(found) == 1 and not is_unread(found[0].atom) else None

    def _atom(self, each: Alternative) -> Places:
        tag, key = each.atom
        if tag == "place":
            return self._place_of(self.resolve(key))
        if tag == "names":
            return self._named_by(each, self.resolve(key))
        if tag == "home":
            identity = self.identity(key)
            return single(home_of(identity)) if identity is not None else nowhere()
        if not each.condition and not each.soft:
            return (each,)
        return (each._replace(condition=ALWAYS, soft=False),)

    def _place_of(self, value: Value) -> Places:
        if value.kind in _CONTAINERS:
            return self._places_of_parts(value)
        if value.objects:
            return self.frame.parameters(value) if any(self._is_module(o) for o in value.objects) else nowhere()
        if value.kind in ("number", "string", "none", "bool", "array"):
            return ()
        if self._as_module and value.kind == "unknown" and value.path is not None:
            moved = self.frame.heap.things.get(("path", value.path))
            if moved is not None and moved.home is not None:
                return self.frame.heap.home(("path", value.path))  # a module that was moved in place
        return value.places if value.places else nowhere()

    def _places_of_parts(self, value: Value) -> Places:
        """Where the tensors in a container are: each of them is there."""
        found = {each.atom: each for each in self._tensors_in(value, 0)}
        return tuple(found.values()) if 0 < len(found) <= LIMIT else nowhere()

    def _tensors_in(self, value: Value, depth: int) -> Iterator[Alternative]:
        """The places of the tensors in a container and in the containers in it."""
        for part in self.frame.heap.parts_of(value):
            if part.is_tensor:
                yield from part.places
            elif part.kind in _CONTAINERS and depth < 3:
                yield from self._tensors_in(part, depth + 1)

    def _is_module(self, identity: Identity) -> bool:
        thing = self.frame.heap.get(identity)
        return thing.kind in ("module", "unknown") or thing.home is not None

    def _named_by(self, each: Alternative, value: Value) -> Places:
        named = device_of(value)
        if named is None:
            return (Alternative(CPU, Origin("option", self.node, self.frame.path, "")),)
        if not named:
            return nowhere() if value.kind != "unknown" else ()
        is_there = any(test[0] == "none" and not outcome for test, outcome in each.condition)
        found = []
        for other in named:
            if other.atom == DEFAULT:
                if is_there:
                    continue
                other = other._replace(atom=CPU, origin=Origin("option", self.node, self.frame.path, ""))
            found.append(other)
        return tuple(found)

    # -- values

    def value(self, value: Value) -> Value:
        """A value of the function at this call."""
        if (
            value.path is not None
            and not value.objects
            and value.kind
            in ("unknown", "tensor", "tensors", "batch", "loader", "iterator", "bool", "number", "string")
        ):
            return self._given(value)
        if value.kind == "device" and value.path is not None and len(value.places) == 1:
            return self._device(value)
        if value.objects:
            return self._value_of_objects(value)
        if value.kind == "function" and isinstance(value.ref, tuple) and value.ref[1] is not None:
            return value._replace(ref=(value.ref[0], self.value(value.ref[1])))
        if value.test is not None:
            yes, no = self.condition(value.test[0]), self.condition(value.test[1])
            if yes is None or no is None:
                return value._replace(test=None, constant=yes is not None)
            value = value._replace(test=(yes, no))
        if value.missing is not None:
            left = [self.condition(each) for each in value.missing]
            value = value._replace(missing=(left[0], left[1]) if left[0] is not None and left[1] is not None else None)
        parts = tuple(self.value(part) for part in value.parts) if value.parts is not None else None
        kind: Kind = "tensor" if value.kind == "unknown" and self._comes_of_tensor(value) else value.kind
        places = self.places(value.places)
        if parts is None and kind == value.kind and places == value.places:
            return value
        return _new(Value, (kind, places, value[2], parts, *value[4:]))  # type: ignore[no-any-return]

    def _value_of_objects(self, value: Value) -> Value:
        if len(value.objects) == 1:
            objects = self._objects(value.objects[0])
        else:
            objects = tuple(dict.fromkeys(o for identity in value.objects for o in self._objects(identity)))
        if not objects:
            return something()
        if objects == value.objects and value.path is None:
            return value
        kind, places, _, parts, ref, constant, _, *rest = value
        return _new(Value, (kind, places, objects[:3], parts, ref, constant, None, *rest))  # type: ignore[no-any-return]

    def _comes_of_tensor(self, value: Value) -> bool:
        """Whether a value was computed of something that this call hands over as a tensor."""
        if len(value.places) != 1 or value.places[0].soft:
            return False
        each = value.places[0]
        paths = [atom.key for atom in (each.atom, each.also) if atom is not None and atom.tag == "place"]
        return any(found.is_tensor and found.proved for found in map(self.resolve, paths))

    def _given(self, value: Value) -> Value:
        assert value.path is not None
        actual = self.resolve(value.path)
        if value.kind == "tensor" and actual.kind == "unknown":
            return actual._replace(kind="tensor")
        return actual

    def _device(self, value: Value) -> Value:
        assert value.path is not None
        actual = self.resolve(value.path)
        if actual.kind in ("device", "none", "string"):
            return actual
        named = device_of(actual)
        return Value("device", named or (), path=actual.path)

    def _objects(self, identity: Identity) -> tuple[Identity, ...]:
        if identity[0] == "path":
            return self.resolve(identity[1]).objects or self._as_object(identity[1])
        found = self.identity(identity)
        return (found,) if found is not None else ()

    def _as_object(self, path: Path) -> tuple[Identity, ...]:
        value = self.resolve(path)
        if value.path is None or value.kind not in ("unknown", "module", "instance"):
            return ()
        return (("path", value.path),)

    def identity(self, identity: Identity) -> Identity | None:
        """An object of the function at this call. What the function made is another object at each call."""
        if identity[0] == "path":
            found = self._objects(identity)
            return found[0] if found else None
        known = self._copies.get(identity)
        if known is None:
            known = ("new", *self._place, _flat(identity))
            if known in self._copies.values():
                known = ("new", *self._place, identity)  # two calls in the function made one each
            self._copies[identity] = known
            thing = self.summary.heap.get(identity)
            self.frame.heap.put(known, thing.with_fields({}).at_home(None))
            fields = {entry: self.value(each) for entry, each in thing.fields.items()}
            home = self.places(thing.home) if thing.home is not None else None
            self.frame.heap.put(known, thing.with_fields(fields).at_home(home))
        return known

    # -- effects

    def apply(self) -> None:
        """Do to the caller's objects what the function does to what it is given."""
        self._conditions.clear()  # what follows asks for objects that are changed by then
        for identity, thing in effects_of(self.summary):
            self._apply(identity, thing)

    def _apply(self, identity: Identity, thing: Thing) -> None:
        target = self._objects(identity)
        if not target:
            return
        heap = self.frame.heap
        if thing.unread:
            heap.forget(target)  # what the function binds or moves after that is known again
        if thing.home is not None and not all(each.atom.tag == "home" for each in thing.home):
            heap.move(target, self.places(thing.home))
        for entry, value in thing.fields.items():
            heap.write(target, entry, self.value(self.summary.heap.settled(value) if not thing.registers else value))

    # -- constraints

    def constraints(self) -> list[Constraint]:
        """The constraints that this call leaves open, or breaks."""
        name = self.summary.function.name if self.summary.function is not None else ""
        step_ = Step(self.node, self.frame.path, name, self.frame.site, self.summary.function)
        found: list[Constraint] = []
        watch = self.frame.analyser.watch
        for each in self.summary.constraints:
            if each.how in LEAVING:
                continue  # judged where it leaves
            if not (_is_open(each.first.places) or _is_open(each.second.places)):
                if always_fails(each):
                    found += self._settled(each)
                continue
            if len(each.chain) >= CHAIN:
                self._tell(each, "depth")
                continue
            mapped = self._constraint(each)
            status = self._status(each, mapped)
            if status is not None:
                self.handed.append((id(each.node), status))
                if watch is not None:
                    watch.handed(each, self.node, self.frame.site, status)
            if mapped is not None:
                first, second = (
                    len(each.chain) + 1 if _is_open(before.places) and not _is_open(after.places) else known
                    for before, after, known in (
                        (each.first, mapped.first, each.closed[0]),
                        (each.second, mapped.second, each.closed[1]),
                    )
                )
                found.append(mapped._replace(chain=(step_, *each.chain), closed=(first, second)))
        return found

    def _settled(self, each: Constraint) -> Iterator[Constraint]:
        """An operation that fails at this call, and was judged where it stands."""
        condition = self.condition(each.condition)
        if condition is not None:
            joined, whole = both(self.frame.condition, condition)
            if whole and compatible(joined):
                yield each._replace(condition=joined, settled=True)

    def _status(self, each: Constraint, mapped: Constraint | None) -> str | None:
        """What this call hands to an operation: "host" for host data, "open" for what its own callers hand over."""
        if mapped is not None:
            return "open" if _is_open(mapped.first.places) or _is_open(mapped.second.places) else "known"
        for operand in (each.first, each.second):
            if _is_open(operand.places):
                places = self._kept_places(operand.places)
                if not places or not all(other.atom == CPU for other in places):
                    return None
        return "host"

    def _constraint(self, each: Constraint) -> Constraint | None:
        condition = self.condition(each.condition)
        if condition is None:
            return self._tell(each, "condition")
        for other in (*each.first.places, *each.second.places):
            if any(test[0] in ("device", "names") for test, _ in other.condition):
                self.condition(other.condition)  # it notes what is asked for, before the places are looked up
        first, second = self.operand(each.first, each), self.operand(each.second, each)
        if first is None or second is None:
            return self._tell(each, "operand")
        if first.places == second.places:
            return self._tell(each, "agree")
        joined, whole = both(self.frame.condition, condition)
        if not compatible(joined):
            return self._tell(each, "condition")
        if not _is_open(first.places) and not _is_open(second.places) and not can_clash(first.places, second.places):
            return self._tell(each, "agree")
        guessed = each.guessed and not (self._is_sure(first) and (each.how == "module" or self._is_sure(second)))
        return each._replace(first=first, second=second, condition=joined, soft=each.soft or not whole, guessed=guessed)

    def _is_sure(self, operand: Operand) -> bool:
        """Whether this call proves that an operand is a tensor, or a module of torch."""
        return operand.kind in ("module", *TENSORS) and operand.proved

    def _tell(self, each: Constraint, why: Dropped) -> Constraint | None:
        """Nothing is handed on: tell who watches why."""
        if self.frame.analyser.watch is not None:
            self.frame.analyser.watch.dropped(each, self.node, self.frame.site, why)
        return None

    def operand(self, operand: Operand, constraint: Constraint) -> Operand | None:
        self._as_module = constraint.how == "module" and operand is constraint.first
        places = self._kept_places(operand.places)
        self._as_module = False
        kind, proved, path = operand.kind, operand.proved, operand.path
        if path is not None:
            actual = self.resolve(path)
            if (
                actual.kind in ("number", "string", "none", "bool", "array", "size", "device", "dtype")
                and kind != "module"
            ):
                return None
            if kind == "unknown" and actual.objects and constraint.how == "module":
                if self.frame.is_stateless(actual):
                    return None
                classes = [self.frame.heap.get(each).class_ for each in actual.objects]
                kind, proved = "module", all(map(is_torch_module, classes))
            elif kind == "unknown" and actual.kind != "unknown":
                kind, proved = actual.kind, actual.proved
            elif kind == "module" and actual.objects and self.frame.is_stateless(actual):
                return None
            path = actual.path
        return Operand(operand.node, kind, places, proved, path) if places else None


def can_clash(a: Places, b: Places) -> bool:
    return any(clash(x.atom, y.atom) is not None for x in a for y in b)


def _is_open(places: Places) -> bool:
    for each in places:
        tag, key = each.atom
        if (tag == "place" or tag == "names") and not key[0].startswith("%"):
            return True
    return False


def _is_path(subject: Any) -> bool:
    return isinstance(subject, tuple) and bool(subject) and all(isinstance(each, str) for each in subject)


def _flat(identity: Identity) -> Identity:
    """An identity with at most one call in it: what is made behind more calls is told apart by its own place alone."""
    return identity if len(identity) != 4 or not isinstance(identity[3], tuple) else identity[3]


def _answer(test: tuple[Any, ...], value: Value) -> bool | None:
    """What a test says of a value that is known."""
    if test[0] == "none":
        if value.kind == "none":
            return True
        if value.kind == "device" and value.places and (value.path is None or value.path[-1] == ".device"):
            if not any(each.atom == DEFAULT or each.condition for each in value.places):
                return False
        is_known = value.kind in (
            "tensor",
            "module",
            "instance",
            "list",
            "dict",
            "number",
            "string",
            "bool",
            "tuple",
            "function",
            "array",
        )
        return False if is_known and value.path is None and not any(each.condition for each in value.places) else None
    if test[0] == "truth":
        if value.kind == "none":
            return False
        if value.kind in ("bool", "number", "string") and value.constant is not None:
            return bool(value.constant)
        if value.kind == "device" and value.path is None and value.places:
            return None if any(each.atom == DEFAULT for each in value.places) else True
        return True if value.kind in ("module", "instance", "function") and value.path is None else None
    if test[0] == "type" and test[2] == DATA:
        if value.kind in ("list", "tuple", "number", "string", "bool", "array", "none", "size"):
            return True
        return False if value.is_tensor else None
    if test[0] == "order" and isinstance(value.constant, (int, float)):
        return is_ordered(value.constant, test[2], test[3])
    if test[0] == "equal" and value.constant is not None:
        return bool(repr(value.constant) == test[2])
    return None


def _is_loaded(places: Places) -> bool:
    """Whether a value came out of a file: its parts are where it was loaded to."""
    return bool(places) and all(each.origin is not None and each.origin.why == "loaded" for each in places)


def step(frame: Frame, value: Value, entry: str, path: Path) -> Value:
    """One more entry of an access path."""
    if value.objects:
        found = frame.heap.field(value.objects[0], entry)
        if found is None and entry == ".device" and frame.heap.get(value.objects[0]).kind == "module":
            return Value("device", frame.home(value))
        if found is None and value.objects[0][0] == "path":
            found = given((*value.objects[0][1], entry))
        if found is None and isinstance(frame.heap.get(value.objects[0]).node, ast.ClassDef):
            found = given(path)  # something that a base keeps, of whatever object this is
        return found if found is not None else something()
    if value.kind == "tuple" and value.parts and entry == "[]":
        return merge_all(value.parts) or NOTHING
    if value.kind == "tuple" and value.parts is not None:
        index = entry[1:-1]
        if index.lstrip("-").isdigit() and -len(value.parts) <= int(index) < len(value.parts):
            return value.parts[int(index)]
    if value.is_tensor and entry == ".device":
        return Value("device", value.places)
    if value.is_tensor:
        if not entry.startswith("["):
            return NUMBER
        return value._replace(kind="tensor", places=with_zero_dim(value.places, None), path=None)
    if value.kind == "unknown" and value.path is None and _is_loaded(value.places):
        return value
    if value.kind == "loader" and entry.startswith("[") and value.parts:
        return value.parts[0]
    if value.kind == "iterator" and value.parts:
        return value.parts[0]
    if value.path is not None and value.kind in ("unknown", "module", "instance"):
        return given((*value.path, entry))
    return NONE if value.kind == "none" else something()
