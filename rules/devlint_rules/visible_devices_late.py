"""CUDA starts before the program sets the visible devices, or while a module is imported.

## What it flags
- `os.environ["CUDA_VISIBLE_DEVICES"] = ...` runs after a call that starts CUDA, such as `is_available`,
  `current_device` or `.cuda()`.
- The default value of a parameter or the body of a class contains a call that starts CUDA.

## Why it matters
CUDA reads `CUDA_VISIBLE_DEVICES` once, when it starts. It ignores a later value without a warning. A call at import
time starts CUDA in each program that imports the module. After the import, the program can no longer set the variable.
If the program forks, CUDA raises `RuntimeError` in the child process.

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
The rule makes a suggestion without an edit. Only the author knows in which order the program should start.

## Known limits
- `torch.cuda.device_count()` does not start CUDA and is not reported.
- A variable that is set for other processes is not reported.
- A module-level statement that chooses a device is not reported.
- Default values and class bodies are not reported in a file that is run as a script.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, LateSetting, Rule, RuleMeta, Safety, Severity, Site

from ._shared import short


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
            message = f"the visible devices are set after `{touch}` has started CUDA, so CUDA ignores the setting"
            fix = Fix("Set the variable before torch is imported", Safety.HINT)
        else:
            message = f"{event.where} calls `{touch}`, so importing the module starts CUDA"
            fix = Fix("Choose the device when it is needed", Safety.HINT)
        return Finding(event.span, message, fix, event.because)
