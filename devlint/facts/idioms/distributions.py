"""Distributions: they live where their parameters do, and so does what is drawn from them.

A distribution is no module and does not move: with parameters made on the CPU it draws there, and `log_prob` meets what
it is given there [torch/distributions/normal.py]. Numbers become 0-dim tensors of the CPU [torch/distributions/utils.py,
`broadcast_all`], so that a draw of some size is on the CPU too.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import Creation, Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses
from devlint.facts.idioms.placed import stored_in
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signatures import default_of
from devlint.facts.values import CPU, NOTHING, UNKNOWN, Value, merge
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import Arguments
    from devlint.facts.interpreter.operations import Operations

#: The methods that compare a value with the parameters, elementwise.
_COMPARE = frozenset({"log_prob", "cdf", "icdf"})
_DRAW = frozenset({"sample", "rsample", "sample_n"})
_PARAMETERS = frozenset(
    {"mean", "stddev", "variance", "mode", "loc", "scale", "probs", "logits", "rate", "concentration", "low", "high"}
)
#: Those whose parameters take part in one elementwise formula.
_ELEMENTWISE = frozenset(
    {"Normal", "LogNormal", "Uniform", "Laplace", "Cauchy", "Beta", "Gamma", "Gumbel", "Pareto", "Weibull", "StudentT"}
)
#: Parameters that are no tensors and no numbers of the distribution.
_OPTIONS = frozenset({"validate_args", "reinterpreted_batch_ndims", "cache_size"})


def make(machine: Operations, node: ast.Call, home: str, arguments: Arguments) -> Value:
    """A distribution that is constructed: on the CPU when all its parameters are numbers, or new tensors of the CPU."""
    because = (Origin(machine.span(node), "made from CPU parameters here"),)
    given = [*arguments.values, *(v for name, (_, v) in arguments.keywords.items() if name not in _OPTIONS)]
    inner = [v for v in given if v.kind == "distribution"]
    if home.endswith("Independent") and inner:
        return inner[0]
    if not given or arguments.star:
        return Value("distribution", UNKNOWN, type_name=home, because=because)
    nodes = [*arguments.nodes, *(n for name, (n, _) in arguments.keywords.items() if name not in _OPTIONS)]
    if all(
        (v.kind == "number" and not v.device) or by_default(machine, n, v) for n, v in zip(nodes, given, strict=True)
    ):
        default = machine.state.default
        here = CPU if default is None or default.device == CPU else UNKNOWN
        return Value("distribution", here, True, type_name=home, because=because)
    known = [v for v in given if v.kind != "number"]
    if not all(v.is_tensor for v in known):
        return Value("distribution", UNKNOWN, type_name=home, because=because)
    if home.rsplit(".", 1)[-1] in _ELEMENTWISE:
        machine.meet(
            node, [machine.operand(n, v) for n, v in arguments.every() if v.is_tensor], "function", home, "scalar"
        )
    whole = known[0]
    for other in known[1:]:
        whole = merge(whole, other)
    if whole.device == CPU and all(v.made for v in known):
        return replace(
            whole, kind="distribution", type_name=home, because=(*whole.because[:1], *because), elements=None
        )
    device = whole.device if whole.device != CPU else UNKNOWN
    return Value("distribution", device, whole.zero_dim, type_name=home, because=whole.because)


def by_default(machine: Operations, node: ast.expr, value: Value) -> bool:
    """Whether a parameter of a distribution is a number unless a call says otherwise: `std` of `def __init__(self, std=0.3)`.

    Also by way of an attribute that nothing but `__init__` binds.
    """
    function = machine.function.node if machine.function is not None else None
    if value.kind != "unknown" or value.device or value.type_name is not None:
        return False
    if is_self_attribute(node) and machine.owner is not None:
        found = machine.owner.method("__init__")
        stored = list(stored_in(machine.owner, last_name(node)))
        if found is None or len(stored) != 1 or not isinstance(stored[0], ast.Name):
            return False
        function, node = found[1], stored[0]
    if function is None or not isinstance(node, ast.Name) or isinstance(function, ast.Lambda):
        return False
    own = machine.scan.functions.get(id(function))
    default = default_of(function.args, node.id)
    constant = default.value if isinstance(default, ast.Constant) else None
    return type(constant) in (int, float) and own is not None and node.id not in own.bound


def parameters(value: Value) -> Value:
    """The parameters of a distribution, as one tensor."""
    return replace(value, kind="tensor", type_name=None)


def attribute(value: Value, name: str) -> Value:
    if name not in _PARAMETERS or not value.device:
        return NOTHING
    return parameters(value)


def call_method(machine: Operations, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
    """`d.sample(...)`, `d.log_prob(x)`, `d.expand(...)`."""
    value = operand.value
    if name == "expand":
        return value
    if not value.device:
        return NOTHING
    tensor = parameters(value)
    if name in _DRAW:
        sized = bool(arguments.values or arguments.keywords)
        if value.device == CPU and value.zero_dim is True:
            if not sized:
                return Value("tensor", CPU, True, because=value.because)
            span = machine.span(node)
            made = (Creation(span, f"{machine.text(operand.node)}.{name}", node, machine.scope(), False, False),)
            return Value("tensor", CPU, False, because=(Origin(span, "drawn on the CPU here"),), made=made)
        return replace(tensor, zero_dim=False if sized else tensor.zero_dim)
    if name in _COMPARE and arguments.values:
        arguments.values[0] = guesses.tensor(arguments.values[0])
    if name in _COMPARE and arguments.values and arguments.values[0].is_tensor:
        operands = [Operand(operand.span, operand.node, operand.text, tensor)]
        operands.append(machine.operand(arguments.nodes[0], arguments.values[0]))
        machine.meet(node, operands, "method", name, "scalar")
        return machine.combine(operands)
    return replace(tensor, zero_dim=None) if name in ("entropy", *_COMPARE) else NOTHING


def divergence(machine: Operations, node: ast.Call, arguments: Arguments) -> Value:
    """`kl_divergence(p, q)`: the parameters of both meet."""
    operands = [
        machine.operand(n, parameters(v))
        for n, v in zip(arguments.nodes[:2], arguments.values[:2], strict=True)
        if v.kind == "distribution" and v.device
    ]
    machine.meet(node, operands, "function", "kl_divergence", "scalar")
    return machine.combine(operands) if len(operands) == 2 else Value("tensor", UNKNOWN)
