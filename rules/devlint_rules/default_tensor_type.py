"""`torch.set_default_tensor_type` sets the dtype and the device of new tensors together, and is deprecated.

## What it flags
The rule reports every call of `torch.set_default_tensor_type`.

## Why it matters
The function is deprecated since torch 2.1. With a CUDA type, it raises an error on a machine without CUDA. It does not
affect `torch.arange` with integers, buffers that a library creates, or generators.

Two functions replace `set_default_tensor_type`: `torch.set_default_dtype` and `torch.set_default_device`.

## Example
    import torch

    torch.set_default_tensor_type(torch.DoubleTensor)

Use instead:

    import torch

    torch.set_default_dtype(torch.float64)

## Fix safety
The fix is unsafe. `set_default_device` also affects calls that create integer tensors. A `DataLoader` that shuffles
then needs a generator on the default device.

A CUDA type becomes the device that the program chose. If no variable in scope holds this device, the fix adds one.
Under a condition that is true only if CUDA is present, the device stays `"cuda"`.

The rule makes a suggestion without an edit when the type is not written as a literal.

## Known limits
A program may set a CUDA type first and a CPU type later. The fix for the second call does not restore the default
device. To restore it, call `set_default_device("cpu")`.
"""

from __future__ import annotations

from devlint.api import (
    ApiCall,
    Edit,
    Facts,
    Finding,
    Fix,
    InsertStatement,
    Portability,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
)

from ._api import argument, asks_version, dtype_of, is_called, serves_accelerator, spelled
from ._conversion import RunDevice, run_device


class DefaultTensorType(Rule[ApiCall]):
    meta = RuleMeta(
        code="DEV204",
        name="default-tensor-type",
        summary="`torch.set_default_tensor_type` is deprecated",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("set_default_tensor_type",),
        portability=Portability(stops=True),
    )
    event = ApiCall

    def suspects(self, event: ApiCall, facts: Facts) -> bool:
        return event.qualname == "torch.set_default_tensor_type" and not asks_version(event)

    def judge(self, event: ApiCall, site: Site) -> Finding | None:
        if not event.is_call and is_called(event, site):
            return None
        message = f"`{spelled(event, site)}` is deprecated since torch 2.1"
        return Finding(event.span, message, self._fix(event, site), event.because)

    def _fix(self, event: ApiCall, site: Site) -> Fix:
        given = argument(event, "t", 0)
        text = "" if given is None else given.value.type_name or getattr(given.node, "value", "")
        dtype = dtype_of(text) if isinstance(text, str) else None
        call = site.node
        title = "Use `torch.set_default_dtype` and `torch.set_default_device`"
        if dtype is None or not isinstance(call, cst.Call) or not event.discarded or site.has_comment(site.statement):
            return Fix(title, Safety.HINT)
        assert isinstance(text, str)
        new = cst.Call(
            site.expression(site.spell("torch.set_default_dtype")), [cst.Arg(site.expression(site.spell(dtype)))]
        )
        edits: list[Edit | InsertStatement] = [Edit(call, new)]
        if ".cuda." not in text:
            return Fix("Use `torch.set_default_dtype`", Safety.UNSAFE, tuple(edits))
        if serves_accelerator(event, site.facts) or event.under.allow("cuda"):
            device: RunDevice | None = RunDevice('"cuda"')
        else:
            device = run_device(event.run_device, site)
        if device is None:
            return Fix(title, Safety.HINT)
        place = cst.Call(
            site.expression(site.spell("torch.set_default_device")), [cst.Arg(site.expression(device.text))]
        )
        edits.append(InsertStatement(event.span, cst.Expr(place), after=True))
        return Fix(title, Safety.UNSAFE, tuple(edits), device.needs)
