"""The records of the torch API and the one-line text each is stored as.

A stored record is a string of `key=value` fields separated by `|`; a field that has its usual value is left out. Text
is decoded when a name is first asked for, so that loading the data costs one JSON parse and nothing per name.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

Version = tuple[int, int]

ACCEPTS = ("device", "dtype", "generator", "non_blocking", "out", "pin_memory")


class Function(NamedTuple):
    """One callable of torch (or of a library that meets tensors).

    result: "tensor", "tensors" (several, as tuple, list or iterator), "bool", "number", "none", "device", "dtype",
    "size", "str", "same" (the object it was called on, or its first argument), "module", "optimizer", "stream",
    "event", "generator", "ndarray", "storage", "object" (something else), "unknown". A class is a function too: its
    constructor, with the result "module", "optimizer", "scheduler", "loader", "dataset", "sampler", "scaler",
    "packed", "distribution", "transform", "autocast" or one of the words above.

    device_from: where the device of the tensors in the result comes from. "argument": the `device` argument, else the
    default device. "like": the `device` argument, else the first tensor (`self` for a method), else the default device.
    "first_tensor": the first tensor. "default": the default device, no argument. "cpu". "none": there is no tensor in
    it, or nothing is known.

    params: names of the positional parameters of the main overload; `*tensors` takes any number. tensor_params: which
    of them take nothing but a tensor (or None) in every overload that has them; sequence_params: those that take
    several tensors. keyword_only: the other names accepted by keyword, and `**` where any name is.

    mixing: what may differ in device, by torch's own check. "exact": nothing. "scalar": one 0-dim CPU tensor.
    "expanded": that as well, but only beside tensors that are 0-dim too, since all are expanded to one shape first.
    "index": indices may be on the CPU or on the tensor's device. "copy": anything, it is a transfer. "none": no check, or
    nothing to mix. None: not known.

    sync: whether the host waits for the device: "always", "maybe" (depends on arguments), "never".

    since: first minor that has the name, None for all known ones. removed: first minor without it. deprecated: first
    known minor that warns. replacement: what to use instead, as a qualified name, or a phrase when there is none.

    guard: raises without an accelerator (or without that backend). inplace: changes its first tensor. random: draws
    numbers.

    zero_dim: whether the result is 0-dim: "yes", "no", "unknown" or "reduces" (see `reduces_to_scalar`). elementwise:
    it is 0-dim if and only if all tensors given are. host_only: raises when given a tensor that is not in host memory.
    moves: puts what it is given on a device that its library chooses. ignores_default: without a device it is the CPU,
    whatever the default device is. fix: class of the replacement ("A" same meaning, "G" needs a guard, "U" changes
    meaning, "D" deprecated, "N" there is none), "" when no table says so. keyword_since: keywords younger than the
    function itself. variants: other results, by the keyword that brings them ("dim" of torch.max) or by the number of
    arguments ("#1" of torch.where); see `result_of`. note: where an annotated fact comes from.
    """

    qualname: str
    result: str = "unknown"
    device_from: str = "none"
    accepts: frozenset[str] = frozenset()
    params: tuple[str, ...] = ()
    tensor_params: tuple[int, ...] = ()
    mixing: str | None = None
    sync: str = "never"
    since: Version | None = None
    removed: Version | None = None
    deprecated: Version | None = None
    replacement: str | None = None
    guard: bool = False
    inplace: bool = False
    random: bool = False
    zero_dim: str = "unknown"
    sequence_params: tuple[int, ...] = ()
    keyword_only: tuple[str, ...] = ()
    host_only: bool = False
    moves: bool = False
    ignores_default: bool = False
    fix: str = ""
    keyword_since: tuple[tuple[str, Version], ...] = ()
    variants: tuple[tuple[str, str], ...] = ()
    elementwise: bool = False
    note: str = ""

    @property
    def is_tensor_method(self) -> bool:
        return self.qualname.startswith("torch.Tensor.")

    def tensors_among(self, positional: int) -> Sequence[int]:
        """The positions, of so many positional arguments, that take nothing but tensors.

        `torch.einsum(equation, *operands)` calls them `*args` [torch/functional.py].
        """
        if self.qualname == "torch.einsum":
            return range(1, positional) if positional > 2 else ()
        if self.result in ("tensor", "tensors") and self.params[:1] in (("*tensors",), ("*matrices",)):
            return range(positional) if positional > 1 else ()  # one alone may be a list of them
        return [position for position in self.tensor_params if position < positional]

    def result_of(
        self,
        positional: int,
        keywords: Collection[str],
        numbers: Collection[int] = (),
        tensors: Collection[int] = (),
    ) -> str:
        """The result of one call.

        positional: how many positional arguments it has, not counting the object of a method. keywords: the names
        given, without those given as a literal False or None. numbers, tensors: the positions that are known to hold a
        number or a tensor, which tells `x.max(1)` from `x.max(other)`.
        """
        for cause, result in self.variants:
            if cause.startswith("#"):
                if positional + len(keywords) == int(cause[1:]):
                    return result
            elif cause in keywords:
                return result
            elif cause in self.params and positional > (at := self.params.index(cause)):
                if at in tensors:
                    continue
                return result if at in numbers else "unknown"
        return self.result

    def reduces_to_scalar(
        self, positional: int, keywords: Collection[str], reduction: str | None = None
    ) -> bool | None:
        """Whether a call surely gives a 0-dim tensor (True), surely not (False), or depends on shapes (None).

        Arguments as for `result_of`; reduction is the value of a literal `reduction=` argument, None if it is not
        given.
        """
        if self.zero_dim != "reduces":
            return {"yes": True, "no": False}.get(self.zero_dim)
        if "reduction" in self.params or "reduction" in self.keyword_only:
            at = self.params.index("reduction") if "reduction" in self.params else positional
            unclear = {"reduce", "size_average"} & set(keywords) or positional > at
            if unclear or ("reduction" in keywords and reduction is None) or reduction == "none":
                return None
            return True
        if {"dim", "axis", "other", "dims", "keepdim", "keepdims"} & set(keywords):
            return None
        given = self.params[:positional]
        extra = given if self.is_tensor_method else given[1:]
        return True if positional <= len(self.params) and set(extra) <= {"p", "ord", "dtype"} else None


class Class(NamedTuple):
    """One class of torch.

    family: the base that decides what it can do ("Tensor", "Module", "Optimizer", "LRScheduler", "DataLoader",
    "Dataset", "Sampler", "Generator", "Stream", "Event", "GradScaler", "PackedSequence", "Distribution", "Transform",
    "Storage", "autocast", "device", "dtype", "Size"), or "object". bases: direct bases by qualified name. methods and
    attributes include what the bases in torch have; attributes include those set on `self`. takes_device: the
    constructor has `device=`. params: parameters of the constructor, in order, without `self`.
    """

    qualname: str
    family: str = "object"
    bases: tuple[str, ...] = ()
    methods: frozenset[str] = frozenset()
    attributes: frozenset[str] = frozenset()
    takes_device: bool = False
    params: tuple[str, ...] = ()
    since: Version | None = None
    removed: Version | None = None
    deprecated: Version | None = None
    replacement: str | None = None


#: Kinds of `mixing` under which tensors of one dimension or more must be on one device.
ON_ONE_DEVICE = frozenset({"exact", "scalar", "expanded"})

_LETTER = {"exact": "e", "scalar": "s", "expanded": "x", "index": "i", "copy": "c", "none": "n"}
_MIXING = {v: k for k, v in _LETTER.items()}
_FLAGS = {"guard": "g", "inplace": "i", "random": "r", "host_only": "h", "moves": "m", "ignores_default": "c"}


def parse_version(text: str) -> Version:
    """`"2.10"` to `(2, 10)`; ValueError for anything else."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


def format_version(version: Version) -> str:
    """`(2, 10)` to `"2.10"`."""
    return f"{version[0]}.{version[1]}"


def encode_function(f: Function) -> str:
    """The stored text of a record; `decode_function` is its inverse."""
    fields = []

    def put(key: str, value: str) -> None:
        if value:
            fields.append(f"{key}={value}")

    put("r", "" if f.result == "tensor" else f.result)
    put("d", "" if f.device_from == ("first_tensor" if f.result == "tensor" else "none") else f.device_from)
    put("a", ",".join(sorted(f.accepts)))
    marks = {**dict.fromkeys(f.tensor_params, "*"), **dict.fromkeys(f.sequence_params, "+")}
    put("p", ",".join(name + marks.get(i, "") for i, name in enumerate(f.params)))
    put("k", ",".join(f.keyword_only))
    put("m", _LETTER[f.mixing] if f.mixing else "")
    put("s", "" if f.sync == "never" else f.sync)
    put("f", "".join(letter for name, letter in _FLAGS.items() if getattr(f, name)))
    put("z", "inputs" if f.elementwise else "" if f.zero_dim == "unknown" else f.zero_dim)
    put("+", format_version(f.since) if f.since else "")
    put("-", format_version(f.removed) if f.removed else "")
    put("!", format_version(f.deprecated) if f.deprecated else "")
    put("to", f.replacement or "")
    put("c", f.fix)
    put("ks", ",".join(f"{name}:{format_version(v)}" for name, v in f.keyword_since))
    put("rd", ",".join(f"{cause}:{result}" for cause, result in f.variants))
    put("n", f.note)
    return "|".join(fields)


def _fields(text: str) -> dict[str, str]:
    return dict(part.split("=", 1) for part in text.split("|")) if text else {}


def _split(text: str) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()


def _version(text: str | None) -> Version | None:
    return parse_version(text) if text else None


def decode_function(qualname: str, text: str) -> Function:
    """The record of a stored text. Raises ValueError on text that `encode_function` cannot have written."""
    d = _fields(text)
    result = d.get("r", "tensor")
    params = _split(d.get("p", ""))
    flags = d.get("f", "")
    zero_dim = d.get("z", "unknown")
    return Function(
        qualname,
        result,
        d.get("d", "first_tensor" if result == "tensor" else "none"),
        frozenset(_split(d.get("a", ""))),
        tuple(p.rstrip("*+") for p in params),
        tuple(i for i, p in enumerate(params) if p.endswith("*")),
        _MIXING.get(d.get("m", "")),
        d.get("s", "never"),
        _version(d.get("+")),
        _version(d.get("-")),
        _version(d.get("!")),
        d.get("to"),
        "g" in flags,
        "i" in flags,
        "r" in flags,
        "unknown" if zero_dim == "inputs" else zero_dim,
        tuple(i for i, p in enumerate(params) if p.endswith("+")),
        _split(d.get("k", "")),
        "h" in flags,
        "m" in flags,
        "c" in flags,
        d.get("c", ""),
        tuple((name, parse_version(v)) for name, _, v in (x.partition(":") for x in _split(d.get("ks", "")))),
        tuple((cause, word) for cause, _, word in (x.partition(":") for x in _split(d.get("rd", "")))),
        zero_dim == "inputs",
        d.get("n", ""),
    )


def patch_function(record: Function, fields: str, source: str) -> Function:
    """The record with those stored fields replaced; flags and accepted keywords are added to what is there."""
    old, new = _fields(encode_function(record)), _fields(fields)
    if "f" in new:
        new["f"] = "".join(sorted(set(old.get("f", "")) | set(new["f"])))
    if "a" in new:
        new["a"] = ",".join(sorted({*_split(old.get("a", "")), *_split(new["a"])}))
    if "r" in new and "d" not in new and record.device_from != "none":
        new["d"] = record.device_from
    new["n"] = "; ".join(dict.fromkeys(x for x in (old.get("n", ""), source) if x))
    merged = "|".join(f"{key}={value}" for key, value in {**old, **new}.items())
    return decode_function(record.qualname, merged)


def encode_class(c: Class) -> str:
    """The stored text of a class: its own methods and attributes only, without family."""
    fields = []

    def put(key: str, value: str) -> None:
        if value:
            fields.append(f"{key}={value}")

    put("b", ",".join(c.bases))
    put("m", ",".join(sorted(c.methods)))
    put("t", ",".join(sorted(c.attributes)))
    put("p", ",".join(c.params))
    put("+", format_version(c.since) if c.since else "")
    put("-", format_version(c.removed) if c.removed else "")
    put("!", format_version(c.deprecated) if c.deprecated else "")
    put("to", c.replacement or "")
    return "|".join(fields)


def decode_class(qualname: str, text: str) -> Class:
    """The record of a stored text, with the members of that class alone."""
    d = _fields(text)
    params = _split(d.get("p", ""))
    return Class(
        qualname,
        "object",
        _split(d.get("b", "")),
        frozenset(_split(d.get("m", ""))),
        frozenset(_split(d.get("t", ""))),
        "device" in params,
        params,
        _version(d.get("+")),
        _version(d.get("-")),
        _version(d.get("!")),
        d.get("to"),
    )
