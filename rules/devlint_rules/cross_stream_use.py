"""A tensor is created on one stream and used on another stream without a wait.

## What it flags
The rule reports two cases:

- A variable is assigned inside `with torch.cuda.stream(s):` and read after the block.
- A tensor is put on an accelerator before the block and read inside the block.

The rule reports a case only if no `wait_stream`, `wait_event`, `record_stream` or `synchronize` comes between the two
uses.

## Why it matters
Two streams run at the same time. The reading stream may see memory that the other stream has not written yet. The
allocator may also have given the memory to another tensor. The numbers are then wrong, and no error is raised.

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
The rule makes a suggestion without an edit. The author decides which stream waits for the other stream, and where.

## Known limits
- The rule is off by default.
- Only the statements of one block are followed. A tensor that is returned or stored is not reported.
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
        message = f"`{event.path}` was created on {made} and is used on {used} without a wait"
        fix = Fix("Make the reading stream wait for the writing stream", Safety.HINT)
        return Finding(event.span, message, fix, event.because)
