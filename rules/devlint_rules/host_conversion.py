"""A tensor that may be on an accelerator is handed to numpy or another library of the host.

## What it flags
`x.numpy()`, and functions of numpy, matplotlib, scikit-learn, OpenCV, PIL and pandas that are given a tensor which
is, or under the default assumption may be, on an accelerator; also one that is stored into an array of numpy,
`scores[:, 0] = x`, looks something up in one, `labels[order]`, or has one as its second operand, `x * weights`.

## Why it matters
These libraries read host memory. `x.numpy()` stops with "can't convert cuda:0 device type tensor to numpy. Use
Tensor.cpu() to copy the tensor to host memory first", and so does everything that calls it.

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
Safe: for a tensor on the CPU `.cpu()` returns the tensor itself, and `.detach()` shares its memory; with a gradient
the call raises today. No fix across a comment; a hint for a list of tensors.

## Known limits
Silent when the tensor's device is not known, for `numpy(force=True)`, in a `try` that catches `TypeError` by its name,
and in code that runs on the host by contract: data sets, samplers, collate functions. What numpy reads as a number
is no fault on any device: one place of an array, `losses[i] = loss`, and an index of one element, `labels[x[i : i + 1]]`;
nor is what keeps a tensor as it is, an array of objects or `np.nonzero(x)`. An argument of a plain function
counts only where the file handles devices, and, where the file calls the function, only when a call passes what was
moved or what a model gave.
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
        summary="a tensor that may be on an accelerator is given to a library of the host",
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
            return Fix("Bring it to the CPU first: `.cpu()`", Safety.HINT)
        if event.consumer != "numpy" and not is_one_tensor(event):
            return Fix("Copy each tensor to the CPU", Safety.HINT)
        if event.also_arrays:
            return Fix("Copy it to the CPU where the function is called", Safety.HINT)
        title = f"Copy it to the CPU: `{'.'.join(f'{method}()' for method in methods)}`"
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
