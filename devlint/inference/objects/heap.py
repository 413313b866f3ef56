"""The heap: what lists, dicts, modules and other objects hold, where modules are, and what calls do to both.

A `Thing` is one mutable object, or stands for several from one place. Things are never changed: the heap binds an identity
to another one. An identity ("path", path) stands for what a function was given; its fields that nobody wrote are those of
its template, or further given values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from devlint.inference.library.protocols import is_torch_module
from devlint.inference.terms.conditions import ALWAYS, Condition, of_a_round
from devlint.inference.terms.places import (
    DEPTH,
    Alternative,
    Path,
    Places,
    home_of,
    join,
    nowhere,
    place_of,
    single,
    zero_dim_of,
)
from devlint.inference.terms.values import (
    NOTHING,
    Identity,
    Kind,
    Value,
    given,
    given_device,
    lost,
    merge,
    merge_all,
    placed,
    something,
)

if TYPE_CHECKING:
    import ast

#: Makes a named tuple of all its parts.
_new: Final[Callable[..., Any]] = tuple.__new__

#: The field that stands for any item of a list, a dict or a container of modules.
ITEM = "[]"


class Thing(NamedTuple):
    """One mutable object.

    `home`: where the parameters of a module are; None: where they were when the function was entered. `fields`: attributes
    (`.weight`) and items (`[0]`, `['y']`, `[]`). `template`: what its other fields are like. `many`: it stands for several.
    `whole`: it has no other fields. `stateless`: a module without parameters and buffers. `registers`: it moves
    its parts with itself. `unread`: a call that cannot be read may have changed it.
    """

    kind: Kind
    class_: Any = None
    home: Places | None = None
    fields: dict[str, Value] = {}  # noqa: RUF012 (a heap never changes a thing)
    template: Template | None = None
    many: bool = False
    whole: bool = False
    stateless: bool = False
    node: ast.AST | None = None
    registers: bool = False
    unread: bool = False

    def with_field(self, entry: str, value: Value) -> Thing:
        return self.with_fields({**self.fields, entry: value})

    def with_fields(self, fields: dict[str, Value]) -> Thing:
        """The same thing with other fields. It is asked for so often that `_replace` counts."""
        return _new(Thing, (self[0], self[1], self[2], fields, *self[4:]))  # type: ignore[no-any-return]

    def at_home(self, home: Places | None) -> Thing:
        """The same thing somewhere else."""
        return _new(Thing, (self[0], self[1], home, *self[3:]))  # type: ignore[no-any-return]


class Template(NamedTuple):
    """What something given is like: a thing of another heap."""

    thing: Thing
    heap: Heap


@dataclass(slots=True)
class Heap:
    """Things by identity.

    `narrowed`: what a test says of a field on this path alone, by the identity and the entry. Nothing was written.
    """

    things: dict[Identity, Thing] = field(default_factory=dict)
    narrowed: dict[tuple[Identity, str], Value] = field(default_factory=dict)

    def copy(self) -> Heap:
        return Heap(dict(self.things), dict(self.narrowed))

    def get(self, identity: Identity) -> Thing:
        """A thing. One that was given and not touched yet has no fields of its own."""
        known = self.things.get(identity)
        return known if known is not None else Thing("unknown")

    def put(self, identity: Identity, thing: Thing) -> None:
        if self.narrowed:
            self.narrowed = {key: value for key, value in self.narrowed.items() if key[0] != identity}
        self.things[identity] = thing

    def narrow(self, objects: tuple[Identity, ...], entry: str, value: Value) -> None:
        """From here on a field is known to be this, until it is written or paths meet."""
        for identity in objects:
            self.narrowed[identity, entry] = value

    # -- reading

    def field(self, identity: Identity, entry: str) -> Value | None:
        """An attribute or item of a thing; None where the thing has none of that name, as far as is known."""
        if (identity, entry) in self.narrowed:
            return self.settled(self.narrowed[identity, entry])
        thing = self.get(identity)
        value = thing.fields.get(entry)
        if value is None and entry.startswith("[") and thing.kind not in ("tuple",):
            value = self._any_item(thing, entry)
        if value is None and thing.template is not None:
            value = self._of_template(identity, thing.template, entry)
        return self.settled(value) if value is not None else None

    def _any_item(self, thing: Thing, entry: str) -> Value | None:
        """An item of which the key is not known, or was not stored under its own key."""
        if entry != ITEM:
            return thing.fields.get(ITEM)
        return merge_all(value for key, value in thing.fields.items() if key.startswith("["))

    def _of_template(self, identity: Identity, template: Template, entry: str) -> Value | None:
        value = template.thing.fields.get(entry)
        source = template.heap
        if value is None and entry.startswith("["):
            value = source._any_item(template.thing, entry)
        if value is None and template.thing.template is not None:
            source = Heap()  # a template stays what it is
            value = source._of_template(identity, template.thing.template, entry)
        if value is None:
            return None
        if identity[0] == "path" and len(identity[1]) < DEPTH:
            return self.symbolic(
                value,
                (*identity[1], entry),
                source,
                registered_in=identity if template.thing.registers else None,
            )
        return something()._replace(kind=value.kind)

    def symbolic(self, value: Value, path: Path, source: Heap, registered_in: Identity | None = None) -> Value:
        """A value like another one, at an access path. It is where that path is, wherever the other one was.

        `registered_in`: the module that has it as a parameter, a buffer or a part.
        """
        if value.objects:
            identity: Identity = ("path", path)
            if identity not in self.things:
                like = source.get(value.objects[0])
                if len(value.objects) > 1:
                    like = Thing(value.kind, many=like.many)
                home = single(home_of(registered_in)) if registered_in is not None and like.kind == "module" else None
                template = Template(like, source)
                self.things[identity] = Thing(
                    like.kind,
                    like.class_,
                    home,
                    {},
                    template,
                    like.many,
                    like.whole,
                    like.stateless,
                    like.node,
                    like.registers,
                )
            return value._replace(objects=(identity,), places=(), path=path)
        if value.kind == "tuple" and value.parts is not None:
            parts = tuple(self.symbolic(part, (*path, f"[{i}]"), source) for i, part in enumerate(value.parts))
            return value._replace(parts=parts)
        if value.kind == "device":
            return given_device(path)
        if value.kind in ("tensor", "tensors", "batch", "unknown", "loader", "iterator", "distribution", "generator"):
            is_registered = any(each.atom.tag == "home" for each in value.places)
            if is_registered and registered_in is not None:
                return value._replace(places=single(home_of(registered_in), zero_dim=zero_dim_of(value.places)))
            if value.kind in ("loader", "iterator"):
                return value
            places = single(place_of(path), zero_dim=zero_dim_of(value.places))
            ref = value.ref if isinstance(value.ref, str) else None
            return Value(value.kind, places, path=path, proved=value.proved, parts=None, ref=ref)
        if value.kind in ("bool", "number", "string") and value.constant is None:
            return value._replace(path=path, test=None)
        return value

    def home(self, identity: Identity) -> Places:
        """Where the parameters of a module are."""
        home = self.get(identity).home
        if home is None:
            return single(place_of(identity[1])) if identity[0] == "path" else nowhere()
        if identity[0] == "path" and self._is_unmoved_part(home):
            return single(place_of(identity[1]))
        return self.resolve(home)

    def _is_unmoved_part(self, home: Places) -> bool:
        """Whether a part of something given is where it was: nothing that registers it was moved."""
        while home is not None and len(home) == 1 and home[0].atom.tag == "home":
            owner = self.get(home[0].atom.key).home
            if owner is None:
                return bool(home[0].atom.key[0] == "path")
            home = owner
        return False

    def resolve(self, places: Places) -> Places:
        """Places without the homes of modules: each is where the module is now."""
        for each in places:
            if each.atom.tag == "home":
                break
        else:
            return places
        found: list[Alternative] = []
        for each in places:
            if each.atom.tag != "home":
                found.append(each)
                continue
            for other in self.home(each.atom.key):
                found.append(
                    other._replace(
                        condition=other.condition | each.condition,
                        soft=other.soft or each.soft,
                        zero_dim=each.zero_dim,
                    )
                )
        return tuple(found)

    def settled(self, value: Value) -> Value:
        """A value with the homes of modules resolved."""
        places = self.resolve(value.places)
        return value if places is value.places else placed(value, places)

    def gather(self, identity: Identity, seen: set[Identity] | None = None) -> None:
        """The parts that a module registers are where the module is, wherever its constructor made them."""
        seen = seen if seen is not None else set()
        for value in self.get(identity).fields.values():
            for part in value.objects if value.kind == "module" else ():
                if part not in seen:
                    seen.add(part)
                    self.put(part, self.get(part).at_home(single(home_of(identity))))
                    self.gather(part, seen)

    def has_layers(self, identity: Identity, depth: int = 0) -> bool:
        """Whether a module has a layer of torch with parameters: some of its parameters have dimensions then."""
        thing = self.get(identity)
        if is_torch_module(thing.class_) and not thing.stateless and not thing.fields:
            return True
        fields = [*thing.fields.values(), *(thing.template.thing.fields.values() if thing.template is not None else ())]
        heap = self if thing.fields or thing.template is None else thing.template.heap
        return depth < 5 and any(
            heap.has_layers(part, depth + 1) for each in fields for part in each.objects if each.kind == "module"
        )

    def gives_dimensions(self, identity: Identity) -> bool:
        """Whether a layer of torch, or a sequence that ends in one, gives tensors that have dimensions."""
        thing = self.get(identity)
        if not is_torch_module(thing.class_) or thing.class_.endswith("Loss"):
            return False
        parts = [each for entry, each in thing.fields.items() if entry.startswith("[")]
        if not thing.class_.endswith("Sequential"):
            return not parts and not thing.stateless
        last = parts[-1].objects if parts else ()
        return bool(last) and all(self.gives_dimensions(part) for part in last)

    # -- writing

    def write(self, objects: tuple[Identity, ...], entry: str, value: Value) -> None:
        """Bind a field. One of several objects, or an object that stands for several, may also keep what it had."""
        strong = len(objects) == 1 and not self.get(objects[0]).many
        for identity in objects:
            thing = self.get(identity)
            if entry == ITEM:
                thing = thing._replace(
                    fields={key: self._perhaps(key, old, value) for key, old in thing.fields.items()}
                )
            old_value = thing.fields.get(entry) if entry == ITEM or not strong else None
            self.put(identity, thing.with_field(entry, value if old_value is None else merge(old_value, value)))

    def _perhaps(self, key: str, old: Value, new: Value) -> Value:
        """An item that a store under an unknown key may have replaced: it is nowhere known, unless both are at one place."""
        if not key.startswith("[") or key == ITEM or not old.places:
            return old
        atoms = {each.atom for each in (*old.places, *new.places)}
        return old if len(atoms) <= 1 else lost(old)

    def add(self, objects: tuple[Identity, ...], value: Value) -> None:
        """Put one more item into a list or a set. The others stay what they are."""
        for identity in objects:
            thing = self.get(identity)
            old = thing.fields.get(ITEM)
            self.put(identity, thing.with_field(ITEM, value if old is None else merge(old, value)))

    def leave_round(self) -> None:
        """After a round of a loop, a list may hold items of any round, whatever its tests said."""
        for identity, thing in list(self.things.items()):
            item = thing.fields.get(ITEM) if thing.kind == "list" else None
            if item is not None and any(of_a_round(each.condition) for each in item.places):
                found: Places = ()
                for each in item.places:
                    single_ = (each._replace(condition=each.condition - of_a_round(each.condition)),)
                    found = join(found, single_) if found else single_
                self.put(identity, thing.with_field(ITEM, item._replace(places=found)))

    def shift(self, objects: tuple[Identity, ...]) -> None:
        """The items of a list may have other numbers from now on."""
        for identity in objects:
            thing = self.get(identity)
            found = self._any_item(thing, ITEM)
            fields = {entry: value for entry, value in thing.fields.items() if not entry.startswith("[")}
            self.put(identity, thing._replace(fields={**fields, **({ITEM: found} if found is not None else {})}))

    def move(self, objects: tuple[Identity, ...], places: Places) -> None:
        """Move modules, with their parts, in place. What is only perhaps moved is nowhere known."""
        strong = len(objects) == 1 and not self.get(objects[0]).many
        for identity in objects:
            self._move(identity, places if strong else nowhere(), set())

    def _move(self, identity: Identity, places: Places, seen: set[Identity]) -> None:
        if identity in seen:
            return
        seen.add(identity)
        thing = self.get(identity)
        is_sure = not thing.many or all(p.atom.tag == "unknown" for p in places)
        self.put(identity, thing.at_home(places if is_sure else nowhere()))
        if thing.kind not in ("module", "list", "dict", "unknown"):
            return
        for value in thing.fields.values():
            for part in value.objects if value.kind == "module" else ():
                self._move(part, places, seen)

    def forget(self, objects: tuple[Identity, ...], seen: set[Identity] | None = None) -> None:
        """A call that cannot be read got these objects: it may have moved all modules and rewritten all fields it can reach."""
        seen = seen if seen is not None else set()
        for identity in objects:
            if identity in seen:
                continue
            seen.add(identity)
            thing = self.get(identity)
            fields = {entry: self._forgotten(value, seen) for entry, value in thing.fields.items()}
            template = None if thing.kind in ("list", "dict") else thing.template
            kind, class_, _, _, _, many, _, stateless, node, registers, _ = thing
            made = (kind, class_, nowhere(), fields, template, many, False, stateless, node, registers, True)
            self.put(identity, _new(Thing, made))
            if thing.template is not None:
                self._forget_template(identity, thing.template, seen)

    def _forget_template(self, identity: Identity, template: Template, seen: set[Identity]) -> None:
        for entry in template.thing.fields:
            if entry not in self.get(identity).fields:
                value = self._of_template(identity, template, entry)
                if value is not None:
                    self.put(identity, self.get(identity).with_field(entry, self._forgotten(value, seen)))

    def _forgotten(self, value: Value, seen: set[Identity]) -> Value:
        if value.objects:
            self.forget(value.objects, seen)
            return value
        if value.kind in ("tensor", "batch", "tensors", "unknown", "device", "none"):
            kind = "unknown" if value.kind in ("none", "device") else value.kind
            return _new(Value, (kind, nowhere(), (), None, None, None, None, value.proved, None, None))  # type: ignore[no-any-return]
        return value

    def reachable(self, value: Value) -> Iterator[Identity]:
        """The objects that a value is or holds."""
        pending = [*value.objects, *(o for part in value.parts or () for o in part.objects)]
        seen: set[Identity] = set()
        while pending:
            identity = pending.pop()
            if identity in seen:
                continue
            seen.add(identity)
            yield identity
            for each in self.get(identity).fields.values():
                pending.extend(each.objects)

    def parts_of(self, value: Value) -> list[Value]:
        """The items of a tuple, a list or a dict, as far as they are known."""
        if value.parts is not None:
            return list(value.parts)
        found = []
        for identity in value.objects:
            thing = self.get(identity)
            if thing.kind in ("list", "dict"):
                found += [self.settled(each) for key, each in thing.fields.items() if key.startswith("[")]
                if not thing.fields and thing.template is not None:
                    item = self.field(identity, ITEM)
                    if item is None and identity[0] == "path" and len(identity[1]) < DEPTH:
                        item = given((*identity[1], ITEM))
                    found += [item] if item is not None else []
        return found


def is_touched(thing: Thing) -> bool:
    """Whether a function did something to a thing that it was given."""
    moved = thing.home is not None and not all(each.atom.tag == "home" for each in thing.home)
    return bool(thing.fields) or moved or thing.unread


def merge_heaps(a: Heap, b: Heap, if_a: Condition = ALWAYS, if_b: Condition = ALWAYS) -> Heap:
    """The heap after two paths."""
    if a is b:
        return a
    things: dict[Identity, Thing] = {}
    for identity in {**a.things, **b.things}:
        x, y = a.things.get(identity), b.things.get(identity)
        if x is y or y is None or x is None:
            things[identity] = x if y is None else y  # type: ignore[assignment]
            if x is not y and identity[0] == "path":
                one, other = (x or y), (y or x)
                assert one is not None and other is not None
                things[identity] = _merge_touched(identity, x, y, if_a, if_b)
        else:
            things[identity] = merge_things(identity, x, y, if_a, if_b)
    return Heap(things, {key: value for key, value in a.narrowed.items() if b.narrowed.get(key) == value})


def merge_values(
    a: Value | None,
    b: Value | None,
    of_a: Heap,
    of_b: Heap,
    to: Heap,
    if_a: Condition = ALWAYS,
    if_b: Condition = ALWAYS,
) -> Value:
    """What a value is after two paths. What is given, or else an object that the code makes, is like that object."""
    if a is not None and b is not None:
        for x, y, heap in ((a, b, of_b), (b, a, of_a)):
            if x.kind == "unknown" and x.path is not None and y.kind in ("instance", "module") and y.objects:
                return to.symbolic(y, x.path, heap)
    return merge(a, b, if_a, if_b)


def _merge_touched(identity: Identity, x: Thing | None, y: Thing | None, if_x: Condition, if_y: Condition) -> Thing:
    """Something given that one path only touched."""
    known = x if x is not None else y
    assert known is not None
    untouched = known._replace(fields={}, home=known.home if known.home is not None and _is_own_home(known) else None)
    return merge_things(identity, x or untouched, y or untouched, if_x, if_y)


def _is_own_home(thing: Thing) -> bool:
    return thing.home is not None and all(each.atom.tag == "home" for each in thing.home)


def merge_things(identity: Identity, x: Thing, y: Thing, if_x: Condition = ALWAYS, if_y: Condition = ALWAYS) -> Thing:
    if x == y:
        return x
    home = x.home
    if x.home != y.home:
        a, b = _home_of(identity, x), _home_of(identity, y)
        home = nowhere() if _is_unknown(a) or _is_unknown(b) else join(a, b, if_x, if_y)
    fields = dict(x.fields)
    for entry in {**x.fields, **y.fields}:
        p, q = x.fields.get(entry), y.fields.get(entry)
        if p is None or q is None:
            known, condition = (p, if_x) if p is not None else (q, if_y)
            assert known is not None
            if x.kind in ("list", "dict") or identity[0] != "path":
                fields[entry] = known
            else:
                fields[entry] = merge(
                    known,
                    _untouched(identity, x if p is None else y, entry),
                    condition,
                    if_y if p is not None else if_x,
                )
        else:
            fields[entry] = merge(p, q, if_x, if_y)
    kind = x.kind if x.kind == y.kind else "unknown"
    return Thing(
        kind, x.class_ if x.class_ is y.class_ or x.class_ == y.class_ else None, home, fields, x.template or y.template,
        x.many or y.many, x.whole and y.whole, x.stateless and y.stateless, x.node, x.registers and y.registers,
        x.unread or y.unread,
    )  # fmt: skip


def _untouched(identity: Identity, thing: Thing, entry: str) -> Value:
    """A field of something given, on the path that does not write it."""
    if thing.whole:
        return NOTHING
    if thing.template is not None:
        heap = Heap({identity: thing})
        value = heap._of_template(identity, thing.template, entry)
        if value is not None:
            return value
    return given((*identity[1], entry))


def _home_of(identity: Identity, thing: Thing) -> Places:
    if thing.home is not None:
        return thing.home
    return single(place_of(identity[1])) if identity[0] == "path" else nowhere()


def _is_unknown(places: Places) -> bool:
    return any(each.atom.tag == "unknown" for each in places)
