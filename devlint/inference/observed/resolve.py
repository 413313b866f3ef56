"""What something given is: by its annotation, or by the calls that hand it over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Final, NamedTuple

from devlint import knowledge
from devlint.inference.observed.collect import Observer, Sight, sight_of
from devlint.inference.observed.events import Evidence
from devlint.inference.observed.members import kind_of
from devlint.inference.observed.standing import Standing
from devlint.inference.program.definitions import Class, File, Function, dotted
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.instantiate import Instance
from devlint.inference.summary.parameters import declared
from devlint.inference.terms.places import Places
from devlint.inference.terms.values import Value

#: Calls between where a value is made and where it is used.
CHAIN: Final = 4
#: Kinds by the families of torch's classes that an annotation names.
_ANNOTATED: Final = {
    "Optimizer": "optimizer", "LRScheduler": "scheduler", "DataLoader": "loader", "Generator": "generator",
    "Distribution": "distribution", "GradScaler": "other", "Sampler": "other",
}  # fmt: skip
_CONTAINERS: Final = {
    "list": "list",
    "List": "list",
    "tuple": "tuple",
    "Tuple": "tuple",
    "dict": "dict",
    "Dict": "dict",
}
_ASKS: Final = frozenset({"isinstance", "hasattr", "type", "callable", "is_tensor"})


class Known(NamedTuple):
    """One thing that an expression is, who says so, and the calls that hand it over, innermost first."""

    sight: Sight
    evidence: Evidence
    calls: tuple[tuple[Frame, ast.AST], ...] = ()


def known(standing: Standing, frame: Frame, node: ast.expr, sight: Sight) -> Iterator[Known]:
    """What an expression is: itself where the function tells, and each thing that it is given."""
    observer = standing.observer
    handed = observer.runs.get(frame)
    if handed is not None:
        is_sure = sight.proved and not _is_asked(observer, frame, _root(node))
        yield from _by_these(standing, handed, sight, "called" if is_sure else "likely")
        return
    if sight.kind != "unknown" or kind_of(sight) != "unknown" or sight.path is None:
        yield from _by_any(standing, frame, sight, _evidence(observer, frame, sight))
        return
    found = False
    if not _is_asked(observer, frame, sight.path[0]):
        for each in _given(standing, frame, sight, CHAIN):
            found = True
            yield each
    if not found:
        yield Known(sight, "likely")


def _by_these(standing: Standing, calls: list[Instance], sight: Sight, evidence: Evidence) -> Iterator[Known]:
    """What a value is in a run with what these calls hand over: where each of them puts it."""
    said: set[Places] = set()
    for instance in calls:
        for there, steps in standing.at_call(instance, sight, CHAIN):
            if there.places not in said:
                said.add(there.places)
                yield Known(there, evidence, steps)
    if not said:
        first = calls[0]
        yield Known(sight, evidence, ((first.frame, first.node),))


def _by_any(standing: Standing, frame: Frame, sight: Sight, evidence: Evidence) -> Iterator[Known]:
    """What a value of a known kind is: as the function and its object tell, and as its calls do."""
    own = standing.on_object(frame, sight)
    found: dict[Places, Known] = {}
    for there, steps in standing.by_calls(frame, own, CHAIN) if sight.proved else ():
        found.setdefault(there.places, Known(there, "called", steps))
    if not found or evidence != "called":
        yield Known(own, evidence)
    yield from found.values()


def _evidence(observer: Observer, frame: Frame, sight: Sight) -> Evidence:
    """Who says what an expression is. An argument has its kind from a call or an annotation; by a default or a use it is
    likely."""
    if not sight.proved:
        return "likely"
    path = sight.path
    if path is None or len(path) != 1 or frame.function is None or ":" in path[0]:
        return "proved"
    if path[0] in observer.shaped.get(frame, ()):
        return "likely" if _is_asked(observer, frame, path[0]) else "called"
    for each in frame.function.all_parameters():
        if each.arg == path[0]:
            return "annotated" if declared(frame.file, each.annotation).kind is not None else "likely"
    return "proved"


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _given(standing: Standing, frame: Frame, sight: Sight, depth: int) -> Iterator[Known]:
    assert sight.path is not None
    path = sight.path
    gathered = _gathered(frame, path)
    if gathered is not None:
        yield Known(sight._replace(kind=gathered.kind, value=gathered), "proved")
        return
    annotated = _declared(frame, path)
    if annotated is not None:
        yield Known(sight._replace(kind=annotated.kind, class_=annotated.ref, value=annotated), "annotated")
        return
    if depth == 0:
        return
    if len(path) == 2 and path[0] == "self":
        kept = frame.heap.get(("path", ("self",))).template
        value = kept.thing.fields.get(path[1]) if kept is not None else None
        if value is not None and value.path is not None and value.path != path:
            yield from _given(standing, frame, sight._replace(path=value.path), depth - 1)
        return
    if len(path) == 1 and ":" in path[0]:
        for instance, name in standing.observer.holding(path[0]):
            yield from _handed(standing, instance, name, sight, depth)


def _handed(standing: Standing, instance: Instance, name: str, sight: Sight, depth: int) -> Iterator[Known]:
    """What one call hands over, where the call does not rule out that the place is reached."""
    value = instance.bindings.get(name)
    if value is None or instance.condition(sight.condition) is None:
        return
    step = (instance.frame, instance.node)
    there = sight_of(standing.observer.then(instance).frame, value)
    if there.places != sight_of(instance.frame, value).places:
        there = there._replace(places=())  # it was moved after it was handed over
    if there.kind != "unknown" or kind_of(there) != "unknown":
        for each in _by_any(standing, instance.frame, there, "called") if there.proved else ():
            yield Known(each.sight, "called", (step, *each.calls))
    elif there.path is not None:
        for each in _given(standing, instance.frame, there, depth - 1):
            yield Known(each.sight, each.evidence, (step, *each.calls))


def _gathered(frame: Frame, path: tuple[str, ...]) -> Value | None:
    """`*args` is a tuple and `**kwargs` a dict [Python's language reference, "Function definitions"]."""
    if len(path) != 1 or frame.function is None:
        return None
    names = frame.function.node.args
    if names.vararg is not None and path[0] == names.vararg.arg:
        return Value("tuple")
    return Value("dict") if names.kwarg is not None and path[0] == names.kwarg.arg else None


def _declared(frame: Frame, path: tuple[str, ...]) -> Value | None:
    """What an annotation says of an argument, or of a field of a data class."""
    if len(path) != 1:
        return None
    holder, colon, name = path[0].rpartition(":")
    if colon and not path[0].startswith(("@", "%")):
        class_ = frame.file.classes.get(holder)
        found = _of_class(class_, name) if class_ is not None else None
        return _annotation(class_.file, found) if class_ is not None else None
    for each in frame.function.all_parameters() if frame.function is not None else ():
        if each.arg == path[0]:
            return _annotation(frame.file, each.annotation)
    return None


def _of_class(class_: Class, name: str) -> ast.expr | None:
    init = class_.method("__init__")
    if init is not None:
        return next((each.annotation for each in init.all_parameters() if each.arg == name), None)
    return next((annotation for field, annotation, _ in class_.data_fields if field == name), None)


def _annotation(file: File, node: ast.expr | None) -> Value | None:
    """The kind that an annotation names, None for any other."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return _annotation(file, ast.parse(node.value, mode="eval").body)
        except SyntaxError:
            return None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [each for each in (node.left, node.right) if not _is_none(each)]
        return _annotation(file, sides[0]) if len(sides) == 1 else None
    inner = node.value if isinstance(node, ast.Subscript) else node
    name = (file.qualified(inner) or dotted(inner) or "") if inner is not None else ""
    if isinstance(node, ast.Subscript) and name in ("typing.Optional", "Optional"):
        return _annotation(file, node.slice)
    if name.removeprefix("typing.") in _CONTAINERS:
        return Value(_CONTAINERS[name.removeprefix("typing.")])  # type: ignore[arg-type]
    record = knowledge.cls(name) if name.startswith("torch.") else None
    kind = _ANNOTATED.get(record.family) if record is not None else None
    return Value(kind, ref=name) if kind is not None else None  # type: ignore[arg-type]


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _is_asked(observer: Observer, frame: Frame, root: str) -> bool:
    """Whether the function asks what its argument is before it uses it."""
    function = frame.function
    if function is None:
        return False
    asked = observer.asked.get(id(function.node))
    if asked is None:
        asked = observer.asked[id(function.node)] = frozenset(_asked(frame.file, function))
    return root in asked


def _asked(file: File, function: Function) -> Iterator[str]:
    """The names that a function asks what they are."""
    for node in file.nodes_of(function.node):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Name):
            if (dotted(node.func) or "").rpartition(".")[2] in _ASKS:
                yield node.args[0].id
