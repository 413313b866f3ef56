"""Tests: which literals hold where a test is true or false, and what the names are there."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from devlint import knowledge
from devlint.inference.summary import moves, walks
from devlint.inference.summary.dispatch import evaluate, peek, silent
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.parameters import path_of
from devlint.inference.terms.conditions import (
    ACCELERATOR,
    ALWAYS,
    DATA,
    ORDERS,
    ROUND,
    SAME,
    Condition,
    Test,
    both,
    is_ordered,
)
from devlint.inference.terms.conflicts import clash
from devlint.inference.terms.places import ACCELERATORS, CPU, at, show_path, single
from devlint.inference.terms.values import NONE, OTHER, Kind, Value

Outcomes = tuple[Condition, Condition]


def outcomes(frame: Frame, test: ast.expr) -> Outcomes:
    """The conditions under which a test is true, and false."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yes, no = outcomes(frame, test.operand)
        return no, yes
    if isinstance(test, ast.BoolOp):
        return _combined(frame, test)
    if isinstance(test, ast.NamedExpr):
        return outcomes(frame, test.target)
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        return _compared(frame, test)
    if isinstance(test, ast.Constant):
        return (ALWAYS, _never()) if test.value else (_never(), ALWAYS)
    value = peek(frame, test)
    if value is not None and value.test is not None:
        return value.test
    if (
        value is not None
        and value.kind in ("bool", "none", "number", "string")
        and not (value.kind != "none" and value.constant is None)
    ):
        return (ALWAYS, _never()) if value.constant else (_never(), ALWAYS)
    if isinstance(test, ast.Call):
        found = _asked(frame, test)
        if found is not None:
            return found
    if isinstance(test, ast.Attribute) and test.attr == "is_cuda" and not _has_objects(frame, test.value):
        return _device_is(frame, test.value, "cuda")
    named = subject(frame, test)
    is_there: Condition = frozenset({(("truth", named), True)})
    if path_of(test) is not None:
        is_there |= {(("none", named), False)}
    return is_there, frozenset({(("truth", named), False)})


def _has_objects(frame: Frame, node: ast.expr) -> bool:
    """Whether an expression is an object, whose `is_cuda` is a field of its own: a module has none of torch's."""
    value = peek(frame, node)
    return value is not None and bool(value.objects)


def _negated(members: Condition) -> Condition:
    """Where not all of these hold."""
    if not members:
        return _never()
    if len(members) == 1:
        ((test, outcome),) = members
        return frozenset({(test, not outcome)})
    return frozenset({(("all", members), False)})


def _never() -> Condition:
    return frozenset({(("never",), True), (("never",), False)})


def _combined(frame: Frame, test: ast.BoolOp) -> Outcomes:
    """`and` and `or`: the members one by one where all of them hold, else one literal for the whole."""
    pairs = [outcomes(frame, each) for each in test.values]
    if isinstance(test.op, ast.Or):
        pairs = [(no, yes) for yes, no in pairs]
    members: Condition = frozenset().union(*(yes for yes, _ in pairs))
    hold, _ = both(ALWAYS, members)
    if any(no == _never() for _, no in pairs):
        members = frozenset().union(*(yes for yes, no in pairs if no != _never()))
    fails = _negated(members)
    return (hold, fails) if isinstance(test.op, ast.And) else (fails, hold)


def _compared(frame: Frame, test: ast.Compare) -> Outcomes:
    of_type = _is_of_type(frame, test)
    if of_type is not None:
        return of_type
    op, left, right = test.ops[0], test.left, test.comparators[0]
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        return _swap(_is_none(frame, left), isinstance(op, ast.IsNot))
    if not isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
        return _ordered(frame, test, left, op, right)
    return _swap(_equal(frame, test, left, right), isinstance(op, (ast.NotEq, ast.IsNot)))


def _ordered(frame: Frame, test: ast.Compare, left: ast.expr, op: ast.cmpop, right: ast.expr) -> Outcomes:
    """A comparison by size. One with a number is decided where a call says what is compared."""
    literal: Test = ("truth", (ast.unparse(test), _versions(frame, test)))
    sign, value = ORDERS.get(type(op)), peek(frame, left)
    if sign is not None and isinstance(right, ast.Constant) and isinstance(right.value, (int, float)):
        if value is not None and isinstance(value.constant, (int, float)):
            return (ALWAYS, _never()) if is_ordered(value.constant, sign, right.value) else (_never(), ALWAYS)
        if value is not None and value.path is not None and value.kind in ("number", "unknown"):
            literal = ("order", value.path, sign, right.value)
    return frozenset({(literal, True)}), frozenset({(literal, False)})


def _swap(pair: Outcomes, swapped: bool) -> Outcomes:
    return (pair[1], pair[0]) if swapped else pair


def _is_none(frame: Frame, node: ast.expr) -> Outcomes:
    value = peek(frame, node)
    if value is not None and value.missing is not None:
        return value.missing
    if value is not None and value.kind == "none":
        return ALWAYS, _never()
    if (
        value is not None
        and value.kind in ("tensor", "module", "instance", "list", "dict", "number", "string")
        and value.path is None
        and value.proved
    ):
        if not any(each.condition for each in value.places):
            return _never(), ALWAYS
    test: Test = ("none", subject(frame, node))
    return frozenset({(test, True)}), frozenset({(test, False)})


def _equal(frame: Frame, test: ast.Compare, left: ast.expr, right: ast.expr) -> Outcomes:
    if (first := _device_read(left)) is not None and (second := _device_read(right)) is not None:
        return _same_place(peek(frame, first), peek(frame, second))
    for asked, constant in ((left, right), (right, left)):
        text = constant_of(frame, constant)
        if isinstance(text, str):
            type = text.partition(":")[0]
            if type == "cpu" or type in ACCELERATORS:
                return _device_is(frame, asked, type)
    named, other = (left, right) if constant_of(frame, right) is not None else (right, left)
    value = peek(frame, named)
    constant_value = constant_of(frame, other)
    if value is not None and value.constant is not None and constant_value is not None:
        return (ALWAYS, _never()) if value.constant == constant_value else (_never(), ALWAYS)
    literal: Test = (
        "equal",
        subject(frame, named),
        repr(constant_value) if constant_value is not None else ast.unparse(other),
    )
    return frozenset({(literal, True)}), frozenset({(literal, False)})


def _device_read(node: ast.expr) -> ast.expr | None:
    """The tensor whose device an expression reads: `x.device`, `x.device.type`, `x.get_device()`, `x.is_cuda`."""
    if isinstance(node, ast.Attribute) and node.attr in ("type", "index"):
        node = node.value
    if isinstance(node, ast.Attribute) and node.attr in ("device", "is_cuda"):
        return node.value
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get_device":
        return node.func.value
    return None


def _same_place(a: Value | None, b: Value | None) -> Outcomes:
    """Whether two values are at one place."""
    places = [value.places if value is not None else () for value in (a, b)]
    if any(len(each) != 1 for each in places):
        return frozenset({(SAME, True)}), frozenset({(SAME, False)})
    (x,), (y,) = places
    if x.atom == y.atom:
        return ALWAYS, _never()
    if clash(x.atom, y.atom) == "named":
        return _never(), ALWAYS
    literal: Test = ("same", frozenset({x.atom, y.atom}))
    return frozenset({(literal, True)}), frozenset({(literal, False)})


def _device_is(frame: Frame, node: ast.expr, type: str) -> Outcomes:
    """`device.type == "cuda"`, `str(device) == "cpu"`: the conditions under which the device was made so."""
    asked = node.value if isinstance(node, ast.Attribute) and node.attr == "type" else node
    first = _first_parameter(frame, asked)
    if first is None and isinstance(asked, ast.Call) and asked.args:
        asked = asked.args[0]
    on = type in ACCELERATORS
    value = first if first is not None else peek(frame, asked)
    test: Test = asked_of(value, type) or ("equal", subject(frame, asked), type)
    yes: Condition = frozenset({(test, True)})
    no: Condition = frozenset({(test, False)})
    if on:
        yes |= {(ACCELERATOR, True)}
    if (
        value is not None
        and value.kind in ("device", "tensor")
        and value.places
        and all(p.atom.tag == "at" for p in value.places)
    ):
        fit = [p for p in value.places if p.atom.key[0] == type]
        rest = [p for p in value.places if p.atom.key[0] != type]
        yes = yes | fit[0].condition if len(fit) == 1 else yes if fit else _never()
        no = no | rest[0].condition if len(rest) == 1 else no if rest else _never()
    return yes, no


def _first_parameter(frame: Frame, node: ast.expr) -> Value | None:
    """`next(module.parameters())`, or its `device`: it says where the module is."""
    inner = node.value if isinstance(node, ast.Attribute) and node.attr == "device" else node
    if not (
        isinstance(inner, ast.Call) and isinstance(inner.func, ast.Name) and inner.func.id == "next" and inner.args
    ):
        return None
    source = inner.args[0]
    if not (isinstance(source, ast.Call) and isinstance(source.func, ast.Attribute)):
        return None
    if source.func.attr not in ("parameters", "buffers") or source.args or peek(frame, source.func.value) is None:
        return None
    with silent(frame):
        return evaluate(frame, inner)


def asked_of(value: Value | None, type: str) -> Test | None:
    """The test for a type of device, of a tensor or a device that an access path gives."""
    if value is None or len(value.places) != 1:
        return None
    tag, key = value.places[0].atom
    return ("device" if tag == "place" else "names", key, type) if tag in ("place", "names") else None


def _asked(frame: Frame, test: ast.Call) -> Outcomes | None:
    """Calls that ask for an accelerator, or for a type."""
    name = frame.file.qualified(test.func) or ""
    if name.startswith("torch.") and name.rpartition(".")[2] in ("is_available", "device_count"):
        return frozenset({(ACCELERATOR, True)}), frozenset({(ACCELERATOR, False)})
    if isinstance(test.func, ast.Name) and test.func.id == "isinstance" and len(test.args) == 2:
        value = peek(frame, test.args[0])
        if (
            value is not None
            and value.kind == "module"
            and value.proved
            and _kind_of_type(frame, test.args[1]) == "module"
        ):
            if (frame.file.qualified(test.args[1]) or "").rpartition(".")[2] == "Module":
                return ALWAYS, _never()
    if isinstance(test.func, ast.Name) and test.func.id == "hasattr" and len(test.args) == 2:
        literal: Test = ("type", subject(frame, test.args[0]), ast.unparse(test.args[1]))
        return frozenset({(literal, True)}), frozenset({(literal, False)})
    return _is_of_type(frame, test)


def _is_of_type(frame: Frame, test: ast.expr) -> Outcomes | None:
    """The conditions of a test that asks for the type of something."""
    asked = _type_asked(frame, test)
    if asked is None:
        return None
    node, types, swapped = asked
    kinds = {_kind_of_type(frame, each) for each in types}
    text = DATA if kinds <= _HOST_DATA else ", ".join(sorted(ast.unparse(each) for each in types))
    literal: Test = ("type", subject(frame, node), text)
    return _swap((frozenset({(literal, True)}), frozenset({(literal, False)})), swapped)


#: Kinds of data that the host computes with. Where one argument is such data, the others of the call are too.
_HOST_DATA: frozenset[Kind] = frozenset({"array"})


def _type_asked(frame: Frame, test: ast.expr) -> tuple[ast.expr, list[ast.expr], bool] | None:
    """Of a test for a type: what it asks about, the types, and whether it asks for any other.

    Forms: `isinstance(x, T)`, `torch.is_tensor(x)`, `type(x) is T`, `type(x) == T`, `type(x) in (T, S)`.
    """
    if isinstance(test, ast.Call) and test.args:
        name = frame.file.qualified(test.func) or (test.func.id if isinstance(test.func, ast.Name) else "")
        if name == "torch.is_tensor":
            return test.args[0], [ast.copy_location(ast.parse("torch.Tensor", mode="eval").body, test)], False
        return (test.args[0], _members(test.args[1]), False) if name == "isinstance" and len(test.args) == 2 else None
    if isinstance(test, ast.Compare) and len(test.ops) == 1:
        op, left, right = test.ops[0], test.left, test.comparators[0]
        if isinstance(op, (ast.In, ast.NotIn)):
            inner = _of_type_call(left)
            return (inner, _members(right), isinstance(op, ast.NotIn)) if inner is not None else None
        if isinstance(op, (ast.Eq, ast.NotEq, ast.Is, ast.IsNot)):
            left, right = (right, left) if _of_type_call(left) is None or _is_sample(left) else (left, right)
            inner = _of_type_call(left)
            return (inner, [right], isinstance(op, (ast.NotEq, ast.IsNot))) if inner is not None else None
    return None


def _members(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_members(node.left), *_members(node.right)]
    return list(node.elts) if isinstance(node, (ast.Tuple, ast.List, ast.Set)) else [node]


def _of_type_call(node: ast.expr) -> ast.expr | None:
    """The `x` of `type(x)`."""
    is_type = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"
    return node.args[0] if is_type and len(node.args) == 1 else None  # type: ignore[attr-defined]


def _is_sample(node: ast.expr) -> bool:
    """Whether `type(x)` names the type of a literal: `type([])`."""
    return isinstance(_of_type_call(node), (ast.List, ast.Tuple, ast.Dict, ast.Constant))


def subject(frame: Frame, node: ast.expr) -> Any:
    """What a test is about: the access path of something given, else a version of its text."""
    value = peek(frame, node)
    if value is not None and value.path is not None and value.kind != "device":
        return value.path
    if (
        value is not None
        and value.kind == "device"
        and value.path is not None
        and isinstance(node, (ast.Name, ast.Attribute))
    ):
        return value.path
    return (ast.unparse(node), _versions(frame, node))


#: Modules of which each call gives something else [Python's library reference, "random"; numpy.random].
_VARYING = ("random.", "numpy.random.")


def _versions(frame: Frame, node: ast.AST) -> tuple[tuple[str, int], ...]:
    found = {(n.id, frame.version(n.id)) for n in ast.walk(node) if isinstance(n, ast.Name) and frame.version(n.id)}
    if frame.loops and any(isinstance(n, ast.Call) and _varies(frame, n) for n in ast.walk(node)):
        found.add((ROUND, frame.version(ROUND)))
    return tuple(sorted(found))


def _varies(frame: Frame, call: ast.Call) -> bool:
    """Whether a call may give something else in each round of a loop: how long something is, or a random number."""
    if isinstance(call.func, ast.Name) and call.func.id == "len":
        return True
    return (frame.file.qualified(call.func) or "").startswith(_VARYING)


def constant_of(frame: Frame, node: ast.expr) -> Any:
    """The constant that an expression is known to be."""
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Call) and node.args and (frame.file.qualified(node.func) or "") == "torch.device":
        return constant_of(frame, node.args[0])
    value = peek(frame, node)
    return value.constant if value is not None else None


# -- what names are where a test holds


def enter(frame: Frame, test: ast.expr, truth: bool, condition: Condition) -> None:
    """Go on where a test came out so."""
    frame.condition, _ = both(frame.condition, condition)
    narrow(frame, test, truth)


@contextmanager
def supposed(frame: Frame, test: ast.expr, truth: bool) -> Iterator[None]:
    """Inside, a test came out so. Afterwards nothing is known of it."""
    names = {node.id: frame.state.names.get(node.id) for node in ast.walk(test) if isinstance(node, ast.Name)}
    outer, before = frame.condition, dict(frame.heap.narrowed)
    enter(frame, test, truth, outcomes(frame, test)[0 if truth else 1])
    narrowed = {name: frame.state.names.get(name) for name in names}
    fields = dict(frame.heap.narrowed)
    yield
    frame.condition = outer
    _forget(frame.state.names, names, narrowed)
    _forget(frame.heap.narrowed, before, fields)


def _forget(table: dict[Any, Any], before: dict[Any, Any], inside: dict[Any, Any]) -> None:
    """Take back the entries that a test set, but not those that changed since."""
    for key, value in inside.items():
        if value is before.get(key) or table.get(key) is not value:
            continue
        if before.get(key) is None:
            table.pop(key, None)
        else:
            table[key] = before[key]


def narrow(frame: Frame, test: ast.expr, truth: bool) -> None:
    """Rebind the names that a test says something of."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, truth = test.operand, not truth
    if isinstance(test, ast.BoolOp):
        if isinstance(test.op, ast.And) == truth:
            for each in test.values:
                narrow(frame, each, truth)
    elif (asked := _type_asked(frame, test)) is not None:
        node, types, swapped = asked
        _narrow_type(frame, node, types, truth != swapped)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1:
        _narrow_compared(frame, test, truth)
    elif isinstance(test, ast.Attribute) and test.attr == "is_cuda":
        _narrow_device(frame, test.value, "cuda", truth)
    elif isinstance(test, ast.Call) and len(test.args) == 2 and truth:
        _narrow_by_attribute(frame, test)
    elif isinstance(test, ast.Name) and not truth:
        value = frame.state.names.get(test.id)
        if value is not None and value.kind in ("module", "instance"):
            frame.state.names[test.id] = NONE  # of these only None is false


def _narrow_compared(frame: Frame, test: ast.Compare, truth: bool) -> None:
    op, right = test.ops[0], test.comparators[0]
    if isinstance(op, (ast.Is, ast.IsNot)) and isinstance(right, ast.Constant) and right.value is None:
        if truth == isinstance(op, ast.Is):
            _rebind(frame, test.left, NONE)
    elif isinstance(op, (ast.Eq, ast.NotEq)):
        text = constant_of(frame, right)
        node = test.left.value if isinstance(test.left, ast.Attribute) and test.left.attr == "type" else test.left
        if isinstance(text, str) and isinstance(node, ast.Attribute) and node.attr == "device":
            _narrow_device(frame, node.value, text.partition(":")[0], truth == isinstance(op, ast.Eq))
        if truth != isinstance(op, ast.Eq):
            return
        if isinstance(text, str) and text.partition(":")[0] in (*ACCELERATORS, "cpu"):
            value = peek(frame, node)
            if value is not None and value.kind == "device":
                index = text.partition(":")[2] or None
                _rebind(
                    frame, node, Value("device", single(at(text.partition(":")[0], index) if text != "cpu" else CPU))
                )


def _narrow_device(frame: Frame, node: ast.expr, type: str, truth: bool) -> None:
    """Go on where a tensor is, or is not, on a device of a type."""
    value = peek(frame, node)
    if value is None or not value.is_tensor:
        return
    left = tuple(p for p in value.places if p.atom.tag != "at" or (p.atom.key[0] == type) == truth)
    if left and len(left) < len(value.places):
        _rebind(frame, node, value._replace(places=left))


def _narrow_by_attribute(frame: Frame, test: ast.Call) -> None:
    """`hasattr(x, "to")`: what is no tensor has no such method."""
    if isinstance(test.func, ast.Name) and test.func.id == "hasattr":
        if moves.is_move(str(constant_of(frame, test.args[1]))):
            walks.note_test(frame, test.args[0])


def _narrow_type(frame: Frame, node: ast.expr, types: list[ast.expr], truth: bool) -> None:
    """Go on where something is of one of these types, or of none of them."""
    kinds = {_kind_of_type(frame, each) for each in types}
    value = evaluate(frame, node)
    if truth and kinds == {"tensor"}:
        walks.note_test(frame, node)
    if truth and kinds == {"tensor"} and value.may_be_tensor:
        _rebind(frame, node, value._replace(kind="tensor", proved=True))
    elif truth and "tensor" not in kinds and value.kind in ("unknown", "tensor"):
        kind = next(iter(kinds)) if len(kinds) == 1 else "other"
        _rebind(
            frame,
            node,
            Value("unknown", path=value.path)
            if kind in ("module", "instance", "other", "list", "tuple", "dict")
            else Value(kind),
        )
    elif not truth and kinds == {"tensor"}:
        _rebind(frame, node, OTHER if value.kind in ("tensor", "unknown") else value)


def _kind_of_type(frame: Frame, node: ast.expr) -> Kind:
    sample = _of_type_call(node)
    if sample is not None:
        return evaluate(frame, sample).kind if _is_sample(node) else "other"
    name = frame.file.qualified(node) or (node.id if isinstance(node, ast.Name) else "")
    record = knowledge.cls(name) if name.startswith("torch.") else None
    if record is not None:
        return {"Tensor": "tensor", "Module": "module"}.get(record.family, "other")  # type: ignore[return-value]
    plain: dict[str, Kind] = {
        "int": "number",
        "float": "number",
        "str": "string",
        "list": "list",
        "tuple": "tuple",
        "dict": "dict",
        "numpy.ndarray": "array",
    }
    return plain.get(name, "other")


def _rebind(frame: Frame, node: ast.expr, value: Value) -> None:
    if isinstance(node, ast.Name):
        frame.state.names[node.id] = value
    elif isinstance(node, ast.Attribute):
        base = peek(frame, node.value)
        if base is not None and base.objects:
            frame.heap.narrow(base.objects, "." + node.attr, value)


__all__ = ["enter", "narrow", "outcomes", "show_path", "subject", "supposed"]
