"""An alias of a buffer stays on the old device when the module moves.

## What it flags
An alias is a second name for the same tensor. The rule reports two cases:

* A variable gets a buffer before the module moves. After the move, the variable is combined with moved tensors.
* `__init__` assigns a buffer to a second attribute, `self.scale = self.weights`, and other methods use this attribute.

## Why it matters
When a module moves, it replaces its buffers by new tensors. The alias still names the old tensor on the old device. The
operation stops with "Expected all tensors to be on the same device". If the operation does not stop, it reads old
values, because the module updates only the new tensor. Parameters do not have this problem: they stay the same objects.

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
The rule makes a suggestion without an edit: read the buffer through the module, or create the alias after the move.

## Known limits
The rule reports an alias only when the alias is combined with a tensor on a different device. The rule reports nothing
in these cases:

* The alias is a view of a buffer, or the result of an operation on it.
* The rule cannot see where the module is created.
* The alias refers to a parameter.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, Meet, Rule, RuleMeta, Safety, Severity, Site

from . import _shared as shared


class StaleBufferAlias(Rule[Meet]):
    meta = RuleMeta(
        code="DEV113",
        name="stale-buffer-alias",
        summary="an alias of a buffer is used after the module has moved",
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
            f"{shared.name(event.off)} keeps the tensor that `{source}` was before the module moved; "
            f"in {shared.operation(event)} on {line} it meets {shared.name(event.other)}, {shared.which(event.other.value)}"
        )
        fix = Fix(f"Read `{source}` where it is used, or assign the alias after the move", Safety.HINT)
        return Finding(taken, message, fix, shared.trail(event, taken))
