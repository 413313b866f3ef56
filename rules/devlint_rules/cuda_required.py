"""The program stops when CUDA is absent, although it could run on other devices.

## What it flags
The rule reports a check for CUDA at the start of a program:

* The code contains `assert torch.cuda.is_available()`.
* The code contains `if not torch.cuda.is_available():` with a message and `raise` or `sys.exit()`.

The start of a program is module level, or a function such as `main` or `train`. The rule reports the check only if the
rest of the program could run on other accelerators. Such a program uses CUDA only for moves, for device names, and for
functions that other accelerators also have.

## Why it matters
The program does not run on a machine without CUDA. A reader cannot tell why the check exists: the program may need
CUDA, or nobody may have tested it on other devices. If the program also chooses its device, the check contradicts that
choice.

## Example
    import torch

    def main(model: torch.nn.Module):
        assert torch.cuda.is_available()
        return model.cuda()

Use instead:

    import torch

    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")

    def main(model: torch.nn.Module):
        return model.to(device)

## Fix safety
The fix is unsafe: the program starts on machines where it stopped before, and it may be slow on those machines. There
is no fix when later code fails without CUDA, and devlint cannot fix this code.

## Known limits
The rule does not report these cases:

* The check is in a function that is not the start of a program, or in a test.
* The name of the function or the file mentions CUDA, GPUs, tests, benchmarks or distributed training.
* The file uses process groups or NCCL.
* The file loads CUDA kernels.

The rule also reports two cases that are less certain:

* The code checks `torch.cuda.device_count()` instead of `is_available()`.
* One file contains the check, and another file contains the moves. The file with the check uses CUDA for nothing else.
"""

from __future__ import annotations

import re

from devlint.api import (
    ApiCall,
    Edit,
    Facts,
    Finding,
    Fix,
    Portability,
    ReplaceBlock,
    Required,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
)

from ._agnostic import has_replacement
from ._api import AVAILABLE, is_legacy_type
from ._run_device import is_for_accelerator

_PROGRAM = re.compile(r"(?i)(^|[._])(main|run|train|start|launch|cli|fit|eval)")
_IN_NAME = re.compile(r"(?i)cuda|gpu|nccl|test|distribut|benchmark")
_NEEDS_CUDA = re.compile(
    r"nccl|init_process_group|CUDAGraph|\btriton\b|tensorrt|torch\.ops\.|(?<!\bis)_cuda\b|cpp_extension", re.I
)
#: These do nothing, or answer, without CUDA.
_HARMLESS = (
    "manual_seed",
    "manual_seed_all",
    "empty_cache",
    "is_available",
    "device_count",
    "set_device",
    "synchronize",
)


class CudaRequired(Rule[Required]):
    meta = RuleMeta(
        code="DEV215",
        name="cuda-required",
        summary="program ends where CUDA is absent",
        since="0.1.0",
        level="certain",
        severity=Severity.INFO,
        fix="sometimes",
        words=("is_available",),
        portability=Portability(stops=True),
    )
    event = Required

    def suspects(self, event: Required, facts: Facts) -> bool:
        return not is_contract(event, facts)

    def judge(self, event: Required, site: Site) -> Finding | None:
        spelled = f"{site.spell(AVAILABLE.get(event.type, f'torch.{event.type}.is_available'))}()"
        message = f"the program ends without {event.type.upper()}, although it can run on other devices"
        edit = ReplaceBlock(event.span) if event.block else Edit(site.statement, None)
        fix = None if site.has_comment(site.statement) else Fix(f"Remove the check `{spelled}`", Safety.UNSAFE, (edit,))
        return Finding(event.span, message, fix, event.because)


def is_contract(event: Required, facts: Facts) -> bool:
    """Whether the check belongs to what the code is for: it tests or measures CUDA, or another line needs CUDA."""
    if is_for_accelerator(facts) or _IN_NAME.search(event.function) or _NEEDS_CUDA.search(facts.text):
        return True
    if event.function and _PROGRAM.search(event.function) is None:
        return True  # the contract of one function
    name = facts.path.replace("\\", "/").rpartition("/")[2]
    if _IN_NAME.search(name) or name == "conftest.py":
        return True
    return any(_needs_cuda(other, event, facts) for other in facts.events)


def _needs_cuda(other: object, gate: Required, facts: Facts) -> bool:
    """Whether a name of the accelerator's module, used in the same function, has no counterpart for others."""
    return (
        isinstance(other, ApiCall)
        and other.type == gate.type
        and other.function == gate.function
        and not is_legacy_type(other.qualname)
        and other.qualname.rpartition(".")[2] not in _HARMLESS
        and other.raises
        and not has_replacement(other, facts)
    )
