"""Every step of a training loop waits for the device.

## What it flags
In the innermost loop around `.backward()`, unconditionally: `.item()`, `.cpu()`, `.tolist()`, `.numpy()`, `.nonzero()`,
`float(t)`, `int(t)`, `print(t)` and `if t` for the loss and for the tensors that it is computed from.
Quiet under a condition such as `if step % 100 == 0`, after the loop, and for values that are no tensors.

## Why it matters
The host queues work ahead of the device. A value that the host needs empties that queue: the device
then idles while the next step is being queued.

## Example
    import torch.nn.functional as F

    def train(model, batches, optimizer):
        total = 0.0
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item()
        return total

Use instead:

    import torch.nn.functional as F

    def train(model, batches, optimizer):
        total = 0.0
        for x, y in batches:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.detach()
        return float(total)

## Fix safety
A hint only: what is logged, and how often, is the author's choice.

## Known limits
Off by default: in many programs the wait costs little. Only the first wait of a step is costly, yet each is
reported. Silent for tensors that do not flow into the loss, and for waits inside called functions.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, LoopWait, Rule, RuleMeta, Safety, Severity, Site


class SyncInLoop(Rule[LoopWait]):
    meta = RuleMeta(
        code="DEV502",
        name="sync-in-loop",
        summary="each training step waits for the device",
        since="0.1.0",
        level="assume",
        severity=Severity.INFO,
        fix="hint",
        words=(".backward(",),
        opt_in=True,
    )
    event = LoopWait

    def suspects(self, event: LoopWait, facts: Facts) -> bool:
        return True

    def judge(self, event: LoopWait, site: Site) -> Finding | None:
        message = f"`{event.operation}` makes the host wait for the device in every step"
        fix = Fix("Keep the value on the device, and read it every so many steps", Safety.HINT)
        return Finding(event.span, message, fix, event.because)
