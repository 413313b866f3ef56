"""Device tensors are made in a worker process.

## What it flags
A move to an accelerator, or a tensor made there, in `__getitem__` of a data set or in a function given as `collate_fn`,
unless every loader of the file works in its own process. And `Process(target=f)`, or a pool of processes that is given `f`,
by the default start method or by `get_context("fork")`, where `f` uses CUDA; also a method, or the `run` of a class of
processes.

## Why it matters
CUDA does not survive a fork: a worker that uses it raises as soon as the parent has used it. Where it works,
each worker takes its own share of the card's memory for a context.

## Example
    import torch
    from torch.utils.data import Dataset

    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")

    class Rows(Dataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, i):
            return torch.tensor(self.rows[i], device=device)

Use instead:

    import torch
    from torch.utils.data import Dataset

    class Rows(Dataset):
        def __init__(self, rows):
            self.rows = rows

        def __len__(self):
            return len(self.rows)

        def __getitem__(self, i):
            return torch.tensor(self.rows[i])

## Fix safety
A hint only: the move belongs into the loop over the loader.

## Known limits
Silent in files that choose `spawn` or `forkserver`, for devices that are arguments, and for data sets whose loader
is built here without workers.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site, WorkerDevice


class DeviceInWorker(Rule[WorkerDevice]):
    meta = RuleMeta(
        code="DEV605",
        name="device-in-worker",
        summary="device tensors are made in a worker process",
        since="0.1.0",
        level="assume",
        severity=Severity.WARNING,
        fix="hint",
        words=("__getitem__", "collate_fn", "Process"),
    )
    event = WorkerDevice

    def suspects(self, event: WorkerDevice, facts: Facts) -> bool:
        return True

    def judge(self, event: WorkerDevice, site: Site) -> Finding | None:
        if event.place == "context":
            message = f"`{event.text}` uses CUDA in a process that is forked"
            fix = Fix('Use "spawn"', Safety.HINT)
        elif event.place == "fork":
            message = f"`{event.text}` uses CUDA in a process that is started by the default method, a fork on Linux"
            fix = Fix('Call `set_start_method("spawn")` first', Safety.HINT)
        else:
            where = "`__getitem__`" if event.place == "__getitem__" else f"`{event.text}`"
            message = f"{where} runs in a loader's worker, which must not touch the accelerator"
            fix = Fix("Return CPU tensors, and move the batch in the loop", Safety.HINT)
        return Finding(event.span, message, fix, event.because)
