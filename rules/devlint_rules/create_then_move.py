"""A tensor is created on the CPU and copied to another device in the same expression.

## What it flags
A factory call is a call that creates a tensor, such as `torch.zeros`. The rule reports a factory call without `device=`
when `.to(d)` or `.cuda()` follows directly: `torch.zeros(n).to(d)`. It does not report the call if `d` may be a dtype
or a tensor, or if `d` is the CPU.

## Why it matters
The factory writes the values to host memory. The values are then copied over the bus to the device, and the Python
thread waits for the copy. A factory with `device=` writes the values directly on the device and needs no copy.

## Example
    import torch

    def causal_mask(n, x: torch.Tensor):
        return torch.ones(n, n).to(x.device)

Use instead:

    import torch

    def causal_mask(n, x: torch.Tensor):
        return torch.ones(n, n, device=x.device)

## Fix safety
- The fix is safe for factories with fixed values: `zeros`, `ones`, `full`, `empty`, `eye`, integer ranges and
  literals.
- The fix is unsafe for random values. One seed gives different numbers on different devices.
- The fix is unsafe for `linspace`, windows and ranges of floats. The last bits of these values differ between devices.
- The rule makes a suggestion without an edit for `.cuda()`, because this call names no device.
- The rule has no fix if a comment is inside the expression.

## Known limits
These expressions are not reported:

- An expression in test code. The cost of a copy does not matter in a test.
- A `.cuda()` call that DEV202 already reports.
- A move whose argument is not known to be a device. `.to(x)` also takes a dtype or a tensor.
- A tensor that is assigned to a variable before the move.
- A factory call with `out=`.
- A factory call with `requires_grad`. The gradient belongs to the tensor that the factory creates. After an edit, it
  would belong to the tensor on the device.
- A `.to` call that changes the device and another property, such as the memory format. There is one exception: after
  `zeros`, `ones`, `eye` or `empty`, a `.to` call that changes the device and the dtype is reported.
"""

from __future__ import annotations

import ast

from devlint.api import (
    Edit,
    Facts,
    Finding,
    Fix,
    Move,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
    describe,
    may_be_accelerator,
)

from ._calls import has_double_star, has_star, keywords, with_keyword

_CONSTANT = frozenset(
    "torch." + name for name in ("zeros", "ones", "full", "empty", "eye", "tril_indices", "triu_indices")
)
_TAKES_DTYPE = frozenset({"torch.zeros", "torch.ones", "torch.empty", "torch.eye"})
_OTHERS = frozenset(
    "torch." + name
    for name in (
        "tensor", "scalar_tensor", "arange", "range", "linspace", "logspace", "rand", "randn", "randint", "randperm",
        "normal", "bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window",
        "fft.fftfreq", "fft.rfftfreq",
    )
)  # fmt: skip
_INTEGERS = frozenset("torch." + name for name in ("long", "int", "short", "int64", "int32", "int16", "int8", "uint8"))
_NOT_WITH = frozenset({"device", "requires_grad", "out", "generator", "pin_memory", "layout"})


class CreateThenMove(Rule[Move]):
    meta = RuleMeta(
        code="DEV501",
        name="create-then-move",
        summary="tensor is made on the CPU, then moved",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=(".to", ".cuda", ".xpu", ".npu", ".mtia", ".hpu"),
        gives_way=("DEV202",),
    )
    event = Move

    def suspects(self, event: Move, facts: Facts) -> bool:
        target = event.target
        if facts.is_test or target is None or target.kind != "device" or not may_be_accelerator(target.device):
            return False
        if event.method == "type" or not isinstance(event.node, ast.Call):
            return False
        made = event.receiver.node
        if not isinstance(made, ast.Call) or has_double_star(made) or not _NOT_WITH.isdisjoint(keywords(made)):
            return False
        function = _factory(event)
        carried = None if function is None else _carried(event.node, made, function)
        return carried is not None and (event.only_device or bool(carried))

    def judge(self, event: Move, site: Site) -> Finding | None:
        assert event.target is not None and isinstance(event.node, ast.Call)
        message = f"tensor is made on the CPU, then copied to {describe(event.target.device)}"
        because = event.because or event.target.because
        return Finding(event.span, message, self._fix(event, site), because)

    def _fix(self, event: Move, site: Site) -> Fix | None:
        call, function = site.node, _factory(event)
        made, target = event.receiver.node, event.target_node
        assert function is not None and isinstance(made, ast.Call) and isinstance(event.node, ast.Call)
        if target is None or event.method != "to":
            return Fix("Pass `device=` to the factory", Safety.HINT)
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or site.has_comment(call):
            return None
        built = call.func.value
        if not isinstance(built, cst.Call):
            return None
        where = _argument(call, "device")
        for name in _carried(event.node, made, function) or ():
            built = with_keyword(built, name, _argument(call, name))
        built = with_keyword(built, "device", where)
        built = built.with_changes(lpar=[*call.lpar, *built.lpar], rpar=[*built.rpar, *call.rpar])
        safety = Safety.SAFE if _is_exact(function, made) else Safety.UNSAFE
        return Fix(f"Create the tensor with `device={site.code(where)}`", safety, (Edit(call, built),))


def _factory(event: Move) -> str | None:
    """The qualified name of the factory that is called right before the move."""
    made = next((c for c in event.receiver.value.made if c.span == event.receiver.span and c.handed is None), None)
    if made is None or made.function not in _CONSTANT | _OTHERS:
        return None
    return made.function


def _carried(move: ast.Call, made: ast.Call, function: str) -> tuple[str, ...] | None:
    """Arguments of the move, other than the device, that the factory takes over. None: it cannot take them all."""
    given = keywords(move)
    if (
        has_star(move)
        or has_double_star(move)
        or len(move.args) > 2
        or not given.keys() <= {"device", "dtype", "non_blocking"}
    ):
        return None
    if len(move.args) == 2 and not (isinstance(move.func, ast.Attribute) and move.func.attr == "to"):
        return None
    if len(move.args) < 2 and "dtype" not in given:
        return ()
    if len(move.args) == 2 and not isinstance(move.args[1], ast.Attribute):
        return None
    return ("dtype",) if function in _TAKES_DTYPE and "dtype" not in keywords(made) else None


def _argument(call: cst.Call, name: str) -> cst.BaseExpression:
    """The device or dtype given to `.to`, by keyword or by position."""
    for argument in call.args:
        if argument.keyword is not None and argument.keyword.value == name:
            return argument.value
    return call.args[0 if name == "device" else 1].value


def _is_exact(function: str, made: ast.Call) -> bool:
    """Whether the factory gives the same values on every device."""
    if function in _CONSTANT:
        return True
    if function in ("torch.tensor", "torch.scalar_tensor"):
        return bool(made.args) and _is_literal(made.args[0])
    if function != "torch.arange":
        return False
    dtype = keywords(made).get("dtype")
    if dtype is not None:
        return ast.unparse(dtype) in _INTEGERS
    given = keywords(made)
    return given.keys() <= {"start", "end", "step"} and all(_is_integer(a) for a in (*made.args, *given.values()))


def _is_literal(node: ast.expr) -> bool:
    if isinstance(node, ast.List | ast.Tuple):
        return all(_is_literal(e) for e in node.elts)
    if isinstance(node, ast.UnaryOp):
        return _is_literal(node.operand)
    return isinstance(node, ast.Constant)


def _is_integer(node: ast.expr) -> bool:
    """Surely a whole number: a literal, `len(x)`, `x.size(0)`, `x.shape[0]`, and sums and products of these."""
    if isinstance(node, ast.Constant):
        return type(node.value) is int
    if isinstance(node, ast.BinOp):
        exact = isinstance(node.op, ast.Add | ast.Sub | ast.Mult | ast.FloorDiv | ast.Mod)
        return exact and _is_integer(node.left) and _is_integer(node.right)
    if isinstance(node, ast.UnaryOp):
        return _is_integer(node.operand)
    if isinstance(node, ast.Call):
        if isinstance(node.func, ast.Name):
            return node.func.id == "len"
        return isinstance(node.func, ast.Attribute) and node.func.attr in ("size", "numel", "dim")
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
    return False
