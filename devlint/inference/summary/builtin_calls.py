"""Calls of Python's builtins [Python's library reference, "Built-in Functions"]."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Final

from devlint.inference.objects.heap import ITEM, Thing
from devlint.inference.summary import unread_calls
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.frame import Frame
from devlint.inference.summary.items import attribute, entry_of, item_of, known_items
from devlint.inference.terms.values import BOOL, NONE, NOTHING, NUMBER, STRING, Value, merge_all, something

Run = Callable[[Frame, ast.Call, Arguments], Value]


def call(frame: Frame, node: ast.Call, name: str, arguments: Arguments) -> Value:
    run = _RUN.get(name)
    if run is not None:
        return run(frame, node, arguments)
    if name in _BOOLS:
        return BOOL
    if name in _STRINGS:
        return STRING
    if name in _NUMBERS:
        first = arguments.value(0)
        return first if first is not None and first.kind == "number" else NUMBER
    return unread_calls.call(frame, node, arguments)


_BOOLS: Final = frozenset({"isinstance", "hasattr", "callable", "any", "all", "issubclass", "bool"})
_STRINGS: Final = frozenset({"str", "repr", "format", "chr", "input", "bin", "hex", "ascii"})
_NUMBERS: Final = frozenset({"int", "float", "round", "hash", "ord", "id", "complex"})


def _print(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    return NONE


def _enumerate(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    first = arguments.value(0, "iterable") or NOTHING
    return Value("iterator", parts=(Value("tuple", parts=(NUMBER, item_of(frame, first, node))),))


def _zip(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    parts = tuple(item_of(frame, value, at) for at, value in arguments.positional)
    return Value("iterator", parts=(Value("tuple", parts=parts if not arguments.stars else None),))


def _same(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`list`, `iter`, `reversed` and the like: what goes through the same things."""
    first = arguments.value(0)
    if first is None:
        return Value("list", objects=(frame.new_thing(node, Thing("list", whole=True, node=node)),))
    if first.kind in ("list", "tuple", "loader", "iterator", "batch", "tensors") or first.path is not None:
        return first
    return Value("iterator", parts=(item_of(frame, first, node),))


def _copy_of(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    first = arguments.value(0)
    item = item_of(frame, first, node) if first is not None else None
    if first is not None and first.kind == "tuple":
        fields = {f"[{i}]": part for i, part in enumerate(first.parts or ())}
    elif first is not None and first.kind == "list":
        fields = dict(frame.heap.get(first.objects[0]).fields) if first.objects else {}
        fields = fields or ({ITEM: item} if item is not None else {})
    else:
        fields = {ITEM: item} if item is not None else {}
    return Value("list", objects=(frame.new_thing(node, Thing("list", fields=fields, node=node)),))


def _dict(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    first = arguments.value(0)
    fields = _of_pairs(frame, first) if first is not None else {}
    if fields is None:
        assert first is not None
        return first
    fields |= {f"[{name!r}]": value for name, (_, value) in arguments.named.items()}
    return Value(
        "dict", objects=(frame.new_thing(node, Thing("dict", fields=fields, whole=not arguments.double, node=node)),)
    )


def _of_pairs(frame: Frame, value: Value) -> dict[str, Value] | None:
    """The entries of a dict that is made of keys and values in pairs; None where it is made of something else."""
    pairs = known_items(frame, value)
    if not pairs or any(each.kind != "tuple" or len(each.parts or ()) != 2 for each in pairs):
        return None
    return {entry_of(key): part for key, part in (each.parts for each in pairs if each.parts)}


def mapping(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """A dict of the module `collections`. Where it is not made of pairs, its items are not read."""
    first = arguments.value(0)
    if first is None and arguments.named:
        return _dict(frame, node, arguments)
    fields = _of_pairs(frame, first) if first is not None else None
    thing = Thing("dict", fields=fields if fields is not None else {ITEM: something()}, node=node)
    return Value("dict", objects=(frame.new_thing(node, thing),))


def _range(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    return Value("iterator", parts=(NUMBER,))


def _len(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    first = arguments.value(0)
    return Value("number", first.places) if first is not None and (first.is_tensor or first.kind == "size") else NUMBER


def _next(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    first = arguments.value(0)
    return item_of(frame, first, node) if first is not None else NOTHING


def _extreme(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`sum`, `max`, `min`, `abs`, `divmod`."""
    if len(arguments.positional) == 1:
        first = arguments.positional[0][1]
        return first._replace(path=None) if first.is_tensor else item_of(frame, first, node)
    return merge_all(value for _, value in arguments.positional) or NOTHING


def _abs(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    first = arguments.value(0)
    return first._replace(path=None, constant=None) if first is not None else NUMBER


def _getattr(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    base, name = arguments.value(0), arguments.value(1)
    if base is None or name is None or not isinstance(name.constant, str):
        return unread_calls.call(frame, node, Arguments())
    return attribute(frame, base, name.constant, node)


def _setattr(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    base, name, value = arguments.value(0), arguments.value(1), arguments.value(2)
    if base is None or value is None or not base.objects:
        return NONE
    if name is not None and isinstance(name.constant, str):
        frame.heap.write(base.objects, "." + name.constant, value)
    else:
        unread_calls.reach(frame, [base])
    return NONE


def _map(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    if len(arguments.positional) < 2:
        return NOTHING
    function = arguments.positional[0][1]
    items = Arguments([(at, item_of(frame, value, at)) for at, value in arguments.positional[1:]])
    if function.kind == "function" and isinstance(function.ref, tuple):
        return Value("iterator", parts=(frame.analyser.call(frame, function.ref[0], function.ref[1], items, node),))
    return Value("iterator", parts=(unread_calls.call(frame, node, items),))


def _filter(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    return arguments.value(1) or NOTHING


def _vars(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """`vars(holder)`: what is stored there becomes a field."""
    unread_calls.reach(frame, arguments.values())
    return unread_calls.guess(frame, node, Arguments())


def _type(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    return Value("other")


_RUN: Final[dict[str, Run]] = {
    "print": _print, "enumerate": _enumerate, "zip": _zip, "iter": _same, "reversed": _same, "sorted": _copy_of,
    "list": _copy_of, "tuple": _same, "set": _copy_of, "frozenset": _copy_of, "dict": _dict, "range": _range, "len": _len,
    "next": _next, "sum": _extreme, "max": _extreme, "min": _extreme, "abs": _abs, "getattr": _getattr, "setattr": _setattr,
    "map": _map, "filter": _filter, "type": _type, "vars": _vars, "dir": _type, "open": _type,
}  # fmt: skip
