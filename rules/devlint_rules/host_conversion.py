"""A tensor that may be on an accelerator is passed to NumPy or to another library that reads only CPU memory.

## What it flags
The rule reports a tensor that is on an accelerator, or may be, in these cases:

* The code calls `x.numpy()`.
* The tensor is passed to a function of NumPy, matplotlib, scikit-learn, OpenCV, PIL or pandas.
* The tensor is stored in a NumPy array: `scores[:, 0] = x`.
* The tensor is the index of a NumPy array: `labels[order]`.
* The second operand of an operation on the tensor is a NumPy array: `x * weights`.

## Why it matters
These libraries read only CPU memory. `x.numpy()` stops with "can't convert cuda:0 device type tensor to numpy. Use
Tensor.cpu() to copy the tensor to host memory first". Library functions that call `x.numpy()` stop with the same error.

## Example
    import numpy as np
    import torch


    def score(model: torch.nn.Module, images: torch.Tensor) -> float:
        predictions = model(images)
        return float(np.median(predictions.numpy()))

Use instead:

    import numpy as np
    import torch


    def score(model: torch.nn.Module, images: torch.Tensor) -> float:
        predictions = model(images)
        return float(np.median(predictions.detach().cpu().numpy()))

## Fix safety
The fix adds `.cpu()`, and `.detach()` where the tensor may have a gradient. The fix is safe. For a CPU tensor, `.cpu()`
returns the tensor itself and `.detach()` shares its memory. For a tensor with a gradient, the call without `.detach()`
always fails.

There is no fix when the edit would remove a comment. For a list of tensors, the rule makes a suggestion without an
edit.

## Known limits
The rule reports nothing in these cases:

* The device of the tensor is unknown.
* The code calls `numpy(force=True)`.
* The call is inside a `try` that catches `TypeError` by name.
* The code belongs to a data set, a sampler or a collate function. These objects run on the CPU.
* NumPy reads the tensor as a number. Examples are one element of an array, `losses[i] = loss`, and an index with one
  element, `labels[x[i : i + 1]]`.
* NumPy keeps the tensor as an object. Examples are an array of objects and `np.nonzero(x)`.

A function argument may be on an accelerator only if the file handles devices. The rule checks the calls if the file
calls the function. At least one call must pass a moved tensor or the output of a model.
"""

from __future__ import annotations

import ast

from devlint.api import DeviceMismatch, Edit, Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site, Use, cst
from devlint_rules import _mismatch as mismatch
from devlint_rules import _shared as shared

#: Methods that give the same elements in another form, and are given nothing but numbers.
_VIEWS = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze", "permute", "transpose", "t", "contiguous"})


class HostConversion(Rule[Use | DeviceMismatch]):
    meta = RuleMeta(
        code="DEV109",
        name="host-conversion",
        summary="a tensor that may be on an accelerator is passed to a library for CPU data",
        since="0.1.0",
        level="certain / assume",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("torch",),
    )
    event = Use
    also = (DeviceMismatch,)

    def suspects(self, event: Use | DeviceMismatch, facts: Facts) -> bool:
        if isinstance(event, DeviceMismatch):
            return event.code == self.meta.code
        # up to 0.4.1 a tensor copied itself to the host for functions of numpy [torch/tensor.py, `__array__`]
        by_itself = facts.torch_newest is not None and facts.torch_newest < (1, 0) and event.consumer != "numpy"
        return not by_itself and not event.under.catches_named("TypeError")

    def judge(self, event: Use | DeviceMismatch, site: Site) -> Finding | None:
        if isinstance(event, DeviceMismatch):
            return mismatch.judge(event, site)
        consumer = "`.numpy()`" if event.consumer == "numpy" else f"`{event.consumer}`"
        operand = event.operand
        message = f"{shared.name(operand)} {shared.whereabouts(operand.value)}; {consumer} reads only the CPU's memory"
        span = event.span if event.consumer == "numpy" else operand.span
        return Finding(span, message, self._fix(event, site), shared.trail(event, span))

    def _fix(self, event: Use, site: Site) -> Fix | None:
        node = site.at(event.operand.span)
        if not isinstance(node, cst.BaseExpression) or site.has_comment(node):
            return None
        detached = event.detached or ends_with_detach(event.operand.node)
        methods = ("cpu",) if detached else ("detach", "cpu")
        if event.consumer.startswith("torch."):
            return Fix("Copy the tensor to the CPU first: `.cpu()`", Safety.HINT)
        if event.consumer != "numpy" and not is_one_tensor(event):
            return Fix("Copy each tensor to the CPU", Safety.HINT)
        if event.also_arrays:
            return Fix("Copy the tensor to the CPU where the function is called", Safety.HINT)
        title = f"Copy the tensor to the CPU: `{'.'.join(f'{method}()' for method in methods)}`"
        return Fix(title, Safety.SAFE, (Edit(node, shared.chain(node, *methods)),))


def ends_with_detach(node: ast.expr) -> bool:
    """Whether an expression is `x.detach()`, or a view of it: `x.detach().view(-1)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in _VIEWS:
        return ends_with_detach(node.func.value)
    return node.func.attr == "detach"


def is_one_tensor(event: Use) -> bool:
    """Whether the operand is a tensor itself: a list or tuple of tensors has no `cpu`."""
    return not event.several and event.operand.value.kind in ("tensor", "parameter", "buffer")
