"""Keeps what each expression of the checked file was in each run of the function around it, and the calls between runs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

from devlint.inference.observed.clocks import Clocks
from devlint.inference.program.definitions import Class, Function
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.instantiate import Instance
from devlint.inference.summary.watching import Watch
from devlint.inference.terms.conditions import Condition
from devlint.inference.terms.places import Path, Places
from devlint.inference.terms.values import NOTHING, Kind, Value


class Sight(NamedTuple):
    """What an expression was. `class_`: a class of the project, or the qualified name of one of a library."""

    kind: Kind
    places: Places
    proved: bool
    class_: Class | str | None
    constant: Any
    path: Path | None
    value: Value
    condition: Condition


class Observer(Watch):
    """Watches the runs of one file's functions. It changes nothing of what they infer."""

    def __init__(self, path: str, reads_clocks: bool = True) -> None:
        """`reads_clocks`: whether clocks and waits are followed along the paths, for events of readings."""
        self.path = path
        self.reads_clocks = reads_clocks
        self.seen: dict[int, dict[Frame, Sight]] = {}  # by the identity of the expression's node
        self.calls: dict[int, list[Instance]] = {}  # by the identity of the called function's node
        self._holders: dict[
            str, list[list[Instance]]
        ] = {}  # the calls, by what an object keeps that is handed over there
        self.runs: dict[Frame, list[Instance]] = {}  # the runs with what calls hand over, and these calls
        #: By a name for a method: the object, and the method.
        self.bound: dict[tuple[int, Frame], tuple[Sight, str]] = {}
        self._then: dict[int, Instance] = {}  # by the identity of a call: the call with the state when it was made
        self.asked: dict[int, frozenset[str]] = {}  # by a function: the names of which it asks what they are
        self.shaped: dict[Frame, frozenset[str]] = {}  # by a run for classes of arguments: the names of these
        self.clocks = Clocks()

    def saw(self, frame: Frame, node: ast.expr, value: Value) -> None:
        """An expression was evaluated."""
        if frame.file.path != self.path:
            return
        sights = self.seen.setdefault(id(node), {})
        sight, known = sight_of(frame, value), sights.get(frame)
        sights[frame] = sight if known is None else _either(known, sight)
        if value.kind == "bound" and isinstance(node, ast.Name) and value.ref is not None and value.ref[0].objects:
            self.bound[id(node), frame] = sight_of(frame, value.ref[0]), value.ref[1]
        if self.reads_clocks and isinstance(node, (ast.Call, ast.BinOp, ast.Yield)):
            self.clocks.saw(frame, node, value, tuple(self._operands(frame, node)))

    def _operands(self, frame: Frame, node: ast.Call | ast.BinOp | ast.Yield) -> Iterator[Value]:
        """The values of the sides of an operator, or of the receiver and the arguments of a call."""
        if isinstance(node, ast.Yield):
            return
        parts = (
            [node.left, node.right] if isinstance(node, ast.BinOp) else [*node.args, *(k.value for k in node.keywords)]
        )
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            parts.insert(0, node.func.value)
        for each in parts:
            sight = self.seen.get(id(each), {}).get(frame)
            yield sight.value if sight is not None else NOTHING

    def called(self, instance: Instance) -> None:
        """A function of the project was called."""
        function = instance.summary.function
        if function is None:
            return
        self._keep(instance, function)
        if function.file.path == self.path and is_real(instance):
            frame = replace(instance.frame, state=instance.frame.state.copy())
            self._then[id(instance)] = Instance(frame, instance.summary, instance.bindings, instance.node)
        if self.reads_clocks:
            self.clocks.called(instance)

    def _keep(self, instance: Instance, function: Function) -> None:
        calls = self.calls.setdefault(id(function.node), [])
        if not calls and function.owner is not None:
            holder = function.owner.name if function.name == "__init__" else f"{function.owner.name}.{function.name}"
            self._holders.setdefault(holder, []).append(calls)
        calls.append(instance)

    def recalled(self, instance: Instance) -> None:
        """A call that an earlier check read, in another file."""
        function = instance.summary.function
        if function is not None:
            self._keep(instance, function)
            self.clocks.read.add(id(instance.node))

    def left(self, frame: Frame, node: ast.expr) -> None:
        """The body of a `with` statement was left."""
        if self.reads_clocks:
            self.clocks.left(frame, node)

    def then(self, instance: Instance) -> Instance:
        """A call with what held when it was made."""
        return self._then.get(id(instance), instance)

    def real_calls(self, function: Function) -> list[Instance]:
        """The calls of a function that the code makes."""
        return [each for each in self.calls.get(id(function.node), ()) if is_real(each)]

    def holding(self, root: str) -> Iterator[tuple[Instance, str]]:
        """The calls that hand over what a root stands for: an argument of a constructor, or of a method that binds a field."""
        holder, _, name = root.rpartition(":")
        for instances in self._holders.get(holder, ()):
            yield from ((each, name) for each in instances if is_real(each))


def is_real(instance: Instance) -> bool:
    """Whether the code makes a call, and not the inference to see what would come of it."""
    return not isinstance(instance.node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.Module))


def sight_of(frame: Frame, value: Value) -> Sight:
    """What a value is at this point of a run."""
    is_object = bool(value.objects)
    places = frame.home(value) if is_object and value.kind in ("module", "instance") else value.places
    class_ = frame.class_of(value) if is_object else value.ref
    if not isinstance(class_, (Class, str)):
        class_ = None
    places = frame.heap.resolve(places)
    return Sight(value.kind, places, value.proved, class_, value.constant, value.path, value, frame.condition)


def _either(a: Sight, b: Sight) -> Sight:
    """One expression in two rounds of a loop: only what both rounds agree on."""
    if a.kind == "none" or b.kind == "none":
        return b if a.kind == "none" else a
    if a.kind != b.kind:
        return b._replace(kind="unknown", class_=None, constant=None, path=None, places=(), value=Value())
    return b._replace(
        places=b.places if a.places == b.places else (),
        proved=a.proved and b.proved,
        class_=b.class_ if a.class_ is b.class_ or a.class_ == b.class_ else None,
        constant=b.constant if a.constant == b.constant else None,
        condition=a.condition & b.condition,
    )
