"""An index or a mask is on a different device from the tensor that it selects from.

## What it flags
The rule reports two kinds of operations:

* In `x[i]`, `x` is on the CPU, and the index or mask `i` is or may be on an accelerator.
* A function takes a tensor and an index that are on different devices. Examples are `gather`, `scatter`,
  `index_select`, `index_add`, `take`, `masked_select`, `masked_fill` and `embedding`.

## Why it matters
`x[i]` stops with "indices should be either on cpu or on the same device as the indexed tensor (cpu)". A function such
as `gather` stops with "Expected all tensors to be on the same device".

The opposite case of `x[i]` works: torch accepts a CPU index for a tensor on an accelerator. Because one direction
works, the bug is easy to overlook.

## Example
    import torch


    def confident(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        names = labels.cpu()
        return names[scores > 0.5]

Use instead:

    import torch


    def confident(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        names = labels.cpu()
        return names[(scores > 0.5).cpu()]

## Fix safety
The fix moves the index to the device of the tensor. There is one exception: the tensor is created on the CPU and kept
as an attribute. The fix then moves this tensor to the device of the index.

The fix is safe. Where the devices differ, torch refuses the operation without the fix. Where they are the same, the
move changes nothing. The fix is unsafe inside a `try` that catches errors.

There is no fix when the edit would remove a comment, or when no variable in scope holds the device.

## Known limits
The rule reports nothing when one of the devices is unknown.

Other rules report these cases:

* DEV102 reports an index or a tensor that is created without a device. There is one exception, which DEV104 reports:
  the tensor is created on the CPU and kept as an attribute, and other code indexes it (`self.table[i]`).
* DEV103 reports the input of an `nn.Embedding`.
"""

from __future__ import annotations

import ast

from devlint.api import (
    CPU,
    DeviceMismatch,
    Edit,
    Facts,
    Finding,
    Fix,
    Meet,
    Operand,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
)

from . import _mismatch as mismatch
from . import _shared as shared


class IndexDeviceMismatch(Rule[Meet | DeviceMismatch]):
    meta = RuleMeta(
        code="DEV104",
        name="index-device-mismatch",
        summary="an index or mask is on a different device from the tensor that it selects from",
        since="0.1.0",
        level="certain / assume",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("torch",),
    )
    event = Meet
    also = (DeviceMismatch,)

    def suspects(self, event: Meet | DeviceMismatch, facts: Facts) -> bool:
        if isinstance(event, DeviceMismatch):
            return event.code == self.meta.code
        return shared.owner(event) == "DEV104" and not shared.was_taken(event, facts)

    def judge(self, event: Meet | DeviceMismatch, site: Site) -> Finding | None:
        if isinstance(event, DeviceMismatch):
            return mismatch.judge(event, site)
        index = shared.index_of(event)
        assert index is not None
        tensor = event.other if index is event.off else event.off
        message = (
            f"{shared.name(index)} {shared.whereabouts(index.value)}, but {shared.name(tensor)} "
            f"{shared.whereabouts(tensor.value)}: {self._refusal(event)}"
        )
        return Finding(event.span, message, self._fix(event, index, tensor, site), shared.trail(event, event.span))

    def _refusal(self, event: Meet) -> str:
        if event.how == "index":
            return "an index must be on the CPU or on the device of the indexed tensor"
        return f"`{event.operation}` needs its index on the device of the tensor"

    def _fix(self, event: Meet, index: Operand, tensor: Operand, site: Site) -> Fix | None:
        if shared.is_kept_table(event) and not is_written(event):
            index, tensor = tensor, index  # the result belongs where the index is
        node = site.at(index.span)
        if not isinstance(node, cst.BaseExpression) or site.has_comment(node):
            return None
        safety = Safety.UNSAFE if event.under.catches("RuntimeError") else Safety.SAFE
        if tensor.value.device == CPU:
            return Fix(f"Move {shared.name(index)} to the CPU", safety, (Edit(node, shared.chain(node, "cpu")),))
        device = shared.device_of(tensor, event.scope, site.facts, event.span)
        if device is None:
            return None
        moved = shared.moved(node, site.expression(device))
        return Fix(f"Move {shared.name(index)} to `{device}`", safety, (Edit(node, moved),))


def is_written(event: Meet) -> bool:
    """Whether the tensor is written at the index, so that a copy of it would not do."""
    if isinstance(event.node, ast.Subscript):
        return not isinstance(event.node.ctx, ast.Load)
    return event.operation.endswith("_")
