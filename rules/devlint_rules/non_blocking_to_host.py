"""The host reads a copy from the device before the copy is complete.

## What it flags
The rule reports `x.to("cpu", non_blocking=True)` if the host reads the values before anything waits for the device. The
host reads the values in the same expression or in the next statement that uses the variable. Reads are `.numpy()`,
`.tolist()`, `.item()`, `print`, `torch.save` and functions of numpy.

## Why it matters
With `non_blocking=True`, the host does not wait for the copy. It then reads memory that the device has not filled yet.
The values are wrong, no error is raised, and the fault often appears only when the device has much work.

## Example
    import torch

    def values(x: torch.Tensor):
        return x.to("cpu", non_blocking=True).tolist()

Use instead:

    import torch

    def values(x: torch.Tensor):
        return x.to("cpu").tolist()

## Fix safety
The fix is safe. After the fix, the host waits for the copy. Values that were right stay the same.

## Known limits
A copy is not reported if it is returned, stored or passed to another function. The code that gets the copy may wait for
the device.
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
                return Fix("Remove `non_blocking=True`", Safety.SAFE, (Edit(given, None),))
        return None
