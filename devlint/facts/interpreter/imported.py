"""Functions, classes and values of other files of the project: followed on demand, and translated on their way back.

Each file has an interpreter of its own, with its imports and globals; one that is asked from another file is *muted*, it
emits no events. What crosses the border loses what only makes sense in one file: factory calls to be fixed, readings of
clocks, names of local classes. What explains a value keeps its place, with the path of the file.
"""

from __future__ import annotations

import ast
import os
import weakref
import zlib
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property, partial
from typing import TypeVar

from devlint.facts.events import NO_GUARDS, Creation
from devlint.facts.frozen import replace
from devlint.facts.idioms import ordering
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.functions import Functions
from devlint.facts.interpreter.machine import OutOfBudget, State
from devlint.facts.interpreter.sized_tensors import READERS
from devlint.facts.interpreter.summaries import SIGNATURES, after_kept, is_stub
from devlint.facts.project.adopted import AdoptedClass, Sources
from devlint.facts.project.exports import PLACES
from devlint.facts.project.instances import Instance, of_token, token
from devlint.facts.project.project import PLAIN_BASES, Found, Reach, is_imported
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.collect import qualified, registers_parts
from devlint.facts.text.defined import Function, Summary
from devlint.facts.text.names import Imports
from devlint.facts.text.scan import FunctionScan, Scan
from devlint.facts.text.signatures import lacks_arguments
from devlint.facts.values import CPU, HOME, NOTHING, UNKNOWN, Device, Symbol, Value, symbol

SMALL = 150  # nodes of a method of a module that is followed whatever it is given
VISIT = 3_000  # steps of one look into another file
_ARGUMENT = "is an argument"  # in the origins of what a function is given
_NAMED = frozenset({"function", "class"})
_QUESTIONS = ("is_", "has_")  # how the names of functions start that answer a question
_T = TypeVar("_T")


class Imported(Functions):
    """Adds `call_imported`, `adopt_bases` and `imported_value`."""

    reach: Reach | None = None
    start: Callable[[Imported], None] | None = None  # what is to be done before anything of another file is run

    @cached_property
    def abroad(self) -> dict[tuple[str, str], AdoptedClass]:
        """The classes of other files that this one has met, by path and name."""
        return {}

    def find(self, qualname: str) -> Found | None:
        reach = self.reach
        return None if reach is None or reach.exhausted else reach.find(self.source.path, qualname)

    def readable(self, function: ast.expr) -> ast.AST | None:
        """The definition of a function or method of the project that an expression names; None where it is not found."""
        name = qualified(function, self.imports) or ""
        own = self.functions.get(name)
        if own is not None:
            return own.node
        if name.startswith("self."):
            method = self.owner.method(name[5:]) if self.owner is not None else None
            return method[1] if method is not None else None
        found = self.find(name) if "." in name and not name.startswith("torch.") else None
        return found.function.node if found is not None and found.kind == "function" and found.function else None

    def by_star(self, name: str) -> str | None:
        names = (f"{star}.{name}" for star in self.imports.stars if not star.startswith("torch"))
        return next((q for q in names if (found := self.find(q)) is not None and found.kind != "value"), None)

    def _note_state(self, node: ast.Call, found: Found, arguments: Arguments) -> None:
        """A function of another file may load the state of an optimizer that it is handed."""
        if found.kind == "function" and any(each.kind == "optimizer" for each in arguments.given()):
            loaded = found.loaded
            helper = loaded.function(found.short) if loaded is not None else None
            if loaded is not None and helper is not None:
                ordering.note_helper(self, node, helper, arguments, own=False, home=loaded.scan)

    # -- calls ----------------------------------------------------------------------------------------------------

    def call_imported(self, node: ast.Call, qualname: str, arguments: object) -> Value | None:
        """Call a function or class of another file; None when it is not found or not followed."""
        assert isinstance(arguments, Arguments)
        if self.decorating or qualname.rpartition(".")[2].startswith(_QUESTIONS):
            return None  # no tensor or device comes of these
        found = self.find(qualname)
        if found is None:
            self.note_handed(node, qualname, arguments)
            return None
        if found.kind == "class":
            return self.construct_own(node, self.adopted(found), arguments)
        self._note_state(node, found, arguments)
        values = arguments.given()
        exported = found.exports
        says = found.short in exported.placing or any(map(has_device, values))
        if found.kind != "function" or arguments.star or not exported.knows_torch or not says:
            return None
        loaded = found.loaded
        defined = loaded.function(found.short) if loaded is not None else None
        if loaded is None or defined is None or not is_worth(defined, values, loaded.scan, loaded.imports):
            return None
        if lacks_arguments(defined, node, 0, arguments.keywords):
            return NOTHING  # it raises
        if defined.args.vararg is not None:
            return None  # which of its arguments it moves is not told apart
        home, function = found.flow, found.function
        if home is None or function is None:
            return None
        for argument, given in arguments.every():
            if given.kind in ("list", "dict"):
                self.give(argument, given)
        keywords = arguments.named()
        return self.call_abroad(home, function, arguments.values, keywords, node)

    def note_handed(self, node: ast.Call, qualname: str, arguments: Arguments) -> None:
        """A function of the project whose file is not there gets a plain tensor of a module beside what moves with it."""
        if not qualname.startswith(".") or self.owner is None or not self.owner.is_module or self.in_init or self.host:
            return
        operands = self.tensors(arguments)
        if not self.assume or READERS.search(qualname.rpartition(".")[2].lower()) is not None:
            return
        other = next((o for o in operands if o.value.device == HOME and o.value.kind == "tensor"), None)
        for operand in operands if other is not None else ():
            value = operand.value
            if other is not None and value.attribute is not None and value.device == CPU and value.zero_dim is False:
                self.note_kept(node, operand, other)

    def call_function(
        self,
        function: Function,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.Call | None = None,
        on_self: bool = False,
    ) -> Value:
        owner = function.owner
        if not isinstance(owner, AdoptedClass):
            return Functions.call_function(self, function, arguments, keywords, node, on_self)
        home, original = owner.home, owner.original
        if isinstance(function.node, ast.Lambda) or home is None or original is None:
            return NOTHING
        name = function.name[len(owner.name) + 1 :]
        if node is not None and len(arguments) in (len(node.args), len(node.args) + 1):
            if lacks_arguments(function.node, node, len(arguments) - len(node.args), keywords):
                return NOTHING  # it raises
        there = home.method_function(original, name, function.node)
        of_module = owner.is_module or (on_self and self.owner is not None and self.owner.is_module)
        small = of_module and home.size_of(there.node) <= SMALL
        if not (small or home.is_worth(there, [*arguments[on_self:], *keywords.values()])):
            return NOTHING
        home.visit(lambda: home.prepare(original))
        return self.call_abroad(home, there, arguments, keywords, node, on_self)

    def call_abroad(
        self,
        home: Imported,
        function: Function,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.Call | None,
        on_self: bool = False,
    ) -> Value:
        """Run a function of another file with these arguments, and take over what it does to them."""
        made = frozenset(id(c.node) for v in (*arguments, *keywords.values()) for c in creations(v))
        given = [home.taken_over(v, self, made) for v in arguments]
        named = {k: home.taken_over(v, self, made) for k, v in keywords.items()}
        attributes: dict[str, Value] = {}
        if on_self:
            attributes = {p: home.taken_over(v, self) for p, v in self.state.env.items() if p.startswith("self.")}
        default = home.taken_over(self.state.default, self) if self.state.default is not None else None
        state = State({}, card=self.state.card, default=default)
        summary = home.visit(lambda: home.summarize(function, given, named, attributes, on_self), state)
        if summary is None:
            self.not_followed(function, {}, node, on_self)
            return NOTHING
        summary = Summary(
            self.taken_over(self.without_symbols(summary.result, function, node, on_self, home), home, made),
            summary.works,
            summary.waits,
            {k: self.taken_over(v, home) for k, v in summary.moved.items()},
            {k: self.taken_over(v, home) for k, v in summary.attributes.items()},
            summary.card,
            self.taken_over(summary.default, home) if summary.default is not None else None,
        )
        if summary.waits:
            self.state.count += summary.works
            self.wait()
        elif summary.works and node is not None and not isinstance(function.node, ast.Lambda):
            self.queue(node, f"`{function.node.name}` queues device work", "assume", None)
        self.apply(summary, function, node, on_self)
        result = after_kept(summary.result, [*arguments, *keywords.values()])
        if result.kind == "module" and node is not None and result.ident not in [v.ident for v in arguments]:
            result = replace(result, ident=self.span(node))
        return result

    def is_worth(self, function: Function, given: Iterable[Value]) -> bool:
        """Whether a call from another file can say anything."""
        node = function.node
        if not self.knows_torch or isinstance(node, ast.Lambda):
            return False
        return is_worth(node, given, self.scan, self.imports)

    def summarize(
        self,
        function: Function,
        arguments: list[Value],
        keywords: dict[str, Value],
        attributes: dict[str, Value],
        on_self: bool,
    ) -> Summary | None:
        """What a call of a function of this file does, for a caller in another one."""
        if isinstance(function.node, ast.Lambda) or is_stub(function.node) or not self.knows_torch:
            return None  # a method may be any of these
        key, summary = self.known_call(function, arguments, keywords, attributes)
        if summary is None:
            if len(function.summaries) >= SIGNATURES:
                return None
            bound = self.bound_arguments(function, arguments, keywords)
            self.follow(function, key, bound, attributes, None, on_self)
            summary = function.summaries[key]
        return summary

    def begin(self) -> None:
        """What the file's module level leaves behind is known from here on."""
        if self.start is not None:
            start, self.start = self.start, None  # it may lead back here
            start(self)

    def module_value(self, name: str) -> Value | None:
        """What a name of this file's module level holds, for another file."""
        self.begin()
        return self.globals.get(name)

    def visit(self, action: Callable[[], _T], state: State | None = None) -> _T | None:
        """Do something in this file for another one, which may itself be in the middle of this one. None: out of bounds."""
        reach = self.reach
        if reach is None or reach.exhausted or self.module_level:
            return None
        self.begin()
        saved = (
            self.state, self.guards, self.function, self.name, self.owner, self.loops, self.returns, self.yields,
            self.statement_value, self.breaks, self.continues, self.host, self.in_init, self.in_default,
            self.nonlocals, self.snapshots, self.event_names, self.loop_names, self.stack, self.steps, self.budget,
        )  # fmt: skip
        self.state, self.guards, self.function, self.name, self.owner = state or State({}), NO_GUARDS, None, "", None
        self.loops, self.returns, self.yields, self.statement_value = 0, [], False, None
        self.breaks, self.continues, self.host, self.in_init, self.in_default = [], [], False, False, False
        self.nonlocals, self.snapshots, self.event_names, self.loop_names = frozenset(), 0, set(), {}
        self.stack, self.steps, self.budget = [], 0, VISIT
        reach.depth += 1
        try:
            return action()
        except OutOfBudget:
            return None
        finally:
            reach.depth -= 1
            reach.steps += self.steps
            (
                self.state, self.guards, self.function, self.name, self.owner, self.loops, self.returns, self.yields,
                self.statement_value, self.breaks, self.continues, self.host, self.in_init, self.in_default,
                self.nonlocals, self.snapshots, self.event_names, self.loop_names, self.stack, self.steps, self.budget,
            ) = saved  # fmt: skip

    # -- classes --------------------------------------------------------------------------------------------------

    def adopt_bases(self, class_: ClassFacts) -> None:
        """Look up the bases of a class that are defined in other files."""
        if class_.extended or self.reach is None:
            return
        class_.extended = True
        own = (os.path.abspath(self.source.path), class_.name)
        for base in class_.bases:
            if base in self.classes:
                self.adopt_bases(self.classes[base])
                continue
            found = self.find(base) if is_imported(base) else None
            if found is None or found.kind != "class" or own in self.reach.ancestors(found):
                continue  # classes that are bases of each other
            class_.local_bases = (*class_.local_bases, self.adopted(found))
            class_.followed = class_.followed | {base}
            class_.family = self.reach.family(found) or class_.family
        if class_.family == "Module" and class_.bases and not any(base.family for base in class_.local_bases):
            if self.is_plain(class_) and not registers_parts(class_.node, self.imports):
                class_.family = None  # it has a `forward`, and is no module of torch

    def is_plain(self, class_: ClassFacts, seen: frozenset[str] = frozenset()) -> bool:
        """Whether a class of this file and all its bases are the project's own, so that none of them is one of a library."""
        reach = self.reach
        for base in class_.bases:
            near = self.classes.get(base) if base not in seen else None
            if base in PLAIN_BASES or (near is not None and self.is_plain(near, seen | {class_.name})):
                continue
            found = self.find(base) if near is None and is_imported(base) else None
            if reach is None or found is None or found.kind != "class" or not reach.is_plain(found):
                return False
        return True

    def class_named(self, node: ast.expr) -> ClassFacts | None:
        qualname = self.qualify(node) if isinstance(node, (ast.Name, ast.Attribute)) else None
        found = self.find(qualname) if qualname is not None and is_imported(qualname) else None
        return self.adopted(found) if found is not None and found.kind == "class" else super().class_named(node)

    def adopted(self, found: Found) -> ClassFacts:
        """A class of another file as this file sees it."""
        if self.muted and found.path == os.path.abspath(self.source.path):
            return self.classes[found.short]
        key = (found.path, found.short)
        known = self.abroad.get(key)
        if known is None:
            name = found.name
            while name in self.classes:
                name = f"{name}'"
            here: Imported = weakref.proxy(self)  # which holds the class
            sources = Sources(
                partial(Imported.bases_of, here, found), partial(definition, found), partial(Imported.fetch, here)
            )
            known = AdoptedClass(name, found, found.reach.family(found), sources)
            self.abroad[key] = self.classes[name] = known
        return known

    def bases_of(self, found: Found) -> tuple[ClassFacts, ...]:
        """The bases of a class of another file; none that is derived from the class itself."""
        own, reach = (found.path, found.short), found.reach
        return tuple(self.adopted(base) for base in reach.bases(found) if own not in reach.ancestors(base))

    def prepare(self, class_: ClassFacts) -> None:
        if not class_.abroad:
            super().prepare(class_)

    def examine(self, found: Found) -> Instance:
        """Run the `__init__` of a class of this file, for all others."""
        class_ = self.classes[found.short]
        self.adopt_bases(class_)
        self.visit(lambda: self.prepare(class_))
        naming = partial(class_token, self)
        attributes = {k: carried(v, self.source.path, naming) for k, v in class_.attributes.items()}
        devices = self.built_devices(class_)
        reach = found.reach
        return Instance(
            self.source.path,
            attributes,
            frozenset(class_.buffers),
            tuple(devices) if devices is not None else None,
            reach.read,
            reach.steps,
        )

    def fetch(self, class_: AdoptedClass) -> None:
        """Take over what the `__init__` of a class of another file leaves on `self`."""
        instance = class_.found.reach.instance(class_.found)
        if instance is not None:
            class_.attributes = {name: self.inherited(name, v, instance) for name, v in instance.attributes.items()}
            class_.buffers, class_.devices = set(instance.buffers), instance.devices

    def inherited(self, name: str, value: Value, instance: Instance) -> Value:
        """An attribute that a class of another file binds: a device that it keeps is called by it."""
        taken = carried(value, instance.path, self.class_of_token)
        if taken.kind == "device" and any(isinstance(p, Symbol) for p in taken.device):
            return replace(taken, device=symbol(f"self.{name}", 0))
        if (
            taken.is_tensor
            and taken.device == CPU
            and not taken.made
            and any(_ARGUMENT in origin.text for origin in taken.because)
        ):
            return replace(taken, device=UNKNOWN)  # who makes an object may give it a parameter, or what is placed
        return taken

    # -- values -----------------------------------------------------------------------------------------------------

    def imported_value(self, qualname: str) -> Value | None:
        """A module-level value of another file; None when it is not known."""
        found = self.find(qualname)
        if found is None or found.value is None or found.flow is None:
            return None
        return self.taken_over(found.value, found.flow)

    def taken_over(self, value: Value, home: Imported, made: frozenset[int] = frozenset()) -> Value:
        """A value of another file as this file sees it. `made`: the nodes of the factory calls to keep."""
        if home is self:
            return replace(value, split=None) if value.split is not None else value
        return carried(value, home.source.path, partial(self.class_name, home), made)

    def class_name(self, home: Imported, name: str) -> str | None:
        """How this file calls a class that another one calls `name`; None for one that it cannot see."""
        class_ = home.classes.get(name)
        if class_ is None:
            return name
        found = home.class_found(class_)
        return self.adopted(found).name if found is not None else None

    def class_of_token(self, name: str) -> str | None:
        """How this file calls the class of an object that an `Instance` holds."""
        place = of_token(name)
        if place is None or self.reach is None:
            return name
        offered = self.reach.exports(place[0])
        if offered is None or place[1] not in offered.classes:
            return None
        return self.adopted(Found(self.reach, *place, "class", offered)).name

    def class_found(self, class_: ClassFacts) -> Found | None:
        """Where a class that this file knows is defined; None for one that others cannot see.

        Those of the file under analysis stay there: others do not look into it.
        """
        if isinstance(class_, AdoptedClass):
            return class_.found
        if not self.muted or self.reach is None:
            return None
        path = os.path.abspath(self.source.path)
        offered = self.reach.exports(path)
        if offered is None or class_.name not in offered.classes:
            return None
        return Found(self.reach, path, class_.name, "class", offered)

    def scan_of(self, class_: ClassFacts) -> Scan:
        home = class_.home if isinstance(class_, AdoptedClass) else None
        return home.scan if home is not None else self.scan

    def emit(self, event: object, *key: object) -> None:
        if not self.muted:
            super().emit(event, *key)  # type: ignore[arg-type]


def carried(value: Value, path: str, naming: Callable[[str], str | None], made: frozenset[int] = frozenset()) -> Value:
    """A value of the file at `path` without what only makes sense there.

    `naming`: how the classes of objects are called where it goes. `made`: the nodes of the factory calls to keep.
    """
    if value is NOTHING or value.kind in ("number", "none", "namespace", "unknown"):
        return replace(value, split=None) if value.split is not None else value
    if value.kind in _NAMED or value.kind == "clock":
        return NOTHING  # functions, classes and readings belong to their file
    elements = value.elements
    if isinstance(elements, tuple):
        elements = tuple(carried(v, path, naming, made) for v in elements)
    elif elements is not None:
        elements = {k: carried(v, path, naming, made) for k, v in elements.items()}
    return replace(
        value,
        device=abroad(value.device, path),
        elements=elements,
        type_name=naming(value.type_name) if value.type_name is not None else None,
        because=tuple(o if o.path is not None else o._replace(path=path) for o in value.because),
        made=tuple(c for c in value.made if id(c.node) in made),
        attribute=None,
        split=None,
        reading=None,
        discarded=None,
    )


def class_token(home: Imported, name: str) -> str | None:
    """How an `Instance` calls the class that a file calls `name`; None for one that others cannot see."""
    class_ = home.classes.get(name)
    if class_ is None:
        return name
    found = home.class_found(class_)
    return token(found.path, found.short) if found is not None else None


def is_worth(
    node: ast.FunctionDef | ast.AsyncFunctionDef, given: Iterable[Value], scanned: Scan, imports: Imports
) -> bool:
    """Whether a call from another file, of a function of a file with torch, can say anything.

    It gets something whose device is known, or places something.
    """
    if is_stub(node) or node.name.startswith(_QUESTIONS):
        return False
    return any(map(has_device, given)) or places(scanned.functions.get(id(node)), imports)


def places(own: FunctionScan | None, imports: Imports) -> bool:
    """Whether a function makes tensors or moves something."""
    if own is None:
        return False
    return any(child.attr in PLACES for child in own.attributes) or any(
        isinstance(call.func, ast.Name) and imports.names.get(call.func.id, "").rpartition(".")[2] in PLACES
        for call in own.calls
    )


def has_device(value: Value) -> bool:
    """Whether a value, or something in it, is known to be somewhere, or is a module, which can be moved."""
    if value.kind == "module" or (value.device and (value.kind == "device" or value.is_tensor)):
        return True
    elements = value.elements
    if elements is None:
        return False
    return any(map(has_device, elements if isinstance(elements, tuple) else elements.values()))


def creations(value: Value) -> Iterator[Creation]:
    """The factory calls that made a value or something in it."""
    yield from value.made
    elements = value.elements
    if elements is not None:
        for element in elements if isinstance(elements, tuple) else elements.values():
            yield from creations(element)


def abroad(device: Device, path: str) -> Device:
    """A device of another file: its variables are not those of this one, however they are called."""
    if not any(isinstance(p, Symbol) and p.scope >= 0 and p.name != "home" for p in device):
        return device
    offset = 1 + zlib.crc32(path.encode("utf-8", "surrogateescape"))
    return frozenset(
        Symbol(p.name, -offset - p.scope) if isinstance(p, Symbol) and p.scope >= 0 and p.name != "home" else p
        for p in device
    )


def definition(found: Found) -> tuple[Imported, ClassFacts] | None:
    """The interpreter of the file that defines a class, and the class there; None when no more files are looked into."""
    home = found.flow
    original = home.classes.get(found.short) if home is not None else None
    if home is None or original is None:
        return None
    home.adopt_bases(original)
    return home, original
