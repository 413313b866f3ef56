"""A function takes a device and puts things on another one.

## What it flags
`.cuda()`, `"cuda"`, or a choice of the device in a function whose argument `device` (`torch_device`,
`run_device`) nothing reads, or that gives it another value first. So is a call of a function of the file, or of a method
of the same object, that takes a device and gets none there: `def cuda(self, device=None): return self.to()`; and a call of
the function in itself, for the parts of what it is given: `return [place(part) for part in batch]` in
`def place(batch, device="cpu")`.

## Why it matters
Who calls the function with `device="cpu"`, or with another card, gets what is on the one that the function names. It
meets the caller's tensors there, or fails where that accelerator is missing.

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
A hint: which of the two is meant, and what the argument's default stands for, is for a person to say.

## Known limits
Only arguments of these names. Silent in tests, for overloads and abstract methods, and where the function reads all
its variables (`locals()`).
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, IgnoredDevice, Rule, RuleMeta, Safety, Severity, Site
from devlint_rules import _shared as shared


class IgnoredDeviceArgument(Rule[IgnoredDevice]):
    meta = RuleMeta(
        code="DEV307",
        name="ignored-device-argument",
        summary="function takes a device and uses another one",
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
            message = f"`{chosen}` does not hand `{event.parameter}` on: what is inside goes to the default of `{event.taker}`"
            return Finding(event.span, message, Fix(f"Hand `{event.parameter}` on", Safety.HINT), event.because)
        message = f"`{chosen}` chooses the device; nothing reads the argument `{event.parameter}` of `{event.taker}`"
        return Finding(event.span, message, Fix(f"Use `{event.parameter}`", Safety.HINT), event.because)
