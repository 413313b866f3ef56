"""Each iteration of a loop moves the same object to the same device.

## What it flags
The rule reports `.to(device)` or `.cuda()` that runs in each iteration of a loop. The object is a module, or a tensor
that is on the CPU. Neither the object nor the device changes in the loop.

A move is not reported in these cases:

- The loop assigns a new value to the variable of the device or of the object.
- The loop changes the object or moves it back.

## Why it matters
A tensor on the CPU is copied over the bus in each iteration. A module that is already on the device is not copied.
However, the call visits all parameters of the module each time.

## Example
    import torch

    def scale(batches, device: torch.device):
        weights = torch.tensor([0.3, 0.7])
        for x in batches:
            yield x.to(device) * weights.to(device)

Use instead:

    import torch

    def scale(batches, device: torch.device):
        weights = torch.tensor([0.3, 0.7])
        weights_on_device = weights.to(device)
        for x in batches:
            yield x.to(device) * weights_on_device

## Fix safety
The fix is unsafe for two reasons. After the fix, the move runs even if the loop has no iterations. And the copy uses
memory during the whole loop.

## Known limits
- A tensor that may already be on the device is not reported. `.to` does nothing in this case.
- A move under a condition is not reported.
- A module is not reported if the file moves it to the CPU anywhere.
"""

from __future__ import annotations

from devlint.api import (
    Edit,
    Facts,
    Finding,
    Fix,
    InsertStatement,
    LoopMove,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
    describe,
)

from ._calls import may_precede
from ._shared import name


class TransferInLoop(Rule[LoopMove]):
    meta = RuleMeta(
        code="DEV503",
        name="transfer-in-loop",
        summary="same move in each iteration of a loop",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=(".to(", ".cuda(", ".xpu("),
    )
    event = LoopMove

    def suspects(self, event: LoopMove, facts: Facts) -> bool:
        return True

    def judge(self, event: LoopMove, site: Site) -> Finding | None:
        what = "module" if event.kind == "module" else "tensor"
        message = f"{what} {name(event.receiver)} is moved to {describe(event.device)} in each iteration of the loop"
        return Finding(event.span, message, self._fix(event, site), event.because)

    def _fix(self, event: LoopMove, site: Site) -> Fix:
        hint = Fix("Move it once, before the loop", Safety.HINT)
        call, statement = site.node, site.statement
        if (
            not isinstance(call, cst.Call)
            or site.has_comment(call)
            or not isinstance(statement, cst.BaseSmallStatement)
        ):
            return hint
        if not may_precede(site.statement_at(event.loop)):
            return hint
        if event.kind == "module":
            if not event.whole or event.alone:
                return hint
            moved = cst.parse_statement(site.code(statement))
            edits = (InsertStatement(event.loop, moved), Edit(statement, None))
            return Fix("Move it once, before the loop", Safety.UNSAFE, edits)
        moved = cst.parse_statement(f"{event.free_name} = {site.code(call)}")
        return Fix(
            "Move it once, before the loop",
            Safety.UNSAFE,
            (InsertStatement(event.loop, moved), Edit(call, cst.Name(event.free_name))),
        )
