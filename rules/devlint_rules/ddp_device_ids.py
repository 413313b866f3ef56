"""`DistributedDataParallel` gets device ids that it refuses, or the same card in every process.

## What it flags
`device_ids` with several ids; `device_ids` for a module that is on the CPU; one id written as a number, in a file
that does not choose the visible devices per process; and `device_ids=[device]` without a condition where the file itself
says that `device` may be the CPU.

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
A hint, since the local rank comes from the launcher. `[device]` becomes `[device] if device.type != "cpu" else None`, which
is unsafe: it is for the machines where the call raised.

## Known limits
Silent for ids from variables, and for modules whose device is not known.
"""

from __future__ import annotations

from devlint.api import Edit, Facts, Finding, Fix, Parallel, Rule, RuleMeta, Safety, Severity, Site
from devlint_rules._shared import is_accelerator


class DdpDeviceIds(Rule[Parallel]):
    meta = RuleMeta(
        code="DEV602",
        name="ddp-device-ids",
        summary="device ids that `DistributedDataParallel` refuses, or one card for all processes",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("DistributedDataParallel",),
    )
    event = Parallel

    def suspects(self, event: Parallel, facts: Facts) -> bool:
        return event.wrapper == "DistributedDataParallel"

    def judge(self, event: Parallel, site: Site) -> Finding | None:
        if event.problem == "several":
            message, title = "each process drives one card, but `device_ids` names several", "Give the local rank alone"
        elif event.problem == "may-be-cpu":
            message = f"`device_ids` is given, but `{event.found}` may be the CPU, for which it raises"
            ids = site.at(event.ids.span)
            text = f"{site.code(ids)} if {is_accelerator(event.found, site.facts)} else None"
            fix = Fix("Give it for an accelerator alone", Safety.UNSAFE, (Edit(ids, site.expression(text)),))
            return Finding(event.span, message, fix, event.because)
        elif event.problem == "cpu-module":
            message, title = "`device_ids` is given, but the module is on the CPU", "Move the module first, or drop it"
        else:
            message, title = f"every process of a machine gets `{event.found}`", "Give the local rank"
        return Finding(event.span, message, Fix(title, Safety.HINT), event.because)
