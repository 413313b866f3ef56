"""A worker process uses the accelerator.

## What it flags
- `__getitem__` of a dataset, or a function given as `collate_fn`, moves or creates a tensor on an accelerator. The rule
  reports nothing here if all data loaders of the file work without worker processes. If a `collate_fn` is a function of
  another file, the rule reports the data loader, which must have worker processes.
- The moves of one dataset, or of one `collate_fn`, are one decision. A report shows one finding for all of them.
- `Process(target=f)` or a process pool runs a function `f` that uses CUDA. The rule reports it for the default start
  method and for `get_context("fork")`. A method counts as a function, and so does the `run` method of a process class.

## Why it matters
A fork is a copy of the parent process, and CUDA does not work in the copy. If the parent process has used CUDA, a
worker raises `RuntimeError` when it first uses CUDA. Even where workers can use CUDA, each of them needs device memory
for a CUDA context.

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
The rule makes a suggestion without an edit. The move belongs in the loop over the data loader.

## Known limits
- A file that selects `spawn` or `forkserver` is not checked.
- A device that is an argument is not reported.
- A dataset is not reported if the file builds the data loader of this dataset without workers.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site, WorkerDevice


class DeviceInWorker(Rule[WorkerDevice]):
    meta = RuleMeta(
        code="DEV605",
        name="device-in-worker",
        summary="worker process uses the accelerator",
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
            message = f"`{event.text}` uses CUDA in a forked process: torch raises an error if the parent process has used CUDA"
            fix = Fix('Use the start method "spawn"', Safety.HINT)
        elif event.place == "fork":
            message = (
                f"`{event.text}` uses CUDA in a worker process: on Linux, a worker is a fork by default, and torch raises an "
                "error if the parent process has used CUDA"
            )
            fix = Fix('Call `set_start_method("spawn")` before the workers start', Safety.HINT)
        else:
            where = "`__getitem__`" if event.place == "__getitem__" else f"`{event.text}`"
            message = f"{where} uses the accelerator, but it runs in a worker process of the data loader"
            fix = Fix("Return CPU tensors, and move the batch in the loop", Safety.HINT)
        return Finding(event.span, message, fix, event.because, decision=f"{event.place} {event.text}")
