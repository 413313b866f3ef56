"""Classes of the project: their bases, methods, family and what registers their parts."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, TypeAlias

from devlint import knowledge
from devlint.inference.library import protocols
from devlint.inference.program.files import File, Function, FunctionNode, dotted

#: What a class is by its bases. "unread": a base cannot be read. "object": all bases are read, and none is torch's.
Family: TypeAlias = str
Binding: TypeAlias = Literal["instance", "static", "class", "property", "setter"]


@dataclass(eq=False)
class Class:
    """A class of the project."""

    file: File
    node: ast.ClassDef
    methods: dict[str, Function] = field(default_factory=dict)
    setters: dict[str, Function] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for node in self.node.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._add(node)
            elif isinstance(node, ast.Assign):
                self.values.update({t.id: node.value for t in node.targets if isinstance(t, ast.Name)})
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self.values[node.target.id] = node.value

    def _add(self, node: FunctionNode) -> None:
        function = Function(self.file, node, self)
        if any(isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter") for d in node.decorator_list):
            self.setters[node.name] = function
        else:
            self.methods[node.name] = function

    @property
    def name(self) -> str:
        return self.node.name

    @cached_property
    def lineage(self) -> list[Class | str]:
        """The class and its bases in the order in which attributes are looked for. A string is the qualified name of a base
        that is not of the project, "?" one that cannot be told."""
        found: list[Class | str] = [self]
        pending: list[Class | str] = list(self.bases)
        while pending:
            each = pending.pop(0)
            if each not in found:
                found.append(each)
                if isinstance(each, Class):
                    pending = [*each.bases, *pending] if len(each.bases) == 1 else [*pending, *each.bases]
        return found

    @cached_property
    def bases(self) -> list[Class | str]:
        return [base for node in self.node.bases for base in self._base(node)]

    def _base(self, node: ast.expr) -> Iterator[Class | str]:
        if isinstance(node, ast.Subscript):  # Generic[T]
            node = node.value
        if isinstance(node, ast.Name) and node.id in self.file.classes and self.file.classes[node.id] is not self:
            yield self.file.classes[node.id]
            return
        name = self.file.qualified(node)
        if name is None:
            plain = dotted(node)
            yield plain if plain in ("object", "Exception", "dict", "list", "tuple") else "?"
            return
        found = self.file.project.find(self.file, name) if self.file.project is not None else None
        yield found if isinstance(found, Class) else name

    @cached_property
    def family(self) -> Family:
        """The family of the first base of a library that has one, "unread" where a base cannot be read, else "object"."""
        unread = False
        for base in self.lineage:
            if isinstance(base, str):
                family = protocols.family_of_base(base)
                if family not in ("unread", "object"):
                    return family
                unread = unread or family == "unread"
        return "unread" if unread else "object"

    @property
    def is_module(self) -> bool:
        return self.family == "Module"

    @property
    def may_be_module(self) -> bool:
        return self.family in ("Module", "unread")

    def method(self, name: str) -> Function | None:
        for each in self.lineage:
            if isinstance(each, Class) and name in each.methods:
                return each.methods[name]
        return None

    def method_above(self, owner: Class, name: str) -> Function | None:
        """The method that `super().name` means in a method of `owner`, for an object of this class."""
        line = self.lineage if owner in self.lineage else owner.lineage
        for each in line[line.index(owner) + 1 :]:
            if isinstance(each, Class) and name in each.methods:
                return each.methods[name]
        return None

    def setter(self, name: str) -> Function | None:
        return next((c.setters[name] for c in self.lineage if isinstance(c, Class) and name in c.setters), None)

    def value(self, name: str) -> tuple[Class, ast.expr] | None:
        """What the body of the class, or of a base, binds a name to."""
        return next(((c, c.values[name]) for c in self.lineage if isinstance(c, Class) and name in c.values), None)

    @property
    def is_read(self) -> bool:
        """Whether all bases are read, or are known as data."""
        return all(isinstance(base, Class) or protocols.family_of_base(base) != "unread" for base in self.lineage)

    @cached_property
    def is_data(self) -> bool:
        """Whether its constructor is made of its annotated fields: a data class or a named tuple."""
        names = {self.file.qualified(d.func if isinstance(d, ast.Call) else d) for d in self.node.decorator_list}
        return not names.isdisjoint(protocols.DATA_CLASS_DECORATORS) or any(
            base in protocols.DATA_CLASS_BASES for base in self.lineage if isinstance(base, str)
        )

    @cached_property
    def data_fields(self) -> list[tuple[str, ast.expr, ast.expr | None]]:
        """The fields of a data class in order: name, annotation, default."""
        found: dict[str, tuple[str, ast.expr, ast.expr | None]] = {}
        for each in reversed(self.lineage):
            if isinstance(each, Class):
                for node in each.node.body:
                    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                        found[node.target.id] = (node.target.id, node.annotation, node.value)
        return list(found.values())


def binding_of(function: Function) -> Binding:
    """How a method is bound when it is read from an object."""
    for name in function.decorators():
        last = name.rpartition(".")[2]
        if last in ("staticmethod", "classmethod"):
            return "static" if last == "staticmethod" else "class"
        if last in ("property", "cached_property", "lazy_property"):
            return "property"
    if function.name == "__new__":
        return "class"
    return "instance"


def is_torch_module(name: str) -> bool:
    """Whether a qualified name is that of a module class of torch."""
    record = knowledge.cls(name)
    return record is not None and record.family == "Module"
