"""Losses of functions that cannot be read, added in place to a scalar that was made on the CPU.

    total = torch.tensor(0.0)
    for x, y in pairs:
        total += contrastive_loss(x, y)

What such a function gives is a guess, and may be a number. Where its name says that it is a loss of what it is given, it is
a tensor. One over a whole data set, `validation_loss(model, loader)`, is a number as a rule.
"""

from __future__ import annotations

import ast

from devlint.facts.idioms import guesses
from devlint.facts.text.references import last_name
from devlint.facts.text.signs import is_loss_name
from devlint.facts.values import CPU, Value

#: Words in the name of a function that sums up more than what it is given.
_WHOLE = frozenset(
    {"eval", "evaluate", "evaluation", "val", "valid", "validate", "validation", "test", "train", "training", "epoch", "avg",
     "average", "get", "read", "log"}
)  # fmt: skip


def added(node: ast.expr, value: Value, total: Value) -> Value:
    """What is added to a total: a tensor where it is the loss of a function that cannot be read."""
    if not guesses.is_guess(value) or not total.made or total.device != CPU or total.zero_dim is not True:
        return value
    return guesses.tensor(value) if is_loss(node) else value


def is_loss(node: ast.expr) -> bool:
    """Whether an expression is a call of a loss by its name, or the product of one with something."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Mult, ast.Div)):
        return is_loss(node.left) or is_loss(node.right)
    name = last_name(node.func) if isinstance(node, ast.Call) else ""
    return is_loss_name(name) and not name[:1].isupper() and _WHOLE.isdisjoint(name.lower().split("_"))
