"""`.cuda()` moves a tensor or a module to CUDA and ignores the device that the program chose.

## What it flags
The rule reports `x.cuda()`, `model.cuda(1)` and `x.cuda(non_blocking=True)`. It also reports the methods for other
accelerators, such as `.xpu()` and `.npu()`.

## Why it matters
The call raises an error on a machine without CUDA, and in a torch build without CUDA. It also ignores the device that
the user chose for the program. `.to(device)` works on every machine.

## Example
    import torch

    def embed(x: torch.Tensor):
        return x.cuda()

Use instead:

    import torch

    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")

    def embed(x: torch.Tensor):
        return x.to(device)

## Fix safety
devlint fixes all moves to one accelerator in a file together. It also changes the device literals that DEV201 reports.

The fix is safe in two cases:

* The whole file can be converted safely, as DEV201 describes.
* A variable in scope certainly holds a CUDA device on each machine with CUDA. The call has no index, and the moved
  object is certainly a tensor or a module.

Otherwise the fix is unsafe. If no variable in scope holds a device, the fix may use the device of a tensor argument. It
does this for a tensor that the function creates. A part of the tensor argument goes to the device of the program.

The rule makes a suggestion without an edit when the file names several GPUs, or when the index is computed. A computed
index also keeps the rest of the file from a new device, because the program would still stop at this line. Other lines
that need the GPU do the same: an event, a stream, the properties of a GPU, a tensor that a worker process of a data loader
puts on the GPU. `--verbose` names the line. A name is an index if the file binds a number, `int(...)` or an option with
`type=int` to it.

## Known limits
The rule does not report these cases:

* The call is under a condition that is true only if the accelerator is present. A condition that names the accelerator
  also counts: `if args.gpu is not None`.
* The name of the function mentions the accelerator: `cuda`, `to_cuda`. A call in a test function is still reported when
  the file has other tests, because the test functions also run on a machine without CUDA.
* The file loads CUDA kernels.

A class of the program may have a `cuda` method that does not move the object. If the rule knows nothing about the
object, it reports the call.
"""

from __future__ import annotations

import ast

from devlint.api import (
    CudaMethod,
    Edit,
    Facts,
    Finding,
    Fix,
    LeftAlone,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
)

from ._api import NAMES
from ._at_hand import buffer_of
from ._conversion import MOVABLE, decision, is_safe, portability, run_device, why_no_device
from ._given import given_device, is_current, without_index
from ._rest_of_conversion import with_rest
from ._run_device import (
    guard_of,
    may_use_other_cards,
    named_guard,
    placed,
    purpose_of,
)
from ._shared import is_initialized, is_none, short


class CudaMethodCall(Rule[CudaMethod]):
    meta = RuleMeta(
        code="DEV202",
        name="cuda-method",
        summary="tensor or module is moved by `.cuda()`",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=(".cuda", ".xpu", ".npu", ".mtia", ".hpu"),
    )
    event = CudaMethod

    def suspects(self, event: CudaMethod, facts: Facts) -> bool:
        return not event.receiver.text.startswith("super(") and self.left_alone(event, facts) is None

    def left_alone(self, event: CudaMethod, facts: Facts) -> LeftAlone | None:
        return guard_of(event, facts) or named_guard(event, facts) or purpose_of(facts)

    def judge(self, event: CudaMethod, site: Site) -> Finding | None:
        call, event = site.node, without_index(event, site.facts)
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return None
        needed = NAMES.get(event.type, event.type.upper())
        message = f"`.{call.func.attr.value}()` raises an error on a machine without {needed}"
        if event.run_device is not None:
            message += f"; the program's device is `{event.run_device}`"
        fix = with_rest(self._fix(event, site, call, call.func), event, site.facts)
        return Finding(
            event.span,
            message,
            fix,
            event.because,
            portability=portability(event),
            decision=decision(event, fix, site.facts),
        )

    def _fix(self, event: CudaMethod, site: Site, call: cst.Call, method: cst.Attribute) -> Fix:
        if event.index is not None and (
            hint := placed("Read the device indices from an option or a configuration file", site, event.type)
        ):
            return hint
        if any(a.star for a in call.args):
            return Fix(
                "Use `.to` with the device of the program",
                Safety.HINT,
                why="the arguments after `*` may contain a device",
            )
        if isinstance(event.argument, ast.Constant) and isinstance(event.argument.value, bool):
            return Fix("Write `non_blocking=True`: the first argument is the device", Safety.HINT)
        given = given_device(event, site.facts)
        computed = event.argument is not None and event.index is None and not is_none(event.argument)
        index = ast.unparse(event.argument) if computed and event.argument is not None else ""
        if computed and given is None and not is_current(event, site.facts):
            return Fix(
                f"Make a `torch.device` from `{short(index)}`, and use `.to`", Safety.HINT, why="the index is computed"
            )
        whole = is_safe(event.type, site.facts)
        alone = event.run_device is None and given is None and not whole
        buffer = _as_buffer(event, site, method) if alone else None
        if buffer is not None:
            return buffer
        device = run_device(given or event.run_device, site, event)
        if device is None:
            return Fix("Use `.to` with an available device", Safety.HINT, why=why_no_device(site.facts))
        rest = [a for a in call.args if a.keyword is not None and a.keyword.value != "device"]
        if len(positional := [a for a in call.args if a.keyword is None]) > 1:
            rest = [_as_keyword(positional[1], "non_blocking"), *rest]
        if not rest and len(call.args) == 1:
            where = site.expression(device.text)
            first = call.args[0].with_changes(value=where, keyword=None, equal=cst.MaybeSentinel.DEFAULT)
        else:
            first = cst.Arg(site.expression(device.text))
            if rest and isinstance(call.whitespace_before_args, cst.ParenthesizedWhitespace):
                first = first.with_changes(comma=cst.Comma(whitespace_after=call.whitespace_before_args))
        moved = call.with_changes(func=method.with_changes(attr=cst.Name("to")), args=[first, *rest])
        if not rest and _is_made_of(event.receiver.node, device.owner, device.whole or device.text):
            return Fix(
                "Remove the move: the tensor is on this device already",
                Safety.UNSAFE,
                (Edit(call, method.value.with_changes(lpar=[], rpar=[])),),
            )
        proved = event.run_device_is_proved and event.run_device is not None and not computed and event.index is None
        proved = proved and not may_use_other_cards(site.facts)
        safe = whole or (proved and event.receiver.value.kind in MOVABLE)
        return Fix(
            f"Use `.to({device.text})`", Safety.SAFE if safe else Safety.UNSAFE, (Edit(call, moved),), device.needs
        )


def _as_buffer(event: CudaMethod, site: Site, method: cst.Attribute) -> Fix | None:
    """`self.table = make().cuda()` in the `__init__` of a module, as a buffer that moves with the module."""
    name, statement = buffer_of(event, site.facts), site.statement
    if name is None or site.has_comment(statement):
        return None
    if not is_initialized(event.span, site.facts):
        return Fix(f'Register "{name}" as a buffer, after `super().__init__()`', Safety.HINT)
    code = f'self.register_buffer("{name}", {site.code(method.value)}, persistent=False)'
    return Fix(
        f'Register "{name}" as a buffer, which moves with the module',
        Safety.UNSAFE,
        (Edit(statement, cst.Expr(site.expression(code))),),
    )


def _is_made_of(node: ast.expr, name: str, device: str) -> bool:
    """Whether a tensor is computed from the one whose device it would be moved to: `(x == 0)` and `x.device`."""
    if device == name:
        return False
    if isinstance(node, ast.Compare):
        return ast.unparse(node.left) == name and all(map(_is_number, node.comparators))
    if isinstance(node, ast.BinOp):
        return ast.unparse(node.left) == name and _is_number(node.right)
    return False


def _is_number(node: ast.expr) -> bool:
    """Whether an operand is a number, or a plain name, which as a tensor has to be on the same device already."""
    return isinstance(node, ast.Constant | ast.Name)


def _as_keyword(argument: cst.Arg, name: str) -> cst.Arg:
    """A positional argument by its name: the second one of `.to` is the dtype."""
    none = cst.SimpleWhitespace("")
    return argument.with_changes(
        keyword=cst.Name(name), equal=cst.AssignEqual(whitespace_before=none, whitespace_after=none)
    )
