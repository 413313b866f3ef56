"""A card is named by a number that `CUDA_VISIBLE_DEVICES` leaves to none.

## What it flags
`cuda:1`, `.cuda(1)`, `set_device(1)` and `device_ids` in a program that sets `CUDA_VISIBLE_DEVICES` to fewer cards than
that number needs.

## Why it matters
The visible cards are numbered anew from 0: after `"1"` the one card is `cuda:0`. Any other number stops with "CUDA error:
invalid device ordinal".

## Example
    import os

    os.environ["CUDA_VISIBLE_DEVICES"] = "1"

    import torch

    device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")

Use instead:

    import os

    os.environ["CUDA_VISIBLE_DEVICES"] = "1"

    import torch

    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")

## Fix safety
Unsafe: the number of the one visible card becomes 0. A hint for another number, and where several cards are visible:
then each number must be looked at.

## Known limits
Silent where the variable is set under a condition, to different cards, or to what is no list of numbers. Other files
and the shell may set it, too.
"""

from __future__ import annotations

from devlint.api import Edit, Facts, Finding, Fix, HiddenCard, Rule, RuleMeta, Safety, Severity, Site, cst


class CardNotVisible(Rule[HiddenCard]):
    meta = RuleMeta(
        code="DEV607",
        name="card-not-visible",
        summary="a card is named by a number that `CUDA_VISIBLE_DEVICES` leaves to none",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("VISIBLE_DEVICES",),
    )
    event = HiddenCard

    def suspects(self, event: HiddenCard, facts: Facts) -> bool:
        return True

    def judge(self, event: HiddenCard, site: Site) -> Finding | None:
        last = len(event.visible) - 1
        there = f"the cards are `cuda:0` to `cuda:{last}`" if last else "the only card is `cuda:0`"
        message = (
            f"there is no card {event.index}: with the visible devices set to `{','.join(event.visible)}`, {there}"
        )
        return Finding(event.span, message, self._fix(event, site), event.because)

    def _fix(self, event: HiddenCard, site: Site) -> Fix:
        node, card = site.node, str(event.index)
        if event.visible == (card,):
            if isinstance(node, cst.Integer):
                return Fix("Use 0", Safety.UNSAFE, (Edit(node, cst.Integer("0")),))
            if isinstance(node, cst.SimpleString) and f":{card}" in node.value:
                new = cst.SimpleString(node.value.replace(f":{card}", ":0"))
                return Fix("Use `cuda:0`", Safety.UNSAFE, (Edit(node, new),))
        return Fix("Count among the visible cards, from 0", Safety.HINT)
