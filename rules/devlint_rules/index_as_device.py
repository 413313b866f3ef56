"""The code uses the result of `get_device()` as a device, but the result is -1 for a CPU tensor.

## What it flags
The rule reports `x.get_device()` or `torch.get_device(x)` in one of these positions, directly or through a variable:

- the keyword argument `device=` of any call;
- the first argument of `.to`;
- the first argument of `torch.device`.

## Why it matters
`get_device` returns the index of the accelerator. For a tensor on the CPU it returns -1, which is not a device, so the
line raises an error. The index does not contain the device type. An index means the right device only on a machine with
one type of accelerator.

## Example
    import torch

    def mask_for(x: torch.Tensor):
        return torch.ones(x.shape, device=x.get_device())

Use instead:

    import torch

    def mask_for(x: torch.Tensor):
        return torch.ones(x.shape, device=x.device)

## Fix safety
- The fix is safe for an index that is used directly. `x.device` is the same device wherever the index works.
- The fix is unsafe for an index that is kept in a variable. Other uses of the variable may need a number.

## Known limits
- An index under a test for CUDA is not reported, because the index is valid under this condition.
- An index that passes through a container or another function is not reported.
- An argument of a `torch.cuda` function that takes an index is not reported.
"""

from __future__ import annotations

import re

from devlint.api import Call, Edit, Facts, Finding, Fix, Operand, Rule, RuleMeta, Safety, Severity, Site, cst

# The calls whose first argument is a device, beside all that have a `device` argument.
_FIRST_IS_DEVICE = frozenset({"Tensor.to", "Module.to", "torch.device"})
_TENSORS = frozenset({"tensor", "tensors", "parameter", "buffer"})


class IndexAsDevice(Rule[Call]):
    meta = RuleMeta(
        code="DEV305",
        name="index-as-device",
        summary="result of `get_device()` used as a device",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("get_device",),
    )
    event = Call

    def suspects(self, event: Call, facts: Facts) -> bool:
        return not event.under.allow("cuda") and _device_argument(event) is not None

    def judge(self, event: Call, site: Site) -> Finding | None:
        used = _device_argument(event)
        assert used is not None
        tested = re.compile(rf"(^|\W){re.escape(used.text)}\s*(==|!=|<|>|>=)\s*-?[01]\b")
        if any(map(tested.search, event.under.tests)) or tested.search(site.code(site.statement)):
            return None  # the number is looked at first
        asked = used.value.because[0].span
        call = site.at(asked)
        if not isinstance(call, cst.Call):
            return None
        tensor = _tensor(call)
        if tensor is not None and site.facts.imports.get(site.code(tensor)) == "torch":
            return None  # `torch.get_device()` without a tensor is DEV303's
        known = event.scope.get(site.code(tensor)) if isinstance(tensor, cst.Name | cst.Attribute) else None
        if known is not None and known.kind not in _TENSORS:
            return None
        message = f"`{site.code(call)}` is used as a device, but it is -1 for a tensor on the CPU"
        if tensor is None:
            return Finding(used.span, message, Fix("Use the tensor's `.device`", Safety.HINT), event.because)
        device = cst.Attribute(value=tensor, attr=cst.Name("device"), lpar=call.lpar, rpar=call.rpar)
        direct = asked == used.span and not site.has_comment(call)
        fix = Fix(f"Use `{site.code(device)}`", Safety.SAFE if direct else Safety.UNSAFE, (Edit(call, device),))
        return Finding(used.span, message, fix, used.value.because if asked != used.span else ())


def _device_argument(event: Call) -> Operand | None:
    """The index that stands where a device belongs."""
    names = ("device", "0") if event.qualname in _FIRST_IS_DEVICE else ("device",)
    for name in names:
        used = event.arguments.get(name)
        if used is not None and used.value.kind == "index" and used.value.because:
            return used if not used.value.device else None  # that of a tensor on a card is a card's
    return None


def _tensor(call: cst.Call) -> cst.BaseExpression | None:
    """The tensor whose index is asked: of `x.get_device()` or `torch.get_device(x)`."""
    if not call.args:
        return call.func.value if isinstance(call.func, cst.Attribute) else None
    tensor = call.args[0].value
    return tensor if len(call.args) == 1 and isinstance(tensor, cst.Name | cst.Attribute) else None
