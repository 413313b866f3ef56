"""Attributes, items, and what going through something gives."""

from __future__ import annotations

import ast
from typing import Any

from devlint import knowledge
from devlint.inference.objects.heap import ITEM, Thing
from devlint.inference.program.definitions import Class, binding_of
from devlint.inference.summary.dispatch import evaluate, silent
from devlint.inference.summary.frame import Frame, unread
from devlint.inference.terms.places import (
    CPU,
    DEPTH,
    LIMIT,
    Alternative,
    Origin,
    Places,
    nowhere,
    place_of,
    single,
    unread_root,
    with_zero_dim,
)
from devlint.inference.terms.values import (
    ARRAY,
    NOTHING,
    NUMBER,
    STRING,
    Value,
    given,
    given_device,
    merge,
    merge_all,
    part_of,
    something,
)

#: Attributes of a tensor that are the tensor again, as far as devices go [torch.Tensor].
_VIEWS = frozenset({"data", "T", "mT", "H", "mH", "grad", "real", "imag", "_grad"})


#: Attributes of classes and functions that are strings [Python's language reference, "Special attributes"].
_NAMES = frozenset({"__name__", "__qualname__", "__module__", "__doc__"})


def attribute(frame: Frame, base: Value, name: str, node: ast.AST) -> Value:
    """What an attribute of a value is."""
    if base.kind in ("tensor", "tensors", "batch"):
        return _of_tensor(frame, base, name)
    if name in _NAMES:
        return STRING
    if name == "dtype" and base.kind in ("unknown", "module", "instance"):
        return Value("dtype")
    if base.objects:
        return _of_objects(frame, base, name, node)
    if base.kind == "device":
        return Value("string" if name == "type" else "number")
    if base.kind == "class" and isinstance(base.ref, Class):
        return _of_class(frame, base.ref, name)
    if base.kind == "library":
        return Value("library", ref=f"{base.ref}.{name}")
    if base.kind in ("array", "number", "string", "size", "dtype"):
        return ARRAY if base.kind == "array" and name in ("T", "real", "imag", "flat") else NOTHING
    if base.path is not None:
        return _of_given(frame, base, name)
    if name == "device" and base.places:
        frame.asks(base)
        return Value("device", _bare(base.places))
    return unread(node, "." + name) if base.kind == "unknown" else NOTHING


def _of_tensor(frame: Frame, base: Value, name: str) -> Value:
    if name == "device":
        frame.asks(base)
        return Value("device", _bare(base.places), path=None)
    if name in ("shape",):
        return Value("size", base.places)
    if name in ("ndim", "nbytes", "itemsize"):
        return Value("number", base.places)
    if name == "dtype":
        return Value("dtype")
    if base.kind == "batch":
        return base._replace(kind="tensor", proved=False)
    if base.kind == "tensors" and not hasattr(tuple, name):
        return base._replace(kind="tensor", path=None)  # torch.return_types: a field of a named tuple
    if name in _VIEWS or knowledge.attribute("Tensor", name) == "tensor":
        return base._replace(kind="tensor", path=None)
    return NOTHING


def _bare(places: Places) -> Places:
    """The device of a tensor, as a device: it remembers a factory that put the tensor on the CPU."""
    return tuple(
        Alternative(
            each.atom,
            each.origin
            if each.atom == CPU and each.origin is not None and each.origin.why in ("factory", "option")
            else None,
            each.condition,
            each.soft,
        )
        for each in places
    )


def _of_given(frame: Frame, base: Value, name: str) -> Value:
    assert base.path is not None
    if name == "device":
        frame.asks(base)
        path = (*base.path, ".device")
        return given_device(path)
    if name in ("shape",) and base.places:
        return Value("size", base.places, path=(*base.path, ".shape"))
    value = part_of(base, "." + name)
    return _as_used(frame, value)


def _as_used(frame: Frame, value: Value) -> Value:
    """A part of something given, which a use may prove to be a tensor."""
    if value.path is not None and value.path in frame.site.tensors and value.kind == "unknown":
        return value._replace(kind="tensor")
    return value


def _of_objects(frame: Frame, base: Value, name: str, node: ast.AST) -> Value:
    found: Value | None = None
    for identity in base.objects:
        value = _of_object(frame, base, identity, name, node)
        found = value if found is None else merge(found, value)
    return _as_used(frame, found) if found is not None else NOTHING


def _of_object(frame: Frame, base: Value, identity: Any, name: str, node: ast.AST) -> Value:
    thing = frame.heap.get(identity)
    value = frame.heap.field(identity, "." + name)
    if name == "param_groups" and isinstance(thing.class_, Class) and thing.class_.family == "Optimizer":
        return _groups(frame, identity, value, node)
    if value is not None:
        return value
    me = base._replace(objects=(identity,))
    if isinstance(thing.class_, Class):
        method = thing.class_.method(name)
        if method is not None:
            return _bound(frame, me, method, node)
        inner = thing.class_.class_inside(name)
        if inner is not None:
            return Value("class", ref=inner)
        body = thing.class_.value(name)
        if body is not None and not (
            thing.class_.is_data and any(name == each for each, _, _ in thing.class_.data_fields)
        ):
            return _class_value(frame, *body)
    if isinstance(thing.class_, Class):
        kept = _kept_by_base(frame, thing.class_, identity, name, node)
        if kept is not None:
            return kept
    if name == "module" and thing.kind == "module" and thing.class_ is None:
        return me
    if name == "device" and thing.kind == "module":
        frame.site.asks.add(identity[1][0] if identity[0] == "path" else "")
        return Value("device", frame.heap.home(identity))
    if thing.kind == "module" and isinstance(thing.class_, str) and name in ("weight", "bias"):
        return Value("tensor", frame.heap.home(identity))
    if thing.kind == "module" and name in knowledge.methods("Module"):
        return Value("bound", ref=(me, name))
    if thing.kind == "module" and isinstance(thing.class_, str):
        return Value("unknown", nowhere())
    if name == "__dict__":
        frame.heap.forget((identity,))
        return unread(node)
    if identity[0] == "path" and len(identity[1]) < DEPTH:
        value = given((*identity[1], "." + name))
    else:
        value = (
            something()._replace(
                path=(unread_root(repr(identity), getattr(thing.class_, "name", thing.kind)), "." + name)
            )
            if not thing.whole
            else NOTHING
        )
    return value


def _kept_by_base(frame: Frame, class_: Class, identity: Any, name: str, node: ast.AST) -> Value | None:
    """What a base of torch keeps: an optimizer has a state for each parameter [torch/optim/optimizer.py]."""
    if class_.family != "Optimizer" or identity[0] != "path":
        return None
    if name == "state":
        state = ("path", (*identity[1], ".state", ITEM))
        frame.heap.things.setdefault(state, Thing("dict"))
        return Value(
            "dict", objects=(frame.new_thing(node, Thing("dict", fields={ITEM: Value("dict", objects=(state,))})),)
        )
    return None


def _groups(frame: Frame, identity: Any, known: Value | None, node: ast.AST) -> Value:
    """The parameters of an optimizer, in groups [torch/optim/optimizer.py]. `known`: where its constructor got them from."""
    places = known.places if known is not None else ()
    if not places:
        places = single(place_of((*identity[1], ".param_groups"))) if identity[0] == "path" else nowhere()
    parameters = Value("iterator", parts=(Value("tensor", places),))
    group = Thing("dict", fields={"['params']": parameters, ITEM: something()}, node=node)
    return Value("iterator", parts=(Value("dict", objects=(frame.new_thing(node, group),)),))


def keep_parameters(frame: Frame, me: Value, parameters: Value | None) -> None:
    """An optimizer keeps the parameters that its constructor gets, alone or in groups [torch/optim/optimizer.py]."""
    places = _parameters_in(frame, parameters) if parameters is not None else ()
    if places:
        frame.heap.write(me.objects, ".param_groups", Value("tensor", places))


def _parameters_in(frame: Frame, value: Value) -> Places:
    if value.kind == "dict":
        group = frame.heap.field(value.objects[0], "['params']") if value.objects else None
        return _parameters_in(frame, group) if group is not None else ()
    if value.kind in ("iterator", "list", "tuple"):
        found = {p.atom: p for part in frame.heap.parts_of(value) for p in _parameters_in(frame, part)}
        return tuple(found.values()) if len(found) <= LIMIT else ()
    return value.places


def _bound(frame: Frame, me: Value, method: Any, node: ast.AST) -> Value:
    how = binding_of(method)
    if how == "property":
        return frame.analyser.call(frame, method, me, [], node)
    if how == "static":
        return Value("function", ref=(method, None))
    return Value("function", ref=(method, me))


def _class_value(frame: Frame, class_: Class, expression: ast.expr) -> Value:
    """What the body of a class binds a name to."""
    if isinstance(expression, ast.Constant):
        value = expression.value
        kind = (
            "none"
            if value is None
            else "bool"
            if isinstance(value, bool)
            else "string"
            if isinstance(value, str)
            else "number"
        )
        return Value(kind, constant=value)  # type: ignore[arg-type]
    around = class_.outer or frame.analyser.module_level(class_.file)
    with silent(around):
        found = evaluate(around, expression)
    return found if found.kind in ("tensor", "device", "dtype", "tuple", "library", "class") else something()


def _of_class(frame: Frame, class_: Class, name: str) -> Value:
    method = class_.method(name)
    if method is None and name == "apply" and class_.family == "Function":
        return Value("bound", ref=(Value("class", ref=class_), name))
    inner = class_.class_inside(name) if method is None else None
    if inner is not None:
        return Value("class", ref=inner)
    if method is None:
        body = class_.value(name)
        return _class_value(frame, *body) if body is not None else unread(class_.node, "." + name)
    how = binding_of(method)
    return Value("function", ref=(method, Value("class", ref=class_) if how == "class" else None))


# -- items


def item_of(frame: Frame, value: Value, node: ast.AST) -> Value:
    """What a loop over a value gives each time."""
    kind = value.kind
    if kind == "loader":
        return value.parts[0] if value.parts else Value("batch", nowhere())
    if kind == "tensor":
        return value._replace(places=with_zero_dim(value.places, None), path=None)
    if kind == "tensors":
        return value._replace(kind="tensor", path=None)
    if kind == "batch":
        return value
    if kind in ("iterator", "tuple") and value.parts is not None:
        found = merge_all(value.parts)
        return frame.heap.settled(found) if found is not None else NOTHING
    if kind == "size":
        return Value("number", value.places)
    if value.objects:
        return _item_of_objects(frame, value, node)
    if value.path is not None:
        return _as_used(frame, part_of(value, ITEM))
    if kind == "array":
        return ARRAY
    return unread(node, ITEM) if kind == "unknown" else NUMBER if kind == "number" else NOTHING


def _item_of_objects(frame: Frame, value: Value, node: ast.AST) -> Value:
    found: Value | None = None
    for identity in value.objects:
        thing = frame.heap.get(identity)
        if isinstance(thing.class_, Class):
            each = _item_of_instance(frame, thing.class_, value, node)
        elif thing.kind == "dict":
            each = STRING
        else:
            stored = frame.heap.field(identity, ITEM)
            each = (
                stored
                if stored is not None
                else given((*identity[1], ITEM))
                if identity[0] == "path" and len(identity[1]) < DEPTH
                else value._replace(objects=(identity,))
                if thing.kind == "module"
                else NOTHING
            )
        found = each if found is None else merge(found, each)
    return found if found is not None else NOTHING


def _item_of_instance(frame: Frame, class_: Class, value: Value, node: ast.AST) -> Value:
    """What going through an object of the tree's own class gives: `__iter__`, then `__next__` of what that gives."""
    method = class_.method("__iter__")
    if method is None:
        return unread(node, ITEM)
    iterator = frame.analyser.call(frame, method, value, [], node)
    classes = [frame.heap.get(identity).class_ for identity in iterator.objects]
    own = [each for each in classes if isinstance(each, Class)]
    if not own:
        return item_of(frame, iterator, node)
    step = own[0].method("__next__")
    return frame.analyser.call(frame, step, iterator, [], node) if step is not None else unread(node, ITEM)


def values_of(frame: Frame, value: Value, node: ast.AST) -> Value:
    """What `.values()` of a dict, a batch or something given goes through."""
    if value.kind == "batch":
        return value._replace(kind="tensor", proved=False)
    if value.objects:
        found: Value | None = None
        for identity in value.objects:
            each = frame.heap.field(identity, ITEM)
            if each is None and identity[0] == "path" and len(identity[1]) < DEPTH:
                each = given((*identity[1], ITEM))
            if each is not None:
                found = each if found is None else merge(found, each)
        return found if found is not None else NOTHING
    return part_of(value, ITEM) if value.path is not None else unread(node, ITEM)


def entry_under(frame: Frame, mapping: Value, key: str, node: ast.AST) -> Value:
    """What a mapping holds under a key, as far as that is known."""
    if mapping.kind == "batch":
        return mapping._replace(kind="tensor", proved=False)
    if mapping.objects:
        found = frame.heap.field(mapping.objects[0], f"[{key!r}]")
        return found if found is not None else NOTHING
    return part_of(mapping, f"[{key!r}]") if mapping.path is not None else NOTHING


def known_items(frame: Frame, value: Value) -> tuple[Value, ...] | None:
    """The items of a tuple or a list, where they are known one by one."""
    if value.kind == "tuple":
        return value.parts
    if value.kind != "list" or len(value.objects) != 1:
        return None
    fields = frame.heap.get(value.objects[0]).fields
    return tuple(fields.values()) if ITEM not in fields else None


def entry_of(key: Value) -> str:
    """The heap's name of an item under a key."""
    constant = key.constant
    return f"[{constant!r}]" if isinstance(constant, (int, str)) and not isinstance(constant, bool) else ITEM


def unpacked(frame: Frame, value: Value, count: int, node: ast.AST) -> list[Value]:
    """The values of so many targets."""
    if value.parts is not None and value.kind in ("tuple",) and len(value.parts) == count:
        return [frame.heap.settled(part) for part in value.parts]
    if value.kind == "size":
        return [Value("number", value.places)] * count
    if value.kind == "batch":
        return [
            value._replace(kind="tensor", proved=False, places=tuple(_part_of_batch(p, i) for p in value.places))
            for i in range(count)
        ]
    if value.objects:
        found = []
        for i in range(count):
            each = frame.heap.field(value.objects[0], f"[{i}]")
            found.append(each if each is not None else item_of(frame, value, node))
        return found
    if value.path is not None and value.kind in ("unknown", "loader"):
        return [_as_used(frame, part_of(value, f"[{i}]")) for i in range(count)]
    if value.kind == "unknown":
        return [unread(node, f"[{i}]") for i in range(count)]
    item = item_of(frame, value, node)
    return [item] * count


def _part_of_batch(each: Alternative, index: int) -> Alternative:
    origin = each.origin
    return each._replace(origin=origin._replace(name=f"{origin.name}[{index}]")) if isinstance(origin, Origin) else each


__all__ = [
    "attribute",
    "entry_of",
    "entry_under",
    "given_device",
    "item_of",
    "keep_parameters",
    "known_items",
    "single",
    "unpacked",
    "values_of",
]
