"""The lengths that `pack_padded_sequence` gets are on an accelerator.

## What it flags
The rule reports `pack_padded_sequence(x, lengths)` when `lengths` is a tensor that is or may be on an accelerator.

## Why it matters
`pack_padded_sequence` reads the lengths on the CPU, even when all other tensors are on an accelerator. The call stops
with "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor".

Most device bugs come from a missing move. Here, the code moves too much: it moves the whole batch, or it computes the
lengths from a mask on the accelerator.

## Example
    import torch
    from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence


    def pack(x: torch.Tensor, mask: torch.Tensor) -> PackedSequence:
        lengths = mask.sum(1)
        return pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)

Use instead:

    import torch
    from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence


    def pack(x: torch.Tensor, mask: torch.Tensor) -> PackedSequence:
        lengths = mask.sum(1)
        return pack_padded_sequence(x, lengths.cpu(), batch_first=True, enforce_sorted=False)

## Fix safety
The fix adds `.cpu()`. The fix is safe. For a CPU tensor, `.cpu()` returns the tensor itself. Without the fix, torch
refuses any other tensor. There is no fix when the edit would remove a comment.

## Known limits
The rule reports nothing in these cases:

* The lengths are not known to be a tensor. `pack_padded_sequence` also accepts a list.
* The code belongs to a collate function or to similar code that runs on the CPU.
* The lengths are an argument whose name says that it holds lengths. The caller knows where the lengths must be.
  However, the rule reports the call when the function also combines the lengths with the data, as in `x * mask` with
  `mask = lengths > 0`. The lengths are then on the device of the data. An index does not show this, because torch
  accepts a CPU index for every tensor.
"""

from __future__ import annotations

from devlint.api import Edit, Facts, Finding, Fix, Lengths, Rule, RuleMeta, Safety, Severity, Site, cst

from . import _shared as shared


class LengthsOnDevice(Rule[Lengths]):
    meta = RuleMeta(
        code="DEV112",
        name="lengths-on-device",
        summary="`pack_padded_sequence` gets its lengths from an accelerator",
        since="0.1.0",
        level="certain / assume",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("pack_padded_sequence",),
    )
    event = Lengths

    def suspects(self, event: Lengths, facts: Facts) -> bool:
        # up to torch 1.6 it took lengths from anywhere [pytorch/pytorch issue 47637]
        return not event.under.catches("RuntimeError") and (facts.torch_newest is None or facts.torch_newest >= (1, 7))

    def judge(self, event: Lengths, site: Site) -> Finding | None:
        lengths = event.lengths
        message = (
            f"{shared.name(lengths)} {shared.whereabouts(lengths.value)}; "
            "`pack_padded_sequence` reads lengths on the CPU only"
        )
        return Finding(lengths.span, message, self._fix(event, site), shared.trail(event, lengths.span))

    def _fix(self, event: Lengths, site: Site) -> Fix | None:
        node = site.at(event.lengths.span)
        if not isinstance(node, cst.BaseExpression) or site.has_comment(node):
            return None
        return Fix("Copy the lengths to the CPU", Safety.SAFE, (Edit(node, shared.chain(node, "cpu")),))
