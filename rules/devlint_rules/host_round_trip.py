"""Values leave the accelerator, pass through arrays that torch could have computed, and come back.

## What it flags
`.cpu()` with `.numpy()` or `.tolist()`, then nothing but array arithmetic and functions of numpy that torch has as
well, then `torch.from_numpy`, `torch.tensor` or `torch.as_tensor` and a move to an accelerator, within one function.

## Why it matters
The host waits for the device, the values cross the bus twice, and the device idles meanwhile. The
gradient is lost as well.

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
A hint only: torch's functions have other names, defaults and precisions than numpy's.

## Known limits
Silent as soon as any other function has the values, for what it does may need the host.
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
        return Finding(event.span, message, Fix("Compute it on the device", Safety.HINT), event.because)
