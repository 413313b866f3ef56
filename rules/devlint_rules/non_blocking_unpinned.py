"""A copy with `non_blocking=True` starts from memory that is not pinned.

## What it flags
The rule reports `.to(device, non_blocking=True)` and `.cuda(non_blocking=True)` for these tensors:

- a tensor that the same function creates in pageable memory, which is memory that is not pinned;
- a batch of a `DataLoader` that the same file builds without `pin_memory`.

## Why it matters
The driver copies pageable memory through a pinned buffer of its own, and the host waits for it. With
`non_blocking=True`, the author wants the copy to run while the host continues. Here the host does not continue.

## Example
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    def batches(x: torch.Tensor, device: torch.device):
        loader = DataLoader(TensorDataset(torch.arange(10)), batch_size=4)
        for (i,) in loader:
            yield i.to(device, non_blocking=True)

Use instead:

    import torch
    from torch.utils.data import DataLoader, TensorDataset

    def batches(x: torch.Tensor, device: torch.device):
        loader = DataLoader(TensorDataset(torch.arange(10)), batch_size=4, pin_memory=True)
        for (i,) in loader:
            yield i.to(device, non_blocking=True)

## Fix safety
The rule makes a suggestion without an edit. Pinned memory is scarce, and pinning one small tensor costs more than its
copy.

## Known limits
- Arguments and data loaders from other files are not reported.
- A function is not checked if it mentions pinning at all.
"""

from __future__ import annotations

from devlint.api import Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site, UnpinnedCopy

from ._shared import short


class NonBlockingUnpinned(Rule[UnpinnedCopy]):
    meta = RuleMeta(
        code="DEV504",
        name="non-blocking-unpinned",
        summary="non-blocking copy from memory that is not pinned",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="hint",
        words=("non_blocking",),
    )
    event = UnpinnedCopy

    def suspects(self, event: UnpinnedCopy, facts: Facts) -> bool:
        return True

    def judge(self, event: UnpinnedCopy, site: Site) -> Finding | None:
        message = (
            f"the host waits for this copy despite `non_blocking=True`: `{short(event.text)}` is not in pinned memory"
        )
        title = (
            "Build the loader with `pin_memory=True`"
            if event.source == "loader"
            else "Pin the tensor, or remove `non_blocking=True`"
        )
        return Finding(event.span, message, Fix(title, Safety.HINT), event.because)
