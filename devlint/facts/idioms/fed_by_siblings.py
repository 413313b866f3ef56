"""Modules of which no place is known, that one method of an object runs on what it moved, and another on what it did not.

    def loss(self, texts):
        ids = self.tokenizer(texts, return_tensors="pt")["input_ids"].to(self.device)
        return self.decoder(input_ids=ids).loss

    def show(self, text):
        ids = self.tokenizer(text, return_tensors="pt")["input_ids"]
        return self.decoder.generate(ids)          # the module is where the other method brings its input

What is not moved is what a tokenizer has just made, or a new tensor that is the first input. A file that loads models onto
devices by a map, or in few bits, leaves it to hooks to bring their inputs along.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from devlint.facts.idioms.placed import argument, device_given, goes_back, own_name
from devlint.facts.text.bindings import bindings
from devlint.facts.text.classes import lineage
from devlint.facts.text.references import chain
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signs import moves
from devlint.facts.values import CPU, Place, Value, may_be_accelerator, symbol

if TYPE_CHECKING:
    from devlint.facts.events import Operand
    from devlint.facts.interpreter.arguments import CallArguments

#: Methods by which a model computes with what it is given.
_RUNS = frozenset({"forward", "generate"})
#: Methods of a module that give the module back [torch/nn/modules/module.py].
_SAME = frozenset({"train", "eval", "half", "float", "double", "bfloat16", "requires_grad_"})
#: What loads models such that hooks bring their inputs along.
_BY_HOOKS = re.compile(r"device_map|load_in_[48]bit|quantization_config|accelerat|dispatch_model|cpu_offload")


def note(machine: CallArguments, node: ast.Call, given: Sequence[Operand], is_encoded: Callable[[Value], bool]) -> None:
    """A method runs a module of its object on the CPU's tensors. `is_encoded`: whether a tokenizer has just made a value."""
    if machine.in_init or machine.host or not machine.assume or machine.owner is None or machine.function is None:
        return
    name = run(node)
    left = next((o for o in given if is_left(node, o, is_encoded(o.value))), None) if name else None
    if left is None or _BY_HOOKS.search(machine.source.text) is not None:
        return
    move = moved_elsewhere(machine, name)
    if move is None:
        return
    device = device_given(machine, machine.owner, argument(move))
    if not may_be_accelerator(device):
        return
    if not all(isinstance(place, Place) or place.name.startswith("self.") for place in device):
        device = symbol(f"self.{name}.device", 0)  # the name is one of the other method
    because = (machine.origin(move, f"what `self.{name}` is given is moved here, by another method"),)
    module = machine.operand(runner(node.func), Value("module", device, because=because))
    machine.meet(node, [module, left], "module", machine.text(node.func), "exact", unread=True)


def run(call: ast.Call) -> str:
    """`name` for `self.name(...)` and `self.name.generate(...)`; empty for any other call."""
    return own_name(runner(call.func))


def runner(node: ast.expr) -> ast.expr:
    """What is run: `self.name` for `self.name.generate`."""
    return node.value if isinstance(node, ast.Attribute) and node.attr in _RUNS and not own_name(node) else node


def is_left(node: ast.Call, operand: Operand, encoded: bool) -> bool:
    """Whether an operand is what a tokenizer has just made (`encoded`), or a new tensor that is given first."""
    value = operand.value
    if value.device != CPU or value.moved or "len" in operand.text:
        return False
    if encoded:
        return True
    return bool(node.args) and operand.node is node.args[0] and bool(value.made) and value.zero_dim is False


def moved_elsewhere(machine: CallArguments, name: str) -> ast.Call | None:
    """The move of what another method of the class gives `self.name`; None where some method takes the module to the CPU."""
    assert machine.owner is not None and machine.function is not None
    found: ast.Call | None = None
    for method in (m for each in lineage(machine.owner) for m in each.methods.values()):
        own = machine.scan.functions.get(id(method))
        if own is None:
            continue
        for call in own.calls:
            if goes_back(call) and own_name(moved_by(call)) == name:
                return None
            if found is None and method is not machine.function.node and run(call) == name:
                found = next(moved_inputs(own, call), None)
    return found


def moved_by(call: ast.Call) -> ast.expr:
    """The module that a call moves: `self.net` for `self.net.cpu()` and `self.net.eval().cpu()`, not what it computes."""
    node = call.func.value if isinstance(call.func, ast.Attribute) else call.func
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        node = node.func.value
    return node


def moved_inputs(own: FunctionScan, call: ast.Call) -> Iterator[ast.Call]:
    """The moves that make the arguments of a call, there or where a name is bound."""
    for given in (*call.args, *(keyword.value for keyword in call.keywords)):
        sources = bindings(own).get(given.id, ()) if isinstance(given, ast.Name) else (given,)
        for source in sources:
            whole = source.value if isinstance(source, ast.DictComp) else source
            yield from (part for part in chain(whole) if isinstance(part, ast.Call) and moves(part))
