"""A second name of a buffer stays behind when the module moves.

## What it flags
A tensor that was read from a module's buffer before the module moved and is used with what moved; and a second attribute
for a buffer, `self.scale = self.weights` in `__init__`, that other methods use.

## Why it matters
Moving a module replaces its buffers by new tensors. The other name still holds the old one, on the old device, and the
operation stops with "Expected all tensors to be on the same device"; where it does not, it reads values that the module no
longer updates. Parameters are different: they stay the same objects.

## Example
    import torch
    from torch import nn


    class Normalize(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))
            self.shift = self.mean

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x - self.shift

Use instead:

    import torch
    from torch import nn


    class Normalize(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x - self.mean

## Fix safety
A hint: read the buffer through the module where it is used, or take the name after the move.

## Known limits
Only names that are seen to meet a tensor elsewhere. Silent for views and results of arithmetic on a buffer, for modules whose
construction is not seen, and for parameters.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, Meet, Rule, RuleMeta, Safety, Severity, Site
from devlint_rules import _shared as shared


class StaleBufferAlias(Rule[Meet]):
    meta = RuleMeta(
        code="DEV113",
        name="stale-buffer-alias",
        summary="a second name of a buffer, taken before the module moved, is used after it",
        since="0.1.0",
        level="assume",
        severity=Severity.ERROR,
        fix="hint",
        words=("buffer", "Buffer", "running_"),
    )
    event = Meet

    def suspects(self, event: Meet, facts: Facts) -> bool:
        return shared.owner(event) == "DEV113" and bool(event.off.value.because)

    def judge(self, event: Meet, site: Site) -> Finding | None:
        taken = event.off.value.because[0].span
        source = shared.short(site.facts.source(taken))
        line = site.line(event.span)
        message = (
            f"{shared.name(event.off)} keeps the tensor that `{source}` was before the module moved; it meets "
            f"{shared.name(event.other)}, which {shared.whereabouts(event.other.value)}, "
            f"in {shared.operation(event)} on {line}"
        )
        fix = Fix(f"Read `{source}` where it is used, or take it after the move", Safety.HINT)
        return Finding(taken, message, fix, shared.trail(event, taken))
