"""Inputs that a module's `forward` never computes with, or hands on to parts that never do: they meet nothing.

    def forward(self, graph, state=None):
        return self.embedding(graph, state)  # whose `forward(self, graph, state)` reads `graph` alone

Their sizes may be read, and what they hold may be read on the host: `lengths.tolist()`. What stands behind
`size = tuple(size.tolist())` in its block reads no input.

What is on the CPU meets nothing either where it is an index alone, `h[rows] = self.cell(x, h[rows])`, is gone through or
compared with numbers, or with what an attribute keeps that is no tensor, for the host to decide, or is the lengths of
sequences, which `pack_padded_sequence` wants there [torch/nn/utils/rnn.py].
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from devlint.facts.events import Operand
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.constants import Constants, given_constants, live
from devlint.facts.text.nodes import blocks, walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signatures import parameter_of, positional_names
from devlint.facts.values import CPU, TENSOR_KINDS, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments

_DEPTH = 3  # parts that hand an input on to the next
#: What is asked of a tensor for what is none.
_ASKED = frozenset({"shape", "ndim", "dtype", "size", "dim", "numel", "item", "tolist", "nelement"})
_ASKS = frozenset({"len", "isinstance", "int", "float", "bool", "range", "print", "is_tensor"})
#: What reads every name of a function at once.
_READS_ALL = frozenset({"locals", "vars", "eval", "exec"})
_HOLDS = frozenset({"tuple", "list", "int", "float", "set", "sorted"})
#: Where `pack_padded_sequence` takes lengths.
_LENGTHS = (1, "lengths")


class Uses(NamedTuple):
    """What a method does with its names: those that calls are given as they are, those that it computes with, and any.

    `met`: those that it computes with as no tensor of the CPU can be beside others. `items`: the names of what else it takes
    out of one: `rows = index[start:end]`, `for row in index`. `beside`: the attributes of `self` that conditions compare one
    with.
    """

    given: dict[str, list[tuple[ast.Call, int | str]]]  # with the position or the keyword
    read: frozenset[str]
    known: frozenset[str]
    reads_all: bool
    met: frozenset[str]
    items: dict[str, set[str]]
    beside: dict[str, set[str]]

    def named(self, name: str) -> set[str]:
        """A name, and those of what is taken out of it."""
        found = {name}
        pending = [name]
        for each in pending:  # which grows
            pending += self.items.get(each, set()) - found
            found |= self.items.get(each, set())
        return found


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
    return [
        o
        for o in operands
        if not is_ignored(classes, class_, method, names.get(id(o.node)), 0, on_cpu=o.value.device == CPU)
    ]


def is_ignored(
    classes: Mapping[str, ClassFacts],
    class_: ClassFacts,
    method: str,
    name: str | None,
    depth: int,
    constants: Constants | None = None,
    on_cpu: bool = False,
) -> bool:
    """Whether a method of a module takes an argument, and neither it nor what it hands this to reads it.

    `constants`: what the call makes some of the method's parameters, where they are to be followed. `on_cpu`: it may be read
    as what is on the CPU can be beside tensors that are elsewhere.
    """
    found = class_.method(method) if name is not None else None
    if name is None or found is None or depth > _DEPTH or parameter_of(found[1].args, name) is None:
        return False
    uses = uses_of(found[1], frozenset(constants.items()) if constants else frozenset())
    if uses.reads_all or uses.known.isdisjoint(positional_names(found[1].args)):
        return False  # one that reads nothing at all is there for subclasses
    names = uses.named(name) if on_cpu else {name}
    if not names.isdisjoint(uses.met if on_cpu else uses.read):
        return False
    if on_cpu and any(may_be_tensor(class_, other) for each in names for other in uses.beside.get(each, ())):
        return False
    for call, place in (use for each in sorted(names) for use in uses.given.get(each, ())):
        if on_cpu and place in _LENGTHS and last_name(call.func) == "pack_padded_sequence":
            continue
        if not isinstance(call.func, ast.Attribute) or not is_self_attribute(call.func):
            return False
        inner, called = [class_], call.func.attr
        if class_.method(called) is None:
            inner, called = parts_of(classes, class_.attribute(called)), "forward"
        for each in inner:
            taken = place
            target = each.method(called)
            if isinstance(place, int):
                positional = positional_names(target[1].args)[1:] if target is not None else []
                if place >= len(positional):
                    return False
                taken = positional[place]
            handed = None
            if constants is not None and target is not None:
                handed = given_constants(target[1], call, constants)
            if not is_ignored(classes, each, called, str(taken), depth + 1, handed, on_cpu):
                return False
        if not inner:
            return False
    return True


def may_be_tensor(class_: ClassFacts, attribute: str) -> bool:
    """Whether an attribute of an object may be a tensor: it is known to be one, or nothing is known of it."""
    value = class_.attribute(attribute)
    return value is None or value.kind in TENSOR_KINDS or bool(value.device)


def parts_of(classes: Mapping[str, ClassFacts], part: Value | None) -> list[ClassFacts]:
    """The class of a part of a module, or each that it may have; none where one of them is not known."""
    if part is None or part.kind != "module":
        return []
    several = part.elements if isinstance(part.elements, tuple) else (part,)
    found = [classes.get(each.type_name or "") for each in several]
    return [each for each in found if each is not None] if None not in found else []


@lru_cache(64)
def uses_of(
    method: ast.FunctionDef | ast.AsyncFunctionDef, constants: frozenset[tuple[str, bool | None]] = frozenset()
) -> Uses:
    """`constants`: what some parameters are, which rules out parts of the method."""
    given: dict[str, list[tuple[ast.Call, int | str]]] = {}
    apart: set[int] = set()  # names that are read for what is no tensor, or in a call
    beside: set[int] = set()  # names that are read as a tensor of the CPU can be
    items: dict[str, set[str]] = {}
    known: set[str] = set()
    others: dict[str, set[str]] = {}  # attributes of `self` that conditions compare names with
    reads_all = False
    later = set(map(id, behind_new(method)))
    nodes = list(live(method, dict(constants)) if constants else walk(method))
    for node in nodes:
        if isinstance(node, ast.Call):
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            reads_all = reads_all or called in _READS_ALL
            spread = any(isinstance(argument, ast.Starred) for argument in node.args)
            for place, argument in () if spread else places(node):
                if isinstance(argument, ast.Name) and id(argument) not in beside and id(argument) not in later:
                    apart.add(id(argument))
                    if called not in _ASKS:
                        given.setdefault(argument.id, []).append((node, place))
        elif isinstance(node, ast.Attribute) and node.attr in _ASKED and isinstance(node.value, ast.Name):
            apart.add(id(node.value))
        elif isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            apart.update(id(part) for part in (node.left, *node.comparators))
        elif isinstance(node, ast.Name):
            known.add(node.id)
        elif isinstance(node, ast.Subscript):
            indices = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
            for index in indices:
                bounds = (index.lower, index.upper, index.step) if isinstance(index, ast.Slice) else (index,)
                beside.update(id(bound) for bound in bounds if isinstance(bound, ast.Name))
        elif isinstance(node, (ast.Assign, ast.For)):
            taken = taken_out(node)
            if taken is not None:
                whole, item = taken
                beside |= {id(whole), id(item)}
                items.setdefault(whole.id, set()).add(item.id)
        elif isinstance(node, (ast.If, ast.While, ast.Assert)):
            for name, attribute in compared(node.test):
                beside.add(id(name))
                if attribute is not None:
                    others.setdefault(name.id, set()).add(attribute)
    names = [node for node in nodes if isinstance(node, ast.Name) and id(node) not in apart | later]
    read = frozenset(node.id for node in names)
    met = frozenset(node.id for node in names if id(node) not in beside)
    return Uses(given, read, frozenset(known), reads_all, met, items, others)


def taken_out(node: ast.Assign | ast.For) -> tuple[ast.Name, ast.Name] | None:
    """A name, and the one for what is taken out of it: `rows = index[a:b]`, `for i, row in enumerate(index)`."""
    target = node.target if isinstance(node, ast.For) else node.targets[0]
    whole = node.iter if isinstance(node, ast.For) else node.value
    if isinstance(node, ast.Assign) and len(node.targets) > 1:
        return None
    if isinstance(whole, ast.Call) and isinstance(node, ast.For):
        counted = isinstance(whole.func, ast.Name) and whole.func.id == "enumerate" and len(whole.args) == 1
        if not counted or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
            return None
        whole, target = whole.args[0], target.elts[1]
    elif isinstance(whole, ast.Subscript) and isinstance(node, ast.Assign):
        if not isinstance(whole.slice, (ast.Slice, ast.Constant, ast.UnaryOp)):
            return None  # by what may be elsewhere
        whole = whole.value
    if isinstance(whole, ast.Name) and isinstance(target, ast.Name):
        return whole, target
    return None


def behind_new(method: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[ast.Name]:
    """The names in a statement, and behind it in its block, that it binds to what the host reads: `n = n.tolist()`."""
    for block in blocks(method):
        new: set[str] = set()
        for statement in block:
            if new:
                yield from (n for n in walk(statement) if isinstance(n, ast.Name) and n.id in new)
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target = statement.targets[0]
                if isinstance(target, ast.Name) and is_read_on_host(statement.value):
                    new.add(target.id)
                    yield target


def is_read_on_host(node: ast.expr) -> bool:
    """Whether an expression gives numbers, or a list or tuple of them, that the host reads from a tensor."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _HOLDS and node.args:
        node = node.args[0]
    return isinstance(node, ast.Call) and last_name(node.func) in ("tolist", "item")


def compared(test: ast.expr) -> Iterator[tuple[ast.Name, str | None]]:
    """The names that a condition compares, or an item of them, with numbers, `times[-1] > 0`, or with an attribute of `self`,
    which is given with it."""
    pending = [test]
    for node in pending:  # which grows
        if isinstance(node, ast.BoolOp):
            pending += node.values
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            pending.append(node.operand)
        if not isinstance(node, ast.Compare):
            continue
        sides = [side.value if isinstance(side, ast.Subscript) else side for side in (node.left, *node.comparators)]
        names = [side for side in sides if isinstance(side, ast.Name)]
        others = [side for side in sides if not isinstance(side, ast.Name)]
        if len(names) == 1 and all(map(is_number, others)):
            yield names[0], None
        elif len(names) == len(others) == 1 and is_self_attribute(others[0]):
            yield names[0], last_name(others[0])


def is_number(node: ast.expr) -> bool:
    while isinstance(node, ast.UnaryOp):
        node = node.operand
    return isinstance(node, ast.Constant) and isinstance(node.value, (int, float))


def places(call: ast.Call) -> Iterator[tuple[int | str, ast.expr]]:
    """The arguments of a call, with the position or the keyword of each."""
    yield from enumerate(call.args)
    yield from ((k.arg, k.value) for k in call.keywords if k.arg is not None)
