"""Abstract values: what a value is, where it may be, and what it refers to.

A kind is proved where torch, an annotation or a documented protocol says so. A kind that only a use suggests is likely.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from devlint.inference.terms.conditions import ALWAYS, Condition
from devlint.inference.terms.places import (
    DEPTH,
    Path,
    Places,
    join,
    named_by,
    named_device,
    nowhere,
    place_of,
    place_of_type,
    single,
    under,
)

Kind: TypeAlias = Literal[
    "unknown", "tensor", "tensors", "batch", "module", "instance", "list", "dict", "tuple", "device", "dtype", "number",
    "string", "bool", "none", "size", "array", "function", "class", "library", "loader", "dataset", "optimizer", "scheduler",
    "generator", "distribution", "iterator", "partial", "record", "bound", "context", "mover", "steps", "other",
]  # fmt: skip
#: Identity of something mutable: ("new", site, call) for what code makes, ("path", path) for what is given.
Identity: TypeAlias = tuple[Any, ...]


class Value(NamedTuple):
    """What is known of one value.

    `places`: of a tensor, or of the device that a device names; of a number, where the tensor is whose size it is.
    `objects`: the mutable things that it may be. `parts`: the items of a tuple, or what an iterator goes through.
    `ref`: a function, a class, or the qualified name of something of a library. `constant`: of a string, number or bool.
    A mover is the function that moves a tensor to `places`. `path`: the access path of something given of which nothing
    else is known. `proved`: whether the kind is. `test`: of a bool, the conditions under which it is true and false.
    `missing`: the conditions under which it is None, and under which it is not.
    """

    kind: Kind = "unknown"
    places: Places = ()
    objects: tuple[Identity, ...] = ()
    parts: tuple[Value, ...] | None = None
    ref: Any = None
    constant: Any = None
    path: Path | None = None
    proved: bool = True
    test: tuple[Condition, Condition] | None = None
    missing: tuple[Condition, Condition] | None = None

    @property
    def is_tensor(self) -> bool:
        return self.kind in TENSORS

    @property
    def may_be_tensor(self) -> bool:
        return self.kind in TENSORS or (self.kind == "unknown" and bool(self.places))


#: The most functions or classes that one name stands for.
CHOICES: Final = 8
TENSORS: Final = frozenset({"tensor", "tensors", "batch"})
#: Kinds of what is nowhere: no operation needs it on a device.
PLAIN: Final = frozenset({"number", "string", "bool", "none", "size", "dtype"})

NOTHING: Final = Value()
NUMBER: Final = Value("number")
STRING: Final = Value("string")
BOOL: Final = Value("bool")
NONE: Final = Value("none")
ARRAY: Final = Value("array")
OTHER: Final = Value("other")


def something() -> Value:
    """A value of which nothing is known but that it is one."""
    return Value("unknown", nowhere())


def lost(value: Value) -> Value:
    """The same value, somewhere of which nothing is known."""
    made = (value[0], nowhere(), value[2], value[3], value[4], value[5], None, value[7], value[8], value[9])
    return tuple.__new__(Value, made)


def placed(value: Value, places: Places) -> Value:
    """The same value, there. It is asked for so often that `_replace` counts."""
    return tuple.__new__(Value, (value[0], places, *value[2:]))


def given(path: Path) -> Value:
    """What an access path holds, of which nothing is known."""
    if len(path) > DEPTH:
        return something()
    return Value("unknown", single(place_of(path)), path=path)


def given_device(path: Path) -> Value:
    """A device that is given."""
    return Value("device", single(named_by(path)), path=path)


def part_of(value: Value, entry: str) -> Value:
    """An attribute or item of something given."""
    assert value.path is not None
    return given((*value.path, entry))


def tensor(places: Places, *, proved: bool = True, kind: Kind = "tensor") -> Value:
    return Value(kind, places, proved=proved)


def merge(a: Value | None, b: Value | None, if_a: Condition = ALWAYS, if_b: Condition = ALWAYS) -> Value:
    """What a value is after two paths. None stands for a name that a path does not bind."""
    if a is None or b is None:
        return a or b or NOTHING
    if a is b or a == b:
        return a
    if "none" in (a.kind, b.kind):
        known, condition, without = (b, if_b, if_a) if a.kind == "none" else (a, if_a, if_b)
        missing = (without, condition) if without and condition and known.missing is None else None
        parts = None if known.kind != "tuple" else known.parts
        return known._replace(places=under(known.places, condition), parts=parts, missing=missing)
    if a.kind != b.kind:
        return _merge_kinds(a, b, if_a, if_b)
    if a.kind == "string" and isinstance(a.constant, str) and isinstance(b.constant, str):
        first, second = named_device(a.constant), named_device(b.constant)
        if first and second:
            return Value("device", join(first, second, if_a, if_b))
    if a.kind == "library" and a.ref != b.ref:
        return _either_of(a, b, if_a, if_b)
    parts = _merge_parts(a, b, if_a, if_b)
    objects = a.objects if a.objects == b.objects else tuple(dict.fromkeys((*a.objects, *b.objects)))[:3]
    return Value(
        a.kind,
        join(a.places, b.places, if_a, if_b) if a.places and b.places else _one_sided(a, b, if_a, if_b),
        objects,
        parts,
        a.ref if a.ref == b.ref else None,
        a.constant if a.constant == b.constant and type(a.constant) is type(b.constant) else None,
        a.path if a.path == b.path else None,
        a.proved and b.proved,
        a.test if a.test is not None and a.test == b.test else _flag(a, b, if_a, if_b),
        a.missing if a.missing == b.missing else None,
    )


def _either_of(a: Value, b: Value, if_a: Condition, if_b: Condition) -> Value:
    """One of several functions or classes of libraries: `parts` are all of them. `places`: where the tensors of each are."""
    parts = tuple(dict.fromkeys((*(a.parts or (a,)), *(b.parts or (b,)))))
    first, second = (each.places or place_of_type(each.ref) for each in (a, b))
    places = join(first, second, if_a, if_b) if first and second else ()
    known = len(parts) <= CHOICES and all(each.ref for each in parts)
    return Value("library", places if known else (), parts=parts if known else None)


def _flag(a: Value, b: Value, if_a: Condition, if_b: Condition) -> tuple[Condition, Condition] | None:
    """Two paths leave different constants in a flag: the flag tells which path it was."""
    if a.kind != "bool" or a.constant is None or b.constant is None or not if_a or not if_b:
        return None
    return (if_a, if_b) if a.constant else (if_b, if_a)


def _one_sided(a: Value, b: Value, if_a: Condition, if_b: Condition) -> Places:
    """Where a value is that one path knows nothing of."""
    if not a.places and not b.places:
        return ()
    if a.kind in PLAIN or a.kind == "device":
        return ()
    known, condition = (a, if_a) if a.places else (b, if_b)
    return join(under(known.places, condition), nowhere())


def _merge_parts(a: Value, b: Value, if_a: Condition, if_b: Condition) -> tuple[Value, ...] | None:
    if a.parts is None or b.parts is None or len(a.parts) != len(b.parts):
        return None
    return tuple(merge(x, y, if_a, if_b) for x, y in zip(a.parts, b.parts, strict=True))


def _merge_kinds(a: Value, b: Value, if_a: Condition, if_b: Condition) -> Value:
    for x, y, if_x, if_y in ((a, b, if_a, if_b), (b, a, if_b, if_a)):
        if x.is_tensor and y.kind in ("number", "string", "bool", "array", "list", "tuple", "dict", "size", "other"):
            return x._replace(
                places=under(x.places, if_x), proved=False, kind="unknown" if y.kind in _NO_TENSOR else x.kind
            )
        if x.is_tensor and y.kind in (*TENSORS, "unknown"):
            places = join(x.places, y.places, if_x, if_y) if y.places else join(under(x.places, if_x), nowhere())
            return Value("tensor", places, proved=y.is_tensor and x.proved and y.proved)
        if x.kind == "device" and y.kind == "string":
            return x._replace(places=(), path=None)
    if any(each.kind == "unknown" and not each.places for each in (a, b)):
        return NOTHING
    if a.kind in ("module", "instance") and b.kind in ("module", "instance"):
        return Value("module", objects=tuple(dict.fromkeys((*a.objects, *b.objects)))[:3])
    return something()


_NO_TENSOR: Final = frozenset({"string", "list", "tuple", "dict", "other", "array"})


def merge_all(values: Iterable[Value]) -> Value | None:
    """What one of several values is; None where there are none."""
    found: Value | None = None
    for each in values:
        found = each if found is None else merge(found, each)
    return found
