"""Results as JSON and back, driven by the declarations in `devlint.model`: no code runs for what a cache file says.

Dataclasses and named tuples become lists of their fields in order. The name of the checked file becomes 0, so that a
result serves whichever directory devlint is started from.
"""

from __future__ import annotations

import json
import types
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Decoder = Callable[[Any, str], Any]


def dump(value: object, name: str) -> bytes:
    """`value` as JSON; `name` is that of the checked file. Raises TypeError for what the declarations do not cover."""
    return json.dumps(_plain(value, name), separators=(",", ":"), ensure_ascii=True).encode("ascii")


def load(kind: type[Any], data: bytes, name: str) -> Any:
    """The value of type `kind` that `dump` wrote. Raises ValueError when the data is not such a value."""
    try:
        decode: Decoder = _decoder(kind)  # type: ignore[arg-type]  # a class is hashable
        return decode(json.loads(data), name)
    except (TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise ValueError(f"not a stored {kind.__name__}: {error}") from error


def _plain(value: Any, name: str) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, str):
        return 0 if value == name else str(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    if is_dataclass(value):
        return [_plain(getattr(value, item.name), name) for item in fields(value)]
    if isinstance(value, list | tuple):
        return [_plain(item, name) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(item, name) for item in value), key=str)
    if isinstance(value, dict):
        return [[_plain(key, name), _plain(item, name)] for key, item in value.items()]
    raise TypeError(f"cannot be stored: {type(value).__name__}")


@cache
def _decoder(kind: Any) -> Decoder:
    if kind is str:
        return _string
    if kind in (int, bool, float, type(None)):
        return _exactly(kind)
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _optional(arguments)
    if origin is Literal:
        return _literal(frozenset(arguments))
    if origin in (list, set, frozenset) or (origin is tuple and arguments[1:] == (Ellipsis,)):
        return _collection(origin, _decoder(arguments[0]))
    if origin is tuple:
        return _record(lambda *values: tuple(values), [_decoder(argument) for argument in arguments])
    if origin is dict:
        return _pairs(_decoder(arguments[0]), _decoder(arguments[1]))
    if isinstance(kind, type) and issubclass(kind, Enum):
        return lambda data, name: kind(data)
    if isinstance(kind, type) and (is_dataclass(kind) or hasattr(kind, "_fields")):
        hints = get_type_hints(kind)
        names = [item.name for item in fields(kind)] if is_dataclass(kind) else list(kind._fields)
        return _record(kind, [_decoder(hints[each]) for each in names])
    raise TypeError(f"cannot be stored: {kind}")


def _string(data: Any, name: str) -> str:
    if type(data) is str:
        return data
    if data == 0 and type(data) is int:
        return name
    raise ValueError("expected a string")


def _exactly(kind: type[Any]) -> Decoder:
    def decode(data: Any, name: str) -> Any:
        if type(data) is not kind:
            raise ValueError(f"expected {kind.__name__}")
        return data

    return decode


def _optional(arguments: tuple[Any, ...]) -> Decoder:
    others = [argument for argument in arguments if argument is not type(None)]
    if len(others) != 1 or len(others) == len(arguments):
        raise TypeError(f"cannot be stored: {arguments}")
    inner = _decoder(others[0])
    return lambda data, name: None if data is None else inner(data, name)


def _literal(values: frozenset[Any]) -> Decoder:
    def decode(data: Any, name: str) -> Any:
        if data not in values:
            raise ValueError("not one of the known words")
        return data

    return decode


def _collection(kind: Callable[[Any], Any], item: Decoder) -> Decoder:
    def decode(data: Any, name: str) -> Any:
        if type(data) is not list:
            raise ValueError("expected a list")
        return kind([item(each, name) for each in data])

    return decode


def _record(make: Callable[..., Any], items: list[Decoder]) -> Decoder:
    size = len(items)

    def decode(data: Any, name: str) -> Any:
        if type(data) is not list or len(data) != size:
            raise ValueError(f"expected {size} fields")
        return make(*[item(each, name) for item, each in zip(items, data, strict=True)])

    return decode


def _pairs(key: Decoder, item: Decoder) -> Decoder:
    def decode(data: Any, name: str) -> Any:
        return {key(each[0], name): item(each[1], name) for each in data}

    return decode
