"""The cache of the allocator is emptied in each iteration of a loop.

## What it flags
The rule reports `empty_cache()` of `torch.cuda`, `torch.xpu`, `torch.mps` or `torch.accelerator` in the body of an
innermost loop. A call under a condition or in an `except` block is not reported.

## Why it matters
The call returns cached memory to the driver. The next iteration must request the memory again, which is slow and may
wait for the device. torch reuses its cached memory, so the call is not necessary.

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
The rule makes a suggestion without an edit. Another program on the same accelerator may need the memory, so the author
may have a reason for the call.

## Known limits
- The rule is off by default.
- A call in an outer loop, such as a loop over epochs, is not reported.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, LoopEmpty, Rule, RuleMeta, Safety, Severity, Site


class EmptyCacheInLoop(Rule[LoopEmpty]):
    meta = RuleMeta(
        code="DEV506",
        name="empty-cache-in-loop",
        summary="cache emptied in each iteration of a loop",
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
        message = f"`{event.qualname}` returns memory that the next iteration must request again"
        return Finding(event.span, message, Fix("Remove the call, or call it less often", Safety.HINT), event.because)
