"""Values are copied to the host, used in a computation on the host, and copied back to the accelerator.

## What it flags
The rule reports the following steps within one function:

- `.cpu()` with `.numpy()` or `.tolist()` copies the values to the host.
- The host uses only array arithmetic and functions of numpy that torch also has.
- `torch.from_numpy`, `torch.tensor` or `torch.as_tensor` creates a tensor, which is then moved to an accelerator.

## Why it matters
The host waits for the device, and the values cross the bus twice. During this time the device does nothing. The new
tensor also has no gradient.

## Example
    import torch

    def order(scores: torch.Tensor, device: torch.device):
        ranks = scores.detach().cpu().numpy().argsort()
        return torch.from_numpy(ranks).to(device)

Use instead:

    import torch

    def order(scores: torch.Tensor, device: torch.device):
        return scores.detach().argsort()

## Fix safety
The rule makes a suggestion without an edit. Functions of torch and numpy differ in names, defaults and precision.

## Known limits
The rule reports nothing if another function uses the values, because this function may need them on the host.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, RoundTrip, Rule, RuleMeta, Safety, Severity, Site


class HostRoundTrip(Rule[RoundTrip]):
    meta = RuleMeta(
        code="DEV507",
        name="host-round-trip",
        summary="values go to the host and back to the device",
        since="0.1.0",
        level="assume",
        severity=Severity.WARNING,
        fix="hint",
        words=(".cpu()",),
    )
    event = RoundTrip

    def suspects(self, event: RoundTrip, facts: Facts) -> bool:
        return True

    def judge(self, event: RoundTrip, site: Site) -> Finding | None:
        line = site.line(event.left)
        message = f"values that were copied to the host on {line} come back to the device here"
        return Finding(event.span, message, Fix("Compute the values on the device", Safety.HINT), event.because)
