"""Questions to the data: one dictionary lookup each, records decoded once and kept."""

from __future__ import annotations

import os.path
from functools import cache
from typing import TYPE_CHECKING, Any

from devlint.knowledge.records import ACCEPTS, Class, Function, Version, decode_class, decode_function, parse_version

if TYPE_CHECKING:
    from collections.abc import Mapping

DATA = os.path.join(os.path.dirname(__file__), "torch_api.json")

#: Torch minors that the data was generated from, oldest first.
VERSIONS: tuple[Version, ...] = tuple((2, minor) for minor in range(2, 16))

# What calling a class of a family gives.
_CONSTRUCTED = {
    "Tensor": "tensor",
    "Module": "module",
    "Optimizer": "optimizer",
    "LRScheduler": "scheduler",
    "DataLoader": "loader",
    "Dataset": "dataset",
    "Sampler": "sampler",
    "Generator": "generator",
    "Stream": "stream",
    "Event": "event",
    "GradScaler": "scaler",
    "PackedSequence": "packed",
    "Distribution": "distribution",
    "Transform": "transform",
    "Storage": "storage",
    "autocast": "autocast",
    "device": "device",
    "dtype": "dtype",
    "Size": "size",
}

# The base that decides what an object can do, in order of preference.
_FAMILY_ROOTS = {
    "torch.Tensor": "Tensor",
    "torch._C.TensorBase": "Tensor",
    "torch.nn.Module": "Module",
    "torch.optim.Optimizer": "Optimizer",
    "torch.optim.lr_scheduler.LRScheduler": "LRScheduler",
    "torch.utils.data.DataLoader": "DataLoader",
    "torch.utils.data.Dataset": "Dataset",
    "torch.utils.data.Sampler": "Sampler",
    "torch.Generator": "Generator",
    "torch.Stream": "Stream",
    "torch.Event": "Event",
    "torch.amp.GradScaler": "GradScaler",
    "torch.nn.utils.rnn.PackedSequence": "PackedSequence",
    "torch.distributions.Distribution": "Distribution",
    "torch.distributions.Transform": "Transform",
    "torch.UntypedStorage": "Storage",
    "torch.TypedStorage": "Storage",
    "torch.autocast": "autocast",
    "torch.device": "device",
    "torch.dtype": "dtype",
    "torch.Size": "Size",
}
_ROOT_OF = {family: root for root, family in reversed(_FAMILY_ROOTS.items())}

# Bases from Python itself: what they add is asked of the running interpreter.
_PYTHON_BASES = {
    "NamedTuple": "tuple",
    "OrderedDict": "collections.OrderedDict",
    "defaultdict": "collections.defaultdict",
    "collections.defaultdict": "collections.defaultdict",
    "collections.OrderedDict": "collections.OrderedDict",
    "Enum": "enum.Enum",
    "enum.Enum": "enum.Enum",
    "IntEnum": "enum.IntEnum",
}


@cache
def _data() -> dict[str, Any]:
    import json

    with open(DATA, encoding="utf-8") as file:
        loaded: dict[str, Any] = json.load(file)
    return loaded


@cache
def _annotated() -> Any:
    from devlint.knowledge import annotated

    return annotated


def _canonical(qualname: str) -> str:
    aliases: Mapping[str, str] = _data()["aliases"]
    return aliases.get(qualname, qualname)


@cache
def function(qualname: str) -> Function | None:
    """The record of a function, or of the constructor of a class, by its full name; None for what is not known.

    Aliases are followed. Names below a library whose functions all behave alike (`matplotlib.pyplot.x`) get that
    library's record.
    """
    if not qualname.startswith("torch."):
        from devlint.knowledge import foreign

        return foreign.function(qualname)
    home = _canonical(qualname)
    text = _data()["functions"].get(home)
    record = decode_function(home, text) if text is not None else _constructor(home)
    refined: Function | None = _annotated().refine_function(home, record)
    return refined


def _constructor(qualname: str) -> Function | None:
    owner = cls(qualname)
    if owner is None:
        return None
    accepted = frozenset(a for a in ACCEPTS if a in owner.params)
    return Function(
        qualname,
        _CONSTRUCTED.get(owner.family, "object"),
        "argument" if owner.takes_device else "none",
        accepted,
        owner.params,
        since=owner.since,
        removed=owner.removed,
        deprecated=owner.deprecated,
        replacement=owner.replacement,
    )


@cache
def method(family: str, name: str) -> Function | None:
    """The record of a method of a family of classes ("Tensor", "Module", "Optimizer", ...); None if it has none of
    that name.

    For a tensor method the tensor itself is the first tensor, and is not among `params`.
    """
    text = _data()["methods"].get(family, {}).get(name)
    record = decode_function(f"{_ROOT_OF.get(family, family)}.{name}", text) if text is not None else None
    refined: Function | None = _annotated().refine_method(family, name, record)
    return refined


def methods(family: str) -> frozenset[str]:
    """Names of all methods of a family; empty for a family that is not known."""
    extra = _annotated().EXTRA_METHODS.get(family, "")
    return frozenset(_data()["methods"].get(family, ())) | frozenset(extra.split())


def attribute(family: str, name: str) -> str | None:
    """What a plain attribute or property of a family holds, as the word of `Function.result`; None if there is none."""
    noted: str | None = _annotated().ATTRIBUTES.get((family, name))
    if noted is not None:
        return noted
    found: str | None = _data()["attributes"].get(family, {}).get(name)
    return found


def attributes(family: str) -> frozenset[str]:
    """Names of the plain attributes and properties of a family."""
    return frozenset(_data()["attributes"].get(family, ()))


def functions() -> tuple[str, ...]:
    """Qualified names of all functions of torch that have a record."""
    return tuple(_data()["functions"])


@cache
def _families() -> dict[str, str]:
    """Family by the name under which the root's record is kept."""
    return {_canonical(root): family for root, family in _FAMILY_ROOTS.items()}


@cache
def cls(qualname: str) -> Class | None:
    """The record of a class by its full name or an alias, with what its bases in torch give it; None if unknown."""
    if not qualname.startswith("torch"):
        from devlint.knowledge import foreign

        return foreign.cls(qualname)
    home = _canonical(qualname)
    text = _data()["classes"].get(home)
    if text is None:
        return None
    own = decode_class(home, text)
    family = _families().get(home, "")
    found_methods, found_attributes = own.methods, own.attributes
    params = own.params
    for base_name in own.bases:
        base = cls(base_name)
        if base is None:
            found_attributes |= _python_members(base_name)
            continue
        family = family or ("" if base.family == "object" else base.family)
        found_methods |= base.methods
        found_attributes |= base.attributes
        if not params and "__init__" not in own.methods and "__new__" not in own.methods:
            params = base.params
    record = own._replace(
        family=family or "object",
        methods=found_methods,
        attributes=found_attributes - found_methods,
        params=params,
        takes_device="device" in params,
    )
    refined: Class = _annotated().refine_class(record)
    return refined


@cache
def _python_members(name: str) -> frozenset[str]:
    """Public members of a base class from the standard library."""
    import builtins
    import importlib

    module, _, attr = _PYTHON_BASES.get(name, name).rpartition(".")
    if module not in ("", "collections", "enum"):
        return frozenset()
    owner = getattr(importlib.import_module(module) if module else builtins, attr, None)
    return frozenset(n for n in dir(owner) if not n.startswith("_")) if isinstance(owner, type) else frozenset()


@cache
def _names(namespace: str) -> dict[str, str] | None:
    """Name to its version marks (`+2.6-2.9`), or None for a namespace without data."""
    text = _data()["names"].get(namespace)
    if text is None:
        return None
    found = {}
    for word in text.split():
        end = min((i for i in (word.find("+"), word.find("-")) if i > 0), default=len(word))
        found[word[:end]] = word[end:]
    for name in _annotated().EXTRA_NAMES.get(namespace, "").split():
        found.setdefault(name, "")
    return found


def namespace_names(namespace: str) -> frozenset[str]:
    """All public names of a module, whatever the torch version; empty for one that is not known."""
    return frozenset(_names(namespace) or ())


def lifetime(qualname: str) -> tuple[Version | None, Version | None] | None:
    """First minor with the name (None: the oldest known) and first minor without it (None: still there).

    None when the name is not known at all. Modules that bind names which reading cannot tell give no dates.
    """
    namespace, _, name = qualname.rpartition(".")
    names = _names(namespace)
    if names is not None:
        marks = names.get(name)
        if marks is not None:
            if _is_open(namespace):
                return None, None
            since, _, removed = marks.partition("-")
            return (parse_version(since[1:]) if since else None, parse_version(removed) if removed else None)
    record = function(qualname)
    if record is not None and _canonical(qualname) in _data()["functions"]:
        return record.since, record.removed
    owner = cls(namespace)
    if owner is not None and (name in owner.methods or name in owner.attributes):
        known = method(owner.family, name)
        return (known.since, known.removed) if known is not None else (owner.since, owner.removed)
    if _names(qualname) is not None:
        return None, None
    return None


def exists(qualname: str, torch: Version) -> bool:
    """Whether a name is known to exist in that torch minor; False also for what is not known (`known_namespace`)."""
    life = lifetime(qualname)
    if life is None:
        return False
    since, removed = life
    return (since is None or torch >= since) and (removed is None or torch < removed)


def _is_open(namespace: str) -> bool:
    """Whether a module binds names that reading its file cannot tell."""
    return namespace in _data()["open"] or namespace in _annotated().OPEN


def known_namespace(prefix: str) -> bool:
    """Whether all public names of this module are known, so that another name does not exist."""
    return _names(prefix) is not None and not _is_open(prefix)


def is_public_name(namespace: str, name: str) -> bool | None:
    """Whether some known torch has the public name in that module; None where the data cannot tell.

    It cannot for namespaces it does not know, for modules that make names up (`__getattr__`), and for private names.
    """
    if name.startswith("_"):
        return None
    names = _names(namespace)
    if names is None:
        return None
    if name in names:
        return True
    return None if _is_open(namespace) else False


def nearest(qualname: str, n: int = 3) -> list[str]:
    """Up to n real names that look like this one.

    First the same name below its namespace, then a similar one in it, then the same name in others. What modules of torch
    import from `typing` is no name of torch.
    """
    import difflib
    import typing

    namespace, _, name = qualname.rpartition(".")
    pool = _likely(name, _letters_of(namespace))
    similar = [f"{namespace}.{c}" for c in difflib.get_close_matches(name, pool, n=n, cutoff=_CUTOFF)]
    same = _of_last_name().get(name, ())
    below = [f for f in same if f.startswith(f"{namespace}.") and f != qualname]
    found = dict.fromkeys((*below, *similar, *(f for f in same if f != qualname)))
    return [each for each in found if each.rpartition(".")[2] not in typing.__all__][:n]


_CUTOFF = 0.7  # of `difflib.SequenceMatcher.ratio`


def _likely(name: str, pool: Mapping[str, int]) -> list[str]:
    """The names of a pool that have enough letters in common with a name, wherever they stand, to look like it."""
    letters = _letters(name)
    return [
        other
        for other, known in pool.items()
        if 2 * (letters & known).bit_count() >= _CUTOFF * (len(name) + len(other)) - 1e-9
    ]


def _letters(name: str) -> int:
    """A bit for each letter of a name, another one where it has the letter again."""
    times: dict[int, int] = {}
    found = 0
    for letter in name:
        place = ord(letter) % 128
        found |= 1 << (place + 128 * times.get(place, 0))
        times[place] = times.get(place, 0) + 1
    return found


@cache
def _letters_of(namespace: str) -> dict[str, int]:
    """The names of a module or a class, with their letters."""
    names = _names(namespace)
    owner = cls(namespace) if names is None else None
    return {each: _letters(each) for each in names or (owner.methods | owner.attributes if owner else ())}


@cache
def _of_last_name() -> dict[str, list[str]]:
    """The functions and classes that have a name in some module, those of the outer modules first."""
    found: dict[str, list[str]] = {}
    for table in ("functions", "classes"):
        for qualname in _data()[table]:
            found.setdefault(qualname.rpartition(".")[2], []).append(qualname)
    for each in found.values():
        each.sort(key=lambda f: (f.count("."), f))
    return found
