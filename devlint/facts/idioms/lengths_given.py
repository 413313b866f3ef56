"""Lengths that a call puts on an accelerator, and by which the `forward` of a module of the file packs.

    def forward(self, text, lengths):
        packed = pack_padded_sequence(self.embedding(text), lengths)  # reads them on the host

    model(text.to(device), lengths.to(device))

Methods of modules are not run with what their calls give; who packs by which argument is read from their text. Known where
`forward` packs whatever else it is given, by the argument as it is or a part of it, or hands that to a part of its own.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from devlint.facts.events import Lengths
from devlint.facts.text.collect import qualified
from devlint.facts.text.method_names import SHAPES
from devlint.facts.text.nodes import PARTIAL, children, statements
from devlint.facts.text.references import asks_none, given, is_self_attribute, last_name, stored_names
from devlint.facts.text.signatures import positional_names
from devlint.facts.values import CPU
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments
    from devlint.facts.interpreter.module_calls import ModuleCalls
    from devlint.facts.text.classes import ClassFacts

PACK = "pack_padded_sequence"
_DEPTH = 3  # modules, and methods, that hand lengths on to the next
#: Gives the values, and their places.
_SORTS = frozenset({"sort"})
#: Methods that leave a tensor where it is, and one of lengths.
_SAME = _SORTS | SHAPES | {"long", "int", "detach", "clone", "clamp"}
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


class Packed(NamedTuple):
    """A call that packs, by an expression, in a method."""

    call: ast.Call
    lengths: ast.expr
    method: str  # its qualified name


def note(machine: ModuleCalls, node: ast.Call, class_: ClassFacts, arguments: Arguments) -> None:
    """Emit `Lengths` for what the `forward` of a module packs by, where this call puts it on an accelerator."""
    found = class_.method("forward")
    if found is None or arguments.star or machine.host or machine.muted:
        return
    known = machine.packing.get(class_.name)
    if known is None:
        known = machine.packing[class_.name] = packed_by(machine, class_, "forward", 0)
    names = positional_names(found[1].args)[1:] if known else []
    for name, value in arguments.by_name(names).items():
        packed = known.get(name)
        if packed is None or not value.is_tensor or value.is_assumed or value.zero_dim is True:
            continue
        if value.kind == "tensors" and not value.moved:
            continue  # a part of what a module gives may be a list of numbers
        level = machine.conflict(CPU, value.device)
        if level is not None and value.device != CPU:
            called = Origin(machine.span(node), f"`{packed.method}` is called with this value here")
            operand = machine.operand(packed.lengths, value)
            because = (*value.because[:1], called)
            machine.emit(
                Lengths(
                    machine.span(packed.call), packed.call, because, machine.guards, machine.scope(), packed.method,
                    operand, level,
                )
            )  # fmt: skip


def packed_by(machine: ModuleCalls, class_: ClassFacts, name: str, depth: int) -> dict[str, Packed]:
    """The calls that pack by a parameter of a method whenever it runs, by the parameter."""
    found = class_.method(name)
    if found is None or found[0].abroad or found[1].decorator_list or depth > _DEPTH:
        return {}
    owner, method = found
    parameters = positional_names(method.args)[1:]
    result: dict[str, Packed] = {}
    optional = set(parameters[len(parameters) - len(method.args.defaults) :]) if method.args.defaults else set()
    surely = list(always(method.body, parameters))
    body = [statement for statement, _ in surely]
    for index, (statement, asked) in enumerate(surely):
        for call in calls_in(statement):
            wanted: dict[str, tuple[ast.expr | None, Packed | None]] = {}
            if last_name(call.func) == PACK and (qualified(call.func, machine.imports) or "").startswith("torch."):
                wanted[""] = argument(call, "lengths", 1), None
            elif isinstance(call.func, ast.Attribute) and is_self_attribute(call.func):
                part = part_of(machine, class_, call.func.attr)
                inner, entry = (class_, call.func.attr) if part is None else (part, "forward")
                callee = inner.method(entry)
                names = positional_names(callee[1].args)[1:] if callee is not None else []
                for taken, packed in packed_by(machine, inner, entry, depth + 1).items() if callee is not None else ():
                    wanted[taken] = argument(call, taken, names.index(taken)), packed
            for lengths, packed_below in wanted.values():
                parameter = source(machine, lengths, body[:index], parameters)
                if lengths is not None and parameter is not None and not (asked - {parameter}) & optional:
                    packed_here = Packed(call, lengths, f"{owner.name}.{method.name}")
                    result.setdefault(parameter, packed_below or packed_here)
    return result


def part_of(machine: ModuleCalls, class_: ClassFacts, name: str) -> ClassFacts | None:
    """The class of a part of a module, where the file defines it."""
    known = class_.attribute(name)
    return machine.classes.get(known.type_name or "") if known is not None and known.kind == "module" else None


def argument(call: ast.Call, name: str, position: int) -> ast.expr | None:
    """What a call gives for a parameter; None where that is not shown."""
    if any(isinstance(a, ast.Starred) for a in call.args):
        return None
    return next(iter(given(call, name, position)), None)


def source(
    machine: ModuleCalls, node: ast.expr | None, above: Sequence[ast.stmt], parameters: Sequence[str]
) -> str | None:
    """The parameter that an expression is, or some items, another type or another order of it.

    `above`: the statements that ran before it.
    """
    while node is not None and not isinstance(node, ast.Name):
        if isinstance(node, ast.Subscript):
            if isinstance(node.slice, ast.Constant) and not isinstance(node.slice.value, int):
                return None
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            function = node.func
            start = function.value.id if isinstance(function.value, ast.Name) else ""
            if machine.imports.names.get(start) == "torch":
                node = node.args[0] if function.attr in _SORTS and node.args else None
            else:
                node = function.value if function.attr in _SAME else None
        else:
            return None
    if node is None:
        return None
    for index in range(len(above) - 1, -1, -1):
        bound = above[index]
        if node.id not in stored_names(bound):
            continue
        if not isinstance(bound, ast.Assign) or len(bound.targets) != 1:
            return None
        target, value = bound.targets[0], bound.value
        if isinstance(target, ast.Tuple):
            sorts = isinstance(value, ast.Call) and last_name(value.func) in _SORTS
            target = target.elts[0] if sorts and target.elts else target
        same = isinstance(target, ast.Name) and target.id == node.id
        return source(machine, value, above[:index], parameters) if same else None
    return node.id if node.id in parameters else None


def always(
    body: Sequence[ast.stmt], parameters: Sequence[str], asked: frozenset[str] = frozenset()
) -> Iterator[tuple[ast.stmt, frozenset[str]]]:
    """The statements that run whenever a method is given some of what it takes, with the parameters that it asks for above
    them, up to the first that may end it."""
    for statement in body:
        names = [n for n in parameters if isinstance(statement, ast.If) and asks_none(statement.test, n, ast.IsNot)]
        if isinstance(statement, ast.With) or (names and isinstance(statement, ast.If)):
            yield from always(statement.body, parameters, asked | set(names))
        else:
            yield statement, asked
            if not isinstance(statement, _SIMPLE) and any(isinstance(n, ast.Return) for n in statements(statement)):
                return


def calls_in(statement: ast.stmt) -> Iterator[ast.Call]:
    """The calls that a simple statement surely makes."""
    pending: list[ast.AST] = [statement] if isinstance(statement, _SIMPLE) else []
    for node in pending:  # which grows
        if isinstance(node, ast.Call):
            yield node
        if not isinstance(node, PARTIAL):
            pending += children(node)
