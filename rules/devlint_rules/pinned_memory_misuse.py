"""The program pins memory that cannot be pinned.

## What it flags
- `pin_memory()` is called on a tensor that is on an accelerator.
- A `DataLoader` has `pin_memory=True`, and the tensors of its dataset are on an accelerator.
- A `DataLoader` has `pin_memory=True`, and its `collate_fn` moves the tensors to an accelerator.
- `x.pin_memory().to(device)` runs without a condition, and the same file says that `device` may be the CPU.

## Why it matters
Only host memory can be pinned, and only on a machine with an accelerator. Each of these cases raises `RuntimeError`.
The last case raises `RuntimeError` only on machines without an accelerator.

## Example
    import torch

    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")

    def send(x: torch.Tensor):
        return x.pin_memory().to(device, non_blocking=True)

Use instead:

    import torch

    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")

    def send(x: torch.Tensor):
        return (x.pin_memory() if device.type != "cpu" else x).to(device, non_blocking=True)

## Fix safety
- The fix is safe for tensors on an accelerator, because the call always raises an error for them.
- The fix is unsafe if the device may be the CPU. The fix adds a condition, so that the program skips the call on
  machines where the call raised an error.

## Known limits
- A dataset is not checked if devlint cannot infer the device of its items.
- A `collate_fn` that is a method of a class of another file is not checked.
- `pin_memory=True` only warns on a machine without an accelerator, so it is not reported there.
"""

from __future__ import annotations

from devlint.api import Edit, Facts, Finding, Fix, Pin, Rule, RuleMeta, Safety, Severity, Site, cst, describe

from ._calls import path_to
from ._shared import is_accelerator, is_path, name


class PinnedMemoryMisuse(Rule[Pin]):
    meta = RuleMeta(
        code="DEV509",
        name="pinned-memory-misuse",
        summary="program pins memory that cannot be pinned",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("pin_memory",),
    )
    event = Pin

    def suspects(self, event: Pin, facts: Facts) -> bool:
        return True

    def judge(self, event: Pin, site: Site) -> Finding | None:
        where = describe(event.receiver.value.device)
        if event.problem == "on-device":
            message = f"{name(event.receiver)} is on {where}, but only host memory can be pinned"
        elif event.problem == "loader":
            message = f"the loader pins the items of {name(event.receiver)}, but they are on {where}"
        elif event.problem == "collated":
            message = f"the loader pins the batches of {name(event.receiver)}, which has moved them to a device"
        else:
            message = f"{name(event.receiver)} is pinned on every machine: without an accelerator, the call raises RuntimeError"
        return Finding(event.span, message, self._fix(event, site), event.because)

    def _fix(self, event: Pin, site: Site) -> Fix | None:
        call = site.node
        if event.problem == "collated":
            return Fix("Move the batch in the loop, or remove `pin_memory=True`", Safety.HINT)
        if event.problem == "no-accelerator":
            return _where_accelerator(event, site)
        if not isinstance(call, cst.Call) or site.has_comment(call):
            return None
        if event.problem == "on-device" and isinstance(call.func, cst.Attribute):
            inner = call.func.value
            inner = inner.with_changes(lpar=[*call.lpar, *inner.lpar], rpar=[*inner.rpar, *call.rpar])
            return Fix("Remove `.pin_memory()`", Safety.SAFE, (Edit(call, inner),))
        for given in call.args:
            if given.keyword is not None and given.keyword.value == "pin_memory":
                return Fix("Remove `pin_memory=True`", Safety.SAFE, (Edit(given, None),))
        return None


def _where_accelerator(event: Pin, site: Site) -> Fix:
    """`x.pin_memory().to(device)` as `(x.pin_memory() if device.type != "cpu" else x).to(device)`."""
    title, call = "Pin the tensor only if the device is an accelerator", site.node
    above = path_to(site, call)
    move = above[-3] if len(above) > 2 else None
    if not isinstance(move, cst.Call) or not move.args or site.has_comment(call) or not is_path(event.receiver.node):
        return Fix(title, Safety.HINT)
    device, pinned = site.code(move.args[0].value), site.code(call)
    text = f"({pinned} if {is_accelerator(device, site.facts)} else {event.receiver.text})"
    return Fix(title, Safety.UNSAFE, (Edit(call, site.expression(text)),))
