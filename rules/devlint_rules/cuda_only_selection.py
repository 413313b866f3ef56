"""The choice of a device considers only CUDA and the CPU.

## What it flags
The rule is off by default. It reports `"cuda" if torch.cuda.is_available() else "cpu"`, as a string or inside
`torch.device`.

## Why it matters
On a machine with another accelerator, the program runs on the CPU.

## Example
    import torch

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

Use instead:

    import torch

    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")

## Fix safety
The fix is unsafe. On a machine with another accelerator, the program starts to use that accelerator, which may lack an
operation or a dtype.

If the code chooses between two strings, the fixed code chooses between two strings as well. The fix needs torch 2.7.
For older versions, the rule makes a suggestion without an edit.

## Known limits
The rule does not report a choice whose `else` branch checks for MPS, XPU or another accelerator. It does not recognize
a choice that is written with `if` and `else` statements.
"""

from __future__ import annotations

import re

from devlint.api import ApiCall, Edit, Facts, Finding, Fix, Portability, Rule, RuleMeta, Safety, Severity, Site, cst

from ._calls import path_to
from ._torch import has_torch

_STRING = re.compile(r"[\"'](cuda|cpu)(:0)?[\"']\Z")
_SINCE = (2, 7)  # current_accelerator(check_available=True)


class CudaOnlySelection(Rule[ApiCall]):
    meta = RuleMeta(
        code="DEV211",
        name="cuda-only-selection",
        summary="choice of a device ignores all accelerators except CUDA",
        since="0.1.0",
        level="certain",
        severity=Severity.INFO,
        fix="sometimes",
        words=("is_available",),
        opt_in=True,
        portability=Portability(),
    )
    event = ApiCall

    def suspects(self, event: ApiCall, facts: Facts) -> bool:
        return event.qualname == "torch.cuda.is_available" and event.is_call

    def judge(self, event: ApiCall, site: Site) -> Finding | None:
        found = _selection(event, site)
        if found is None:
            return None
        whole, as_text = found
        message = "this choice of a device ignores every accelerator except CUDA"
        return Finding(site.span(whole), message, self._fix(whole, as_text, site), event.because)

    def _fix(self, whole: cst.BaseExpression, as_text: bool, site: Site) -> Fix:
        accelerator = site.spell("torch.accelerator.current_accelerator")
        if not has_torch(_SINCE, site.facts) or site.has_comment(whole):
            return Fix("Check for the other accelerators as well", Safety.HINT)
        text = f'{accelerator}(check_available=True) or {site.spell("torch.device")}("cpu")'
        if as_text:
            text = f"({text}).type"
        return Fix(f"Use `{accelerator}`", Safety.UNSAFE, (Edit(whole, site.expression(text)),))


def is_selection(event: ApiCall, site: Site) -> bool:
    """Whether the test belongs to a choice between CUDA and the CPU."""
    return _selection(event, site) is not None


def _selection(event: ApiCall, site: Site) -> tuple[cst.BaseExpression, bool] | None:
    """The whole choice, with the `torch.device` around it, and whether it is a string."""
    above = path_to(site, site.node)
    if len(above) < 2 or not isinstance(choice := above[-2], cst.IfExp) or choice.test is not site.node:
        return None
    arms = [_arm(site.code(arm), site) for arm in (choice.body, choice.orelse)]
    if arms not in (["cuda", "cpu"], ["device cuda", "device cpu"]):
        return None
    if arms[0] != "cuda":
        return choice, False
    call = above[-4] if len(above) > 3 else None  # Call > Arg > IfExp > test
    if isinstance(call, cst.Call) and len(call.args) == 1 and _is_device(site.code(call.func), site):
        return call, False
    return choice, True


def _arm(code: str, site: Site) -> str:
    """`cuda` or `cpu` for a literal, with "device" before it for one in `torch.device`; "" for anything else."""
    match = _STRING.match(code)
    if match is not None:
        return match[1]
    function, _, rest = code.partition("(")
    if rest.endswith(")") and _is_device(function, site) and (match := _STRING.match(rest[:-1])) is not None:
        return f"device {match[1]}"
    return ""


def _is_device(code: str, site: Site) -> bool:
    root, _, rest = code.partition(".")
    target = site.facts.imports.get(root)
    return target is not None and f"{target}.{rest}".rstrip(".") == "torch.device"
