"""A tensor made on one stream is used on another, and nothing orders the two.

## What it flags
A name that is bound inside `with torch.cuda.stream(s):` and read after it, or a tensor that was put on an
accelerator before the block and is read in it, with no `wait_stream`, `wait_event`, `record_stream` or `synchronize`
in between.

## Why it matters
Streams run side by side. The reader may see memory that the writer has not written yet, or that the
allocator has given to somebody else: wrong numbers, without any error.

## Example
    import torch

    def overlap(x: torch.Tensor, side, current):
        with torch.cuda.stream(side):
            y = x @ x
        return y + 1

Use instead:

    import torch

    def overlap(x: torch.Tensor, side, current):
        with torch.cuda.stream(side):
            y = x @ x
        current.wait_stream(side)
        return y + 1

## Fix safety
A hint only: which stream waits for which, and where, is a matter of design.

## Known limits
Off by default. Only the statements of one block are followed; a tensor that is returned or stored is
left to its next user.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site, StreamUse


class CrossStreamUse(Rule[StreamUse]):
    meta = RuleMeta(
        code="DEV510",
        name="cross-stream-use",
        summary="tensor of one stream used on another without a wait",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="hint",
        words=("stream(",),
        opt_in=True,
    )
    event = StreamUse

    def suspects(self, event: StreamUse, facts: Facts) -> bool:
        return True

    def judge(self, event: StreamUse, site: Site) -> Finding | None:
        made = f"`{event.stream}`" if event.stream else "the current stream"
        used = f"`{event.other}`" if event.other else "the current stream"
        message = f"`{event.path}` was made on {made} and is used on {used} without a wait"
        fix = Fix("Let the stream that reads wait for the one that writes", Safety.HINT)
        return Finding(event.span, message, fix, event.because)
