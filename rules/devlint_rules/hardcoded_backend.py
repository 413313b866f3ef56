"""The backend of the process group is fixed to NCCL, which only CUDA supports.

## What it flags
The rule reports `init_process_group("nccl")` and `backend="nccl"` in a file that supports several devices. Such a file
falls back to the CPU, checks for other accelerators, or uses another backend elsewhere.

## Why it matters
On a machine without CUDA the call raises an error. The rest of the program may run on that machine with the backend
`gloo`, or with `xccl` on XPU.

## Example
    import torch
    import torch.distributed as dist

    device = "cuda" if torch.cuda.is_available() else "cpu"

    def join():
        dist.init_process_group("nccl")

Use instead:

    import torch
    import torch.distributed as dist

    device = "cuda" if torch.cuda.is_available() else "cpu"

    def join():
        dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")

## Fix safety
The fix is unsafe: the program runs on machines where it stopped before. If a variable in scope holds the device of the
program, the fix uses the backend of this device. The lookup of the backend needs torch 2.6.

## Known limits
The rule does not report these cases:

* The call is under a condition that is true only if CUDA or NCCL is present.
* The call is inside a `try`.
* The file loads CUDA kernels.
* The whole file is written for CUDA. The backend is then not the main problem.
* The backend comes from a variable or an option.
"""

from __future__ import annotations

import re

from devlint.api import (
    ApiCall,
    Edit,
    Facts,
    Finding,
    Fix,
    LeftAlone,
    Portability,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
)

from ._api import argument, needs_torch
from ._run_device import asked_around, purpose_of, under_condition
from ._torch import has_torch

_VARIES = re.compile(
    r"""[\"'](gloo|GLOO|mpi|xccl|hccl)[\"'] | is_available\(\)\s*else\s*\(?\s*(torch\.device\(\s*)?[\"']cpu[\"']
      | \bdevice\s*=\s*(torch\.device\(\s*)?[\"']cpu[\"'] | current_accelerator\(
      | (?<!\w)(\w+\.)?device(\.type)?\s*==\s*[\"'](cpu|xpu|npu|mps)[\"']
      | add_argument\(\s*[\"']--?(no[-_]?cuda|cpu|use[-_]cpu|device)[\"']""",
    re.VERBOSE,
)
_ASKED_SINCE = (2, 6)  # torch.distributed.get_default_backend_for_device


class HardcodedBackend(Rule[ApiCall]):
    meta = RuleMeta(
        code="DEV210",
        name="hardcoded-backend",
        summary="process group is fixed to NCCL",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="always",
        words=("nccl", "NCCL"),
        portability=Portability(stops=True),
    )
    event = ApiCall

    def suspects(self, event: ApiCall, facts: Facts) -> bool:
        return _names_nccl(event, facts) and self.left_alone(event, facts) is None

    def left_alone(self, event: ApiCall, facts: Facts) -> LeftAlone | None:
        if not _names_nccl(event, facts):
            return None
        for test in event.under.tests:
            if any(word in test.lower() for word in ("cuda", "nccl", "gpu")):
                return under_condition(test)
        return asked_around("cuda") if event.under.allow("cuda") else purpose_of(facts)

    def judge(self, event: ApiCall, site: Site) -> Finding | None:
        given = argument(event, "backend", 0)
        assert given is not None
        value = event.scope.get(event.run_device) if event.run_device is not None else None
        if value is not None and value.kind == "device" and has_torch(_ASKED_SINCE, site.facts):
            text = f"{site.spell('torch.distributed.get_default_backend_for_device')}({event.run_device})"
        else:
            text = f'"nccl" if {site.spell("torch.cuda.is_available")}() else "gloo"'
        edit = Edit(site.at(given.span), site.expression(text))
        fix = Fix(f"Use `{text}`", Safety.UNSAFE, (edit,), needs_torch(site.facts))
        return Finding(given.span, "the process group is fixed to NCCL, which needs CUDA", fix, event.because)


def _names_nccl(event: ApiCall, facts: Facts) -> bool:
    """Whether a process group is made with NCCL by name, in a file whose device varies."""
    if not event.qualname.endswith(".init_process_group") or event.under.catches("RuntimeError", "ValueError"):
        return False
    given = argument(event, "backend", 0)
    if given is None or not given.text.strip("rb").startswith(("'", '"')):
        return False
    return str(given.value.constant).lower() == "nccl" and _VARIES.search(facts.text) is not None
