"""Binding of targets: names, attributes, items, and tuples of these."""

from __future__ import annotations

import ast

from devlint.inference.objects.heap import ITEM, Thing
from devlint.inference.program.definitions import Class
from devlint.inference.summary import indexing, tests, walks
from devlint.inference.summary.dispatch import evaluate
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.items import entry_of, unpacked
from devlint.inference.terms.places import nowhere
from devlint.inference.terms.values import Value


def bind(frame: Frame, target: ast.expr, value: Value, source: ast.expr | None = None) -> None:
    """Bind a target to a value. `source` is the expression that gave it."""
    if frame.analyser.watch is not None and isinstance(target, (ast.Name, ast.Attribute)):
        frame.analyser.watch.saw(frame, target, value)
    if isinstance(target, ast.Name):
        frame.bind(target.id, _with_test(frame, value, source))
    elif isinstance(target, ast.Attribute):
        _bind_attribute(frame, target, _with_test(frame, value, source))
    elif isinstance(target, ast.Subscript):
        _bind_item(frame, target, value, source)
    elif isinstance(target, (ast.Tuple, ast.List)):
        _unpack(frame, target, value, source)
    elif isinstance(target, ast.Starred):
        bind(frame, target.value, value, source)


def _with_test(frame: Frame, value: Value, source: ast.expr | None) -> Value:
    """A bool remembers the test that it was made of; so does what a test gives that is not known to be one."""
    made = (ast.BoolOp, ast.Compare, ast.UnaryOp, *((ast.Call,) if value.kind == "bool" else ()))
    is_open = value.kind == "bool" or (value.kind == "unknown" and value.path is None and not value.objects)
    if is_open and value.test is None and value.constant is None and isinstance(source, made):
        return value._replace(test=tests.outcomes(frame, source))
    return value


def _unpack(frame: Frame, target: ast.Tuple | ast.List, value: Value, source: ast.expr | None) -> None:
    star = next((i for i, each in enumerate(target.elts) if isinstance(each, ast.Starred)), None)
    count = len(target.elts)
    if star is not None and value.parts is not None and value.kind == "tuple":
        after = count - star - 1
        parts = value.parts
        middle = Value("tuple", parts=parts[star : len(parts) - after])
        values = [*parts[:star], middle, *parts[len(parts) - after :]] if len(parts) >= count - 1 else [Value()] * count
    else:
        values = unpacked(frame, value, count, source or target)
    for each, part in zip(target.elts, values, strict=False):
        bind(frame, each, part, None)


def _bind_attribute(frame: Frame, target: ast.Attribute, value: Value) -> None:
    base = evaluate(frame, target.value)
    if target.attr == "data" and not base.objects:
        _rebind_data(frame, target, base, value)
        return
    for identity in base.objects:
        class_ = frame.heap.get(identity).class_
        setter = class_.setter(target.attr) if isinstance(class_, Class) else None
        if setter is not None:
            frame.analyser.call(frame, setter, base._replace(objects=(identity,)), [value], target)
            return
    if base.objects:
        frame.heap.write(base.objects, "." + target.attr, _kept(frame, base, target, value))
    elif base.path is not None and base.kind == "unknown":
        frame.heap.write((("path", base.path),), "." + target.attr, value)
        if isinstance(target.value, ast.Name):
            frame.state.names[target.value.id] = base._replace(objects=(("path", base.path),))


def _rebind_data(frame: Frame, target: ast.Attribute, base: Value, value: Value) -> None:
    """`weight.data = value`: the tensor is where the value is from now on; whose parameter it is, nobody knows."""
    if isinstance(target.value, ast.Name):
        frame.bind(target.value.id, base._replace(kind="tensor", places=value.places, path=None))
    for identity, thing in list(frame.heap.things.items()):
        if thing.kind == "module":
            frame.heap.put(identity, thing._replace(home=nowhere()))


def _kept(frame: Frame, base: Value, target: ast.Attribute, value: Value) -> Value:
    """A value as an object keeps it: a module's parameters are where the module is."""
    identity = base.objects[0]
    thing = frame.heap.get(identity)
    if thing.registers:
        from devlint.inference.summary.registration import as_buffer, registered, stays_buffer

        if stays_buffer(frame, identity, "." + target.attr, value):
            return as_buffer(frame, identity, value)
        return registered(frame, identity, value)
    return value


def _bind_item(frame: Frame, target: ast.Subscript, value: Value, source: ast.expr | None) -> None:
    base = evaluate(frame, target.value)
    key = evaluate(frame, target.slice) if not isinstance(target.slice, ast.Slice) else Value()
    walks.note_store(frame, target, value)
    if base.kind == "batch" and isinstance(target.value, ast.Name) and not isinstance(target.slice, ast.Slice):
        _bind_item_of_batch(frame, target, target.value.id, base, key, value)
        return
    if base.objects:
        frame.heap.write(base.objects, entry_of(key), value)
        return
    if base.is_tensor or (base.kind == "unknown" and (value.is_tensor or key.is_tensor)):
        indexing.write(frame, target, base, key, value, source)
        if base.kind != "unknown" or base.path is None or not value.is_tensor or key.constant is None:
            return
    if base.path is not None and base.kind == "unknown" and isinstance(target.value, ast.Name):
        identity = ("path", base.path)
        frame.heap.write((identity,), entry_of(key) if key.constant is not None else ITEM, value)
        frame.state.names[target.value.id] = base._replace(objects=(identity,))


def _bind_item_of_batch(frame: Frame, target: ast.Subscript, name: str, base: Value, key: Value, value: Value) -> None:
    """A batch is a tensor, or a list or dict of tensors. Under a string it is a dict; else nobody knows which part is new."""
    if isinstance(key.constant, str):
        others = base._replace(kind="tensor", proved=False)
        fields = {ITEM: others, entry_of(key): value}
        frame.state.names[name] = Value(
            "dict", objects=(frame.new_thing(target, Thing("dict", fields=fields, node=target)),)
        )
    elif value.places != base.places:
        frame.state.names[name] = base._replace(places=nowhere(), path=None)
