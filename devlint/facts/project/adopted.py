"""Classes of other files: what their text says is known at once, the rest is looked up when it is asked for."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.returned import Forms
from devlint.facts.values import Device, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.imported import Imported
    from devlint.facts.project.project import Found

_T = TypeVar("_T")
_OPENED = frozenset({"node", "methods", "properties", "home", "original"})
_FILLED = frozenset({"attributes", "buffers", "devices"})


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a class of another file gets what its text does not say: its bases, its definition, its attributes."""

    bases: Callable[[], tuple[ClassFacts, ...]]
    definition: Callable[[], tuple[Imported, ClassFacts] | None]
    attributes: Callable[[AdoptedClass], None]


class AdoptedClass(ClassFacts):
    """A class of another file as this file sees it.

    The slots for what is expensive to know are empty until they are read. `devices`: those of the parts that it makes, see
    `Instance`. `home` is the interpreter of the other file
    and `original` the class as that file knows it; both are None when too many files were looked into already.
    """

    __slots__ = ("_sources", "devices", "found", "home", "original")

    devices: tuple[Device, ...] | None
    home: Imported | None
    original: ClassFacts | None

    def __init__(self, name: str, found: Found, family: str | None, sources: Sources) -> None:
        self.name, self.found, self.family, self._sources = name, found, family, sources
        self.bases = found.exported_class.bases
        self.unregistered, self.moving = {}, {}
        self.extended, self.followed = True, frozenset()

    def __getattr__(self, name: str) -> object:
        """Called for a slot that is empty."""
        if name == "local_bases":
            self.local_bases = ()
            self.local_bases = self._sources.bases()
        elif name in _OPENED:
            self.node = ast.ClassDef(self.found.short, [], [], [], [])
            self.methods, self.properties, self.home, self.original = {}, set(), None, None
            definition = self._sources.definition()
            if definition is not None:
                self.home, self.original = definition
                self.node, self.methods = self.original.node, self.original.methods
                self.properties = self.original.properties
        elif name in _FILLED:
            self.attributes, self.buffers, self.devices = {}, set(), None
            self._sources.attributes(self)
        else:
            raise AttributeError(name)
        return getattr(self, name)

    @property
    def abroad(self) -> bool:
        return True

    @property
    def moves(self) -> bool:
        """Whether the text of one of its methods moves something."""
        return self.found.exported_class.moves

    def returned_of(self, name: str) -> Forms:
        return self.found.exported_class.returned.get(name, ())

    @property
    def method_names(self) -> Collection[str]:
        return self.found.exported_class.methods

    def attribute(self, name: str) -> Value | None:
        if name in self.found.exported_class.sets:
            return ClassFacts.attribute(self, name)
        return first(base.attribute(name) for base in self.local_bases)

    def has_buffer(self, name: str) -> bool:
        if self.found.exported_class.keeps:
            return ClassFacts.has_buffer(self, name)
        return any(base.has_buffer(name) for base in self.local_bases)

    def method(self, name: str) -> tuple[ClassFacts, ast.FunctionDef | ast.AsyncFunctionDef] | None:
        if name in self.method_names:
            own = self.methods.get(name)
            return (self, own) if own is not None else None
        return first(base.method(name) for base in self.local_bases)


def first(found: Iterable[_T | None]) -> _T | None:
    return next((each for each in found if each is not None), None)
