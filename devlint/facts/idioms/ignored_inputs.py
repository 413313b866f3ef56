"""Inputs that a module's `forward` never computes with, or hands on to parts that never do: they meet nothing.

    def forward(self, graph, state=None):
        return self.embedding(graph, state)  # whose `forward(self, graph, state)` reads `graph` alone

Their sizes may be read, and what they hold may be read on the host: `lengths.tolist()`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from devlint.facts.events import Operand
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.constants import Constants, given_constants, live
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute
from devlint.facts.text.signatures import parameter_of, positional_names

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments

_DEPTH = 3  # parts that hand an input on to the next
#: What is asked of a tensor for what is none.
_ASKED = frozenset({"shape", "ndim", "dtype", "size", "dim", "numel", "item", "tolist", "nelement"})
_ASKS = frozenset({"len", "isinstance", "int", "float", "bool", "range", "print", "is_tensor"})
#: What reads every name of a function at once.
_READS_ALL = frozenset({"locals", "vars", "eval", "exec"})


class Uses(NamedTuple):
    """What a method does with its names: those that calls are given as they are, those that it computes with, and any."""

    given: dict[str, list[tuple[ast.Call, int | str]]]  # with the position or the keyword
    read: frozenset[str]
    known: frozenset[str]
    reads_all: bool


def read_alone(
    classes: Mapping[str, ClassFacts],
    class_: ClassFacts,
    arguments: Arguments,
    operands: list[Operand],
    method: str = "forward",
) -> list[Operand]:
    """The operands of a call of a module of the project, or of its method, without those that this does not read."""
    found = class_.method(method)
    if found is None or arguments.star or arguments.double_star:
        return operands
    names = {id(node): name for name, node in zip(positional_names(found[1].args)[1:], arguments.nodes, strict=False)}
    names |= {id(node): name for name, (node, _) in arguments.keywords.items()}
    return [o for o in operands if not is_ignored(classes, class_, method, names.get(id(o.node)), 0)]


def is_ignored(
    classes: Mapping[str, ClassFacts],
    class_: ClassFacts,
    method: str,
    name: str | None,
    depth: int,
    constants: Constants | None = None,
) -> bool:
    """Whether a method of a module takes an argument, and neither it nor what it hands this to reads it.

    `constants`: what the call makes some of the method's parameters, where they are to be followed.
    """
    found = class_.method(method) if name is not None else None
    if name is None or found is None or depth > _DEPTH or parameter_of(found[1].args, name) is None:
        return False
    uses = uses_of(found[1], frozenset(constants.items()) if constants else frozenset())
    if name in uses.read or uses.reads_all or uses.known.isdisjoint(positional_names(found[1].args)):
        return False  # one that reads nothing at all is there for subclasses
    for call, place in uses.given.get(name, ()):
        if not isinstance(call.func, ast.Attribute) or not is_self_attribute(call.func):
            return False
        inner, called = class_, call.func.attr
        if class_.method(called) is None:
            value = class_.attribute(called)
            part = classes.get(value.type_name or "") if value is not None and value.kind == "module" else None
            if part is None:
                return False
            inner, called = part, "forward"
        taken = place
        target = inner.method(called)
        if isinstance(place, int):
            positional = positional_names(target[1].args)[1:] if target is not None else []
            if place >= len(positional):
                return False
            taken = positional[place]
        handed = given_constants(target[1], call, constants) if constants is not None and target is not None else None
        if not is_ignored(classes, inner, called, str(taken), depth + 1, handed):
            return False
    return True


@lru_cache(64)
def uses_of(
    method: ast.FunctionDef | ast.AsyncFunctionDef, constants: frozenset[tuple[str, bool | None]] = frozenset()
) -> Uses:
    """`constants`: what some parameters are, which rules out parts of the method."""
    given: dict[str, list[tuple[ast.Call, int | str]]] = {}
    apart: set[int] = set()  # names that are read for what is no tensor, or in a call
    known: set[str] = set()
    reads_all = False
    nodes = list(live(method, dict(constants)) if constants else walk(method))
    for node in nodes:
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            reads_all = reads_all or called in _READS_ALL
            spread = any(isinstance(argument, ast.Starred) for argument in node.args)
            for place, argument in () if spread else places(node):
                if isinstance(argument, ast.Name):
                    apart.add(id(argument))
                    if called not in _ASKS:
                        given.setdefault(argument.id, []).append((node, place))
        elif isinstance(node, ast.Attribute) and node.attr in _ASKED and isinstance(node.value, ast.Name):
            apart.add(id(node.value))
        elif isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            apart.update(id(part) for part in (node.left, *node.comparators))
        elif isinstance(node, ast.Name):
            known.add(node.id)
    read = frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in apart)
    return Uses(given, read, frozenset(known), reads_all)


def places(call: ast.Call) -> Iterator[tuple[int | str, ast.expr]]:
    """The arguments of a call, with the position or the keyword of each."""
    yield from enumerate(call.args)
    yield from ((k.arg, k.value) for k in call.keywords if k.arg is not None)
