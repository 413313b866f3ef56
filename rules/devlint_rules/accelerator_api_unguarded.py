"""A function of `torch.accelerator` that raises without an accelerator is called without asking for one.

## What it flags
`torch.accelerator.synchronize`, `empty_cache`, `memory_allocated`, `current_stream`, `set_device_index` and
the others that raise where there is no accelerator. Quiet under `if torch.accelerator.is_available()` and
other guards for an accelerator, in a `try` that catches errors, and for `is_available`, `device_count` and
`current_accelerator`, which answer on every machine.

## Why it matters
`torch.cuda.empty_cache()` does nothing on a machine without a GPU, its counterpart in `torch.accelerator`
raises `RuntimeError`: replacing the name alone turns code that worked on the CPU into code that does not.

## Example
    import torch

    def finish(step):
        step()
        torch.accelerator.synchronize()

Use instead:

    import torch

    def finish(step):
        step()
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()

## Fix safety
Unsafe: the call is skipped where it raised before. Only a hint where the result is used.

## Known limits
A function that is only ever called under a guard is not recognised, unless its name says so.
"""

from __future__ import annotations

from devlint.api import ApiCall, Facts, Finding, Fix, LeftAlone, Portability, Rule, RuleMeta, Safety, Severity, Site
from devlint_rules._api import AVAILABLE, guarded_statement, service_of, spelled


class AcceleratorApiUnguarded(Rule[ApiCall]):
    meta = RuleMeta(
        code="DEV212",
        name="accelerator-api-unguarded",
        summary="`torch.accelerator` is used without asking for an accelerator",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("accelerator",),
        portability=Portability(stops=True),
    )
    event = ApiCall

    def suspects(self, event: ApiCall, facts: Facts) -> bool:
        return _raises_without(event) and service_of(event, facts) is None

    def left_alone(self, event: ApiCall, facts: Facts) -> LeftAlone | None:
        return service_of(event, facts) if _raises_without(event) else None

    def judge(self, event: ApiCall, site: Site) -> Finding | None:
        message = f"`{spelled(event, site)}` raises without an accelerator, and nothing here asks for one"
        test = f"{site.spell(AVAILABLE['accelerator'])}()"
        edits = guarded_statement(event, site, test)
        why = "" if event.discarded else "what it gives is used, and nothing says what to use without an accelerator"
        fix = Fix("Ask for an accelerator first", Safety.HINT, why=why)
        if edits is not None:
            fix = Fix(f"Put it under `if {test}:`", Safety.UNSAFE, tuple(edits))
        return Finding(event.span, message, fix, event.because)


def _raises_without(event: ApiCall) -> bool:
    """Whether the call raises without an accelerator."""
    if (
        event.type != "accelerator"
        or not (event.raises and event.is_call)
        or event.under.catches("RuntimeError", "AssertionError", "AttributeError")
    ):
        return False
    given = event.arguments.get("0")
    is_none = given is not None and given.value.kind == "none"  # nothing happens for None, nor before it is entered
    return not (event.qualname.endswith(".device_index") and (event.discarded or is_none))
