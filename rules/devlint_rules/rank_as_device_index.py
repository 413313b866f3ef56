"""A process takes the wrong card, or never makes its card the current one.

## What it flags
The rank among all processes (`dist.get_rank()`, horovod's `hvd.rank()`, the variables `RANK`, `SLURM_PROCID` and those of
MPI, a name `global_rank`, accelerate's `process_index`) used as the index of a card: `set_device`, `torch.device("cuda",
r)`, `f"cuda:{r}"`, `.to(r)`, `device_ids=[r]`, `device_map={"": r}`. And a program for NCCL that reads `LOCAL_RANK` to
choose a device but calls no `set_device`, or a function that the file starts in several processes and that does not either.
And an attribute as index that its class sets nowhere, an option whose -1 stands for the CPU and that nothing compares with
it, and an option `--local_rank` in a program that does not read `LOCAL_RANK`.

## Why it matters
On the second machine the ranks go on counting while the cards start at 0 again. A process that does not set
its card allocates on card 0 whatever names none: index-free `cuda`, `.cuda()`, collectives of objects. `torchrun` passes no
`--local_rank`, and `torch.distributed.launch` passes `--local-rank` since torch 2.0.

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
Unsafe: the program works on another card afterwards, which is the purpose. The variable `LOCAL_RANK` is set by
`torchrun` and not by every launcher.

## Known limits
Silent where the file starts its processes itself, for there all of them may be on one machine; for
`rank % device_count()`; and for ranks that are arguments.
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
from devlint_rules._calls import may_precede, path_to, with_keyword

_DASHED = (2, 0)  # `torch.distributed.launch` passes `--local-rank` from here on


class RankAsDeviceIndex(Rule[RankIndex]):
    meta = RuleMeta(
        code="DEV603",
        name="rank-as-device-index",
        summary="global rank used as the index of a card, or the card never made current",
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
            message = f"`{event.text}` counts over all machines, but cards are counted on each one"
            if not event.local:  # what else reads it may want the other one
                return Finding(event.span, message, Fix("Use the local rank for the card", Safety.HINT), event.because)
            local = site.expression(_inside(event.local, site))
            fix = Fix(f"Use the local rank, `{event.local}`", Safety.UNSAFE, (Edit(site.node, local),), tuple(needs))
            return Finding(event.span, message, fix, event.because)
        if event.problem == "never-set":
            message = f"`{event.text}` is used as the index of a card, but its class sets it nowhere"
            return Finding(event.span, message, Fix("Use the local rank", Safety.HINT), event.because)
        if event.problem == "minus-one":
            message = f"`{event.text}` may be -1, which stands for the CPU: there is no card -1"
            return Finding(event.span, message, Fix("Ask first whether a card is wanted", Safety.HINT), event.because)
        if event.problem == "option":
            return _option(event, site, tuple(needs))
        if event.before:
            card = f"works on the card `{event.text}`, but" if event.text else "joins a group for NCCL, but"
            message = f"the process {card} never makes its card the current one"
        else:
            message = f"`{event.text}` names the card of this process, which never becomes the current one"
        hint = Fix("Call `torch.cuda.set_device` with the local rank", Safety.HINT)
        if not may_precede(site.statement) or "torch" not in site.facts.module_imports:
            return Finding(event.span, message, hint, event.because)
        call = f"{site.spell('torch.cuda.set_device')}({event.local})"
        edit = InsertStatement(event.span, cst.parse_statement(call), after=not event.before)
        fix = Fix("Make the card the current one", Safety.UNSAFE, (edit,), tuple(needs))
        return Finding(event.span, message, fix, event.because)


def _option(event: RankIndex, site: Site, needs: tuple[ImportNeed, ...]) -> Finding:
    """`--local_rank`, which neither `torchrun` nor `torch.distributed.launch` passes."""
    message = "no launcher of torch 2 passes `--local_rank`, so that every process takes the same card"
    title = "Read the variable `LOCAL_RANK`, which they set"
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
