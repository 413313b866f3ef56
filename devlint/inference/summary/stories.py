"""The story of a class: what an object of it is like after its constructor, and what its methods may change later.

A method is read on such an object. Whether a field is where the constructor put it is asked only when a constraint is
judged: by then all methods are read.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from devlint.inference.objects.heap import Heap, Thing, is_touched
from devlint.inference.program.definitions import Class, Function, binding_of
from devlint.inference.summary import own_apply
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.frame import Frame, State, merge_states
from devlint.inference.summary.model import Site, Summary
from devlint.inference.terms.places import Alternative, Places, named_by, nowhere, place_of, single
from devlint.inference.terms.values import Identity, Value, given, given_device, lost

if TYPE_CHECKING:
    from devlint.inference.summary.analyser import Analyser


class Story(NamedTuple):
    """An object of a class. `frame` is where it was made, with symbolic arguments for its constructor."""

    thing: Thing
    heap: Heap
    me: Value
    frame: Frame


def story_of(analyser: Analyser, class_: Class) -> Story | None:
    """The story of a class as its methods see it; None while it is being found."""
    key, mark, shared = id(class_), ("story", class_), analyser.shared
    if key in analyser.stories:
        if shared is not None:
            shared.reads(mark)
        return analyser.stories[key]
    init = class_.method("__init__")
    if init is not None and analyser.is_running(init, class_):
        return None  # its constructor asks for one of its own methods
    if shared is not None:
        if shared.take(analyser, mark):
            return analyser.stories[key]
        shared.start(mark, class_.file.path)
    try:
        story = _find(analyser, class_)
    except BaseException:
        if shared is not None:
            shared.stop()
        raise
    if shared is not None:
        shared.end(story)
    return story


def _find(analyser: Analyser, class_: Class) -> Story:
    key = id(class_)
    analyser.stories[key] = None
    first = _construct(analyser, class_)
    analyser.stories[key] = first
    story = _with_later_writes(analyser, class_, first)
    if story is not first:
        for known in analyser.methods.get(class_, []):
            summary = analyser.summaries.get(known)
            if summary is not None and summary.function is not None and summary.function.name != "__init__":
                analyser.remove(known)
        analyser.stories[key] = story
    return story


def _construct(analyser: Analyser, class_: Class) -> Story:
    """Make an object with what the constructor may be given."""
    frame = Frame(
        analyser,
        class_.file,
        Function(class_.file, _nothing(class_)),
        class_,
        class_.outer,
        Site(None, class_, class_.file.path, class_.file.tree),
    )
    init = class_.method("__init__")
    arguments = Arguments()
    if init is not None:
        arguments = _symbolic(analyser, frame, init, class_.name)
    elif class_.is_data:
        arguments = _data_arguments(analyser, frame, class_)
    me = analyser.construct(frame, class_, arguments, class_.node)
    if class_.is_module:
        _bring_home(frame, me.objects[0])
    _unfix(frame, class_, me.objects[0])
    return Story(frame.heap.get(me.objects[0]), frame.heap, me, frame)


def _unfix(frame: Frame, class_: Class, identity: Identity) -> None:
    """A field that a method binds again need not be the constant that the constructor put there."""
    names = {"." + name for method in _later_methods(class_) for name in stored_by(method)}
    thing = frame.heap.get(identity)
    fields = {
        entry: value._replace(constant=None, test=None) if entry in names and value.constant is not None else value
        for entry, value in thing.fields.items()
    }
    frame.heap.put(identity, thing._replace(fields=fields))


def _later_methods(class_: Class) -> Iterator[Function]:
    """The methods that run after the constructor."""
    for base in class_.lineage:
        if isinstance(base, Class):
            yield from (method for name, method in base.methods.items() if name != "__init__")
            yield from base.setters.values()


def release_parts(frame: Frame, identity: Identity) -> None:
    """A class whose base cannot be read may be a module: who moves it moves its parts. Those that it moved itself stay."""
    for value in frame.heap.get(identity).fields.values():
        for part in value.objects:
            thing = frame.heap.get(part)
            if thing.home is not None and all(p.origin is not None and p.origin.why == "module" for p in thing.home):
                frame.heap.put(part, thing._replace(home=nowhere()))


def _bring_home(frame: Frame, identity: Identity) -> None:
    """A module is where its user moves it, with all that it registers."""
    frame.heap.gather(identity)
    frame.heap.put(identity, frame.heap.get(identity)._replace(home=single(place_of(("self",)))))


def _nothing(class_: Class) -> ast.Lambda:
    empty = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    return ast.copy_location(ast.Lambda(empty, ast.Constant(None)), class_.node)


def root_of(class_: Class, name: str) -> str:
    """The root of the access paths of what a constructor is given."""
    return f"{class_.name}:{name}"


def _symbolic(analyser: Analyser, frame: Frame, init: Function, prefix: str) -> Arguments:
    """Arguments that stand for whatever is given, of the kinds that the function tells."""
    summary = analyser.summary(init, frame.receiver)
    found = Arguments()
    for name in [each.arg for each in init.all_parameters()][1:]:
        known = summary.given.get(name) if summary is not None else None
        class_ = _only_class(analyser, frame, init, name) if known is None or known.kind == "unknown" else None
        if class_ is not None:
            found.named[name] = (init.node, analyser.instance_like(frame, class_, (f"{prefix}:{name}",)))  # type: ignore[assignment]
            continue
        found.named[name] = (
            init.node,
            _renamed(frame, known, (f"{prefix}:{name}",), summary.heap if summary is not None else frame.heap),
        )  # type: ignore[assignment]
    return found


def _only_class(analyser: Analyser, frame: Frame, init: Function, name: str) -> Class | None:
    """The class of what every constructor call that was read gives for an argument."""
    if init.name != "__init__" or frame.receiver is None:
        return None
    found = analyser.only_class(frame.receiver, name)
    if analyser.shared is not None:
        analyser.shared.note("asks", frame.receiver, name, found)
    return found


def _renamed(frame: Frame, value: Value | None, path: tuple[str, ...], source: Heap) -> Value:
    if value is None:
        return given(path)
    if value.kind == "device":
        places: Places = tuple(
            Alternative(named_by(path) if each.atom.tag == "names" else each.atom, None, _about(each, path))
            for each in value.places
        )
        return Value("device", places, path=path)
    if value.objects:
        return frame.heap.symbolic(value, path, source)
    if value.kind in ("unknown", "tensor"):
        return Value(value.kind, single(place_of(path)), path=path)
    return value._replace(path=path)


def _about(each: Alternative, path: tuple[str, ...]) -> frozenset[tuple[tuple[object, ...], bool]]:
    return frozenset(((test[0], path, *test[2:]), outcome) for test, outcome in each.condition)


def _data_arguments(analyser: Analyser, frame: Frame, class_: Class) -> Arguments:
    from devlint.inference.summary.parameters import declared

    found = Arguments()
    for name, annotation, _ in class_.data_fields:
        says = declared(class_.file, annotation)
        path = (root_of(class_, name),)
        if says.kind == "device":
            value = given_device(path)
        elif says.kind == "tensor":
            value = Value("tensor", single(place_of(path)), path=path)
        elif says.kind == "instance" and says.class_ is not None and says.class_ is not class_:
            value = analyser.instance_like(frame, says.class_, path)
        elif says.kind in ("number", "bool", "string"):
            value = Value(says.kind, path=path)
        else:
            value = given(path)
        found.named[name] = (annotation, value)
    return found


# -- what methods bind later


def _with_later_writes(analyser: Analyser, class_: Class, first: Story) -> Story:
    """The object with the fields that only other methods bind."""
    missing = _bound_later(class_, first)
    if (
        not missing or class_.family == "unread"
    ):  # a base that cannot be read may call these methods, and more after them
        return first
    state = first.frame.state
    for method, names in missing.items():
        before = state.copy()
        first.frame.state = state.copy()
        first.frame.condition = frozenset()
        _run(analyser, first, method)
        after = first.frame.state
        state = _keep(before, after, first.me.objects[0], names)
    first.frame.state = state
    return first._replace(thing=state.heap.get(first.me.objects[0]), heap=state.heap)


def _keep(before: State, after: State, identity: Identity, names: set[str]) -> State:
    """The state before, with some fields of the state after."""
    thing, new = before.heap.get(identity), after.heap.get(identity)
    fields = dict(thing.fields)
    for name in names:
        value = new.fields.get("." + name)
        if value is not None:
            known = fields.get("." + name)
            fields["." + name] = (
                value if known is None or known.kind == "none" or known == value else _either(known, value)
            )
    things = dict(before.heap.things)
    for other, made in after.heap.things.items():
        things.setdefault(other, made)
    things[identity] = thing._replace(fields=fields)
    return State(before.names, Heap(things))


def _either(a: Value, b: Value) -> Value:
    from devlint.inference.terms.values import merge

    value = merge(a, b)
    atoms = {each.atom for each in value.places}
    return value if len(atoms) <= 1 else value._replace(places=nowhere(), path=None)


def _bound_later(class_: Class, story: Story) -> dict[Function, set[str]]:
    """The methods that bind fields, with the names of those that the constructor leaves open."""
    found: dict[Function, set[str]] = {}
    fields = story.thing.fields
    for base in class_.lineage:
        if not isinstance(base, Class):
            continue
        for name, method in base.methods.items():
            if name == "__init__" or class_.methods.get(name, method) is not method or binding_of(method) != "instance":
                continue
            names = {
                field
                for field in stored_by(method)
                if "." + field not in fields or fields["." + field].kind in ("none", "unknown", "list", "dict")
            }
            if names:
                found[method] = names
    return found


def stored_by(method: Function) -> frozenset[str]:
    """The attributes of its object that a method binds."""
    return method.file.once(("stored", id(method.node)), lambda: frozenset(_stored_by(method)))


def _stored_by(method: Function) -> Iterator[str]:
    names = method.positional()
    for node in method.file.nodes_of(method.node) if names else ():
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
            if node.value.id == names[0]:
                yield node.attr


def _run(analyser: Analyser, story: Story, method: Function) -> None:
    """Call a method on the object, with whatever it may be given."""
    if analyser.summary(method, story.frame.receiver) is None:
        return
    arguments = _symbolic(analyser, story.frame, method, f"{method.owner.name if method.owner else ''}.{method.name}")
    arguments.named = {name: (story.frame.file.tree, value) for name, (_, value) in arguments.named.items()}  # type: ignore[misc]
    analyser.imagine(story.frame, method, story.me, arguments, method.node)


# -- what a judgement may take for granted


def changes_itself(summary: Summary) -> bool:
    """Whether a method binds fields of its object, or moves what it holds."""
    return any(
        identity[0] == "path" and identity[1][0] == "self" and is_touched(thing)
        for identity, thing in summary.heap.things.items()
    )


class Change(NamedTuple):
    """What a method makes of one object. `moved`: whether it moves it. `fields`: those that it binds again."""

    identity: Identity
    moved: bool
    fields: tuple[tuple[str, Value], ...]


class Settled:
    """An object when its methods may have run. `changes`: by method, what a call of it makes of the objects."""

    def __init__(self, story: Story, changes: dict[str, list[Change]]) -> None:
        self.story = story
        self.changes = changes
        self._after_all: Heap | None = None

    def before(self, method: Function) -> State:
        """What holds when a method is called: any other one may have run before. What these move is nowhere known."""
        if method.name in self.changes:
            return State({}, self._after(method.name))
        if self._after_all is None:
            self._after_all = self._after(None)
        return State({}, self._after_all.copy())

    def _after(self, left_out: str | None) -> Heap:
        """The heap after all methods but one."""
        heap = self.story.heap.copy()
        for name, changes in self.changes.items():
            if name != left_out:
                for change in changes:
                    self._mark(change, heap)
        return heap

    def _mark(self, change: Change, heap: Heap) -> None:
        known = heap.things[change.identity]
        if change.fields:
            thing = self.story.heap.things[change.identity]
            fields = dict(known.fields)
            for entry, value in change.fields:
                fields[entry] = _unsure(known.fields.get(entry, thing.fields[entry]), value)
            known = known.with_fields(fields)
        heap.things[change.identity] = known.at_home(nowhere()) if change.moved else known


def settled(analyser: Analyser, class_: Class) -> Settled | None:
    """The object of a class, and what each of its methods makes of it."""
    key = id(class_)
    if key not in analyser.settled:
        analyser.settled[key] = _settle(analyser, class_)
    return analyser.settled[key]


def _settle(analyser: Analyser, class_: Class) -> Settled | None:
    story = story_of(analyser, class_)
    if story is None:
        return None
    frame = story.frame
    changes: dict[str, list[Change]] = {}
    for each in class_.lineage:
        if not isinstance(each, Class):
            continue
        for name, method in each.methods.items():
            if (
                name == "__init__"
                or class_.method(name) is not method
                or binding_of(method) not in ("instance", "setter")
            ):
                continue
            summary = analyser.summary(method, class_)
            if summary is None or not changes_itself(summary):
                continue
            frame.state = State({}, story.heap.copy())
            frame.condition = frozenset()
            _run(analyser, story, method)
            changes[name] = list(_changes(story.heap, frame.state.heap))
    frame.state = State({}, story.heap.copy())
    if class_.is_module and own_apply.run(frame, class_.node, story.me, nowhere()):
        changes[own_apply.NAME] = list(_changes(story.heap, frame.state.heap))
    return Settled(story, changes)


def _changes(before: Heap, after: Heap) -> Iterator[Change]:
    """What differs between two heaps in the objects of the first one."""
    for identity, thing in before.things.items():
        new = after.things.get(identity)
        if new is None or new is thing:
            continue
        fields = []
        for entry, value in thing.fields.items():
            changed = new.fields.get(entry)
            if changed is not None and changed is not value and changed != value:
                fields.append((entry, changed))
        moved = new.home != thing.home
        if moved or fields:
            yield Change(identity, moved, tuple(fields))


def _unsure(value: Value, changed: Value) -> Value:
    """A field that a method rewrites: where it is stays known where the method puts it there again."""
    if value.kind == "none" or (not value.places and not value.objects):
        return value if value.kind != "none" else changed
    if value.objects and value.objects != changed.objects:
        return Value("unknown", nowhere())
    atoms = {each.atom for each in value.places} | {each.atom for each in changed.places}
    return value if len(atoms) <= 1 else lost(value)


def note_state(frame: Frame, identity: Identity, class_: Class) -> None:
    """Whether a module has parameters, buffers, or parts that have."""
    thing = frame.heap.get(identity)
    if any(
        isinstance(base, str) and base != "torch.nn.Module" and not base.startswith("torch.nn.modules.module")
        for base in class_.lineage
    ):
        return
    holds = False
    for value in thing.fields.values():
        if value.kind == "module" or value.kind == "instance":
            holds = holds or not frame.is_stateless(value)
        elif value.kind == "tensor":
            holds = holds or any(each.atom.tag == "home" for each in value.places)
        elif value.kind == "unknown" and value.places:
            holds = True
    frame.heap.put(identity, thing._replace(stateless=not holds))


__all__ = ["Story", "merge_states", "settled", "story_of"]
