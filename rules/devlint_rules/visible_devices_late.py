"""CUDA is touched too early: before the visible devices are set, or when a module is imported.

## What it flags
`os.environ["CUDA_VISIBLE_DEVICES"] = ...` after a call that starts CUDA (`is_available`, `current_device`, `.cuda()`)
on the same path. And such a call in the default of a parameter or in the body of a class.

## Why it matters
CUDA reads the variable once, when it starts, so a later setting is ignored without a word. What runs at import
starts CUDA for every program that imports the module: too early for the variable, and fatal for `fork`.

## Example
    import os

    import torch

    def choose(card):
        if torch.cuda.is_available():
            os.environ["CUDA_VISIBLE_DEVICES"] = str(card)

Use instead:

    import os

    import torch

    def choose(card):
        os.environ["CUDA_VISIBLE_DEVICES"] = str(card)
        return torch.cuda.is_available()

## Fix safety
A hint only: the order of start-up is the program's.

## Known limits
`torch.cuda.device_count()` does not start CUDA and is not counted. Silent where the variable is set for other
processes, for module-level statements that choose a device, and for defaults and class bodies in a file that is run.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, LateSetting, Rule, RuleMeta, Safety, Severity, Site
from devlint_rules._shared import short


class VisibleDevicesLate(Rule[LateSetting]):
    meta = RuleMeta(
        code="DEV604",
        name="visible-devices-late",
        summary="start of CUDA before the visible devices are set, or at import",
        since="0.1.0",
        level="certain",
        severity=Severity.INFO,
        fix="hint",
        words=("VISIBLE_DEVICES", "is_available", "cuda"),
    )
    event = LateSetting

    def suspects(self, event: LateSetting, facts: Facts) -> bool:
        return True

    def judge(self, event: LateSetting, site: Site) -> Finding | None:
        touch = short(event.text)
        if event.problem == "late":
            message = f"the visible devices are set after `{touch}` has started CUDA, so the setting is ignored"
            fix = Fix("Set the variable first, best before torch is imported", Safety.HINT)
        else:
            message = f"{event.where} calls `{touch}`, so importing the module starts CUDA"
            fix = Fix("Choose the device when it is needed", Safety.HINT)
        return Finding(event.span, message, fix, event.because)
