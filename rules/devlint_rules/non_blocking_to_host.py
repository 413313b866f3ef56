"""A copy to the host is read before it has arrived.

## What it flags
`x.to("cpu", non_blocking=True)` whose values are read, in the same expression or by the next use of its name, before
anything waits for the device: `.numpy()`, `.tolist()`, `.item()`, `print`, numpy, `torch.save`.

## Why it matters
Towards the host nothing orders the copy before the read. The host reads memory that the device has not
filled yet: garbage, without any error, and mostly only under load.

## Example
    import torch

    def values(x: torch.Tensor):
        return x.to("cpu", non_blocking=True).tolist()

Use instead:

    import torch

    def values(x: torch.Tensor):
        return x.to("cpu").tolist()

## Fix safety
Safe: the copy then waits until it is complete. Values that were right stay what they were.

## Known limits
Silent where the result is returned, stored or given to another function, which may wait.
"""

from __future__ import annotations

from devlint.api import EarlyRead, Edit, Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site, cst


class NonBlockingToHost(Rule[EarlyRead]):
    meta = RuleMeta(
        code="DEV505",
        name="non-blocking-to-host",
        summary="non-blocking copy to the host is read before it is complete",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="always",
        words=("non_blocking",),
    )
    event = EarlyRead

    def suspects(self, event: EarlyRead, facts: Facts) -> bool:
        return True

    def judge(self, event: EarlyRead, site: Site) -> Finding | None:
        message = f"{event.reader} may read this copy before it is complete: nothing waits for the device"
        return Finding(event.span, message, self._fix(event, site), event.because)

    def _fix(self, event: EarlyRead, site: Site) -> Fix | None:
        call = site.node
        if not isinstance(call, cst.Call):
            return None
        for given in call.args:
            if given.keyword is not None and given.keyword.value == "non_blocking":
                return Fix("Let the copy wait", Safety.SAFE, (Edit(given, None),))
        return None
