"""The code uses a function or class of `torch.cuda`, although torch has an equivalent for all accelerators.

## What it flags
The rule is off by default. It reports functions, classes and exceptions of `torch.cuda`, `torch.xpu`, `torch.mps` and
`torch.mtia`. It reports them only if the lowest torch version that the project supports has an equivalent for all
accelerators. Examples of equivalents are `torch.accelerator.synchronize`, `torch.Event`, `torch.Stream` and
`torch.OutOfMemoryError`.

## Why it matters
The code runs only on the accelerators of one vendor, although it needs none of their special features. The function
also exists for XPU, MPS and other accelerators.

## Example
    import torch

    def cards() -> int:
        return torch.cuda.device_count()

Use instead:

    import torch

    def cards() -> int:
        return torch.accelerator.device_count()

## Fix safety
The fix is unsafe: on a machine with another accelerator, the code starts to use that accelerator.

* Some calls raise an error on a machine without an accelerator. They need a guard: a check that an accelerator is
  present. If there is no guard, the fix adds one.
* The fix removes `torch.cuda.manual_seed(s)` after `torch.manual_seed(s)`. The call of `torch.manual_seed` already
  seeds every device.
* The fix keeps the condition `torch.cuda.is_available()` if the edited code under this condition still uses CUDA.
  Otherwise the fix replaces the condition.

The rule makes a suggestion without an edit in these cases:

* Another part of the same statement also names CUDA, for example with `"cuda"`.
* The new function takes different arguments.
* The call is `torch.cuda.stream`.
* The call sets a seed.
* The call reads or sets a random state.

## Known limits
The rule does not report these cases:

* The function has no equivalent for all accelerators. An example is `get_device_name`. A guard around
  `get_device_name` is not reported either.
* The file handles each of several accelerators separately.
* The file loads CUDA kernels.

DEV205 reports a call that has no guard and raises an error on a machine without the accelerator. DEV211 reports the
choice of a device.

The code may store the result of `torch.cuda.is_available()` in a variable or in a class. The rule does not know where
this variable is used as a condition.
"""

from __future__ import annotations

import re

from devlint.api import (
    ACCELERATORS,
    ApiCall,
    CudaMethod,
    DeviceLiteral,
    Edit,
    Event,
    Facts,
    Finding,
    Fix,
    Portability,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
)

from ._agnostic import has_replacement, replacement_call
from ._api import AVAILABLE, guarded_statement, is_called, is_legacy_type, needs_torch, spelled
from ._calls import path_to
from ._run_device import is_for_accelerator
from .cuda_api_unguarded import CudaApiUnguarded
from .cuda_only_selection import is_selection

_SEEDS = frozenset(
    {"torch.cuda.manual_seed", "torch.cuda.manual_seed_all", "torch.xpu.manual_seed", "torch.xpu.manual_seed_all"}
)


class CudaOnlyApi(Rule[ApiCall]):
    meta = RuleMeta(
        code="DEV206",
        name="cuda-only-api",
        summary="function of one accelerator, although torch has a counterpart for all accelerators",
        since="0.1.0",
        level="certain",
        severity=Severity.INFO,
        fix="sometimes",
        words=("cuda", "xpu", "mps", "mtia"),
        opt_in=True,
        portability=Portability(),
    )
    event = ApiCall

    def suspects(self, event: ApiCall, facts: Facts) -> bool:
        if event.type not in ACCELERATORS or event.remedy not in ("A", "G", "U") or is_legacy_type(event.qualname):
            return False
        if not has_replacement(event, facts) or ".nvtx." in event.qualname:
            return False
        return not (is_for_accelerator(facts) or (event.raises and _unguarded.suspects(event, facts)))

    def judge(self, event: ApiCall, site: Site) -> Finding | None:
        if not event.is_call and is_called(event, site):
            return None
        if event.qualname.endswith(".is_available") and (
            is_selection(event, site) or _chooses_cuda(site) or _guards_more(event, site.facts)
        ):
            return None
        if _is_one_of_several(event, site.facts):
            return None
        message = (
            f"`{spelled(event, site)}` supports one type of accelerator, and `{event.replacement}` supports all types"
        )
        return Finding(event.span, message, self._fix(event, site), event.because)

    def _fix(self, event: ApiCall, site: Site) -> Fix:
        assert event.replacement is not None
        new = site.spell(event.replacement)
        hint = Fix(
            f"Use `{new}`",
            Safety.HINT,
            why="its counterpart takes other arguments or needs a guard, or the statement names the accelerator again",
        )
        call = site.node
        if not isinstance(call, cst.Call):
            if event.remedy != "A":
                return hint
            return Fix(hint.title, Safety.UNSAFE, (Edit(call, site.expression(new)),), needs_torch(site.facts))
        if event.qualname in _SEEDS:
            return _seed(event, site) or hint
        if event.qualname.endswith(".is_available"):
            below = [other for other in site.facts.events if _stands_under(other, site.code(call))]
            agnostic = any(isinstance(other, ApiCall) and other.type == "accelerator" for other in below)
            if any(_uses_cuda(other) for other in below) or not agnostic or not _is_test(site):
                return hint
            return Fix(hint.title, Safety.UNSAFE, (Edit(call, call.with_changes(func=site.expression(new))),))
        replaced = replacement_call(event, site)
        if replaced is None or event.remedy == "U" or _names_cuda_beside(site):
            return hint
        if event.remedy == "A" or event.under.holds & (ACCELERATORS | {"accelerator"}):
            return Fix(hint.title, Safety.UNSAFE, (Edit(call, replaced),), needs_torch(site.facts))
        test = f"{site.spell(AVAILABLE['accelerator'])}()"
        edits = guarded_statement(event, site, test, replaced)
        return hint if edits is None else Fix(hint.title, Safety.UNSAFE, tuple(edits), needs_torch(site.facts))


_unguarded = CudaApiUnguarded()


def _chooses_cuda(site: Site) -> bool:
    """Whether the test is about CUDA alone: it chooses NCCL, or stands beside another test for CUDA."""
    above = path_to(site, site.node)
    statement, call = site.statement, site.code(site.node)
    if (
        isinstance(statement, cst.If)
        and re.search("cuda|nccl", site.code(statement.test).replace(call, "")) is not None
    ):
        return True
    choice = above[-2] if len(above) > 1 else None
    return isinstance(choice, cst.IfExp) and re.search("cuda|nccl", site.code(choice.body)) is not None


def _is_one_of_several(event: ApiCall, facts: Facts) -> bool:
    """Whether the file has the same name of another accelerator as well: it treats each on its own."""
    name = event.qualname.rpartition(".")[2]
    return any(
        isinstance(other, ApiCall)
        and other.type in ACCELERATORS - {event.type}
        and other.qualname.rpartition(".")[2] == name
        for other in facts.events
    )


def _names_cuda_beside(site: Site) -> bool:
    """Whether the statement has more of CUDA than names of its module, such as `f"cuda:{torch.cuda.current_device()}"`."""
    return "cuda" in re.sub(r"\b\w+\.cuda\.\w+", "", site.code(site.statement))


def _is_test(site: Site) -> bool:
    """Whether the call is the condition of an `if`, or a part of it."""
    return isinstance(site.statement, cst.If)


def _stands_under(event: Event, test: str) -> bool:
    return any(test in t for t in event.under.tests)


def _uses_cuda(event: Event) -> bool:
    if isinstance(event, CudaMethod | DeviceLiteral):
        return event.type in ACCELERATORS
    return isinstance(event, ApiCall) and event.type in ACCELERATORS and not event.qualname.endswith(".is_available")


def _guards_more(event: ApiCall, facts: Facts) -> bool:
    """Whether something that has no counterpart stands under this test."""
    test = facts.source(event.span)
    return any(
        _stands_under(other, test)
        and _uses_cuda(other)
        and not (isinstance(other, ApiCall) and has_replacement(other, facts))
        for other in facts.events
    )


def _seed(event: ApiCall, site: Site) -> Fix | None:
    """Drop a seed that `torch.manual_seed` with the same argument has set just before."""
    call = site.node
    assert isinstance(call, cst.Call)
    if not event.discarded or len(call.args) != 1 or event.under.tests:
        return None
    seed = site.code(call.args[0].value)
    before = site.facts.text[: event.span.start].splitlines()[-6:]
    pattern = re.compile(rf"\s*{re.escape(site.spell('torch.manual_seed'))}\({re.escape(seed)}\)")
    if not any(pattern.match(line) for line in before) or site.has_comment(site.statement):
        return None
    return Fix("Remove this call: `torch.manual_seed` seeds every device", Safety.UNSAFE, (Edit(site.statement, None),))
