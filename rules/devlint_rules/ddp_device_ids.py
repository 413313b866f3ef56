"""`DistributedDataParallel` refuses the `device_ids` that it gets, or it gets the same GPU in each process.

## What it flags
- `device_ids` has several entries.
- `device_ids` is given, but the module is on the CPU.
- `device_ids` is one fixed number, and the file does not choose the visible devices for each process.
- The code always passes `device_ids=[device]`, and the same file says that `device` may be the CPU.

## Why it matters
Each process drives one GPU. torch raises `ValueError` for several entries, and for a module on the CPU. With a fixed
number, all processes of the machine work on the same GPU.

## Example
    from torch.nn.parallel import DistributedDataParallel

    def wrap(model):
        return DistributedDataParallel(model, device_ids=[0, 1])

Use instead:

    from torch.nn.parallel import DistributedDataParallel

    def wrap(model, local_rank):
        return DistributedDataParallel(model, device_ids=[local_rank])

## Fix safety
- The rule makes a suggestion without an edit if the local rank is needed. The launcher of the processes provides the
  local rank.
- The fix is unsafe if it replaces `[device]` by `[device] if device.type != "cpu" else None`. The edit changes the
  program only on machines where the call raised an error.

## Known limits
- `device_ids` from a variable is not reported.
- A module on an unknown device is not reported.
"""

from __future__ import annotations

from devlint.api import Edit, Facts, Finding, Fix, Parallel, Rule, RuleMeta, Safety, Severity, Site

from ._shared import is_accelerator


class DdpDeviceIds(Rule[Parallel]):
    meta = RuleMeta(
        code="DEV602",
        name="ddp-device-ids",
        summary="device ids that `DistributedDataParallel` refuses, or the same GPU in all processes",
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
            message = "`device_ids` names several GPUs, but each process drives one GPU: torch raises ValueError"
            title = "Pass only the local rank"
        elif event.problem == "may-be-cpu":
            message = f"`device_ids` is given, but `{event.found}` may be the CPU: torch then raises ValueError"
            ids = site.at(event.ids.span)
            text = f"{site.code(ids)} if {is_accelerator(event.found, site.facts)} else None"
            fix = Fix("Pass `device_ids` only for an accelerator", Safety.UNSAFE, (Edit(ids, site.expression(text)),))
            return Finding(event.span, message, fix, event.because)
        elif event.problem == "cpu-module":
            message = "`device_ids` is given, but the module is on the CPU: torch raises ValueError"
            title = "Move the module first, or remove `device_ids`"
        else:
            message, title = f"each process of a machine gets the same GPU, `{event.found}`", "Pass the local rank"
        return Finding(event.span, message, Fix(title, Safety.HINT), event.because)
