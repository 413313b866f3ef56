"""A benchmark times the first call, which also pays for start-up.

## What it flags
An elapsed time whose region holds the first device work of its function, in a file that warms up nowhere.
Times of training, of epochs, of compiling and of loading are left alone: there the start belongs to the figure.

## Why it matters
The first call on an accelerator loads kernels, starts libraries, picks algorithms and grows the
allocator's pools. It can take a thousand times as long as the calls that follow.

## Example
    import time

    import torch

    def latency(x: torch.Tensor):
        start = time.perf_counter()
        y = (x @ x).sum().item()
        return y, time.perf_counter() - start

Use instead:

    import time

    import torch

    def latency(x: torch.Tensor):
        for _ in range(3):
            y = (x @ x).sum().item()
        start = time.perf_counter()
        y = (x @ x).sum().item()
        return y, time.perf_counter() - start

## Fix safety
A hint only: how much warming up is enough depends on what is timed.

## Known limits
Off by default. A function that its callers warm up in another file looks cold from here.
"""

from __future__ import annotations

from devlint.api import ColdTimer, Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site


class ColdTiming(Rule[ColdTimer]):
    meta = RuleMeta(
        code="DEV403",
        name="cold-timing",
        summary="timed region holds the first device work",
        since="0.1.0",
        level="certain / assume",
        severity=Severity.INFO,
        fix="hint",
        words=("time", "perf_counter", "monotonic"),
        opt_in=True,
    )
    event = ColdTimer

    def suspects(self, event: ColdTimer, facts: Facts) -> bool:
        return True

    def judge(self, event: ColdTimer, site: Site) -> Finding | None:
        message = f"time by `{event.clock}` includes the first device work, which also starts the device up"
        fix = Fix("Run the work a few times before the clock starts", Safety.HINT)
        return Finding(event.span, message, fix, event.because)
