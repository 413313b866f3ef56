"""Summaries of functions, each made once, and their use at calls. Also the module level of files and the story of classes."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

from devlint.inference.library import protocols
from devlint.inference.objects.heap import Heap, Template, Thing
from devlint.inference.program.definitions import Class, File, Function, binding_of
from devlint.inference.program.project import Project
from devlint.inference.summary import autograd, escapes, loaders, own_apply, stories, unread_calls
from devlint.inference.summary import calls as _calls
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.dispatch import evaluate, silent
from devlint.inference.summary.frame import Frame, State, merge_states
from devlint.inference.summary.instantiate import KEPT, Instance
from devlint.inference.summary.items import entry_under, keep_parameters
from devlint.inference.summary.library_modules import birthplace
from devlint.inference.summary.model import Site, Summary
from devlint.inference.summary.parameters import declared, documented_tensors, used_as_tensors
from devlint.inference.summary.shared import Shared
from devlint.inference.summary.statements import run_block
from devlint.inference.summary.watching import Watch
from devlint.inference.terms.conditions import ALWAYS
from devlint.inference.terms.places import DEFAULT, Alternative, named_by, nowhere, place_of, single
from devlint.inference.terms.values import NONE, NOTHING, Kind, Value, given, given_device, merge, merge_all

#: Methods that run before an object is complete.
_CONSTRUCTORS = frozenset({"__init__", "__new__", "__post_init__"})


#: By the names of arguments: a class of the project, or the qualified name of a module class of a library.
Shape: TypeAlias = tuple[tuple[str, Any], ...]
#: What a summary is of: a function, the class of the receiver, and the classes of arguments.
Key: TypeAlias = tuple[ast.AST | Function, Class | None, Shape]
#: How often one function is read again for other classes of its arguments.
VARIANTS = 4


class Analyser:
    """What is known of the functions of a project, for one checked file and what it imports.

    With `shared`, one analyser serves all checks of a process, one after the other.
    """

    DEEPEST = 40
    VARIANTS = VARIANTS

    def __init__(self, project: Project, watch: Watch | None = None, shared: Shared | None = None) -> None:
        self.project = project
        self.shared = shared
        if shared is not None:
            project.looks = shared.looks
            project.epoch_of = lambda: shared.epoch
        self.begin(watch)

    def begin(self, watch: Watch | None, watched: str = "") -> None:
        """A new check. `watched`: the path of the file that the watch looks at."""
        self.watch = watch
        self.project.begin()
        if self.shared is not None:
            self.shared.begin(watched)
        self.summaries: dict[Key, Summary | None] = {}
        self.shapes: dict[ast.AST | Function, set[Shape]] = {}  # with which a function was read
        self.methods: dict[Class, list[Key]] = {}  # the summaries of the methods of a class
        #: The methods that were read while a constructor of the class was being read.
        self.early: dict[Class, set[Key]] = {}
        self.called: set[int] = set()  # the nodes of the functions that some call leads to
        self.tops: dict[str, Frame] = {}
        self.stories: dict[int, stories.Story | None] = {}
        self.settled: dict[int, stories.Settled | None] = {}  # by a class: its object when its methods may have run
        self.handed: dict[int, set[str]] = {}  # by an operation: what calls handed to it
        self.nested: dict[int, Function] = {}  # those that no file lists: inside functions, or bound to a name again
        self.nested_classes: dict[int, Class] = {}  # such classes, by the identity of their nodes
        self.constructed: dict[
            int, dict[str, list[Any]]
        ] = {}  # by a class: the classes of what constructors were given
        self.depth = 0

    # -- the module level

    def module_level(self, file: File) -> Frame:
        """The run of a file's module level; while it runs, as far as it got."""
        known = self.tops.get(file.path)
        shared, key = self.shared, ("top", file)
        if known is not None:
            if shared is not None:
                shared.reads(key)
            return known
        if shared is not None:
            if shared.take(self, key):
                return self.tops[file.path]
            shared.start(key, file.path)
        frame = Frame(self, file, None, None, None, Site(None, None, file.path, file.tree))
        if file.sets_default_device:
            frame.default = nowhere()
        self.tops[file.path] = frame
        with self._reading(frame):
            run_block(frame, file.tree.body)
            frame.state.dead = False
        return frame

    @contextmanager
    def _reading(self, result: Any) -> Iterator[None]:
        """A reading that was started; it ends with this result."""
        try:
            yield
        except BaseException:
            if self.shared is not None:
                self.shared.stop()
            raise
        if self.shared is not None:
            self.shared.end(result)

    # -- what is kept for other checks

    def put(self, key: Any, result: Any) -> None:
        """Something is read, or begins to be (None)."""
        if key[0] == "top":
            if result is not None:
                self.tops[key[1].path] = result
        elif key[0] == "story":
            self.stories[id(key[1])] = result
        elif key in self.summaries:
            self.summaries[key] = result
        else:
            self._enlist(key, result)

    def _enlist(self, key: Key, result: Summary | None) -> None:
        self.summaries[key] = result
        self.shapes.setdefault(key[0], set()).add(key[2])
        if key[1] is not None:
            self.methods.setdefault(key[1], []).append(key)

    def remove(self, key: Any) -> None:
        """A summary counts no more: it is to be made again."""
        self.summaries.pop(key, None)
        if self.shared is not None:
            self.shared.drop(key)

    def repeat(self, event: Any) -> None:
        """Do again what happened while something was read. See `summary/shared.py`."""
        kind, what = event[0], event[1]
        if kind == "looks":
            self.project.file(what)
        elif kind == "calls":
            self.called.add(what)
        elif kind == "hands":
            self.handed.setdefault(what, set()).add(event[2])
        elif kind == "nests":
            self.nest(what, event[2])
        elif kind == "gives":
            self.give(what, event[2], event[3])
        elif kind == "called" and self.watch is not None:
            self.watch.recalled(what)

    def nest(self, node: ast.AST, definition: Function | Class) -> None:
        """A function or a class that no file lists: it is inside a function, or bound to a name again."""
        if isinstance(definition, Function):
            self.nested[id(node)] = definition
        else:
            self.nested_classes[id(node)] = definition
        if self.shared is not None:
            self.shared.note("nests", node, definition)

    def give(self, class_: Class, name: str, given_: Any) -> None:
        """A constructor of a class is given an object of a class."""
        self.constructed.setdefault(id(class_), {}).setdefault(name, []).append(given_)
        if self.shared is not None:
            self.shared.note("gives", class_, name, given_)

    def only_class(self, class_: Class, name: str, more: Sequence[Any] = ()) -> Class | None:
        """The class of what every constructor call that was read gives for an argument."""
        found = [*self.constructed.get(id(class_), {}).get(name, ()), *more]
        first = found[0] if found else None
        alike = isinstance(first, Class) and first is not class_ and all(each is first for each in found)
        return first if alike else None

    # -- functions

    def summary(self, function: Function, receiver: Class | None, shape: Shape = ()) -> Summary | None:
        """The summary of a function; None while it is being made.

        `receiver`: the class of the object that a method is called on. `shape`: the classes of arguments of which the
        function itself does not tell what they are.
        """
        key = (_identity(function), receiver, shape)
        class_ = receiver or function.owner
        early = False
        if class_ is not None and function.name not in _CONSTRUCTORS:
            early = stories.story_of(self, class_) is None and self.is_running(class_.method("__init__"), class_)
        if key in self.summaries:
            if self.shared is not None:
                self.shared.reads(key)
        elif self.shared is None or not self.shared.take(self, key):
            self._make(key, function)
        if early and class_ is not None:
            self.early.setdefault(class_, set()).add(key)
        return self.summaries[key]

    def _make(self, key: Key, function: Function) -> None:
        """Make a summary, unless calls are too deep."""
        if self.shared is not None:
            self.shared.start(key, function.file.path)
        self._enlist(key, None)
        if self.depth >= self.DEEPEST:
            if self.shared is not None:
                self.shared.fails()
                self.shared.end(None)
            return
        self.depth += 1
        try:
            self.summaries[key] = self._summarise(function, key[1], key[2])
            self._read_again(function, key)
        except BaseException:
            if self.shared is not None:
                self.shared.stop()
            raise
        finally:
            self.depth -= 1
        if self.shared is not None:
            self.shared.end(self.summaries[key], is_call=True)

    def _read_again(self, function: Function, key: Key) -> None:
        """Methods that were read before their object was complete are to be read again."""
        if function.name == "__init__" and key[1] is not None and not key[2]:
            for each in self.early.pop(key[1], ()):
                self.remove(each)

    def is_running(self, function: Function | None, receiver: Class | None) -> bool:
        """Whether the summary of a function is being made."""
        if function is None:
            return False
        key = (_identity(function), receiver, ())
        running = self.summaries.get(key, self) is None
        if self.shared is not None:
            if running:
                self.shared.reads(key)
            else:
                self.shared.idle(key)
        return running

    def was_read(self, function: Function) -> bool:
        """Whether a function was read, for whatever receiver and arguments."""
        return _identity(function) in self.shapes

    def _frame(self, function: Function, receiver: Class | None) -> Frame:
        """A run of a function before its first statement."""
        site = Site(function, receiver, function.file.path, function.file.tree)
        frame = Frame(self, function.file, function, receiver, function.outer, site)
        frame.default = self.module_level(function.file).default if function.file.sets_default_device else None
        self._enter(frame, function, receiver)
        return frame

    def _run(self, frame: Frame, function: Function) -> None:
        body = function.node.body
        if isinstance(body, list):
            run_block(frame, body)
        else:
            frame.returns.append((evaluate(frame, body), ALWAYS, frame.state.copy()))
            frame.state.dead = True

    def run_with(self, summary: Summary, handed: dict[str, Value], source: Heap) -> Frame | None:
        """Run a function with what a call hands over. Its summary stays what it is: only a watch learns from such a run.

        `source`: the heap of the caller.
        """
        function = summary.function
        if function is None:
            return None
        frame = self._frame(function, summary.site.receiver)
        for name, value in handed.items():
            frame.state.names[name] = frame.heap.symbolic(value, (name,), source)
        frame.given = dict(frame.state.names)
        self._run(frame, function)
        return frame

    def _summarise(self, function: Function, receiver: Class | None, shape: Shape) -> Summary:
        frame = self._frame(function, receiver)
        site = frame.site
        for name, class_ in shape:
            self._enter_object(frame, name, class_)
        frame.given = dict(frame.state.names)
        self._run(frame, function)
        result, end = self._leave(frame)
        escapes.record(frame)
        if frame.yields:
            result = Value("iterator", parts=(merge_all(frame.yields) or NOTHING,))
        frame.state = end
        return Summary(
            function,
            site,
            end.heap.settled(result),
            end.heap,
            frame.constraints,
            frame.rebound,
            frame.given,
            frame,
        )

    def _leave(self, frame: Frame) -> tuple[Value, State]:
        """The result of a function over all its returns, and the state after it."""
        if not frame.state.dead:
            frame.returns.append((NONE, frame.condition, frame.state))
        result: Value | None = None
        state: State | None = None
        before = ALWAYS
        for value, condition, end in frame.returns:
            value = end.heap.settled(value)
            if result is None or state is None:
                result, state, before = value, end, condition
                continue
            result = merge(result, value, before, condition)
            state = merge_states(state, end, before, condition)
            before = ALWAYS
        return (result, state) if result is not None and state is not None else (NOTHING, frame.state)

    # -- arguments

    def _enter(self, frame: Frame, function: Function, receiver: Class | None) -> None:
        """Bind the arguments to symbolic values."""
        names = [each.arg for each in function.all_parameters()]
        defaults = function.defaults()
        documented = documented_tensors(function)
        roots = frozenset(names) | {"self"}
        start = 0
        if function.owner is not None and names and binding_of(function) != "static":
            start = 1
            self._enter_self(frame, function, receiver, names[0])
        frame.site.tensors = set(used_as_tensors(function.file, function, roots, _is_beside(function, receiver)))
        if start and names[0] != "self":
            frame.site.tensors = {("self", *path[1:]) if path[0] == names[0] else path for path in frame.site.tensors}
        if names and not start and autograd.gets_context(function):
            start = 1
            identity = ("path", (names[0],))
            frame.heap.put(identity, Thing("instance", autograd.CONTEXT))
            frame.state.names[names[0]] = Value("instance", objects=(identity,), path=(names[0],))
        for each in function.all_parameters()[start:]:
            value = (
                own_apply.mover((each.arg,))
                if start and own_apply.is_one(function)
                else self._argument(frame, function, each, defaults.get(each.arg), documented)
            )
            frame.state.names[each.arg] = value
            site = frame.site
            site.devices = site.devices or value.kind in ("tensor", "device")
        for extra in (function.node.args.vararg, function.node.args.kwarg):
            if extra is not None:
                frame.state.names[extra.arg] = given((extra.arg,))

    def _enter_object(self, frame: Frame, name: str, class_: Any) -> None:
        """An argument that is an object of a class, as a call says."""
        if isinstance(class_, Class):
            frame.state.names[name] = self.instance_like(frame, class_, (name,))
            return
        identity = ("path", (name,))
        frame.heap.put(identity, Thing("module", class_, None, {}, None, registers=True))
        frame.state.names[name] = Value("module", objects=(identity,), path=(name,))

    def _enter_self(self, frame: Frame, function: Function, receiver: Class | None, name: str) -> None:
        class_ = receiver or function.owner
        assert class_ is not None
        frame.self_name = name
        if binding_of(function) == "class":
            frame.state.names[name] = Value("class", ref=class_)
            return
        identity = ("path", ("self",))
        story = None
        if function.name not in _CONSTRUCTORS:
            story = stories.story_of(self, class_)
        template = Template(story.thing, story.heap) if story is not None else None
        kind: Kind = "module" if class_.is_module else "instance"
        is_new = function.name == "__init__"
        frame.heap.put(
            identity,
            Thing(
                kind,
                class_,
                None,
                {},
                template,
                whole=is_new and class_.is_read,
                registers=class_.is_module,
                stateless=story.thing.stateless if story else False,
            ),
        )
        frame.state.names[name] = Value(kind, objects=(identity,))

    def _argument(
        self, frame: Frame, function: Function, node: ast.arg, default: ast.expr | None, documented: frozenset[str]
    ) -> Value:
        name = node.arg
        path = (name,)
        says = declared(function.file, node.annotation)
        constant = default.value if isinstance(default, ast.Constant) else ...
        if says.kind == "device":
            return _device_argument(path, constant is None)
        if says.kind == "tensor" or (says.kind is None and (name in documented or path in frame.site.tensors)):
            return Value("tensor", single(place_of(path)), path=path)
        if says.kind in ("number", "string", "bool", "array", "dtype", "size"):
            if says.kind == "string" or says.optional:
                return (
                    Value("unknown", single(place_of(path)), path=path)
                    if says.kind == "string"
                    else Value(says.kind, path=path)
                )
            return Value(says.kind, path=path)
        if says.kind in ("list", "dict"):
            return self._container_argument(frame, path, says)
        if says.kind == "instance" and says.class_ is not None:
            return self.instance_like(frame, says.class_, path)
        if says.kind == "loader":
            return loaders.given_loader(frame, node, path)
        if says.kind == "module":
            identity = ("path", path)
            frame.heap.put(identity, Thing("module", None, None, {}, None, registers=True))
            return Value("module", objects=(identity,), path=path)
        if says.kind is None and default is not None and protocols.is_dtype(function.file.qualified(default)):
            return Value("dtype", path=path)
        if says.kind is None and constant is not ... and constant is not None:
            plain: Kind | None = (
                "bool" if isinstance(constant, bool) else "number" if isinstance(constant, (int, float)) else None
            )
            if plain is not None:
                return Value(plain, path=path)
        return given(path)

    def _container_argument(self, frame: Frame, path: tuple[str, ...], says: Any) -> Value:
        item = says.item
        if item is not None and item.kind == "tensor":
            frame.site.tensors.add((*path, "[]"))
            for i in range(4):
                frame.site.tensors.add((*path, f"[{i}]"))
        if item is not None and item.kind in ("number", "string", "bool"):
            return Value("other")
        return given(path)

    def instance_like(self, frame: Frame, class_: Class, path: tuple[str, ...]) -> Value:
        """An object of a class of the project that a function is given."""
        identity = ("path", path)
        story = stories.story_of(self, class_)
        template = Template(story.thing, story.heap) if story is not None else None
        kind: Kind = "module" if class_.is_module else "instance"
        frame.heap.put(
            identity,
            Thing(
                kind,
                class_,
                None,
                {},
                template,
                registers=class_.is_module,
                stateless=story.thing.stateless if story else False,
            ),
        )
        return Value(kind, objects=(identity,), path=path)

    # -- calls

    def call(
        self, frame: Frame, function: Function, me: Value | None, arguments: Arguments | list[Value], node: ast.AST,
        is_imagined: bool = False,
    ) -> Value:  # fmt: skip
        """Call a function of the project: its result, with its effects done and its constraints kept.

        `is_imagined`: no code calls it. It may be called, and only its effects count.
        """
        if isinstance(arguments, list):
            at: Any = node
            arguments = Arguments([(at, value) for value in arguments])
        receiver = (
            frame.class_of(me)
            if me is not None and me.objects
            else me.ref
            if me is not None and me.kind == "class"
            else None
        )
        receiver = receiver if isinstance(receiver, Class) else function.owner
        if function.owner is not None and receiver is not None and function.owner not in receiver.lineage:
            receiver = function.owner
        summary = self.summary(function, receiver)
        if summary is None:
            return unread_calls.call(frame, node, arguments, me, why="running")
        if not is_imagined:
            self.called.add(id(function.node))
            if self.shared is not None:
                self.shared.note("calls", id(function.node))
        bindings = self.bindings(frame, summary, me, arguments)
        shape = self._shape(frame, summary, bindings)
        if function.name == "__init__" and receiver is not None:
            for name, class_ in shape:
                self.give(receiver, name, class_)
        if shape:
            summary = self.summary(function, receiver, shape) or summary
        return self.use(frame, Instance(frame, summary, bindings, node), is_imagined)

    def imagine(self, frame: Frame, function: Function, me: Value, arguments: Arguments, node: ast.AST) -> None:
        """Do what a call of a function may do, where no call is known."""
        self.call(frame, function, me, arguments, node, is_imagined=True)

    def _shape(self, frame: Frame, summary: Summary, bindings: dict[str, Value]) -> Shape:
        """The classes of what a call hands to arguments of which the function tells nothing."""
        found: list[tuple[str, Any]] = []
        for name, known in summary.given.items():
            value = bindings.get(name)
            if known.kind != "unknown" or known.objects or value is None or not value.objects:
                continue
            class_ = frame.class_of(value)
            if isinstance(class_, Class) or (isinstance(class_, str) and value.kind == "module"):
                found.append((name, class_))
        function = summary.function
        if not found or function is None:
            return ()
        shape = tuple(found)
        seen = self.shapes.setdefault(_identity(function), set())
        if shape in seen or len(seen - {()}) < VARIANTS:
            return shape
        if self.shared is not None:
            self.shared.fails()
        return ()

    def use(self, frame: Frame, instance: Instance, is_imagined: bool = False) -> Value:
        """Put a summary into a frame."""
        summary = instance.summary
        if self.watch is not None:
            self.watch.called(instance)
            if self.shared is not None:
                self.shared.note("called", instance)
        if not is_imagined:
            self._keep_constraints(frame, instance)
        result = instance.value(summary.result)
        instance.apply()
        result = frame.heap.settled(result)
        for name, value in summary.rebound.items():
            if frame.file is (summary.function.file if summary.function is not None else None):
                frame.bind(name, instance.value(value))
        for root in summary.site.asks:
            bound = instance.bindings.get(root)
            if bound is not None and bound.path is not None:
                frame.site.asks.add(bound.path[0])
        return result

    def _keep_constraints(self, frame: Frame, instance: Instance) -> None:
        """Keep the constraints that a call leaves open or breaks, and what it hands to each."""
        kept = [each for each in instance.constraints() if not each.settled or frame.is_reached(each)]
        for node, status in instance.handed:
            self.handed.setdefault(node, set()).add(status)
            if self.shared is not None:
                self.shared.note("hands", node, status)
        room = max(KEPT - len(frame.constraints), 0)
        if self.watch is not None:
            for each in kept[room:]:
                self.watch.dropped(each, instance.node, frame.site, "kept")
        frame.constraints += kept[:room]

    def bindings(self, frame: Frame, summary: Summary, me: Value | None, arguments: Arguments) -> dict[str, Value]:
        """What the names of the arguments stand for at a call."""
        function = summary.function
        assert function is not None
        positional = list(arguments.positional)
        names = function.positional()
        found: dict[str, Value] = {}
        if function.owner is not None and names and binding_of(function) != "static":
            if me is None and positional and not arguments.stars:
                me = positional.pop(0)[1]
            found["self"] = me if me is not None else NOTHING
            names = names[1:]
        if not any(isinstance(each, ast.Starred) for each, _ in positional):
            for name, (_, value) in zip(names, positional, strict=False):
                found[name] = value
        else:
            for name, (each, value) in zip(names, positional, strict=False):
                if isinstance(each, ast.Starred):
                    break
                found[name] = value
        known = {each.arg for each in function.all_parameters()}
        for name, (_, value) in arguments.named.items():
            if name in known:
                found[name] = value
        self._spread(frame, function, found, arguments)
        self._defaults(frame, function, found, arguments, known)
        return found

    def _spread(self, frame: Frame, function: Function, found: dict[str, Value], arguments: Arguments) -> None:
        """`**batch` gives each argument that has no default, under its name."""
        node, mapping = arguments.named.get("**", (None, None))
        if mapping is None or node is None or mapping.kind not in ("batch", "dict", "unknown"):
            return
        first = 1 if function.owner is not None and binding_of(function) != "static" else 0
        for each in function.all_parameters()[first:]:
            if each.arg not in found and each.arg not in function.defaults():
                found[each.arg] = entry_under(frame, mapping, each.arg, node)

    def _defaults(
        self, frame: Frame, function: Function, found: dict[str, Value], arguments: Arguments, known: set[str]
    ) -> None:
        for name, default in function.defaults().items():
            if name in found or name not in known:
                continue
            if not arguments.is_whole:
                found[name] = NOTHING
            elif isinstance(default, ast.Constant):
                found[name] = evaluate(frame, default)
            else:
                found[name] = self._default_value(function, default)
        for name in (
            known
            - found.keys()
            - {function.positional()[0] if function.owner is not None and function.positional() else ""}
        ):
            found[name] = NOTHING
        self._rest(frame, function, found, arguments, known)

    def _rest(
        self, frame: Frame, function: Function, found: dict[str, Value], arguments: Arguments, known: set[str]
    ) -> None:
        """What `*args` and `**kwargs` hold."""
        rest, names = function.node.args.vararg, function.node.args.kwarg
        if rest is not None:
            given_ = arguments.positional
            taken = len(function.positional()) - (1 if function.owner is not None and "self" in found else 0)
            found[rest.arg] = Value("tuple", parts=tuple(value for _, value in given_[max(taken, 0) :]))
        if names is not None:
            fields = {f"[{name!r}]": value for name, (_, value) in arguments.named.items() if name not in known}
            found[names.arg] = Value("dict", objects=(frame.new_thing(function.node, Thing("dict", fields=fields)),))

    def _default_value(self, function: Function, default: ast.expr) -> Value:
        top = self.module_level(function.file)
        with silent(top):
            value = evaluate(top, default)
        return value if not value.objects else NOTHING

    # -- objects

    def construct(self, frame: Frame, class_: Class, arguments: Arguments, node: ast.AST) -> Value:
        """A new object of a class of the project."""
        kind: Kind = "module" if class_.is_module else "instance"
        home = birthplace(frame, node, class_.name) if class_.is_module else None
        if class_.family == "unread":
            home = nowhere()
        thing = Thing(kind, class_, home, {}, None, whole=class_.is_read, node=node, registers=class_.is_module)
        identity = frame.new_thing(node, thing)
        me = Value(kind, objects=(identity,))
        init = class_.method("__init__")
        if init is not None:
            self.call(frame, init, me, arguments, node)
        elif class_.is_data:
            self._fill_data(frame, class_, me, arguments)
        elif class_.family == "Optimizer":
            keep_parameters(frame, me, arguments.value(0, "params"))
        elif not class_.is_read:
            unread_calls.reach(frame, arguments.values())
        if class_.is_module:
            stories.note_state(frame, identity, class_)
        elif class_.family == "unread":
            stories.release_parts(frame, identity)
        return me

    def _default_of_field(self, frame: Frame, class_: Class, default: ast.expr | None) -> Value:
        """What a field of a data class holds where nothing is given [Python's library reference, "dataclasses"]."""
        if isinstance(default, ast.Constant):
            return evaluate(frame, default)
        if not isinstance(default, ast.Call):
            return NOTHING
        asked = {keyword.arg: keyword.value for keyword in default.keywords}
        if isinstance(asked.get("default"), ast.Constant):
            return evaluate(frame, asked["default"])
        factory = asked.get("default_factory")
        if factory is None:
            return NOTHING
        call = ast.copy_location(ast.Call(factory, [], []), default)
        if frame.file is class_.file:
            return evaluate(frame, call)
        top = self.module_level(class_.file)
        with silent(top):
            value = evaluate(top, call)
        return value if not value.objects else NOTHING

    def _fill_data(self, frame: Frame, class_: Class, me: Value, arguments: Arguments) -> None:
        fields = class_.data_fields
        for (name, _, default), value in zip(
            fields, [*(v for _, v in arguments.positional), *[None] * len(fields)], strict=False
        ):
            if name in arguments.named:
                value = arguments.named[name][1]
            if value is None:
                value = self._default_of_field(frame, class_, default)
            frame.heap.write(me.objects, "." + name, value)
        after = class_.method("__post_init__")
        if after is not None:
            self.call(frame, after, me, [], class_.node)


def _identity(function: Function) -> ast.AST | Function:
    """What two readings of one function have in common. One inside a function is another one in each run of that."""
    return function.node if function.outer is None else function


def _is_beside(function: Function, receiver: Class | None) -> bool:
    return receiver is not None and receiver.is_module and function.name in protocols.BESIDE_MODULE


def _device_argument(path: tuple[str, ...], may_be_left_out: bool) -> Value:
    if not may_be_left_out:
        return given_device(path)
    none = ("none", path)
    given_ = Alternative(named_by(path), None, frozenset({(none, False)}))
    return Value("device", (given_, Alternative(DEFAULT, None, frozenset({(none, True)}))), path=path)


__all__ = ["Analyser", "_calls"]
