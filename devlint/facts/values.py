"""The device lattice and the abstract values built on it.

A `Device` is the set of places a value may be on, as far as the code tells:

    frozenset({Place("cpu")})                  surely on the CPU
    frozenset({Place("cuda", 1)})              surely on card 1
    frozenset({Symbol("device", 3)})           wherever that variable says; may be an accelerator
    frozenset({Place("cpu"), Place("cuda")})   one or the other, by the path taken
    UNKNOWN                                    top: nothing is known, and nothing is ever concluded

`join` is set union, capped at `LIMIT` places, beyond which nothing is known. It is associative, commutative and
idempotent, and UNKNOWN absorbs; `tests/facts/test_values.py` states the laws and enumerates the table.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from devlint.facts.frozen import record, replace
from devlint.model import Origin, Span

if TYPE_CHECKING:
    from devlint.facts.events import Creation

Kind = Literal[
    "unknown", "tensor", "parameter", "buffer", "module", "optimizer", "scheduler", "loader", "dataset", "sampler",
    "device", "dtype", "generator", "scaler", "stream", "event", "storage", "packed", "distribution", "autocast",
    "ndarray", "number", "bool", "string", "none", "list", "tuple", "dict", "function", "class", "object",
    "tensors",  # tensors in a structure the code does not show: a batch of a DataLoader, what a module returns
    "namespace",  # an imported module, function or class, by its qualified name in `type_name`
    "index",  # a device index, as `get_device()` returns it; its device is that of the tensor where that is a card
    "clock",  # a reading of a host clock
]  # fmt: skip

#: Type name of what an unknown function computed from tensors, see `devlint.facts.idioms.guesses`.
GUESS: Final = "computed"
#: The text of the origin of such a value.
COMPUTED: Final = "computed from tensors here"
#: The text of the origin of a tensor that a factory call without a device makes on the CPU.
MADE_ON_CPU: Final = "created on the CPU here"
#: How the origin of an operand begins that must be a tensor and that nothing places, see `devlint.facts.idioms.unplaced`.
UNPLACED: Final = "the code does not say where"
#: Type name of what a loader yields that is an argument.
BATCH: Final = "batch of an argument"
#: Type name of what a module gives that was moved, and of its items: tensors, where a tensor fits. Not of its fields.
OUTPUT: Final = "output"
#: Type name of an argument that looks something up, and of which nothing else shows that it is a tensor.
LOOKED_UP: Final = "looked up with"
#: Type name of what a slice for one item gives: `labels[i : i + 1]`.
ONE: Final = "one item"
#: Type name of what a condition asks for its device, and of which nothing else is known: most likely a tensor.
TOLD: Final = "told by its device"
#: Type name of what a condition tells to be no tensor.
NO_TENSOR: Final = "no tensor"
#: Type name of one of several metrics of torchmetrics, the base of all.
METRIC: Final = "torchmetrics.Metric"
#: Type name of one of several modules, each of which puts what it is called with where it is.
FROM_HOST: Final = "takes its inputs from the host"
_OF_METRICS: Final = "torchmetrics."
#: Type name of a list whose elements are known, but not how often and where each one is in it.
GROWN: Final = "grown"
#: Type name of one of several functions, which are its elements.
CHOICE: Final = "one of several functions"
#: How many functions a name may stand for.
CHOICES: Final = 4
#: Kinds of values that are one tensor; `tensors` may be several.
ONE_TENSOR: Final = frozenset({"tensor", "parameter", "buffer"})
TENSOR_KINDS: Final = ONE_TENSOR | {"tensors"}
_CALLED: Final = frozenset({"function", "namespace"})
ACCELERATORS: Final = frozenset({"cuda", "xpu", "mps", "npu", "mtia", "hpu", "xla", "ipu", "privateuseone"})
LIMIT: Final = 3
#: Of how many factory calls a tensor may be known to be made; the others are left out.
MADE: Final = 16


class Place(NamedTuple):
    """A device the code names: type, and index where one is given. `cuda` without index is the current card."""

    type: str
    card: int | None = None  # the index

    def __str__(self) -> str:
        return self.type if self.card is None else f"{self.type}:{self.card}"


class Symbol(NamedTuple):
    """A device the code does not name: that of a variable, of a function's tensors, of a module. May be an accelerator.

    Two symbols are the same device when they are equal; nothing is known about different ones.
    """

    name: str
    scope: int

    def __str__(self) -> str:
        return self.name


Device = frozenset[Place | Symbol]

UNKNOWN: Final[Device] = frozenset()
CPU: Final[Device] = frozenset({Place("cpu")})
#: On the CPU by one path, and nobody knows where by another: conflicts with nothing but for what was made on the first.
SOMEWHERE: Final = Symbol("somewhere", -1)
MAYBE_CPU: Final[Device] = frozenset({Place("cpu"), SOMEWHERE})
META: Final[Device] = frozenset({Place("meta")})
#: The one device that a function's tensor arguments and a module's parameters and buffers share by default assumption.
HOME: Final[Device] = frozenset({Symbol("home", 0)})


def on(type: str, card: int | None = None) -> Device:
    """The device that a literal names."""
    return frozenset({Place(type, card)})


def symbol(name: str, scope: int) -> Device:
    """The device that a variable of a scope holds."""
    return frozenset({Symbol(name, scope)})


def join(a: Device, b: Device) -> Device:
    """Least upper bound: either of both. UNKNOWN absorbs, and more than LIMIT places are UNKNOWN."""
    if a == b:
        return a
    if not a or not b:
        return UNKNOWN
    union = a | b
    return union if len(union) <= LIMIT else UNKNOWN


def may_be_accelerator(device: Device) -> bool:
    """Whether some place in the set is, or may be, an accelerator. False for UNKNOWN: nothing is concluded from it."""
    return any(p != SOMEWHERE if isinstance(p, Symbol) else p.type in ACCELERATORS for p in device)


def is_surely_accelerator(device: Device) -> bool:
    return bool(device) and all(isinstance(p, Place) and p.type in ACCELERATORS for p in device)


def is_of_object(device: Device) -> bool:
    """Whether a device is that of an object of which nothing else is known: `cameras.device`."""
    return any(isinstance(p, Symbol) and p.name.endswith(".device") for p in device)


def is_assumed(device: Device) -> bool:
    """Whether only the default assumption says that this may be an accelerator: the device of arguments, parameters and
    buffers, or of an object. False for what the code moves to a device that it chooses."""
    return not device.isdisjoint(HOME) or is_of_object(device)


Conflict = Literal["certain", "assume"]


def conflict(a: Device, b: Device) -> Conflict | None:
    """Whether torch refuses tensors on `a` and `b` together (scalars and copies aside).

    certain: two named devices that differ. assume: one is surely the CPU and the other may be an accelerator;
    not where it is on the CPU as well on some path, unless the paths name both devices.
    None: the same, or not known. `cuda` and `cuda:0` do not conflict: the index-free one is the current card.
    """
    if len(a) == 1 and len(b) == 1:
        (p,), (q,) = a, b
        if isinstance(p, Place) and isinstance(q, Place):
            if p.type != q.type:
                return None if "meta" in (p.type, q.type) else "certain"
            return "certain" if None not in (p.card, q.card) and p.card != q.card else None
    for cpu, other in ((a, b), (b, a)):
        if cpu == CPU and may_be_accelerator(other):
            by_chance = other >= CPU and any(isinstance(p, Symbol) for p in other)
            return None if by_chance else "assume"
    return None


def describe(device: Device) -> str:
    """The device in a reader's words: `the CPU`, `cuda:0`, `the device of `x``."""
    if not device:
        return "an unknown device"
    names = []
    for place in sorted(device, key=str):
        if place == SOMEWHERE:
            names.append("elsewhere")
        elif isinstance(place, Symbol):
            names.append("an accelerator" if place.name == "home" else f"`{place.name}`")
        else:
            names.append("the CPU" if place.type == "cpu" else f"`{place}`")
    return " or ".join(names)


class Reading(NamedTuple):
    """One reading of a host clock: where, by which clock, and the device work before it.

    `pending`: work queued and not waited for; `level` and `device_type` tell how sure it is; `works`: how many so far, and
    `waited`: how many there were at the last wait.
    """

    span: Span
    clock: str
    pending: Origin | None
    last: Origin | None
    level: Conflict
    device_type: str | None
    works: int
    waited: int = 0


@record(frozen=True, slots=True)
class Value:
    """What is known of one value.

    `zero_dim`: True surely a 0-dim tensor, False surely not, None unknown. `elements`: values of a tuple or list, or of
    a dict by constant key; of a module that has one of several classes, modules of these. `type_name`: qualified name of an
    object's class, of a function, or of a class itself.
    `made`: the factory calls without a device that made this tensor, views and arithmetic with numbers included.
    A number's `device` is that of the tensor whose size it is; a device's `made` is that of the tensor it was read from.
    `moved`: the value is the result of an explicit move. `text`: the source of a string or number constant.
    """

    kind: Kind
    device: Device = UNKNOWN
    zero_dim: bool | None = None
    elements: tuple[Value, ...] | dict[str, Value] | None = None
    type_name: str | None = None
    because: tuple[Origin, ...] = ()
    made: tuple[Creation, ...] = ()
    moved: bool = False
    constant: str | int | float | bool | None = None
    attribute: str | None = (
        None  # the unregistered attribute that this tensor was read from, with its class: `Net.table`
    )
    split: tuple[str, Value, Value] | None = None  # (guard, value where it holds, value where it does not)
    reading: Reading | None = None  # kind "clock": what was under way when it was read
    ident: Span | None = None  # a module, or an object that moved: the call that made it, whatever its names
    shared: bool = False  # a module that was given to another object, which may move it
    discarded: Span | None = None  # a move of this very name whose result was dropped

    @property
    def is_tensor(self) -> bool:
        return self.kind in TENSOR_KINDS

    @property
    def is_assumed(self) -> bool:
        """Whether its device rests on an assumption: that of `is_assumed`, that an unknown loader's batches are in host
        memory, or that an unknown function computes where its arguments are."""
        return is_assumed(self.device) or self.type_name in (BATCH, GUESS)

    @property
    def is_unplaced(self) -> bool:
        """Whether it is a tensor by the operation that takes it, and nothing says where it is."""
        return bool(self.because) and self.because[0].text.startswith(UNPLACED)

    @property
    def parts(self) -> tuple[Value, ...]:
        """What is known to be in a container."""
        return tuple(self.elements.values()) if isinstance(self.elements, dict) else self.elements or ()

    def with_device(self, device: Device, *because: Origin) -> Value:
        return replace(self, device=device, because=because or self.because)


NOTHING: Final = Value("unknown")
NONE: Final = Value("none")
NUMBER: Final = Value("number")
STRING: Final = Value("string")
BOOL: Final = Value("bool")


def extent(size: Value, text: str) -> Value:
    """One of the numbers of a tensor's size, or a product of them; `text`: the tensor as the code writes it."""
    return Value("number", size.device, type_name="extent", because=size.because, constant=text)


def either(a: Value, b: Value) -> Value:
    """`merge` where paths of a function meet: a CPU tensor made on one of them stays one, whatever it is on the other.

    So does a generator: `if generator is None: generator = torch.Generator(device)`.
    """
    for known, other in ((a, b), (b, a)):
        if known.kind == "generator" and known.device and not other.device:
            if other.kind == "generator" or (other.kind == "unknown" and other.type_name is None):
                device = known.device | {SOMEWHERE}
                return replace(known, device=device if len(device) <= LIMIT else UNKNOWN, split=None, attribute=None)
        if known.kind == "tensor" and known.made and known.device <= MAYBE_CPU and known.device:
            if other.kind == "unknown" and not other.device and other.type_name is None:
                return replace(known, device=MAYBE_CPU, split=None, attribute=None)
        if (
            known.kind == "tuple"
            and isinstance(known.elements, tuple)
            and (other == NOTHING or (other.kind == "unknown" and other.type_name == GUESS))
        ):
            if any(e.kind == "tensor" and e.made for e in known.elements):
                return replace(known, elements=tuple(either(e, NOTHING) for e in known.elements), split=None)
        if known.kind == "dict" and isinstance(known.elements, dict) and other == NOTHING:
            if any(e.kind == "tensor" and e.made for e in known.elements.values()):
                return replace(known, elements={k: either(e, NOTHING) for k, e in known.elements.items()}, split=None)
    return merge(a, b)


def grown(elements: Iterable[Value]) -> Value:
    """A list that holds each of some values, in any number and order."""
    distinct: list[Value] = []
    for element in elements:
        if element not in distinct:
            distinct.append(element)
    return Value("list", type_name=GROWN, elements=tuple(distinct))


def merged_entries(a: dict[str, Value], b: dict[str, Value]) -> dict[str, Value] | None:
    """The entries of one of two dicts. What any entry of one is (`*`) holds as well where the other has none yet."""
    for one, other in ((a, b), (b, a)):
        if not one and "*" in other:
            return other
    found = {key: merge(a[key], b[key]) for key in a if key in b}
    return found if found or not (a or b) else None


def common_class(a: str | None, b: str | None) -> str | None:
    """What is known of the class of one of two objects: that it is a metric where both are."""
    both = a is not None and b is not None and a.startswith(_OF_METRICS) and b.startswith(_OF_METRICS)
    return METRIC if both else None


def one_of(a: Value, b: Value) -> Value | None:
    """Either of two functions, which a call runs both: `[torch.sin, torch.cos][i]`. None where one of them has no name, is
    a class, or where there are too many."""
    found: dict[str, Value] = {}
    for value in (a, b):
        several = value.elements if value.type_name == CHOICE and isinstance(value.elements, tuple) else (value,)
        found.update({each.type_name or "": each for each in several})
    named = all(name.rpartition(".")[2].lstrip("_")[:1].islower() for name in found)
    return (
        Value("function", type_name=CHOICE, elements=tuple(found.values())) if named and len(found) <= CHOICES else None
    )


def either_class(a: Value, b: Value) -> tuple[Value, ...] | None:
    """The classes that one of two modules may have; None where one of them has none that is known, or there are too many."""
    found: dict[str, Value] = {}
    for value in (a, b):
        several = value.elements if isinstance(value.elements, tuple) else (Value("module", type_name=value.type_name),)
        found.update({each.type_name or "": each for each in several})
    return tuple(found.values()) if "" not in found and len(found) <= CHOICES else None


def shaped(value: Value) -> tuple[Creation, ...]:
    """What a tensor is made of, each with the dimensions that the tensor has, where they are known.

    Beside another value these are all that is left of them. What had none may have got some: `torch.tensor(n).repeat(m)`.
    """
    if value.zero_dim is None and value.device == CPU and any(creation.zero_dim for creation in value.made):
        return tuple(replace(creation, zero_dim=creation.zero_dim and None) for creation in value.made)
    if value.zero_dim is None or all(creation.zero_dim is value.zero_dim for creation in value.made):
        return value.made
    return tuple(replace(creation, zero_dim=value.zero_dim) for creation in value.made)


def both_split(a: Value, b: Value) -> tuple[str, Value, Value] | None:
    """What the same condition tells apart of two values, either of which this may be."""
    if a.split is None or b.split is None or a.split[0] != b.split[0]:
        return None
    return a.split[0], merge(a.split[1], b.split[1]), merge(a.split[2], b.split[2])


def merge(a: Value, b: Value) -> Value:
    """Join of two values: kinds that differ are unknown, except None beside something, which is that something."""
    if a is b or a == b:
        return a
    if a.kind == "none" and b.kind != "none":
        return replace(b, split=None)
    if b.kind == "none" and a.kind != "none":
        return replace(a, split=None)
    if a.kind in _CALLED and b.kind in _CALLED and (chosen := one_of(a, b)) is not None:
        return chosen
    if a.kind != b.kind:
        for number, other in ((a, b), (b, a)):
            if number.kind == "number" and other.kind in ONE_TENSOR:
                # `total = 0` and later `total + loss`: a number is nowhere
                return replace(other, split=None, type_name=GUESS if other.kind == "tensor" else other.type_name)
        if (a.is_tensor or a.type_name == GUESS) and (b.is_tensor or b.type_name == GUESS):
            kind: Kind = "tensor"
        elif NO_TENSOR in (a.type_name, b.type_name) and (a.is_tensor or b.is_tensor):
            known = a if a.is_tensor else b  # a tensor on one path, and something else that is none on the other
            return Value("unknown", known.device, type_name=GUESS, because=known.because) if not known.made else NOTHING
        else:
            return NOTHING
    else:
        kind = a.kind
    elements: tuple[Value, ...] | dict[str, Value] | None = None
    if kind == "module" and (a.type_name != b.type_name or a.elements != b.elements):
        elements = either_class(a, b)
    elif isinstance(a.elements, tuple) and isinstance(b.elements, tuple) and len(a.elements) == len(b.elements):
        elements = tuple(merge(x, y) for x, y in zip(a.elements, b.elements, strict=True))
    elif GROWN in (a.type_name, b.type_name) and isinstance(a.elements, tuple) and isinstance(b.elements, tuple):
        more, less = (a, b) if len(a.elements) > len(b.elements) else (b, a)
        assert isinstance(more.elements, tuple) and isinstance(less.elements, tuple)
        if all(element in more.elements for element in less.elements):
            return grown(more.elements)  # the list goes on growing
    elif isinstance(a.elements, dict) and isinstance(b.elements, dict):
        elements = merged_entries(a.elements, b.elements)
    made = a.made if a.made == b.made else tuple(dict.fromkeys(shaped(a) + shaped(b)))[:MADE]
    return Value(
        kind,
        join(a.device, b.device),
        a.zero_dim if a.zero_dim == b.zero_dim else None,
        elements,
        a.type_name if a.type_name == b.type_name else common_class(a.type_name, b.type_name),
        a.because if a.because == b.because else tuple(dict.fromkeys(a.because + b.because))[:4],
        made,
        a.moved and b.moved,
        a.constant if a.constant == b.constant and type(a.constant) is type(b.constant) else None,
        a.attribute if a.attribute == b.attribute else (a.attribute if a.made else b.attribute if b.made else None),
        both_split(a, b),
        a.reading if a.reading == b.reading else None,
        a.ident if a.ident == b.ident else None,
        a.shared or b.shared or a.ident != b.ident,
    )
