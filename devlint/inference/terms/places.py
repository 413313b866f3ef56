"""Places: where a value may be, as a small set of alternatives.

An alternative says: the value is there, it came from there, if this condition holds; it is proved or only likely. Its
atom is one of:

    at(type, index)   a device that the code names
    place_of(path)    where the value at an access path is: an argument, or a part of one
    named_by(path)    the device that the value at an access path names
    home_of(object)   where the parameters of a module of the heap are; it is replaced when the value is read
    unknown()         not known, but the same wherever this atom stands
    DEFAULT           the default device of torch, where an option for the device is None

An access path starts with the name of an argument (`x`, `self`) or of a name of an outer scope (`@model`). Each further
entry is an attribute (`.weight`), an item (`[0]`, `['y']`), any item (`[]`) or what a call gives (`(12:4)`, by its place).
What cannot be read has a path of its own, which starts with `%`, what tells it from others, `%`, and how it is called.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from devlint.inference.terms.conditions import ALWAYS, Condition, both, compatible

if TYPE_CHECKING:
    import ast

Path: TypeAlias = tuple[str, ...]

#: The types of devices that are accelerators [c10/core/DeviceType.h].
ACCELERATORS: Final = frozenset({"cuda", "mps", "xpu", "npu", "hpu", "mtia", "ipu", "xla", "privateuseone"})
#: The most alternatives of one value. Beyond them it is unknown.
LIMIT: Final = 4
#: Why a place is not known where there are more.
WIDTH: Final = "width"
#: How deep access paths are.
DEPTH: Final = 4


class Atom(NamedTuple):
    """One place. `tag` says which of the forms above, `key` holds its parts."""

    tag: Literal["at", "place", "names", "home", "unknown", "default"]
    key: tuple[Any, ...] = ()


def at(type: str, index: str | None = None) -> Atom:
    return Atom("at", (type, index))


def place_of(path: Path) -> Atom:
    return Atom("place", path)


def named_device(text: str) -> Places:
    """The place that a text names, as `torch.device` reads it; () for a text that names none."""
    type, _, index = text.partition(":")
    if type in ("cpu", "meta"):
        return single(at(type))
    return single(at(type, index or None)) if type in ACCELERATORS else ()


#: The old types of tensors, by their last name [torch/_tensor_docs.py; docs of `torch.Tensor`, "Data types"].
_OLD_TYPES: Final = frozenset(
    f"{kind}Tensor"
    for kind in ("Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool", "")
)


def place_of_type(name: object) -> Places:
    """Where the tensors of an old type are, by its qualified name: `torch.cuda.FloatTensor`; () for other names."""
    if not isinstance(name, str) or name.rpartition(".")[2] not in _OLD_TYPES:
        return ()
    package = name.rpartition(".")[0]
    return single(at("cuda")) if package == "torch.cuda" else single(CPU) if package == "torch" else ()


def called_at(node: ast.AST) -> str:
    """The entry of an access path for what a call gives."""
    return f"({getattr(node, 'lineno', 0)}:{getattr(node, 'col_offset', 0)})"


def named_by(path: Path) -> Atom:
    return Atom("names", path)


def home_of(identity: tuple[Any, ...]) -> Atom:
    return Atom("home", identity)


_numbers = itertools.count(1)


def unknown(why: str = "") -> Atom:
    """A new atom for a place that is not known. `why`: the bound that was passed, if one was."""
    found: Atom = tuple.__new__(Atom, ("unknown", (next(_numbers), why)))
    return found


CPU: Final = at("cpu")
META: Final = at("meta")
DEFAULT: Final = Atom("default")

#: How a value came to where it is: `computed` is the result of an operation on several tensors, `factory` makes a tensor on
#: the default device, `host` makes one of host data, `loader` gives batches, `module` is a new module, `option` is a factory
#: whose device may be left out, `named` says the device.
Why: TypeAlias = Literal[
    "computed", "factory", "host", "loader", "module", "option", "named", "moved", "loaded", "argument"
]


class Origin(NamedTuple):
    """Where a value was made.

    `node` is the call, `file` the path of its file, `name` the qualified name of what was called. `extent` holds the
    places of the tensor in whose size it was made. `field` is the attribute that keeps it. `registered` tells whether a
    module registers that attribute. `maker`: the site of the function that made it.
    """

    why: Why
    node: ast.AST | None = None
    file: str = ""
    name: str = ""
    extent: tuple[Any, ...] = ()
    field: str = ""
    registered: bool = True
    maker: Any = None


#: Whether a tensor has no dimension: see `Alternative`.
Dims: TypeAlias = bool | Literal["perhaps"] | None


class Alternative(NamedTuple):
    """One place where a value may be.

    `soft` tells that a call which cannot be read is in between. `zero_dim` tells whether the tensor has no dimension:
    True, False, "perhaps" for a part or a result of which that is not known, or None where it is as of what the atom stands
    for. `also` is a second atom for the same place: an operation needed both there.
    """

    atom: Atom
    origin: Origin | None = None
    condition: Condition = ALWAYS
    soft: bool = False
    zero_dim: Dims = None
    also: Atom | None = None


Places: TypeAlias = tuple[Alternative, ...]


#: Makes a named tuple of all its parts. It is called so often that the way through `Alternative(...)` counts.
_new: Final[Callable[..., Any]] = tuple.__new__


def single(atom: Atom, origin: Origin | None = None, *, soft: bool = False, zero_dim: Dims = None) -> Places:
    return (_new(Alternative, (atom, origin, ALWAYS, soft, zero_dim, None)),)


def nowhere(why: str = "") -> Places:
    """A place that is not known. `why`: see `unknown`."""
    return (_new(Alternative, (unknown(why), None, ALWAYS, False, None, None)),)


def under(places: Places, condition: Condition) -> Places:
    """The alternatives that a condition allows, each under it."""
    if not condition:
        return places
    found = []
    for each in places:
        joined, whole = both(each.condition, condition)
        if compatible(joined):
            found.append(each._replace(condition=joined, soft=each.soft or not whole))
    return tuple(found)


def join(a: Places, b: Places, if_a: Condition = ALWAYS, if_b: Condition = ALWAYS) -> Places:
    """Where a value is after two paths, of which each holds under its condition. More than LIMIT is unknown.

    A place that both paths have under one condition needs neither path's. One that its path's condition rules out is none:
    where that leaves none, nothing gets here, and nothing is known.
    """
    if a == b:
        return a
    found: list[Alternative] = []
    others = {(each.atom, each.origin, each.condition): each for each in b}
    seen: set[tuple[Atom, Origin | None, Condition]] = set()
    for each in a:
        other = others.get((each.atom, each.origin, each.condition))
        if other is not None:
            seen.add((each.atom, each.origin, each.condition))
            found.append(_either(each, other))
        else:
            found += under((each,), if_a)
    found += [new for each in b if (each.atom, each.origin, each.condition) not in seen for new in under((each,), if_b)]
    found = _weakened(found)
    if len(found) > LIMIT:
        return nowhere(WIDTH)
    return tuple(found) or nowhere()


def _either(x: Alternative, y: Alternative) -> Alternative:
    """One place on two paths."""
    zero_dim = x.zero_dim if x.zero_dim == y.zero_dim else "perhaps"
    return x._replace(soft=x.soft or y.soft, zero_dim=zero_dim, also=x.also if x.also == y.also else None)


def _weakened(places: list[Alternative]) -> list[Alternative]:
    """Alternatives for one place become one, where one condition follows from the other or both make up a weaker one."""
    found: list[Alternative] = []
    for each in places:
        for i, known in enumerate(found):
            if (known.atom, known.origin) != (each.atom, each.origin):
                continue
            condition = _disjunction(known.condition, each.condition)
            if condition is not None:
                found[i] = _either(known, each)._replace(condition=condition)
                break
        else:
            found.append(each)
    return found


def _disjunction(a: Condition, b: Condition) -> Condition | None:
    """The condition `a or b`, where it is a conjunction again."""
    if a <= b:
        return a
    if b <= a:
        return b
    only_a, only_b = a - b, b - a
    if len(only_a) == len(only_b) == 1:
        (x,), (y,) = only_a, only_b
        if x[0] == y[0] and x[1] != y[1]:
            return a & b
    return None


def softened(places: Places) -> Places:
    """The same places, only likely."""
    return tuple(each._replace(soft=True) for each in places)


def with_zero_dim(places: Places, zero_dim: bool | None) -> Places:
    """The places of something computed of a value there. `zero_dim`: whether it has no dimension, if that is known."""
    dims: Dims = "perhaps" if zero_dim is None else zero_dim
    return tuple(each if each.zero_dim == dims else each._replace(zero_dim=dims) for each in places)


def with_also(places: Places, others: Places) -> Places:
    """Places that an operation needed to be where another value is. A place that nothing is known of is that one."""
    if len(others) != 1 or others[0].atom.tag == "unknown" or others[0].soft:
        return places
    if all(is_unread(each.atom) for each in places):
        return tuple(each._replace(zero_dim=places[0].zero_dim) for each in others)
    return tuple(
        each._replace(also=others[0].atom) if each.also is None and each.atom != others[0].atom else each
        for each in places
    )


def unread_root(identity: str, words: str) -> str:
    """The start of the path of something that cannot be read. `words`: what a message calls it."""
    return f"%{identity}%{words}"


def is_unread(atom: Atom) -> bool:
    """Whether nothing says where this is: it came from a call that cannot be read."""
    return atom.tag == "unknown" or (atom.tag == "place" and atom.key[0].startswith("%"))


def zero_dim_of(places: Places) -> bool | None:
    """Whether the value has no dimension, where all alternatives agree."""
    found = {each.zero_dim for each in places}
    return next(iter(found)) is True if len(found) == 1 and not found & {"perhaps", None} else None


def is_cpu(places: Places) -> bool:
    return bool(places) and all(each.atom == CPU for each in places)


def is_accelerator(atom: Atom) -> bool:
    return atom.tag == "at" and atom.key[0] in ACCELERATORS


def may_be_accelerator(places: Places) -> bool:
    """Whether something says that the value may be on an accelerator."""
    return any(each.atom.tag in ("place", "names", "home") or is_accelerator(each.atom) for each in places)


def show_named(atom: Atom) -> str:
    """Where a place is that the code names: "on the CPU", "on `cuda:0`", "on `device`"; "" for others."""
    if atom == CPU:
        return "on the CPU"
    if atom.tag == "at":
        return f"on `{atom.key[0]}`" if atom.key[1] is None else f"on `{atom.key[0]}:{atom.key[1]}`"
    return f"on `{show_path(atom.key)}`" if atom.tag == "names" else ""


def show_path(path: Path) -> str:
    """An access path as the code would write it: `self.model`, `batch['y']`."""
    unread = path[0].startswith("%")
    root = path[0].split("%", 2)[2] if unread else path[0].lstrip("@").rpartition(":")[2]
    return root + "".join("[...]" if entry == "[]" else "(...)" if entry[0] == "(" else entry for entry in path[1:])
