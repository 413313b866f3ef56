"""An operation gets tensors that are on different devices.

## What it flags
The rule reports an operation when the code proves that the tensors are on different devices. The operation is an
operator, a torch function, a tensor method or an in-place operation. torch accepts these combinations of devices, so
the rule does not report them:

* A 0-dim CPU tensor may be combined with a tensor on any device.
* A tensor on an accelerator may be indexed with a CPU tensor.
* A copy may go from one device to another: `a.copy_(b)`, `a[0] = b`.

The rule also reports these cases:

* An object copies a model's state before the model moves. The copy is later combined with the model's tensors.
* An object keeps tensors on a device that it stores itself. These tensors are later combined with the model's tensors.
* A checkpoint is loaded to the CPU, and one of its tensors replaces an attribute. Before, the attribute was on another
  device, and the methods combine it with tensors on that device.
* A tensor of a checkpoint is loaded to the GPU from which it was saved. The code combines it with a tensor on the GPU
  of this process.

## Why it matters
On a machine with an accelerator, the operation stops with "Expected all tensors to be on the same device". On a machine
without an accelerator, the same code works, so tests on a laptop pass.

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
The fix moves the tensor that is on the wrong device. The move is added where the tensor is used, or at the top of the
loop that yields the tensor. The fix is safe when torch refuses the operation on two different devices. Where the
devices are the same, the move changes nothing.

The fix is unsafe in these cases:

* The finding assumes that an argument is a tensor, and that it may be on an accelerator.
* The operation is inside a `try` that catches errors.
* The moved tensor is the target of an in-place operation.
* The moved tensor comes from a checkpoint.

There is no fix when no variable in scope holds the device.

## Known limits
The rule reports nothing when one of the devices is unknown. It also reports nothing when the operation accepts a 0-dim
CPU tensor and the CPU tensor may be 0-dim.

Other rules report these cases:

* DEV102 reports a tensor that is created without a device.
* DEV103 reports the input of a module.
* DEV104 reports an index or a mask.
* DEV106 reports an attribute that does not move with its module.
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

from . import _mismatch as mismatch
from . import _shared as shared


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
            f"{shared.name(off)} {shared.whereabouts(off.value)}, but {shared.name(other)} "
            f"{shared.whereabouts(other.value)}: {self._refusal(event)}"
        )
        if off.span == other.span:
            message = (
                f"{shared.name(off)} holds a tensor that {shared.whereabouts(off.value)} and a tensor that "
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
                f"{shared.name(entry)} comes back on the GPU that saved it, and {shared.name(attribute)} is on {there}: "
                f"`{event.operation}` needs both on one device"
            )
            hint = Fix(f"Load the checkpoint to the CPU, or move {shared.name(entry)} to {there}", Safety.HINT)
            return Finding(event.span, message, hint, shared.trail(event, event.span))
        message = (
            f"{shared.name(entry)} stays on the CPU and replaces {shared.name(attribute)}, which was put on "
            f"{describe(attribute.value.device)}: `{event.operation}` needs its operands on one device"
        )
        fix: Fix | None = None
        node = site.at(entry.span)
        if not attribute.value.is_tensor:
            message = (
                f"{shared.name(entry)} stays on the CPU and replaces {shared.name(attribute)}, which holds copies of a model's "
                f"parameters: `{event.operation}` needs its operands on one device"
            )
            fix = Fix(f"Move the tensors of {shared.name(entry)} to the device of the parameters", Safety.HINT)
        elif isinstance(node, cst.BaseExpression) and not site.has_comment(node):
            place = site.expression(f"{attribute.text}.device")
            title = f"Move {shared.name(entry)} to the device of {shared.name(attribute)}"
            fix = Fix(title, Safety.UNSAFE, (Edit(node, shared.moved(node, place)),))
        return Finding(event.span, message, fix, shared.trail(event, event.span))

    def _refusal(self, event: Meet) -> str:
        """Why torch refuses it, said of the operation."""
        if event.how == "index":
            return "a value that is written by an index must be 0-dim or on the device of the tensor"
        if event.how == "out":
            return f"the result of `{event.operation}` cannot be written to another device"
        return f"`{event.operation}` needs both on one device"
