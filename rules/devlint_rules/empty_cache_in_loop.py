"""The allocator's cache is emptied in every pass of a loop.

## What it flags
`empty_cache()` of `torch.cuda`, `torch.xpu`, `torch.mps` or `torch.accelerator` in the body of an innermost loop, not
under a condition and not in an `except`.

## Why it matters
The call gives cached memory back to the driver, and the next pass has to ask for it again, which is
slow and may wait for the device. It makes no memory available that torch could not use itself.

## Example
    import torch

    def train(step, batches):
        if torch.cuda.is_available():
            for batch in batches:
                step(batch)
                torch.cuda.empty_cache()

Use instead:

    def train(step, batches):
        for batch in batches:
            step(batch)

## Fix safety
A hint only: next to other programs on the same card the call can be on purpose.

## Known limits
Off by default. An outer loop, over epochs for instance, is left alone.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, LoopEmpty, Rule, RuleMeta, Safety, Severity, Site


class EmptyCacheInLoop(Rule[LoopEmpty]):
    meta = RuleMeta(
        code="DEV506",
        name="empty-cache-in-loop",
        summary="cache emptied in every pass of a loop",
        since="0.1.0",
        level="certain",
        severity=Severity.INFO,
        fix="hint",
        words=("empty_cache",),
        opt_in=True,
    )
    event = LoopEmpty

    def suspects(self, event: LoopEmpty, facts: Facts) -> bool:
        return True

    def judge(self, event: LoopEmpty, site: Site) -> Finding | None:
        message = f"`{event.qualname}` gives memory back that the next pass has to ask for again"
        return Finding(event.span, message, Fix("Drop the call, or make it rare", Safety.HINT), event.because)
