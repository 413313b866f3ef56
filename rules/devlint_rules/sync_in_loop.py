"""Each step of a training loop waits for the device.

## What it flags
The rule looks at the innermost loop around `.backward()`. It reports `.item()`, `.cpu()`, `.tolist()`, `.numpy()`,
`.nonzero()`, `float(t)`, `int(t)`, `print(t)` and `if t` in this loop. The rule reports such a call only for the loss,
or for a tensor from which the loss is computed.

These calls are not reported:

- a call under a condition such as `if step % 100 == 0`;
- a call after the loop;
- a call on a value that is not a tensor.

## Why it matters
The host queues work ahead of the device. If the host needs a value, it must wait until the queue is empty. After that,
the device has nothing to do until the host has queued the next step.

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
The rule makes a suggestion without an edit. The author decides what to log, and how often.

## Known limits
- The rule is off by default. In many programs the wait costs little.
- Only the first wait of a step is expensive, but the rule reports each wait.
- A tensor is not reported if the loss does not depend on it.
- A wait inside a called function is not reported.
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
        fix = Fix("Keep the value on the device, and read it only every few steps", Safety.HINT)
        return Finding(event.span, message, fix, event.because)
