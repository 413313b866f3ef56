"""A module is called with an input that is on a different device from the module's parameters.

## What it flags
The rule reports the call of a module when the code proves that the module's parameters and the input are on different
devices. Typical cases are:

* The batches of a `DataLoader` are never moved.
* A loss function gets the outputs of the model and targets that are not moved.
* A model, a metric or a new submodule is never moved.
* The input is moved on only one path through the function.

If the file of a class cannot be read, the rule treats an object of this class as a model in two cases:

* The same function creates a second model, and the file moves the second model.
* The class has the name of a network (`ResNet18`), and its constructor gets only sizes.

## Why it matters
The model and its input must both be moved. On a machine with an accelerator, the first layer stops with "Expected all
tensors to be on the same device". On a machine without an accelerator, the same loop runs.

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
The fix moves the input at the top of the loop that yields it. Without such a loop, it moves the input at the call. The
fix is safe when the call fails with two different devices. Where the devices are the same, the move changes nothing.

The fix is unsafe in these cases:

* The finding assumes that the arguments of a function may be on an accelerator.
* The call is inside a `try` that catches errors.
* The output of a module that was never moved is combined with moved tensors. The fix then moves this module and its
  inputs.

If the module itself is on the wrong device, the rule makes a suggestion without an edit. Move the module once, before
the loop and before its optimizer is created.

## Known limits
The rule reports nothing when the device of the module or of the input is unknown. The rule also reports nothing for
modules without parameters and buffers. DEV102 reports a tensor that the file creates without a device.
"""

from __future__ import annotations

from devlint.api import DeviceMismatch, Facts, Finding, Fix, Meet, Rule, RuleMeta, Safety, Severity, Site, Value

from . import _mismatch as mismatch
from . import _shared as shared


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
                f"{shared.name(off)} {shared.whereabouts(off.value)}, but its input {shared.name(other)} "
                f"{shared.whereabouts(other.value)}: {moved(off.value)}"
            )
            return Finding(event.span, message, self._move_module(event, site), shared.trail(event, event.span))
        if event.branch is not None:
            return shared.parted(event, site)
        forgotten = shared.forgotten_module(event)
        if forgotten is not None:
            message = (
                f"`{forgotten}` was never moved, so {shared.name(off)} {shared.whereabouts(off.value)}; "
                f"{shared.name(other)} {shared.whereabouts(other.value)}: the call of {shared.callee(event)} needs both on one "
                "device"
            )
            fix = shared.move_forgotten(forgotten, event, site)
            return Finding(event.span, message, fix, shared.trail(event, event.span))
        message = (
            f"{shared.name(off)} {shared.whereabouts(off.value)}, but {shared.name(other)} "
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
        return Fix(f"Move {where} once, before its optimizer is created", Safety.HINT)


def moved(module: Value) -> str:
    """Why a module is on the CPU."""
    if module.split is not None:
        return "the module is moved on one path only"
    return "the module was moved to the CPU" if module.moved else "the module was never moved"
