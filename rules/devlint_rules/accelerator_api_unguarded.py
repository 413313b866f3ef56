"""A function of `torch.accelerator` is called without a check that an accelerator is present.

## What it flags
The rule reports functions of `torch.accelerator` that raise an error on a machine without an accelerator. Examples are
`synchronize`, `empty_cache`, `memory_allocated`, `current_stream` and `set_device_index`.

## Why it matters
`torch.cuda.empty_cache()` does nothing on a machine without a GPU. `torch.accelerator.empty_cache()` raises
`RuntimeError`. If you only replace `cuda` by `accelerator`, a program that ran on the CPU stops at this call.

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
The fix is unsafe: the program skips a call that raised an error before. If the result of the call is used, the rule
makes a suggestion without an edit.

## Known limits
The rule does not report these cases:

* The call is under a condition that is true only if an accelerator is present, such as
  `if torch.accelerator.is_available()`.
* The call is inside a `try` that catches errors.
* The function works on every machine: `is_available`, `device_count`, `current_accelerator`.

Sometimes a function has no check, but every caller checks first. The rule recognizes this only if the name of the
function mentions the accelerator. Otherwise it reports the calls inside the function.
"""

from __future__ import annotations

from devlint.api import ApiCall, Facts, Finding, Fix, LeftAlone, Portability, Rule, RuleMeta, Safety, Severity, Site

from ._api import AVAILABLE, guarded_statement, service_of, spelled


class AcceleratorApiUnguarded(Rule[ApiCall]):
    meta = RuleMeta(
        code="DEV212",
        name="accelerator-api-unguarded",
        summary="`torch.accelerator` is used without a check for an accelerator",
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
        message = (
            f"`{spelled(event, site)}` raises an error without an accelerator, and the code does not check for an "
            "accelerator first"
        )
        test = f"{site.spell(AVAILABLE['accelerator'])}()"
        edits = guarded_statement(event, site, test)
        why = "" if event.discarded else "the result is used, and the code provides no other value"
        fix = Fix("Check for an accelerator first", Safety.HINT, why=why)
        if edits is not None:
            fix = Fix(f"Put the call under `if {test}:`", Safety.UNSAFE, tuple(edits))
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
