"""The lengths given to `pack_padded_sequence` are on an accelerator.

## What it flags
`pack_padded_sequence(x, lengths)` where `lengths` is a tensor that is, or may be, on an accelerator.

## Why it matters
The lengths are read on the host, even when everything else is on an accelerator. The call stops with "'lengths' argument
should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor". It is the reverse of the usual bug: a batch was moved as a
whole, or the lengths were counted from a mask on the device.

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
Safe: `.cpu()` gives a tensor on the CPU back as it is, and any other is refused today. No fix across a comment.

## Known limits
Silent when it is not known that the lengths are a tensor, since a list is taken as well; in code that runs on the host by
contract, such as collate functions; and for an argument that is lengths by its name, whose caller knows where they must
be, unless the function brings it together with its data where torch refuses two devices: `x * mask` with
`mask = lengths > 0`. An index may be on the CPU.
"""

from __future__ import annotations

from devlint.api import Edit, Facts, Finding, Fix, Lengths, Rule, RuleMeta, Safety, Severity, Site, cst
from devlint_rules import _shared as shared


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
