"""A process uses the wrong GPU, or it never selects its GPU as the current device.

## What it flags
The rule reports a global rank that is used as the index of a GPU. Global ranks number the processes of all machines.

- Global ranks are `dist.get_rank()`, `hvd.rank()` of horovod, `process_index` of accelerate and a variable named
  `global_rank`.
- Global ranks are also the environment variables `RANK`, `SLURM_PROCID` and those of MPI.
- Expressions that use a rank `r` as an index are `set_device(r)`, `torch.device("cuda", r)`, `f"cuda:{r}"`, `.to(r)`,
  `device_ids=[r]` and `device_map={"": r}`.

The rule also reports these cases:

- A program for NCCL reads `LOCAL_RANK` to choose a device but never calls `set_device`.
- The file starts a function in several processes, and this function never calls `set_device`.
- An attribute is used as an index, but the class of the object never assigns the attribute.
- A command-line option is used as an index. The value -1 of this option means the CPU, and the program never tests for
  -1.
- The program has an option `--local_rank` but does not read `LOCAL_RANK`.

## Why it matters
- On the second machine, the global ranks continue, but the GPU indices start at 0 again.
- A process that does not set its GPU uses GPU 0 for `"cuda"` and for `.cuda()` without an index. It also uses GPU 0 for
  functions that exchange Python objects between processes, such as `dist.all_gather_object`.
- `torchrun` does not pass `--local_rank`. Since torch 2.0, `torch.distributed.launch` passes `--local-rank` instead.

## Example
    import os

    import torch
    import torch.distributed as dist

    local_rank = int(os.environ["LOCAL_RANK"])
    rank = dist.get_rank()
    device = torch.device("cuda", rank)

Use instead:

    import os

    import torch
    import torch.distributed as dist

    local_rank = int(os.environ["LOCAL_RANK"])
    rank = dist.get_rank()
    device = torch.device("cuda", local_rank)

## Fix safety
The fix is unsafe. After the fix, the program works on a different GPU, which is the purpose. `torchrun` sets the
variable `LOCAL_RANK`, but some other launchers do not.

## Known limits
- A file that starts its processes itself is not checked for global ranks. All processes of such a program may run on
  one machine.
- `rank % device_count()` is not reported.
- A rank that is a function argument is not reported.
"""

from __future__ import annotations

import re

from devlint.api import (
    Edit,
    Facts,
    Finding,
    Fix,
    ImportNeed,
    InsertStatement,
    RankIndex,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
)

from ._calls import may_precede, path_to, with_keyword

_DASHED = (2, 0)  # `torch.distributed.launch` passes `--local-rank` from here on


class RankAsDeviceIndex(Rule[RankIndex]):
    meta = RuleMeta(
        code="DEV603",
        name="rank-as-device-index",
        summary="global rank used as a GPU index, or the GPU is never made current",
        since="0.1.0",
        level="assume",
        severity=Severity.WARNING,
        fix="sometimes",
        words=(
            "get_rank",
            "RANK",
            "global_rank",
            "world_rank",
            "local_rank",
            "spawn",
            "Process",
            "process_index",
            "SLURM_PROCID",
            "Get_rank",
            ".rank()",
            "argparse",
        ),
    )
    event = RankIndex

    def suspects(self, event: RankIndex, facts: Facts) -> bool:
        return event.problem != "option" or facts.torch_newest is None or facts.torch_newest >= _DASHED

    def judge(self, event: RankIndex, site: Site) -> Finding | None:
        needs = []
        if "os.environ" in event.local and "os" not in site.facts.module_imports:
            needs.append(ImportNeed("os"))
        if event.problem == "global-rank":
            message = f"`{event.text}` numbers the processes of all machines, but each machine numbers its GPUs from 0"
            if not event.local:  # what else reads it may want the other one
                return Finding(
                    event.span, message, Fix("Use the local rank as the GPU index", Safety.HINT), event.because
                )
            local = site.expression(_inside(event.local, site))
            fix = Fix(f"Use the local rank, `{event.local}`", Safety.UNSAFE, (Edit(site.node, local),), tuple(needs))
            return Finding(event.span, message, fix, event.because)
        if event.problem == "never-set":
            message = f"`{event.text}` is used as a GPU index, but its class never assigns it"
            return Finding(
                event.span, message, Fix("Use the local rank of this process as the index", Safety.HINT), event.because
            )
        if event.problem == "minus-one":
            message = f"`{event.text}` may be -1, which means the CPU, but there is no GPU -1"
            return Finding(event.span, message, Fix("Test for -1 before the index is used", Safety.HINT), event.because)
        if event.problem == "option":
            return _option(event, site, tuple(needs))
        if event.before:
            start = f"uses the GPU `{event.text}`" if event.text else "joins an NCCL group"
            message = f"the process {start} but never makes its GPU the current device"
        else:
            message = f"`{event.text}` names the GPU of this process, but this GPU never becomes the current device"
        hint = Fix("Call `torch.cuda.set_device` with the local rank", Safety.HINT)
        if not may_precede(site.statement) or "torch" not in site.facts.module_imports:
            return Finding(event.span, message, hint, event.because)
        call = f"{site.spell('torch.cuda.set_device')}({event.local})"
        edit = InsertStatement(event.span, cst.parse_statement(call), after=not event.before)
        fix = Fix("Make this GPU the current device", Safety.UNSAFE, (edit,), tuple(needs))
        return Finding(event.span, message, fix, event.because)


def _option(event: RankIndex, site: Site, needs: tuple[ImportNeed, ...]) -> Finding:
    """`--local_rank`, which neither `torchrun` nor `torch.distributed.launch` passes."""
    message = "no launcher of torch 2 passes `--local_rank`, so each process uses the same GPU"
    title = "Read the environment variable `LOCAL_RANK`, which the launchers set"
    call = site.node
    if not isinstance(call, cst.Call) or re.fullmatch(r"-?\d+", event.text) is None or not _takes_default(call):
        return Finding(event.span, message, Fix(title, Safety.HINT), event.because)
    edit = Edit(call, with_keyword(call, "default", site.expression(event.local)))
    return Finding(event.span, message, Fix(title, Safety.UNSAFE, (edit,), needs), event.because)


def _takes_default(call: cst.Call) -> bool:
    """Whether the default of an option is what counts where it is not given, and nothing hidden names another one."""
    names = {a.keyword.value for a in call.args if a.keyword is not None}
    return "required" not in names and not any(a.star for a in call.args)


def _inside(local: str, site: Site) -> str:
    """An expression with the other quotes than those of the f-string that it goes into."""
    around = [node for node in path_to(site, site.node) if isinstance(node, cst.FormattedString)]
    return local.replace('"', "'") if around and around[-1].start.endswith('"') else local
