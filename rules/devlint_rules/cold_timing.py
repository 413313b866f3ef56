"""A benchmark includes the first call on the device, which also pays for the start-up of the device.

## What it flags
The rule reports a measured time that includes the first device work of the function. It does not report the time if the
file has a warm-up, which is an earlier run of the same work.

Times of training, epochs, compiling and loading are not reported. The start-up cost belongs to these times.

## Why it matters
The first call on an accelerator loads kernels, starts libraries, selects algorithms and grows the memory pools of the
allocator. The first call can take a thousand times as long as a later call.

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
The rule makes a suggestion without an edit. The number of warm-up calls depends on the measured work.

## Known limits
- The rule is off by default.
- The caller may warm up the function in another file. The rule does not see that warm-up and reports the time.
"""

from __future__ import annotations

from devlint.api import ColdTimer, Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site


class ColdTiming(Rule[ColdTimer]):
    meta = RuleMeta(
        code="DEV403",
        name="cold-timing",
        summary="measured time includes the first device work",
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
        message = f"the time from `{event.clock}` includes the first device work and the start-up of the device"
        fix = Fix("Run the work a few times before the clock starts", Safety.HINT)
        return Finding(event.span, message, fix, event.because)
