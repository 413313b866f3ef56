"""A function takes a device argument but uses a different device.

## What it flags
The rule looks at functions with a parameter `device`, `torch_device` or `run_device`. It reports three cases:

- The body never reads the parameter, or it assigns a new value before the first read. Instead, the body chooses a
  device itself: with `.cuda()`, with `"cuda"`, or with a choice between CUDA and the CPU.
- The body calls another function of the file, or another method of the same object, that also takes a device. The
  call does not pass the device. An example is `def cuda(self, device=None): return self.to()`.
- A recursive function processes the parts of its argument, but its recursive calls do not pass the device. An example
  is `return [place(part) for part in batch]` in `def place(batch, device="cpu")`.

## Why it matters
A caller passes `device="cpu"` or another accelerator and still gets tensors on the device that the function chose. An
operation that combines these tensors with the caller's tensors raises `RuntimeError`. On a machine without the chosen
accelerator, the function itself raises an error.

## Example
    import torch


    def noise(size, device=None):
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.randn(size, device=device)

Use instead:

    import torch


    def noise(size, device=None):
        if device is None:
            device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.randn(size, device=device)

## Fix safety
The rule makes a suggestion without an edit. Only the author knows whether the argument or the chosen device is right,
and what the default value of the parameter means.

## Known limits
- Parameters with other names are not checked.
- Tests, overloads and abstract methods are not checked.
- A function is not checked if it reads all its variables at once (`locals()`).
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, IgnoredDevice, Rule, RuleMeta, Safety, Severity, Site

from . import _shared as shared


class IgnoredDeviceArgument(Rule[IgnoredDevice]):
    meta = RuleMeta(
        code="DEV307",
        name="ignored-device-argument",
        summary="function takes a device argument but uses another device",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="hint",
        words=("device",),
    )
    event = IgnoredDevice

    def suspects(self, event: IgnoredDevice, facts: Facts) -> bool:
        return True

    def judge(self, event: IgnoredDevice, site: Site) -> Finding | None:
        chosen = shared.short(site.facts.source(event.span))
        if event.within:
            message = f"`{chosen}` does not pass `{event.parameter}`, so the parts go to the default device of `{event.taker}`"
            return Finding(
                event.span, message, Fix(f"Pass `{event.parameter}` in the call", Safety.HINT), event.because
            )
        message = (
            f"`{chosen}` chooses the device, but nothing reads the argument `{event.parameter}` of `{event.taker}`"
        )
        return Finding(event.span, message, Fix(f"Use `{event.parameter}`", Safety.HINT), event.because)
