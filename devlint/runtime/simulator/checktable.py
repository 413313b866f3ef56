"""CUDA's device check for each operator, read from the installed torch.

Every torch wheel carries torchgen's ``packaged/ATen/native/native_functions.yaml``, from which the
checks in the CUDA kernels' wrappers are generated (torchgen/dest/register_dispatch_key.py).  A line
parse of it takes some 20 ms and needs no YAML package.
"""

from __future__ import annotations

import importlib.util
import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from pathlib import Path


class CheckClass(Enum):
    """How CUDA decides whether tensors may be on different devices."""

    EXACT = "E"  # every tensor argument on the first one's device; zero-dim CPU tensors too
    ITERATOR = "T"  # TensorIterator: one zero-dim CPU input is allowed
    EXPLICIT = "C"  # a composite kernel whose leaf operators decide
    IMPLICIT = "I"  # decomposed before any kernel is chosen
    NONE = "N"  # the kernel takes what it gets
    ABSENT = "A"  # kernels of other devices only


@dataclass(frozen=True, slots=True)
class Check:
    """The check of one overload.

    method: the name of the C++ wrapper in error texts (exact checks only).
    arguments: the checked arguments in the order of checking (exact checks only).
    """

    kind: CheckClass
    method: str = ""
    arguments: tuple[str, ...] = ()


class CheckTableError(RuntimeError):
    """The installed torch has no readable native_functions.yaml."""


@dataclass(frozen=True, slots=True)
class _Entry:
    name: str
    overload: str
    arguments: str
    keys: frozenset[str]
    delegate: str | None
    structured: bool
    no_check: bool
    iterator: bool

    @property
    def full_name(self) -> str:
        return f"{self.name}.{self.overload}" if self.overload else self.name


@lru_cache(maxsize=1)
def check_table() -> dict[str, Check]:
    """Checks by ``name.overload`` (``default`` for the unnamed one) of the installed torch.

    Raises CheckTableError, naming the expected file, when torch lacks it.
    """
    path = _functions_file()
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise CheckTableError(f"{path}: cannot read torch's list of operators: {error.strerror}") from error
    return parse_checks(text)


def _functions_file() -> Path:
    spec = importlib.util.find_spec("torchgen")
    if spec is None or spec.origin is None:
        raise CheckTableError("the installed torch has no torchgen package, which describes its operators")
    return Path(spec.origin).parent / "packaged" / "ATen" / "native" / "native_functions.yaml"


def parse_checks(text: str) -> dict[str, Check]:
    """The check of every operator in a native_functions.yaml."""
    entries = {entry.full_name: entry for entry in map(_parse_entry, _split_entries(text)) if entry is not None}
    return {name if entry.overload else f"{name}.default": _check_of(entry, entries) for name, entry in entries.items()}


def _split_entries(text: str) -> list[str]:
    return re.split(r"\n(?=- func: )", text)


_HEADER = re.compile(r"- func: ([\w.]+)\((.*?)\) -> ", re.DOTALL)
_DISPATCH = re.compile(r"\n  dispatch:\n((?:    .*\n?|\s*#.*\n?)+)")
_DELEGATE = re.compile(r"\n  structured_delegate: ([\w.]+)")
_NO_CHECK = re.compile(r"\n  device_check: NoCheck(.*)")


def _parse_entry(block: str) -> _Entry | None:
    header = _HEADER.match(block)
    if header is None:
        return None
    name, _, overload = header.group(1).partition(".")
    delegate = _DELEGATE.search(block)
    no_check = _NO_CHECK.search(block)
    return _Entry(
        name=name,
        overload=overload,
        arguments=header.group(2),
        keys=_dispatch_keys(block),
        delegate=delegate.group(1) if delegate else None,
        structured="\n  structured: True" in block,
        no_check=no_check is not None,
        iterator=no_check is not None and "TensorIterator" in no_check.group(1),
    )


def _dispatch_keys(block: str) -> frozenset[str]:
    section = _DISPATCH.search(block)
    keys: set[str] = set()
    for line in section.group(1).splitlines() if section else ():
        names, colon, _ = line.split("#")[0].partition(":")
        if colon:
            keys.update(name.strip() for name in names.split(","))
    return frozenset(keys)


def _check_of(entry: _Entry, entries: dict[str, _Entry]) -> Check:
    delegate = entries.get(entry.delegate) if entry.delegate else None
    if "CUDA" in entry.keys or (delegate is not None and "CUDA" in delegate.keys):
        if not entry.no_check:
            return _exact_check(entry)
        return Check(CheckClass.ITERATOR if entry.iterator else CheckClass.NONE)
    if entry.keys & {"CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional"}:
        return Check(CheckClass.EXPLICIT)
    if entry.keys and not delegate and entry.keys <= {"CPU", "MPS", "XPU"}:
        return Check(CheckClass.ABSENT)
    return Check(CheckClass.IMPLICIT)


def _exact_check(entry: _Entry) -> Check:
    """Out arguments are checked first, then the positional tensors; keyword-only inputs never."""
    outputs: list[str] = []
    inputs: list[str] = []
    keyword_only = False
    for argument in _split_arguments(entry.arguments):
        if argument == "*":
            keyword_only = True
        elif argument.startswith("Tensor"):
            name = argument.split("=")[0].split()[-1]
            if not keyword_only:
                inputs.append(name)
            elif re.match(r"Tensor\(\w+!\)", argument):
                outputs.append(name)
    base = entry.name + ("_out" if outputs else "")
    if entry.structured or entry.delegate:
        method = f"wrapper_CUDA_{base}" + (f"_{entry.overload}" if entry.overload else "")
    else:
        method = f"wrapper_CUDA_{entry.overload}_{base}"
    return Check(CheckClass.EXACT, method, tuple(outputs + inputs))


def _split_arguments(arguments: str) -> list[str]:
    """Split at commas that are not inside a default such as ``int[2]=[0, 1]``."""
    return [part.strip() for part in re.split(r",(?![^(\[]*[)\]])", arguments)]
