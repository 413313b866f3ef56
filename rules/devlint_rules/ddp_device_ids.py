"""`DistributedDataParallel` gets device ids that it refuses, or the same card in every process.

## What it flags
`device_ids` with several ids; `device_ids` for a module that is on the CPU; and one id written as a number, in a file
that does not choose the visible devices per process.

## Why it matters
Each process drives one card: several ids, or ids for a module on the CPU, raise a ValueError. With a fixed id
every process of the machine works on the same card.

## Example
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model):
        return DistributedDataParallel(model, device_ids=[0, 1])

Use instead:

    from torch.nn.parallel import DistributedDataParallel

    def wrap(model, local_rank):
        return DistributedDataParallel(model, device_ids=[local_rank])

## Fix safety
A hint only: the local rank comes from the launcher.

## Known limits
Silent for ids from variables, and for modules whose device is not known.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, Parallel, Rule, RuleMeta, Safety, Severity, Site


class DdpDeviceIds(Rule[Parallel]):
    meta = RuleMeta(
        code="DEV602",
        name="ddp-device-ids",
        summary="device ids that `DistributedDataParallel` refuses, or one card for all processes",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="hint",
        words=("DistributedDataParallel",),
    )
    event = Parallel

    def suspects(self, event: Parallel, facts: Facts) -> bool:
        return event.wrapper == "DistributedDataParallel"

    def judge(self, event: Parallel, site: Site) -> Finding | None:
        if event.problem == "several":
            message, title = "each process drives one card, but `device_ids` names several", "Give the local rank alone"
        elif event.problem == "cpu-module":
            message, title = "`device_ids` is given, but the module is on the CPU", "Move the module first, or drop it"
        else:
            message, title = f"every process of a machine gets `{event.found}`", "Give the local rank"
        return Finding(event.span, message, Fix(title, Safety.HINT), event.because)
