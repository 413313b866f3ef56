"""Where a new tensor of the CPU is to blame: at its factory, or at the call that brings it to where its device is known.

A helper that makes a tensor of numbers alone has no device to give it: `def positions(n): return torch.arange(n)`. Who
calls it has. There the call stands for the factory, as a `Creation` of its own, one for each call.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Creation, Handed
from devlint.facts.frozen import replace
from devlint.facts.text.nodes import walk
from devlint.facts.text.parameters import reads_like_device
from devlint.facts.text.references import is_static
from devlint.facts.text.signatures import named_parameters
from devlint.facts.values import CPU, GUESS, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from collections.abc import Mapping

    from devlint.facts.interpreter.entry import Entry
    from devlint.facts.text.defined import Function

#: Values that are nowhere.
_PLAIN = frozenset({"number", "string", "bool", "none", "dtype", "function", "class", "clock"})
_PLACED = frozenset({"device", "module", "tensors", "object", "generator", "optimizer", "loader", "distribution"})


def received(
    machine: Entry, value: Value, function: Function, node: ast.Call | None, bound: Mapping[str, Value]
) -> Value:
    """What a call of a function gives: where that has no device to take, what it made is made by the call.

    At module level the factory stays the place: what the call gives is used in functions, and the call knows no more.
    A factory whose tensor meets tensors of the host in its function is told no other device, wherever that is called.
    """
    if node is not None and machine.function is not function and not isinstance(function.node, ast.Lambda):
        if value.is_tensor and any(creation.span in machine.beside_host for creation in value.made):
            return taken(machine, value, function, node, (), True)
    inside = node is not None and machine.function is not None and machine.function is not function
    if not inside or node is None or isinstance(function.node, ast.Lambda) or not has_made(value):
        return value
    options = device_parameters(machine, function)
    if any(bound[name].kind != "none" for name in options if name in bound):
        return value
    if offers_device(machine, function, bound, options):
        return value
    return taken(machine, value, function, node, options, value.is_tensor)


def taken(
    machine: Entry, value: Value, function: Function, node: ast.Call, options: tuple[str, ...], whole: bool
) -> Value:
    """A value, and what is in it, with the call in place of the factories of the function."""
    elements = value.elements
    if isinstance(elements, tuple):
        elements = tuple(taken(machine, e, function, node, options, False) for e in elements)
    elif elements is not None:
        elements = {k: taken(machine, e, function, node, options, False) for k, e in elements.items()}
    around = machine.span(function.node)
    made: list[Creation] = []
    for creation in value.made:
        here = around.start <= creation.span.start < around.end
        option = next((name for name in options if is_given(creation, name)), None)
        if here and (option is not None or not options):
            first = creation.handed.factory if creation.handed is not None else Origin(creation.span, "made here")
            handed = Handed(node, function.name.rpartition(".")[2], first, whole, option)
            creation = replace(creation, span=machine.span(node), scope=machine.scope(), handed=handed)
        if creation not in made:
            made.append(creation)
    if elements is value.elements and tuple(made) == value.made:
        return value
    return replace(value, elements=elements, made=tuple(made))


def has_made(value: Value) -> bool:
    """Whether a factory made a value, or something in it."""
    elements = value.elements
    if value.made or elements is None or value.kind == "object":
        return bool(value.made) and value.is_tensor
    return any(map(has_made, elements if isinstance(elements, tuple) else elements.values()))


def is_given(creation: Creation, name: str) -> bool:
    """Whether a factory, or the call that stands for it, is told its device by what has the name."""
    node = creation.place
    given = next((k.value for k in node.keywords if k.arg == "device"), None)
    parts = walk(given) if given is not None else (n for a in node.args for n in walk(a))
    return any(isinstance(n, ast.Name) and n.id == name for n in parts)


def device_parameters(machine: Entry, function: Function) -> tuple[str, ...]:
    """The parameters of a function that are devices."""
    devices = machine.evidence_of(function).devices
    return tuple(a.arg for a in named_parameters(function.node.args) if a.arg in devices or reads_like_device(a.arg))


def offers_device(machine: Entry, function: Function, bound: Mapping[str, Value], options: tuple[str, ...]) -> bool:
    """Whether a function, called so, has something that may be on an accelerator: an argument, its object, a global."""
    spec = function.node.args
    if spec.kwarg is not None:
        return True
    evidence = machine.evidence_of(function)
    shown = (
        evidence.tensors | evidence.several | evidence.containers | evidence.maybe | evidence.modules | evidence.parted
    )
    own = machine.scan.functions.get(id(function.node))
    asked = {a.value.id for a in own.attributes if isinstance(a.value, ast.Name)} if own is not None else set()
    for index, argument in enumerate(named_parameters(spec)):
        name = argument.arg
        if name in options or (function.is_method and not index):
            continue
        if may_be_placed(bound.get(name), name in shown or name in asked):
            return True
    if spec.vararg is not None and may_be_placed(bound.get(spec.vararg.arg), True):
        return True
    if function.is_method and function.owner is not None and not is_static(function.node):
        if function.owner.is_module or "device" in machine.text(function.owner.node):
            return True
    around = function.closure if function.closure else machine.globals
    if any(v.kind in ("device", "string") and v.device and v.device != CPU for v in around.values()):
        return True
    if function.closure:
        return any(may_be_placed(v, False) for v in around.values())
    loaded = {n.id for n in walk(function.node) if isinstance(n, ast.Name)} & around.keys()
    return any(may_be_placed(around[name], False) for name in loaded)


def may_be_placed(value: Value | None, shown: bool) -> bool:
    """Whether a value may be, or have, something on an accelerator. `shown`: what to think of one that is not known."""
    if value is None or value.kind == "unknown":
        return shown or (value is not None and value.type_name == GUESS)
    if value.kind in _PLAIN or value.type_name in ("size", "extent"):
        return False
    if value.is_tensor:
        return value.device != CPU
    if isinstance(value.elements, tuple) and value.kind in ("list", "tuple"):
        return any(may_be_placed(element, False) for element in value.elements)
    return value.kind in _PLACED or shown
