"""A module is called with an input that is on another device than its parameters.

## What it flags
A call of a module whose parameters are proved to be on one device with a tensor that is proved to be on another:
batches of a `DataLoader` that were never moved, targets given to a loss beside outputs of the model, a model, a metric or
a freshly built submodule that was never moved, or on one path of a function only. A model that cannot be read counts where
the file moves another one that the same call makes, or where it is called like a network and made of sizes alone.

## Why it matters
Moving the model is half of the work. The first layer stops with "Expected all tensors to be on the same device" on a
machine with an accelerator, and the same loop runs on one without.

## Example
    import torch
    from torch import nn
    from torch.utils.data import DataLoader


    def evaluate(batches: DataLoader) -> None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = nn.Linear(8, 2).to(device)
        for inputs, labels in batches:
            print(model(inputs).shape, labels.shape)

Use instead:

    import torch
    from torch import nn
    from torch.utils.data import DataLoader


    def evaluate(batches: DataLoader) -> None:
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = nn.Linear(8, 2).to(device)
        for inputs, labels in batches:
            inputs = inputs.to(device)
            print(model(inputs).shape, labels.shape)

## Fix safety
The input is moved at the top of the loop that yields it, else where it is given to the module. Safe where the call is
refused on every machine on which the devices differ, since the move changes nothing on all others; unsafe where that
rests on the assumption that a function's arguments may be on an accelerator, and inside a `try` that catches errors. A
module that is off gets a hint: it is moved once, before the loop and before its optimizer is made. Where the output of a
module that was never moved meets what was, the module is moved where it is made, with what it is given, and not its output;
that is unsafe.

## Known limits
Silent when the device of the module or of the input is not known, and for modules without parameters or buffers. A
tensor that the file itself makes without a device is reported as DEV102 where it is made.
"""

from __future__ import annotations

from devlint.api import DeviceMismatch, Facts, Finding, Fix, Meet, Rule, RuleMeta, Safety, Severity, Site, Value
from devlint_rules import _mismatch as mismatch
from devlint_rules import _shared as shared


class ModuleInputDevice(Rule[Meet | DeviceMismatch]):
    meta = RuleMeta(
        code="DEV103",
        name="module-input-device",
        summary="a module is called with an input that is on another device",
        since="0.1.0",
        level="certain / assume",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("torch",),
    )
    event = Meet
    also = (DeviceMismatch,)

    def suspects(self, event: Meet | DeviceMismatch, facts: Facts) -> bool:
        if isinstance(event, DeviceMismatch):
            return event.code == self.meta.code
        return shared.owner(event) == "DEV103"

    def judge(self, event: Meet | DeviceMismatch, site: Site) -> Finding | None:
        if isinstance(event, DeviceMismatch):
            return mismatch.judge(event, site)
        off, other = event.off, event.other
        if off.value.kind == "module":
            message = (
                f"{shared.name(off)} {shared.whereabouts(off.value)}, its input {shared.name(other)} "
                f"{shared.whereabouts(other.value)}: {moved(off.value)}"
            )
            return Finding(event.span, message, self._move_module(event, site), shared.trail(event, event.span))
        if event.branch is not None:
            return shared.parted(event, site)
        forgotten = shared.forgotten_module(event)
        if forgotten is not None:
            message = (
                f"`{forgotten}` was never moved, so that {shared.name(off)} {shared.whereabouts(off.value)}; "
                f"{shared.name(other)} {shared.whereabouts(other.value)}: the call of {shared.callee(event)} needs both on one "
                "device"
            )
            fix = shared.move_forgotten(forgotten, event, site)
            return Finding(event.span, message, fix, shared.trail(event, event.span))
        message = (
            f"{shared.name(off)} {shared.whereabouts(off.value)}, {shared.name(other)} "
            f"{shared.whereabouts(other.value)}: the call of {shared.callee(event)} needs both on one device"
        )
        return Finding(
            event.bound or event.span, message, shared.move_fix(event, site), shared.trail(event, event.span)
        )

    def _move_module(self, event: Meet, site: Site) -> Fix:
        device = shared.device_of(event.other, event.scope, site.facts, event.span)
        where = f"{shared.name(event.off)} with `.to({device})`" if device is not None else f"{shared.name(event.off)}"
        if event.off.value.moved:
            return Fix(f"Move {where} again before it is called, or save copies of its tensors", Safety.HINT)
        return Fix(f"Move {where} once, before its optimizer is made", Safety.HINT)


def moved(module: Value) -> str:
    """Why a module is on the CPU."""
    if module.split is not None:
        return "the module is moved on one path only"
    return "the module was moved to the CPU" if module.moved else "the module was never moved"
