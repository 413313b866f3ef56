"""Operands of which nothing is known, beside a tensor made on the CPU: what their function or class says of them elsewhere.

    scores = result["scores"].cpu().numpy()  # one entry of a dict is brought to the CPU
    boxes = result["boxes"] * torch.tensor([w, h, w, h])  # another one meets a new tensor

    def update(self, labels):
        self.counts = self.counts.to(labels.device)  # one method moves what the object keeps

    def value(self):
        return self.counts / (self.total + torch.ones(self.number))  # another one does not know of it

What is brought to the CPU counts as in `said_elsewhere`, and so does an attribute that a method other than `__init__` moves
whenever it runs, unless some code of the class takes it back. That others are put on an operand's device does not count: it may
be the CPU.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.events import Operand
from devlint.facts.idioms import joined, made_where_told, unplaced
from devlint.facts.idioms.joined import is_blank
from devlint.facts.idioms.placed import goes_back, own_name, placements, target_of, unconditional
from devlint.facts.idioms.said_elsewhere import is_of_host, is_path, where_fetched
from devlint.facts.text.annotations import knows_other_tensors
from devlint.facts.text.classes import lineage
from devlint.facts.text.method_names import TENSOR_ATTRIBUTES, TO_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.reads import root_of
from devlint.facts.text.references import chain, last_name
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signatures import parameter_names
from devlint.facts.text.signs import OF_HOST
from devlint.facts.values import CPU, Place, Value, may_be_accelerator, symbol
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments, CallArguments
    from devlint.knowledge import Function as Record

_DEPTH = 3
#: Parameters of torch's functions that take a tensor, or a number.
_OPERANDS = frozenset({"input", "other"})


def sides(machine: CallArguments, left: ast.expr, a: Value, right: ast.expr, b: Value) -> tuple[Value, Value]:
    """Both operands of an operator, with what is said elsewhere of the one of which nothing is known."""
    if is_blank(a) and unplaced.is_new(machine, b):
        known = place_of(machine, left) if is_new(machine, b) else None
        return known or unplaced.operand(machine, left, a, leaves(left)) or a, b
    if is_blank(b) and unplaced.is_new(machine, a):
        known = place_of(machine, right) if is_new(machine, a) else None
        return a, known or unplaced.operand(machine, right, b, leaves(right)) or b
    return a, b


def others(
    machine: CallArguments, record: Record, arguments: Arguments, operands: Sequence[Operand]
) -> Iterator[Operand]:
    """What a function of torch gets besides `operands`: arguments that must be tensors, and are known from elsewhere alone."""
    exact = record.mixing == "exact"
    if not any(is_new(machine, operand.value, exact) for operand in operands) or arguments.star:
        return
    if record.sequence_params and arguments.nodes:
        found = list(joined.operands(machine, arguments.nodes[0], arguments.values[0]))
        yield from found or unplaced.parts(machine, arguments.nodes[0], arguments.values[0])
    for index, (name, given) in enumerate(zip(record.params, arguments.values, strict=False)):
        if (index in record.tensor_params or name in _OPERANDS) and is_blank(given):
            value = place_of(machine, arguments.nodes[index])
            if value is None and index in record.tensor_params:
                value = unplaced.place_of(machine, arguments.nodes[index])
            if value is not None:
                yield machine.operand(arguments.nodes[index], value)


def is_new(machine: CallArguments, value: Value, exact: bool = False) -> bool:
    """Whether a tensor of one dimension at least, or of any (`exact`), was made on the CPU by the function itself."""
    if machine.function is None or value.device != CPU or not (exact or value.zero_dim is False):
        return False
    return unplaced.is_made_in(machine, value, machine.function.node)


def place_of(machine: CallArguments, node: ast.expr) -> Value | None:
    """Where an operand may be, by what is said elsewhere of what it is computed from."""
    function = machine.function
    own = machine.scan.functions.get(id(function.node)) if function is not None else None
    if own is None or function is None or not machine.assume or machine.host or machine.in_init:
        return None
    if knows_other_tensors(machine.imports.names) or function.name.rsplit(".", 1)[-1].startswith("test"):
        return None
    return _place_of(machine, own, node, node, _DEPTH)


def _place_of(machine: CallArguments, own: FunctionScan, node: ast.expr, place: ast.expr, depth: int) -> Value | None:
    if isinstance(node, ast.Call) and (told := made_where_told.place_of(machine, node)) is not None:
        return told
    for leaf in leaves(node):
        found = where_kept(machine, leaf) or fetched(machine, own, place, leaf)
        if found is None and depth and isinstance(leaf, ast.Name) and not machine.loops:
            source = bound_above(own, leaf.id, place)
            found = _place_of(machine, own, source, place, depth - 1) if source is not None else None
        if found is not None:
            return found
    return None


def leaves(node: ast.expr) -> Iterator[ast.expr]:
    """The names and attributes whose tensors an expression is computed from; none where it is a number, or of the host."""
    while True:
        if isinstance(node, ast.BinOp):
            yield from leaves(node.left)
            node = node.right
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node, ast.Call):
            function = node.func
            if not isinstance(function, ast.Attribute) or function.attr in TO_HOST or is_of_host(function):
                return
            of_torch = isinstance(function.value, ast.Name) and function.value.id == "torch"
            record = (
                knowledge.function(f"torch.{function.attr}") if of_torch else knowledge.method("Tensor", function.attr)
            )
            if record is None or record.result != "tensor" or record.device_from != "first_tensor":
                return
            if of_torch and not node.args:
                return
            node = node.args[0] if of_torch else function.value
        elif isinstance(node, ast.Subscript) or (isinstance(node, ast.Attribute) and node.attr in TENSOR_ATTRIBUTES):
            node = node.value
        else:
            if is_path(node):
                yield node
            return


def fetched(machine: CallArguments, own: FunctionScan, place: ast.expr, leaf: ast.expr) -> Value | None:
    """A tensor, or what holds it, that another place of the function brings to the CPU."""
    if any(OF_HOST.search(last_name(part)) is not None for part in chain(leaf)):
        return None
    value = where_fetched(machine, own, place, leaf)
    function, name = machine.function, last_name(root_of(leaf))
    if value is not None and function is not None and name in parameter_names(own.node):
        machine.assumed.setdefault(value.because[0].span, (function, name))
    return value


def bound_above(own: FunctionScan, name: str, place: ast.expr) -> ast.expr | None:
    """What a name is bound to where a place is reached, if it is not of the host: the only assignment above it."""
    found = only_binding(own, name, place)
    return found if found is not None and not is_of_host(found) else None


def only_binding(own: FunctionScan, name: str, place: ast.expr) -> ast.expr | None:
    """What the only assignment to a name gives it that a function has, above a place and outside of loops."""
    if name in parameter_names(own.node):
        return None
    above = [a for a in own.assigns if getattr(a, "lineno", place.lineno) < place.lineno and binds(a, name)]
    every = sum(binds(a, name) for a in own.assigns)
    if len(above) != 1 or every != own.bound.get(name, 0) or not isinstance(above[0], ast.Assign):
        return None
    found = above[0]
    return found.value if any(isinstance(t, ast.Name) for t in found.targets) else None


def binds(each: ast.Assign | ast.For | ast.comprehension, name: str) -> bool:
    targets = each.targets if isinstance(each, ast.Assign) else [each.target]
    return any(isinstance(n, ast.Name) and n.id == name for target in targets for n in walk(target))


def where_kept(machine: CallArguments, leaf: ast.expr) -> Value | None:
    """Where a method of the class puts an attribute whenever it runs: `self.counts = self.counts.to(labels.device)`."""
    name, class_ = own_name(leaf), machine.owner
    if not name or class_ is None or class_.on_host:
        return None
    found: Value | None = None
    methods = [(m, each.abroad) for each in lineage(class_) for m in each.methods.values() if m.name != "__init__"]
    for method, abroad in methods:
        for statement in () if abroad else unconditional(method.body):
            for moved, call in placements(statement):
                source = own_name(next((p for p in chain(call) if own_name(p)), call))
                if moved == name and source == name and found is None:
                    device = target_of(machine, class_, call)
                    if not may_be_accelerator(device):
                        return None
                    if not all(isinstance(p, Place) or p.name.startswith("self.") for p in device):
                        device = symbol(f"self.{name}.device", 0)  # the name is one of the other method
                    origin = Origin(machine.span(call), f"`{method.name}` moves `self.{name}` here")
                    found = Value("tensor", device, None, because=(origin,))
        for node in walk(method):
            if isinstance(node, ast.Call) and goes_back(node) and name in map(own_name, chain(node.func)):
                return None
    return found
