"""The default value of a parameter, an option or a field is an accelerator.

## What it flags
The rule is off by default. It reports these defaults:

* A parameter: `def f(device="cuda")`.
* A command-line option: `add_argument("--device", default="cuda")`.
* A field of a data class: `device: str = "cuda"`.

## Why it matters
If the caller names no device, the program uses the accelerator. On a machine without this accelerator, the program
stops with an error.

## Example
    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--device",
        default="cuda",
    )
    x = torch.zeros(3, device=parser.parse_args().device)

Use instead:

    import argparse

    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument(
        "--device",
        default=(torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")).type,
    )
    x = torch.zeros(3, device=parser.parse_args().device)

## Fix safety
The fix is unsafe. If the user does not set the option, the program runs on the accelerator of the machine, or on the
CPU. The default remains a string.

For parameters and fields the rule makes a suggestion without an edit. The new default may be None or the device of
another argument. The author must choose.

## Known limits
The fix needs torch 2.7 to choose among all accelerators. For older versions the fix chooses between CUDA and the CPU.
"""

from __future__ import annotations

from devlint.api import (
    ACCELERATORS,
    DeviceLiteral,
    Edit,
    Facts,
    Finding,
    Fix,
    LeftAlone,
    Portability,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
)

from ._api import AVAILABLE, needs_torch
from ._calls import path_to
from ._run_device import purpose_of
from ._torch import has_torch

_SINCE = (2, 7)  # current_accelerator(check_available=True)


class DefaultDeviceCuda(Rule[DeviceLiteral]):
    meta = RuleMeta(
        code="DEV213",
        name="default-device-cuda",
        summary="accelerator is the default of a parameter or an option",
        since="0.1.0",
        level="certain",
        severity=Severity.INFO,
        fix="sometimes",
        words=("cuda", "xpu", "mps", "npu"),
        opt_in=True,
        portability=Portability(),
    )
    event = DeviceLiteral

    def suspects(self, event: DeviceLiteral, facts: Facts) -> bool:
        return event.role == "default" and event.type in ACCELERATORS and purpose_of(facts) is None

    def left_alone(self, event: DeviceLiteral, facts: Facts) -> LeftAlone | None:
        return purpose_of(facts) if event.role == "default" and event.type in ACCELERATORS else None

    def judge(self, event: DeviceLiteral, site: Site) -> Finding | None:
        place = event.type if event.index is None else f"{event.type}:{event.index}"
        return Finding(event.span, f"the default device is `{place}`", self._fix(event, site), event.because)

    def _fix(self, event: DeviceLiteral, site: Site) -> Fix:
        above = path_to(site, site.node)
        literal = site.node
        option = len(above) > 1 and isinstance(above[-2], cst.Arg) and isinstance(literal, cst.SimpleString)
        option = option and any(isinstance(n, cst.Call) and "add_argument" in site.code(n.func) for n in above)
        if not option or event.index is not None or event.type not in AVAILABLE:
            return Fix("Use None as the default, and take the device of a tensor argument", Safety.HINT)
        if has_torch(_SINCE, site.facts):
            accelerator = f"{site.spell('torch.accelerator.current_accelerator')}(check_available=True)"
            text = f'({accelerator} or {site.spell("torch.device")}("cpu")).type'
        else:
            text = f'"{event.type}" if {site.spell(AVAILABLE[event.type])}() else "cpu"'
        return Fix(
            "Use an available device as the default",
            Safety.UNSAFE,
            (Edit(literal, site.expression(text)),),
            needs_torch(site.facts),
        )
