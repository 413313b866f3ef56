"""Parts that a method of a module makes anew, after the module was moved: they are on the CPU.

model = Net().to(device)
model.reset_head(10)               # self.head = nn.Linear(64, 10)
model(x)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.collect import qualified
from devlint.facts.text.method_names import OFF_HOST_MODULE
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute
from devlint.facts.values import CPU, UNKNOWN, Value, may_be_accelerator
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.module_calls import ModuleCalls

_PLACES = OFF_HOST_MODULE | {"type_as"}


def note(
    machine: ModuleCalls,
    node: ast.Call,
    module: Operand,
    found: tuple[ClassFacts, ast.FunctionDef | ast.AsyncFunctionDef],
) -> None:
    """A method is called of a module that was moved: what it makes anew is left behind, until the module is moved again."""
    path, value = machine.path(module.node), module.value
    if path is None or machine.in_init or not value.moved or value.shared or not may_be_accelerator(value.device):
        return
    names = set(made_anew(machine, *found))
    if names:
        span = machine.span(node)
        new = Value("module", CPU, because=(Origin(span, "made again on the CPU here"),), ident=span)
        machine.state.env.update({f"{path}.{name}": new for name in names})
        machine.state.env[path] = replace(value, device=UNKNOWN)


def made_anew(
    machine: ModuleCalls, class_: ClassFacts, method: ast.FunctionDef | ast.AsyncFunctionDef
) -> Iterator[str]:
    """The attributes that a method fills with layers of its own making and places nowhere, and that `forward` reads."""
    forward = class_.method("forward")
    if forward is None or method.decorator_list or any(map(places, walk(method))):
        return
    read = {n.attr for n in walk(forward[1]) if is_self_attribute(n) and isinstance(n, ast.Attribute)}
    for statement in method.body:
        if (
            not isinstance(statement, ast.Assign)
            or len(statement.targets) != 1
            or not is_layer(machine, statement.value)
        ):
            continue
        target = statement.targets[0]
        if isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, ast.Attribute) and is_self_attribute(target) and target.attr in read:
            yield target.attr


def places(node: ast.AST) -> bool:
    """Whether a node moves something, or says where something is to be."""
    if isinstance(node, ast.keyword):
        return node.arg == "device"
    return isinstance(node, ast.Attribute) and node.attr in _PLACES


def is_layer(machine: ModuleCalls, node: ast.expr) -> bool:
    """Whether an expression makes a layer of torch with parameters, or a sequence with one in it."""
    if not isinstance(node, ast.Call):
        return False
    qualname = qualified(node.func, machine.imports) or ""  # of another file, maybe, whose code is not evaluated here
    if qualname == "torch.nn.Sequential":
        return any(is_layer(machine, part) for part in node.args)
    known = knowledge.cls(qualname) if qualname.startswith("torch.nn.") else None
    return known is not None and "weight" in known.attributes
