"""Losses of functions that cannot be read, added in place to a scalar that was made on the CPU.

    total = torch.tensor(0.0)
    for x, y in pairs:
        total += contrastive_loss(x, y)

What such a function gives is a guess, and may be a number. Where its name says that it is a loss of what it is given, it is
a tensor. One over a whole data set, `validation_loss(model, loader)`, is a number as a rule.

In a method of a module, or of a class that is called a loss, so is what has the name of a loss and is known for nothing else:

    for name, loss in self.losses.items():
        current_loss, log = loss(stage=stage, **options)
        total += self.weights[name] * current_loss
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.idioms import guesses
from devlint.facts.idioms.said_elsewhere import is_of_host
from devlint.facts.idioms.unplaced import brings_to_host
from devlint.facts.text.annotations import knows_other_tensors
from devlint.facts.text.bindings import bindings
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.shown_tensors import gives_number
from devlint.facts.text.signs import is_loss_name
from devlint.facts.values import CPU, HOME, NOTHING, UNPLACED, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

#: Words in the name of a function that sums up more than what it is given.
_WHOLE = frozenset(
    {"eval", "evaluate", "evaluation", "val", "valid", "validate", "validation", "test", "train", "training", "epoch", "avg",
     "average", "get", "read", "log"}
)  # fmt: skip


def added(machine: Machine, node: ast.expr, value: Value, total: Value) -> Value:
    """What is added to a total: a tensor where it is a loss."""
    if not total.made or total.device != CPU or total.zero_dim is not True:
        return value
    if guesses.is_guess(value):
        return guesses.tensor(value) if is_loss(node) else value
    if value == NOTHING and computes_losses(machine) and is_named_loss(machine, node):
        origin = Origin(machine.span(node), f"{UNPLACED} this tensor is: its name says that it is a loss")
        return Value("tensor", HOME, None, because=(origin,))
    return value


def is_loss(node: ast.expr) -> bool:
    """Whether an expression is a call of a loss by its name, or the product of one with something."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return is_loss(node.left) or is_loss(node.right)
    return isinstance(node, ast.Call) and is_name_of_loss(last_name(node.func))


def is_name_of_loss(name: str) -> bool:
    """Whether a name is one of a loss of what it is given, and of no class."""
    return is_loss_name(name) and not name[:1].isupper() and _WHOLE.isdisjoint(name.lower().split("_"))


def computes_losses(machine: Machine) -> bool:
    """Whether the function that is run is a method of a module, or of a class called a loss, and computes with tensors."""
    owner, function = machine.owner, machine.function
    if owner is None or function is None or machine.host or machine.in_init or not machine.assume:
        return False
    if knows_other_tensors(machine.imports.names):
        return False
    words = function.name.rpartition(".")[2].lower().split("_")
    return (owner.is_module or is_loss_name(owner.name)) and _WHOLE.isdisjoint(words)


def is_named_loss(machine: Machine, node: ast.expr) -> bool:
    """Whether an expression is a name, an entry or a call of a loss, or a product with one, and no number by what binds it."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return is_named_loss(machine, node.left) or is_named_loss(machine, node.right)
    function = machine.function
    own = machine.scan.functions.get(id(function.node)) if function is not None else None
    if own is None or is_of_host(node) or brings_to_host(node) or gives_number(node):
        return False
    if isinstance(node, ast.Call):
        return is_name_of_loss(last_name(node.func))
    if not isinstance(node, ast.Name) or not is_name_of_loss(node.id):
        return False
    return all(not (brings_to_host(b) or gives_number(b)) for b in sources(own, node.id)) and bool(
        bindings(own).get(node.id)
    )


def sources(own: FunctionScan, name: str) -> list[ast.expr]:
    """What a name is bound to in a function, and what the names in that are bound to, and so on."""
    bound, seen = bindings(own), {name}
    found = list(bound.get(name, ()))
    for each in found:  # which grows
        for part in walk(each):
            if isinstance(part, ast.Name) and part.id not in seen:
                seen.add(part.id)
                found += bound.get(part.id, ())
    return found
