"""What a method of a module of the file gives that a layer of torch computes: surely a tensor, and no array.

    def embed(self, x):
        x = self.conv(x).flatten(1)
        return self.fc(x)               # `self.fc = nn.Linear(64, 10)`

    features.append(model.embed(x))     # where `model` and `x` are
    np.concatenate(features)

The text of the class decides: every `return` gives what a layer does, what a function of torch makes of that, what a method
of a tensor does that leaves it where it is, or what a distribution draws that has such parameters.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.idioms import guesses
from devlint.facts.idioms.placed import stored_in, unconditional
from devlint.facts.text.classes import lineage
from devlint.facts.text.collect import qualified
from devlint.facts.text.method_names import OF_DISTRIBUTIONS, PLACES, SAME_PLACE
from devlint.facts.text.references import is_self, is_self_attribute, stored_names
from devlint.facts.text.returned import own_nodes
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.module_calls import ModuleCalls
    from devlint.facts.text.classes import ClassFacts

#: Modules of torch that give several things, nothing, or what another module does [torch/nn/modules/rnn.py, activation.py,
#: adaptive.py, container.py].
_OTHERS = frozenset(
    {
        "LSTM", "GRU", "RNN", "RNNBase", "LSTMCell", "MultiheadAttention", "AdaptiveLogSoftmaxWithLoss", "Module",
        "ModuleList", "ModuleDict", "ParameterList", "ParameterDict", "Identity", "DataParallel",
        "DistributedDataParallel", "Sequential",
    }
)  # fmt: skip
#: Methods of a tensor that give one where it is.
_SAME = SAME_PLACE | {
    "mean", "sum", "relu", "sigmoid", "tanh", "softmax", "log_softmax", "clamp", "exp", "log", "sqrt", "pow", "norm",
}  # fmt: skip
#: What puts a tensor elsewhere.
_MOVES = PLACES | {"numpy"}
_DEPTH = 12  # names that stand for what another one holds

Method = ast.FunctionDef | ast.AsyncFunctionDef


def given(machine: ModuleCalls, class_: ClassFacts, method: Method, guess: Value) -> Value:
    """What a method is guessed to give: a tensor where its layers do; a tuple where it gives several things, some from them."""
    if not guesses.is_guess(guess):
        return guess
    parts = parts_of(machine, class_, method)
    if len(parts) == 1:
        return guesses.surely(guess) if parts[0] else guess
    if not parts:
        return guess
    return Value("tuple", elements=tuple(guesses.surely(guess) if is_one else guess for is_one in parts))


def parts_of(machine: ModuleCalls, class_: ClassFacts, method: Method) -> tuple[bool, ...]:
    """Of each thing that a method gives, whether it is what a layer computes; nothing where it gives nothing of that kind."""
    parts = machine.layered.get(id(method))
    if parts is None:
        machine.layered[id(method)] = ()  # a method that calls itself
        parts = machine.layered[id(method)] = _parts_of(machine, class_, method)
    return parts


def _parts_of(machine: ModuleCalls, class_: ClassFacts, method: Method) -> tuple[bool, ...]:
    found: set[tuple[bool, ...]] = set()
    body = list(unconditional(method.body))
    if method.decorator_list:
        return ()
    for node in own_nodes(method):
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return ()
        if isinstance(node, ast.Attribute) and (node.attr in _MOVES or isinstance(node.ctx, ast.Store)):
            return ()  # part of it may be elsewhere
        if isinstance(node, ast.Return):
            if node not in body or node.value is None:
                return ()  # what its names hold there is not followed
            above = body[: body.index(node)]
            several = node.value.elts if isinstance(node.value, ast.Tuple) else [node.value]
            found.add(tuple(is_layers(machine, class_, each, above, 0) for each in several))
    return found.pop() if len(found) == 1 and any(any(parts) for parts in found) else ()


def is_layers(machine: ModuleCalls, class_: ClassFacts, node: ast.expr, above: Sequence[ast.stmt], depth: int) -> bool:
    """Whether an expression is what a layer computes. `above`: the statements that ran before it."""
    if depth > _DEPTH:
        return False
    if isinstance(node, ast.Name):
        value, before = bound_to(node.id, above)
        return value is not None and is_layers(machine, class_, value, before, depth + 1)
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(is_layers(machine, class_, side, above, depth) for side in sides)
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    if isinstance(function, ast.Attribute) and is_self_attribute(function):
        found = class_.method(function.attr)
        if found is not None:
            return parts_of(machine, found[0], found[1]) == (True,)
        return is_layer(machine, class_, function.attr)
    if isinstance(function, ast.Attribute) and function.attr in OF_DISTRIBUTIONS:
        made, before = function.value, above
        if isinstance(made, ast.Name):
            bound, before = bound_to(made.id, above)
            made = bound if bound is not None else made
        if isinstance(made, ast.Call) and (qualified(made.func, machine.imports) or "").startswith(
            "torch.distributions."
        ):
            of = [*made.args, *(keyword.value for keyword in made.keywords)]
            return any(is_layers(machine, class_, each, before, depth) for each in of)
    qualname = qualified(function, machine.imports) or ""
    if not qualname.startswith("torch."):
        is_method = isinstance(function, ast.Attribute) and function.attr in _SAME and not is_self(function.value)
        return is_method and is_layers(machine, class_, function.value, above, depth)  # type: ignore[attr-defined]
    record = knowledge.function(qualname) if node.args else None
    if record is None or record.result != "tensor" or record.device_from != "first_tensor":
        return False
    return is_layers(machine, class_, node.args[0], above, depth)


def bound_to(name: str, above: Sequence[ast.stmt]) -> tuple[ast.expr | None, Sequence[ast.stmt]]:
    """What a name was bound to last, with the statements before that; None where a statement may bind it otherwise."""
    for index in range(len(above) - 1, -1, -1):
        bound = above[index]
        if name in stored_names(bound):
            alone = isinstance(bound, ast.Assign) and len(bound.targets) == 1 and isinstance(bound.targets[0], ast.Name)
            return bound.value if alone and isinstance(bound, ast.Assign) else None, above[:index]
    return None, ()


def is_layer(machine: ModuleCalls, class_: ClassFacts, name: str) -> bool:
    """Whether all that a class stores in an attribute are layers of torch, or sequences that end in one."""
    stored = [value for each in lineage(class_) if not each.abroad for value in stored_in(each, name)]
    return bool(stored) and all(makes_layer(machine, value) for value in stored)


def makes_layer(machine: ModuleCalls, node: ast.expr | None) -> bool:
    """Whether an expression makes a layer: `nn.Linear(3, 4)`, `nn.Sequential(nn.ReLU(), nn.Linear(3, 4))`."""
    if not isinstance(node, ast.Call):
        return False
    qualname = qualified(node.func, machine.imports) or ""
    if qualname == "torch.nn.Sequential":
        return bool(node.args) and makes_layer(machine, node.args[-1])
    known = knowledge.cls(qualname) if qualname.startswith("torch.nn.") else None
    return known is not None and known.family == "Module" and qualname.rsplit(".", 1)[-1] not in _OTHERS
