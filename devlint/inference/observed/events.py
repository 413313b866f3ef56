"""The events of every call, attribute, comparison and assignment, with what the new inference knows of their parts."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from devlint.facts.events import Event
from devlint.model import Certainty, Span

#: Who says what a value is. "proved": the code makes it. "likely": a call that cannot be read is in between. "annotated": an
#: annotation alone. "called": a call of the project hands it over.
Evidence: TypeAlias = Literal["proved", "likely", "annotated", "called"]


class Whereabouts(NamedTuple):
    """One place where a value may be, or that a device names.

    `device`: a device that the code names, such as "cpu" or "cuda:1". `expression`: code that is the device, such as
    `x.device`. Both are None where nothing is known. `likely`: a step is not proved. `sometimes`: it is there under a
    condition. `when`: the condition in words, as far as the code has words for it.
    """

    device: str | None
    expression: str | None
    likely: bool
    sometimes: bool
    when: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """A value that takes part in something.

    `kind`: "tensor", "module", "optimizer", "scheduler", "loader", "dataset", "sampler", "scaler", "generator",
    "distribution", "list", "tuple", "dict", "iterator", "string", "number", "bool", "none", "device", "dtype", "size",
    "array", "function", "method", "class", "instance" (an object of a class of the project), a family of objects of other
    libraries ("Tokenizer", "DataFrame"), or "unknown". `class_name`: the qualified name of its class or of what made it, as
    far as it is known; of a method its name. `places`: where it may be, or what a device names; each place once.
    `evidence`: who says so, of the kind and of the places. `constant`: of a string, number or bool.
    """

    span: Span
    node: ast.expr
    text: str
    kind: str
    class_name: str | None
    places: tuple[Whereabouts, ...]
    evidence: Evidence
    constant: str | int | float | bool | None

    def is_on(self, device: str) -> bool:
        """Whether it is surely on this device: "cpu", or "cuda" for any card."""
        return bool(self.places) and all(
            each.device is not None and each.device.partition(":")[0] == device and not each.likely
            for each in self.places
        )


@dataclass(frozen=True, slots=True)
class Inferred(Event):
    """Base of these events."""

    @property
    def certainty(self) -> Certainty:
        return "certain"


@dataclass(frozen=True, slots=True)
class InferredCall(Inferred):
    """A call.

    `name`: the qualified name of a function or class, or the name of the method. `receiver`: the object whose method it is.
    `arguments`: by name, or by position ("0"). `exists`: whether the receiver has the method; None where that is not known.
    `callee`: what is called, where the receiver keeps it: `x.device()` calls a device. `discarded`: the result is dropped.
    """

    name: str
    receiver: Part | None
    arguments: Mapping[str, Part]
    exists: bool | None
    callee: Part | None
    result: Part
    discarded: bool


@dataclass(frozen=True, slots=True)
class InferredAttribute(Inferred):
    """An attribute that is read, by `x.name` or by `getattr(x, "name")`. A method that is called at once is an InferredCall."""

    name: str
    receiver: Part
    exists: bool | None
    result: Part


@dataclass(frozen=True, slots=True)
class InferredComparison(Inferred):
    """A comparison of two values. A chain gives one event for each operator. `operator`: "==", "is not", "in" ..."""

    operator: str
    left: Part
    right: Part


@dataclass(frozen=True, slots=True)
class InferredAssignment(Inferred):
    """A value gets a name, or is put into an attribute or item. `target`: its text. `owner`: the object of an attribute."""

    target: str
    owner: Part | None
    value: Part


@dataclass(frozen=True, slots=True)
class InferredReading(Inferred):
    """A clock is read for the end of a time while work that came after its start may still be queued on a device.

    `name`: the call that reads it.
    """

    name: str
