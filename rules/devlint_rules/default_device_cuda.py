"""An accelerator is the default of a parameter, an option or a field.

## What it flags
`def f(device="cuda")`, `add_argument("--device", default="cuda")`, a dataclass field `device: str = "cuda"`.
Off by default.

## Why it matters
Who calls the function or the script without naming a device needs that accelerator, and learns it from an
error.

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
Unsafe: without the option the program runs on the accelerator that is there, or on the CPU. The default stays
a string. Only a hint for parameters and fields: they may follow the device of an argument, or be None, which
a reader must choose.

## Known limits
Needs torch 2.7 for other accelerators; below it the choice is between CUDA and the CPU.
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
from devlint_rules._api import AVAILABLE, needs_torch
from devlint_rules._calls import path_to
from devlint_rules._run_device import purpose_of
from devlint_rules._torch import has_torch

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
        return Finding(event.span, f"the default is `{place}`", self._fix(event, site), event.because)

    def _fix(self, event: DeviceLiteral, site: Site) -> Fix:
        above = path_to(site, site.node)
        literal = site.node
        option = len(above) > 1 and isinstance(above[-2], cst.Arg) and isinstance(literal, cst.SimpleString)
        option = option and any(isinstance(n, cst.Call) and "add_argument" in site.code(n.func) for n in above)
        if not option or event.index is not None or event.type not in AVAILABLE:
            return Fix("Default to None and take the device of an argument", Safety.HINT)
        if has_torch(_SINCE, site.facts):
            accelerator = f"{site.spell('torch.accelerator.current_accelerator')}(check_available=True)"
            text = f'({accelerator} or {site.spell("torch.device")}("cpu")).type'
        else:
            text = f'"{event.type}" if {site.spell(AVAILABLE[event.type])}() else "cpu"'
        return Fix(
            "Default to what is there", Safety.UNSAFE, (Edit(literal, site.expression(text)),), needs_torch(site.facts)
        )
