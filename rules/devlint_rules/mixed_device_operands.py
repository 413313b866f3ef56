"""An operation gets tensors that are on different devices.

## What it flags
An operator, a torch function, a method, a functional or an in-place operation whose tensors are proved to be on
different devices, by the rules that torch itself applies: a 0-dim CPU tensor goes with anything, a CPU index may read
an accelerator tensor, and a copy (`a.copy_(b)`, `a[0] = b`) may cross devices. Also what an object copies of a model's
state before the model moves, or keeps on a device of its own, where it meets the model's tensors later. Also an entry of a
checkpoint that was loaded to the CPU and takes the place of an attribute that its class puts on a device, where methods
combine it with others, and one that comes back on the card of the process that saved it and is compared with what was
computed on this one's.

## Why it matters
The operation stops with "Expected all tensors to be on the same device" on a machine with an accelerator, and works on
one without: it passes every test on a laptop.

## Example
    import torch


    def project(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        weight = weight.cpu()
        return x @ weight

Use instead:

    import torch


    def project(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        weight = weight.cpu()
        return x @ weight.to(x.device)

## Fix safety
The operand that is off is moved where it is used, or at the top of the loop that yields it. Safe where torch refuses
the operation on every machine on which the devices differ, since the move changes nothing on all others. Unsafe where
that rests on the assumption that an argument is a tensor that may be on an accelerator, inside a `try` that catches
errors, for the target of an in-place operation, and for an entry of a checkpoint. There is no fix where no expression for the
device is in scope.

## Known limits
Silent when one of the devices is not known, and where a CPU tensor may be 0-dim in an operation that takes one. A
factory call without a device is reported as DEV102 where it is written, an input of a module as DEV103, an index or a
mask as DEV104, an attribute that does not move with its module as DEV106.
"""

from __future__ import annotations

from devlint.api import (
    DeviceMismatch,
    Edit,
    Facts,
    Finding,
    Fix,
    Meet,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
    describe,
)
from devlint_rules import _mismatch as mismatch
from devlint_rules import _shared as shared


class MixedDeviceOperands(Rule[Meet | DeviceMismatch]):
    meta = RuleMeta(
        code="DEV101",
        name="mixed-device-operands",
        summary="an operation gets tensors on different devices",
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
        return shared.owner(event) == "DEV101"

    def judge(self, event: Meet | DeviceMismatch, site: Site) -> Finding | None:
        if isinstance(event, DeviceMismatch):
            return mismatch.judge(event, site)
        off, other = event.off, event.other
        if event.branch is not None:
            return shared.parted(event, site)
        if event.how == "restored":
            return self._restored(event, site)
        message = (
            f"{shared.name(off)} {shared.whereabouts(off.value)}, {shared.name(other)} "
            f"{shared.whereabouts(other.value)}: {self._refusal(event)}"
        )
        if off.span == other.span:
            message = (
                f"{shared.name(off)} holds a tensor that {shared.whereabouts(off.value)} beside one that "
                f"{shared.whereabouts(other.value)}: {self._refusal(event)}"
            )
        forgotten = shared.forgotten_module(event)
        if forgotten is not None:
            message = f"`{forgotten}` was never moved: {message}"
            fix = shared.move_forgotten(forgotten, event, site)
            return Finding(event.span, message, fix, shared.trail(event, event.span))
        return Finding(
            event.bound or event.span, message, shared.move_fix(event, site), shared.trail(event, event.span)
        )

    def _restored(self, event: Meet, site: Site) -> Finding:
        """The finding at an entry of a checkpoint that is kept on the CPU."""
        entry, attribute = event.off, event.other
        if not entry.value.device:
            there = describe(attribute.value.device)
            message = (
                f"{shared.name(entry)} comes back on the card that saved it, and {shared.name(attribute)} is on {there}: "
                f"`{event.operation}` needs both on one device"
            )
            hint = Fix(f"Load the checkpoint to the CPU, or move {shared.name(entry)} to {there}", Safety.HINT)
            return Finding(event.span, message, hint, shared.trail(event, event.span))
        message = (
            f"{shared.name(entry)} stays on the CPU and takes the place of {shared.name(attribute)}, which was put on "
            f"{describe(attribute.value.device)}: `{event.operation}` needs its operands on one device"
        )
        fix: Fix | None = None
        node = site.at(entry.span)
        if not attribute.value.is_tensor:
            message = (
                f"{shared.name(entry)} stays on the CPU and takes the place of {shared.name(attribute)}, copies of a model's "
                f"parameters: `{event.operation}` needs its operands on one device"
            )
            fix = Fix("Move its tensors to the device of the parameters", Safety.HINT)
        elif isinstance(node, cst.BaseExpression) and not site.has_comment(node):
            place = site.expression(f"{attribute.text}.device")
            title = f"Move {shared.name(entry)} to the device of {shared.name(attribute)}"
            fix = Fix(title, Safety.UNSAFE, (Edit(node, shared.moved(node, place)),))
        return Finding(event.span, message, fix, shared.trail(event, event.span))

    def _refusal(self, event: Meet) -> str:
        """Why torch refuses it, said of the operation."""
        if event.how == "index":
            return "what is written at an index must be on the device of the tensor, or be 0-dim"
        if event.how == "out":
            return f"the result of `{event.operation}` cannot be written to another device"
        return f"`{event.operation}` needs both on one device"
