"""From what was kept of each expression to events, in the order of the file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from devlint import knowledge
from devlint.facts.events import Guards
from devlint.inference.events import ORIGINS, Texts, when
from devlint.inference.observed import guards
from devlint.inference.observed.collect import Sight
from devlint.inference.observed.events import (
    Inferred,
    InferredAssignment,
    InferredAttribute,
    InferredCall,
    InferredComparison,
    InferredReading,
    Part,
    Whereabouts,
)
from devlint.inference.observed.members import has, kind_of
from devlint.inference.observed.resolve import Known, known
from devlint.inference.observed.standing import Standing, possible
from devlint.inference.program.definitions import Class, binding_of
from devlint.inference.summary.frame import Frame
from devlint.inference.terms.places import Alternative, Places, show_path
from devlint.inference.terms.values import NOTHING, Value
from devlint.model import Origin

#: The calls that hand a value over: the run in which each stands, and its node.
Calls: TypeAlias = tuple[tuple[Frame, ast.AST], ...]
_OPERATORS: Final[dict[type[ast.cmpop], str]] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
#: The words of the knowledge of torch for what an attribute holds, as kinds.
_HELD: Final = {
    "device": "device",
    "bool": "bool",
    "number": "number",
    "dtype": "dtype",
    "size": "size",
    "tensor": "tensor",
}
_NOTHING_SEEN: Final = Sight("unknown", (), False, None, None, None, NOTHING, frozenset())


def events(
    standing: Standing, texts: Texts, live: Iterable[Frame], wanted: tuple[type[Inferred], ...]
) -> list[Inferred]:
    """The events of a file that are of these types.

    `live`: the runs that count; others were made before enough was known.
    """
    emitter = _Emitter(standing, texts, frozenset(live))
    emitter.wanted = wanted
    guards.walk(standing.file.tree, emitter.visit)
    return emitter.found


class _Emitter:
    def __init__(self, standing: Standing, texts: Texts, live: frozenset[Frame]) -> None:
        self.standing = standing
        self.observer = standing.observer
        self.file = standing.file
        self.texts = texts
        self.source = texts.source
        self.live = live
        self.wanted: tuple[type[Inferred], ...] = ()
        self.found: list[Inferred] = []
        self.dropped: set[int] = set()  # calls that are whole statements
        self.things: dict[tuple[int, Frame], list[Known]] = {}
        self.called: set[int] = set()  # attributes that are called at once

    def visit(self, node: ast.AST, under: Guards, function: str) -> None:
        if isinstance(node, ast.Expr):
            self.dropped.add(id(node.value))
        if isinstance(node, ast.Call):
            self.called.add(id(node.func))
        for kind, make in _MAKERS.get(type(node), ()):
            if any(issubclass(kind, each) for each in self.wanted):
                make(self, node, under, function)

    # -- what an expression is

    def frames(self, node: ast.expr) -> list[Frame]:
        return [frame for frame in self.observer.seen.get(id(node), ()) if frame in self.live]

    def sight(self, frame: Frame, node: ast.expr) -> Sight:
        return self.observer.seen.get(id(node), {}).get(frame, _NOTHING_SEEN)

    def known(self, frame: Frame, node: ast.expr) -> list[Known]:
        """What an expression is in one run. A method that is read from an object is one, whatever it does."""
        key = (id(node), frame)
        if key not in self.things:
            sight = self.sight(frame, node)
            if isinstance(node, ast.Attribute) and _makes_up(self.sight(frame, node.value)):
                sight = sight._replace(proved=False)
            method = self._method(frame, node)
            if method is not None:
                sight = sight._replace(kind="bound", class_=method, proved=True)
            self.things[key] = list(known(self.standing, frame, node, sight))
        return self.things[key]

    def _method(self, frame: Frame, node: ast.expr) -> str | None:
        """The name of the method of a tensor or module that an attribute is."""
        if not isinstance(node, ast.Attribute):
            return None
        base = self.sight(frame, node.value)
        proved = base.proved and self.known(frame, node.value)[0].evidence != "likely"
        if base.kind == "tensor" and proved and node.attr in knowledge.methods("Tensor"):
            return f"Tensor.{node.attr}"
        return None

    def part(self, node: ast.expr, each: Known) -> Part:
        sight = each.sight
        kind = "method" if sight.kind == "bound" else kind_of(sight)
        name = sight.class_.name if isinstance(sight.class_, Class) else sight.class_
        span = self.source.span(node)
        places = _whereabouts(possible(sight), kind) if kind != "method" else ()
        text = self.source.text[span.start : span.end]
        return Part(span, node, text, kind, name, places, each.evidence, sight.constant)

    def at(self, frame: Frame, node: ast.expr, calls: Calls) -> Known:
        """What an expression is where these calls lead to the run, as far as they tell."""
        found = self.known(frame, node)
        return next((each for each in found if calls and each.calls[:1] == calls[:1]), found[0])

    def first(self, frame: Frame, node: ast.expr, calls: Calls = ()) -> Part:
        return self.part(node, self.at(frame, node, calls))

    def cases(self, frame: Frame, nodes: Iterable[ast.expr]) -> list[Calls]:
        """The calls that hand over the values of these expressions, and none: each is an event of its own."""
        found = [each.calls[:1] for node in nodes for each in self.known(frame, node)]
        return list(dict.fromkeys(((), *found)))

    def because(self, *parts: Known) -> tuple[Origin, ...]:
        """Where values were made, and the calls that hand them over."""
        found: list[Origin | None] = []
        for each in parts:
            for place in possible(each.sight):
                if place.origin is not None:
                    text = ORIGINS[place.origin.why]
                    found.append(self.texts.origin(place.origin.file, place.origin.node, text))
            found += [self.texts.origin(frame.path, node, "passed in here") for frame, node in each.calls]
        return tuple(dict.fromkeys(each for each in found if each is not None))

    def add(self, event: Inferred) -> None:
        self.found.append(event)

    # -- events

    def call(self, node: ast.Call, under: Guards, function: str) -> None:
        base, name = _method_of(node.func)
        arguments = _arguments(node)
        by_class = self._by_class(node)
        if by_class is not None:
            base, name = node.args[0], by_class
            arguments = [*((str(int(key) - 1), each) for key, each in arguments[1:] if key.isdigit()),
                         *(pair for pair in arguments if not pair[0].isdigit())]  # fmt: skip
        said: set[tuple[object, ...]] = set()
        for frame in self.frames(node):
            bound = self.observer.bound.get((id(node.func), frame))
            if bound is not None:
                sight, name = bound
                for each in known(self.standing, frame, node.func, sight):
                    self._call(frame, node, under, function, name, (node.func, each), each.calls, arguments, said)
            elif base is None or id(base) not in self.observer.seen:
                qualified = self.file.qualified(node.func) or ast.unparse(node.func)
                for calls in self.cases(frame, (each for _, each in arguments)):
                    self._call(frame, node, under, function, qualified, None, calls, arguments, said)
            else:
                for each in self.known(frame, base):
                    self._call(frame, node, under, function, name, (base, each), each.calls, arguments, said)

    def _by_class(self, node: ast.Call) -> str | None:
        """The name of the method of a class of torch that is called with its object: `torch.nn.Module.half(net)`."""
        class_, _, name = (self.file.qualified(node.func) or "").rpartition(".")
        record = knowledge.cls(class_) if class_ and node.args and not isinstance(node.args[0], ast.Starred) else None
        if record is None or (name not in record.methods and name not in knowledge.methods(record.family)):
            return None
        kinds = {each.sight.kind for frame in self.frames(node) for each in self.known(frame, node.args[0])}
        return name if kinds <= {record.family.lower(), "unknown"} else None  # a static or class method gets no object

    def _call(
        self, frame: Frame, node: ast.Call, under: Guards, function: str, name: str,
        receiver: tuple[ast.expr, Known] | None, calls: Calls, given: list[tuple[str, ast.expr]],
        said: set[tuple[object, ...]],
    ) -> None:  # fmt: skip
        part = self.part(*receiver) if receiver is not None else None
        exists = has(frame, receiver[1].sight, part.kind, name) if receiver is not None and part is not None else None
        callee = self._callee(node, frame, receiver[1], name) if receiver is not None and part is not None else None
        arguments = {key: self.first(frame, each, calls) for key, each in given}
        result = self.first(frame, node, calls)
        key = (name, _key(part), exists, callee.kind if callee else None, *map(_key, arguments.values()))
        if key in said:
            return
        said.add(key)
        because = self.because(*[receiver[1]] if receiver else [self.at(frame, n, calls) for _, n in given])
        self.add(
            InferredCall(
                self.source.span(node), node, because, under, {}, function, name, part, arguments, exists, callee, result,
                id(node) in self.dropped,
            )
        )  # fmt: skip

    def _callee(self, node: ast.Call, frame: Frame, receiver: Known, name: str) -> Part | None:
        """What is called, where the receiver keeps a value under the name that is no method."""
        sight = receiver.sight
        held = knowledge.attribute("Tensor", name) if sight.kind == "tensor" and sight.proved else None
        kind = _HELD.get(held or "")
        if kind is None and sight.value.objects and isinstance(sight.class_, Class):
            kind = _field_kind(frame, sight, name)
        if kind is None or not isinstance(node.func, ast.expr):
            return None
        return self.part(node.func, Known(_NOTHING_SEEN._replace(kind=kind, proved=True), "proved"))  # type: ignore[arg-type]

    def reading(self, node: ast.Call | ast.Attribute, under: Guards, function: str) -> None:
        if id(node) in self.observer.clocks.found:
            callee = node.func if isinstance(node, ast.Call) else node
            name = self.file.qualified(callee) or ast.unparse(callee)
            self.add(InferredReading(self.source.span(node), node, (), under, {}, function, name))

    def read_by_name(self, node: ast.Call, under: Guards, function: str) -> None:
        read = _read_by_name(node)
        if read is not None:
            self.read(node, *read, under, function)

    def attribute(self, node: ast.Attribute, under: Guards, function: str) -> None:
        if id(node) not in self.called and isinstance(node.ctx, ast.Load):
            self.read(node, node.value, node.attr, under, function)

    def read(self, node: ast.expr, base: ast.expr, name: str, under: Guards, function: str) -> None:
        """A member that is read from an object."""
        said: set[tuple[object, ...]] = set()
        for frame in self.frames(base):
            for each in self.known(frame, base):
                part = self.part(base, each)
                key = _key(part)
                if key in said or part.kind == "library":
                    continue
                said.add(key)
                exists, result = has(frame, each.sight, part.kind, name), self.first(frame, node, each.calls)
                span = self.source.span(node)
                self.add(
                    InferredAttribute(span, node, self.because(each), under, {}, function, name, part, exists, result)
                )

    def compare(self, node: ast.Compare, under: Guards, function: str) -> None:
        sides = [node.left, *node.comparators]
        span = self.source.span(node)
        for operator, left, right in zip(node.ops, sides, sides[1:], strict=False):
            for frame in self.frames(node)[:1]:
                for calls in self.cases(frame, (left, right)):
                    x, y = self.at(frame, left, calls), self.at(frame, right, calls)
                    parts = (self.part(left, x), self.part(right, y))
                    because = self.because(x, y)
                    self.add(
                        InferredComparison(span, node, because, under, {}, function, _OPERATORS[type(operator)], *parts)
                    )

    def assign(
        self, node: ast.Assign | ast.AnnAssign | ast.NamedExpr | ast.AugAssign, under: Guards, function: str
    ) -> None:
        if node.value is None:
            return
        span = self.source.span(node)
        for frame in self.frames(node.value)[:1]:
            for value in self.known(frame, node.value):
                part, because = self.part(node.value, value), self.because(value)
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    owner = target.value if isinstance(target, (ast.Attribute, ast.Subscript)) else None
                    there = self.first(frame, owner, value.calls) if owner is not None else None
                    text = ast.unparse(target)
                    self.add(InferredAssignment(span, node, because, under, {}, function, text, there, part))


_ASSIGNMENT: Final = ((InferredAssignment, _Emitter.assign),)
_MAKERS: Final[dict[type[ast.AST], tuple[tuple[type[Inferred], Callable[..., None]], ...]]] = {
    ast.Call: (
        (InferredAttribute, _Emitter.read_by_name),
        (InferredCall, _Emitter.call),
        (InferredReading, _Emitter.reading),
    ),
    ast.Attribute: ((InferredAttribute, _Emitter.attribute), (InferredReading, _Emitter.reading)),
    ast.Compare: ((InferredComparison, _Emitter.compare),),
    ast.Assign: _ASSIGNMENT,
    ast.AnnAssign: _ASSIGNMENT,
    ast.AugAssign: _ASSIGNMENT,
    ast.NamedExpr: _ASSIGNMENT,
}


def _method_of(callee: ast.expr) -> tuple[ast.expr | None, str]:
    """The object and the name of a method that is called: `x.to(...)`, `getattr(x, "to")(...)`."""
    if isinstance(callee, ast.Attribute):
        return callee.value, callee.attr
    read = _read_by_name(callee)
    return read if read is not None else (None, "")


def _read_by_name(node: ast.expr) -> tuple[ast.expr, str] | None:
    """`getattr(x, "name")` without a default reads `x.name`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "getattr":
        if len(node.args) == 2 and not node.keywords:
            name = node.args[1]
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                return node.args[0], name.value
    return None


def _field_kind(frame: Frame, sight: Sight, name: str) -> str | None:
    """The kind of what an object keeps in a field, or gives as a property."""
    field: Value | None = frame.heap.field(sight.value.objects[0], "." + name)
    method = sight.class_.method(name) if isinstance(sight.class_, Class) else None
    if method is not None and binding_of(method) == "property":
        summary = frame.analyser.summary(method, sight.class_)  # type: ignore[arg-type]
        field = summary.result if summary is not None else None
    return field.kind if field is not None and field.kind in _HELD.values() and field.kind != "tensor" else None


def _makes_up(sight: Sight) -> bool:
    """Whether an object's fields may be others than those that the code binds: its class says how, or is decorated."""
    class_ = sight.class_
    if not isinstance(class_, Class) or not sight.value.objects:
        return False
    return class_.method("__setattr__") is not None or any(
        isinstance(base, Class) and base.node.decorator_list and not base.is_data for base in class_.lineage
    )


def _arguments(node: ast.Call) -> list[tuple[str, ast.expr]]:
    """The arguments of a call by name, or by position."""
    placed = [each.value if isinstance(each, ast.Starred) else each for each in node.args]
    return [*((str(i), each) for i, each in enumerate(placed)), *((k.arg or "**", k.value) for k in node.keywords)]


def _whereabouts(places: Places, kind: str) -> tuple[Whereabouts, ...]:
    """Each place once. One that holds under several conditions is likely where one of them is."""
    found: dict[tuple[str | None, str | None], Whereabouts] = {}
    for each in places:
        new = Whereabouts(*_named(each, kind), each.soft, bool(each.condition), when(each.condition))
        known = found.setdefault(new[:2], new)
        if known is not new:
            found[new[:2]] = known._replace(
                likely=known.likely or new.likely,
                sometimes=known.sometimes and new.sometimes,
                when=known.when if known.when == new.when else "",
            )
    return tuple(found.values())


def _named(each: Alternative, kind: str) -> tuple[str | None, str | None]:
    """The device that the code names, or the code that is the device."""
    tag, key = each.atom
    if tag == "at":
        return (key[0] if key[1] is None else f"{key[0]}:{key[1]}"), None
    if tag not in ("place", "names") or key[0].startswith(("%", "@")) or ":" in key[0]:
        return None, None
    if any(entry == "[]" or entry.startswith("(") for entry in key[1:]):
        return None, None  # what a call gives, or one of several, has no expression
    path = show_path(key)
    if tag == "names":
        return None, path
    if kind == "instance":
        return None, None  # what it holds may be anywhere
    return None, f"next({path}.parameters()).device" if kind == "module" else f"{path}.device"


def _key(part: Part | None) -> tuple[object, ...]:
    return (part.kind, part.class_name, part.evidence == "likely", part.places) if part is not None else ()


__all__ = ["events"]
