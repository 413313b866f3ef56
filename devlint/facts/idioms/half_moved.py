"""Modules that one path of a function moves and the other leaves where they were made, on the CPU.

    model = Net()
    if args.resume:
        model.load_state_dict(torch.load(args.resume))
        model = model.to(device)
    return model

What is put on that device meets the module on both paths. A condition that speaks of devices, cards or processes, or of what an
object remembers, decides for what follows as well, so that nothing is said there; nor of a move in a loop, which may be that of
its first turn, nor where the function asks again for what the condition asks for, or binds the device anew.
"""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

from devlint.facts.events import Move
from devlint.facts.frozen import replace
from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.signatures import parameter_names
from devlint.facts.values import CPU, Symbol, Value, is_assumed, may_be_accelerator

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

_DECIDES = re.compile(r"(?i)cuda|gpu|cpu|mps|xpu|tpu|accel|device|parallel|distrib|ddp|fsdp|rank|world|shard|deepspeed")

_WORD = re.compile(r"[A-Za-z_][\w.]*")
_KEYWORDS = frozenset(
    {"not", "is", "in", "and", "or", "None", "True", "False", "len", "isinstance", "os.path.exists", "os.path.isfile"}
)


def is_half_moved(module: Value) -> bool:
    """Whether a value is one module that was moved on one path, under a condition that does not speak of devices."""
    if module.kind != "module" or module.split is None or _DECIDES.search(module.split[0]) is not None:
        return False
    moved, left = sides(module)
    same = moved.kind == left.kind == "module" and moved.ident is not None and moved.ident == left.ident
    return same and moved.moved and left.device == CPU and not left.moved and not (moved.shared or left.shared)


def sides(module: Value) -> tuple[Value, Value]:
    """The module as the path that moves it has it, and as the other one does."""
    assert module.split is not None
    _, first, second = module.split
    return (first, second) if first.moved else (second, first)


def meets(machine: Machine, module: Value, other: Value) -> bool:
    """Whether a module that is half moved meets what is on the device to which one path moves it."""
    if not other.is_tensor or other.split is not None or not is_half_moved(module):
        return False
    moved, _ = sides(module)
    move = machine.events.get(("Move", moved.because[0].span)) if moved.because else None
    if not isinstance(move, Move) or move.in_loop or not may_be_accelerator(moved.device):
        return False
    if other.device != moved.device or is_assumed(moved.device):
        return False
    assert module.split is not None
    return not is_asked_again(machine, module.split[0], move.node) and not is_bound_anew(machine, moved)


def is_asked_again(machine: Machine, key: str, move: ast.AST) -> bool:
    """Whether a condition is a constant, or the function asks for what it is about in another place than above the move."""
    words = set(_WORD.findall(key.rpartition(": ")[2].partition(" @")[0])) - _KEYWORDS
    if any(word.isupper() for word in words):
        return True
    function = machine.function.node if machine.function is not None else machine.scan.tree
    for node in walk(function) if function is not None else ():
        test = node.subject if isinstance(node, ast.Match) else getattr(node, "test", None)
        if isinstance(test, ast.expr) and not holds(node, move) and words & set(_WORD.findall(machine.text(test))):
            return True
    return False


def is_bound_anew(machine: Machine, moved: Value) -> bool:
    """Whether a function binds the device of a move again, given by a variable, once it took it as an argument."""
    names = {place.name for place in moved.device if isinstance(place, Symbol)}
    own = machine.scan.functions.get(id(machine.function.node)) if machine.function is not None else None
    if own is None or not names.intersection(parameter_names(own.node)):
        return False
    bound = (target for each in own.assigns if isinstance(each, ast.Assign) for target in each.targets)
    return any(isinstance(target, ast.Name) and target.id in names for target in bound)


def returned(value: Value, function: str) -> Value:
    """What a function returns: nobody else knows its conditions, but for a module that it moves on one path."""
    if value.split is None:
        return value
    if not is_half_moved(value):
        return replace(value, split=None)
    key, first, second = value.split
    return replace(value, split=(f"{function}: {key}", first, second))
