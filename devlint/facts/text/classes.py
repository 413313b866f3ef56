"""What is known of a class of the file: whether it is an `nn.Module`, and what its attributes hold."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Literal

from devlint.facts.text.returned import Forms, Returned, forms, of_parts
from devlint.facts.values import NOTHING, Value, merge
from devlint.model import Origin, Span

#: The text of the origin of a tensor that an unregistered attribute holds.
KEPT = "this plain attribute does not move with the module"
#: Decorators that leave a class as it is, or add methods.
_LEAVES = re.compile(
    r"regist|dataclass|attrs?\b|\bdefine|final|deprecat|doc|export|order|runtime_checkable|unique|skip|param"
)
#: The names of `torch.nn.Module`, as a file may import it.
MODULE = frozenset({"torch.nn.Module", "torch.nn.modules.Module", "torch.nn.modules.module.Module"})
What = Literal["tensor", "tensors", "modules", "parameters"]
Container = Literal["list", "tuple", "dict", "comprehension", "distribution", "function"]


@dataclass(slots=True)
class Unregistered:
    """An attribute of a module that does not move with it, where it was set, and where it is used."""

    node: ast.stmt
    target: ast.expr
    value_node: ast.expr
    value: Value
    what: What
    container: Container | None
    uses: dict[Span, Origin] = field(default_factory=dict)
    reassigned: bool = False
    appended: bool = False
    returned: bool = False  # the first of its uses is where `forward` gives it back
    placed: bool = False  # its parameters were moved when they were made
    trained: bool = False  # given to an optimizer in `__init__`
    wrapped: bool = False  # handed to a ModuleList, a Sequential, `add_module` or the like: registered after all


#: What methods assign to attributes of `self`: by attribute, the methods and the values.
Kept = dict[str, list[tuple[ast.AST, ast.expr]]]


@dataclass(slots=True, eq=False)
class ClassFacts:
    """One class of the file.

    `family`: "Module", "Dataset", "Optimizer" ... as its bases say, None when they are not known. `attributes`: what
    the methods bind on `self`, merged. `unregistered`: see `Unregistered`, by attribute name.
    """

    node: ast.ClassDef
    name: str
    family: str | None
    bases: tuple[str, ...]
    local_bases: tuple[ClassFacts, ...] = ()
    methods: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    attributes: dict[str, Value] = field(default_factory=dict)
    unregistered: dict[str, Unregistered] = field(default_factory=dict)
    properties: set[str] = field(default_factory=set)
    buffers: set[str] = field(default_factory=set)  # names given to `register_buffer`, whatever was registered
    moving: dict[str, bool] = field(default_factory=dict)  # by method: whether it puts its inputs somewhere itself
    given_back: dict[str, Forms] = field(default_factory=dict)  # see `returned_of`
    named_methods: dict[str, tuple[str, ...]] | None = None  # see there
    extended: bool = False  # bases from other files were looked up
    followed: frozenset[str] = frozenset()  # those that were found

    def fresh(self, classes: Mapping[str, ClassFacts]) -> ClassFacts:
        """The same class for another interpreter, before any of its methods ran. `classes`: those that this one knows."""
        local = tuple(classes[base] for base in self.bases if base in classes)
        return ClassFacts(
            self.node, self.name, self.family, self.bases, local, self.methods,
            properties=self.properties, given_back=self.given_back,
        )  # fmt: skip

    @property
    def abroad(self) -> bool:
        """Whether another file defines it."""
        return False

    @property
    def is_module(self) -> bool:
        return self.family == "Module"

    @property
    def on_host(self) -> bool:
        """Whether its methods run on the host by contract: data sets, samplers, collators, processors."""
        return self.family in ("Dataset", "Sampler", "Collator", "Processor")

    @property
    def returned(self) -> Mapping[str, Forms]:
        """What its own methods give back that is on the host, by name; those that give nothing of that kind left out."""
        found = {name: self.returned_of(name) for name in self.methods}
        return {name: parts for name, parts in found.items() if parts}

    def returned_of(self, name: str) -> Forms:
        """What one of its own methods gives back that is on the host."""
        if name not in self.given_back:
            self.given_back[name] = forms(self.methods[name])
        return self.given_back[name]

    def returned_by(self, name: str, count: int | None = None) -> Returned | None:
        """What a method, its own or an inherited one, gives back that is on the host; None where none is known.

        `count`: the names that the result is taken apart into.
        """
        if name in self.method_names:
            return of_parts(self.returned_of(name), count)
        inherited = (base.returned_by(name, count) for base in self.local_bases)
        return next((found for found in inherited if found is not None), None)

    @property
    def method_names(self) -> Collection[str]:
        """The methods that the class itself defines."""
        return self.methods.keys()

    def attribute(self, name: str) -> Value | None:
        found = self.attributes.get(name)
        if found is not None:
            return found
        for base in self.local_bases:
            inherited = base.attribute(name)
            if inherited is not None:
                return inherited
        return None

    def key(self, name: str) -> str:
        """How values tell that they were read from an attribute of the class, see `Value.attribute`."""
        return f"{self.name}.{name}"

    def has_buffer(self, name: str) -> bool:
        """Whether `register_buffer` was called with that name, here or in a base that is known."""
        return name in self.buffers or any(base.has_buffer(name) for base in self.local_bases)

    def method(self, name: str) -> tuple[ClassFacts, ast.FunctionDef | ast.AsyncFunctionDef] | None:
        """The method by that name and the class that defines it."""
        own = self.methods.get(name)
        if own is not None:
            return self, own
        for base in self.local_bases:
            inherited = base.method(name)
            if inherited is not None:
                return inherited
        return None

    def set_attribute(self, name: str, value: Value) -> None:
        if value.kind == "ndarray" and converts(self):
            value = NOTHING
        known = self.attributes.get(name)
        self.attributes[name] = value if known is None else merge(known, value)


def converts(class_: ClassFacts) -> bool:
    """Whether what is bound to an attribute may be kept as something else: a class of the lineage says how attributes are
    bound, or is decorated by what may make another class of it: an array becomes a buffer."""
    return any(
        "__setattr__" in each.method_names
        or any(_LEAVES.search(ast.unparse(mark).lower()) is None for mark in each.node.decorator_list)
        for each in lineage(class_)
    )


def lineage(class_: ClassFacts) -> list[ClassFacts]:
    """A class and its bases in this file."""
    found = [class_]
    for base in class_.local_bases:
        found += lineage(base)
    return found
