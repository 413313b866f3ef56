"""An index or a mask is on another device than the tensor that it reads.

## What it flags
`x[i]` where `x` is on the CPU and the index or mask `i` is, or may be, on an accelerator; and `gather`, `scatter`,
`index_select`, `index_add`, `take`, `masked_select`, `masked_fill`, `embedding` and their relatives, whose index must be
on the device of the tensor itself.

## Why it matters
`x[i]` stops with "indices should be either on cpu or on the same device as the indexed tensor (cpu)", the functions with
"Expected all tensors to be on the same device". An index on the CPU may read an accelerator's tensor with `x[i]`, so that
the mistake looks harmless from the other side.

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
The index moves to the tensor that it reads; a table that an object keeps, made on the CPU, moves to its index where it is
read. Safe, since torch refuses the operation on every machine on which the devices differ, and the move changes nothing on
all others; unsafe inside a `try` that catches errors. There is no fix across a comment, and where nothing in scope says the
device.

## Known limits
Silent when one of the devices is not known, and for an index or a tensor made by a factory call without a device, which is
DEV102 where it is made, unless the tensor is a table that an object keeps.
The input of an `nn.Embedding` is an input of a module, which is DEV103.
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
from devlint_rules import _mismatch as mismatch
from devlint_rules import _shared as shared


class IndexDeviceMismatch(Rule[Meet | DeviceMismatch]):
    meta = RuleMeta(
        code="DEV104",
        name="index-device-mismatch",
        summary="an index or mask is on another device than the tensor that it reads",
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
            f"{shared.name(index)} {shared.whereabouts(index.value)}, {shared.name(tensor)} "
            f"{shared.whereabouts(tensor.value)}: {self._refusal(event)}"
        )
        return Finding(event.span, message, self._fix(event, index, tensor, site), shared.trail(event, event.span))

    def _refusal(self, event: Meet) -> str:
        if event.how == "index":
            return "an index must be on the CPU or on the device of the tensor that it reads"
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
