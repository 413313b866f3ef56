"""Modules that nothing in the file moves, where what they are given is put on a device out of sight of the call.

`actor.choose(state)`, whose `choose` does `state.to(device)` before it calls `self.forward(state)`: the method runs a module
on the CPU on a tensor that is elsewhere. `create_supervised_trainer(model, optimizer, loss, device=device)` of ignite moves
each batch and leaves the model where it is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.events import Operand
from devlint.facts.idioms.unseen_modules import looks_like_network
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.method_names import OFF_HOST_MODULE, SAME_PLACE
from devlint.facts.text.nodes import walk
from devlint.facts.text.parameters import reads_like_device
from devlint.facts.text.references import is_self_attribute, last_name, stored_names
from devlint.facts.values import (
    ACCELERATORS,
    CPU,
    UNKNOWN,
    Device,
    Symbol,
    Value,
    describe,
    is_assumed,
    may_be_accelerator,
    on,
)
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.interpreter.module_calls import ModuleCalls

#: Makers of engines that move batches and no model, with the place of `device` [ignite/engine/__init__.py].
ENGINES = {"ignite.engine.create_supervised_trainer": 3, "ignite.engine.create_supervised_evaluator": 2}
#: What changes the type or the shape of a tensor and leaves it where it is.
_MOVING = OFF_HOST_MODULE | {"share_memory"}
_SAME_PLACE = SAME_PLACE | {"unsqueeze_", "requires_grad_", "type"}


def note_method(machine: ModuleCalls, node: ast.Call, module: Operand, class_: ClassFacts, name: str) -> None:
    """A method is called of a module on the CPU that puts its input elsewhere before it computes with its layers."""
    found, value = class_.method(name), module.value
    if found is None or class_.abroad or value.device != CPU or value.moved or value.shared or machine.in_init:
        return
    method = found[1]
    if machine.host or method.decorator_list or any(moves_itself(each) for each in lineage(class_)):
        return
    if is_moved(machine, last_name(module.node)):
        return
    given = given_elsewhere(machine, class_, method)
    if given is not None:
        machine.meet(node, [module, given], "module", name, "exact")


def given_elsewhere(
    machine: Machine, class_: ClassFacts, method: ast.FunctionDef | ast.AsyncFunctionDef
) -> Operand | None:
    """A tensor that a method moves, and then gives to its module's own layers, or to `self.forward`."""
    placed: dict[str, Operand] = {}
    own = {a.arg for a in walk(method) if isinstance(a, ast.arg)}
    own |= stored_names(method)
    for statement in in_order(method.body):
        if not isinstance(statement, (ast.Assign, ast.AnnAssign, ast.Expr, ast.Return)):
            return None  # not under a condition, which may ask for the device
        nodes = list(walk(statement))
        for call in nodes:
            if isinstance(call, ast.Call) and call.args and is_layer(class_, call.func):
                first = call.args[0]
                operand = placed.get(first.id) if isinstance(first, ast.Name) else moved(machine, first, own)
                if operand is not None:
                    return operand
        for each in nodes:
            if isinstance(each, ast.Assign):
                operand = moved(machine, each.value, own)
                for target in each.targets:
                    for part in walk(target):
                        if isinstance(part, ast.Name):
                            placed.pop(part.id, None)
                            if operand is not None and part is target:
                                placed[part.id] = operand
    return None


def in_order(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a body, those under `with torch.no_grad():` too."""
    for statement in body:
        if isinstance(statement, ast.With):
            yield from in_order(statement.body)
        else:
            yield statement


def is_layer(class_: ClassFacts, function: ast.expr) -> bool:
    """Whether what is called is the module itself, its `forward`, or a layer that it keeps."""
    if isinstance(function, ast.Name):
        return function.id == "self"
    if not isinstance(function, ast.Attribute) or not is_self_attribute(function):
        return False
    known = class_.attribute(function.attr)
    return function.attr == "forward" or (known is not None and known.kind == "module")


def moved(machine: Machine, node: ast.expr, own: set[str]) -> Operand | None:
    """What an expression moves, wherever its module is: `torch.from_numpy(x).float().to(device)`, `x.cuda()`."""
    outer = node
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME_PLACE:
        node = node.func.value
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return None
    device = UNKNOWN
    if node.func.attr in ACCELERATORS and not node.args and not node.keywords:
        device = on(node.func.attr)
    elif node.func.attr == "to" and len(node.args) == 1:
        device = named(machine, node.args[0], own)
    if not may_be_accelerator(device) or is_assumed(device):
        return None
    because = (Origin(machine.span(node), f"moved to {describe(device)} by the method here"),)
    return machine.operand(outer, Value("tensor", device, False, because=because, moved=True))


def named(machine: Machine, node: ast.expr, own: set[str]) -> Device:
    """The device that a text names, or a variable of the file; one that the file binds nowhere may be an accelerator."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return on(node.value.partition(":")[0])
    if not isinstance(node, ast.Name) or node.id in own:
        return UNKNOWN
    known = machine.globals.get(node.id)
    if known is None and node.id not in machine.rebound:
        return frozenset({Symbol(node.id, 0)}) if reads_like_device(node.id) else UNKNOWN
    return known.device if known is not None and known.kind in ("device", "string") else UNKNOWN


def moves_itself(class_: ClassFacts) -> bool:
    """Whether a class moves its objects or parts of them: `self.to(device)`, `self.head.cuda()`."""
    for call in walk(class_.node):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in _MOVING:
            receiver = call.func.value
            if is_self_attribute(receiver) or (isinstance(receiver, ast.Name) and receiver.id == "self"):
                return True
            if isinstance(receiver, ast.Call) and last_name(receiver.func) == "super":
                return True
    return False


def is_moved(machine: Machine, name: str) -> bool:
    """Whether the file moves something of that name anywhere, or gives it to what may do so."""
    for called, sites in machine.scan.calls.items():
        moves, places = called in _MOVING, "device" in called or "prepare" in called
        for call, _ in sites if moves or places else ():
            if moves and isinstance(call.func, ast.Attribute) and last_name(call.func.value) == name:
                return True
            if places and any(last_name(argument) == name for argument in call.args):
                return True
    return not name


def note_engine(machine: ModuleCalls, node: ast.Call, qualname: str, arguments: Arguments) -> None:
    """An engine of ignite is made of a model that nothing moves, and told to which device batches go."""
    model, device = arguments.get("model", 0), arguments.get("device", ENGINES[qualname])
    if model is None or device is None or arguments.star or device[1].kind not in ("device", "string"):
        return
    there = device[1].device
    if not may_be_accelerator(there) or is_assumed(there) or not isinstance(model[0], ast.Name):
        return
    value = model[1]
    if value.kind == "unknown" and not value.device:
        value = made_here(machine, model[0])
    if value.kind != "module" or value.device != CPU or value.moved or is_moved(machine, model[0].id):
        return
    because = (Origin(machine.span(node), "the engine moves its batches, but not the model"),)
    batch = Operand(machine.span(device[0]), device[0], "each batch", Value("tensor", there, False, because=because))
    machine.meet(node, [machine.operand(model[0], value), batch], "module", "module", "exact")


def made_here(machine: ModuleCalls, name: ast.Name) -> Value:
    """A network of a class that cannot be read, by its name, that is bound once: `net = ConvNet()`."""
    own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else None
    nodes = own.assigns if own is not None else walk(machine.scan.tree or ast.Module([], []))
    bound = [
        n.value
        for n in nodes
        if isinstance(n, ast.Assign)
        and any(isinstance(part, ast.Name) and part.id == name.id for target in n.targets for part in walk(target))
    ]
    made = bound[0] if len(bound) == 1 else None
    if (
        not isinstance(made, ast.Call)
        or made.args
        or made.keywords  # it may be told where to be
        or not isinstance(made.func, (ast.Name, ast.Attribute))
    ):
        return Value("unknown")
    called = machine.qualify(made.func) or last_name(made.func)
    if not looks_like_network(machine, called):  # type: ignore[arg-type]
        return Value("unknown")
    origin = Origin(machine.span(made), "created here")
    return Value("module", CPU, because=(origin,), ident=origin.span)
