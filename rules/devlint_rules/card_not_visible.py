"""A GPU is named by an index that is too high for `CUDA_VISIBLE_DEVICES`.

## What it flags
The rule reports `cuda:1`, `.cuda(1)`, `set_device(1)` and `device_ids` in a program that sets `CUDA_VISIBLE_DEVICES`.
The index is too high for the number of GPUs that the variable makes visible.

## Why it matters
CUDA numbers the visible GPUs from 0. After `CUDA_VISIBLE_DEVICES="1"`, the only GPU is `cuda:0`. Every index above 0
then raises "CUDA error: invalid device ordinal".

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
- The fix is unsafe. It replaces the index by 0 if the program sees only one GPU.
- The rule makes a suggestion without an edit if several GPUs are visible, or if the index is not the number in the
  variable. The author must then check each index.

## Known limits
- The variable is not followed if it is set under a condition or to several different values.
- A value that is not a list of numbers is not followed.
- Another file or the shell may also set the variable. The rule does not see the value that they set.
"""

from __future__ import annotations

from devlint.api import Edit, Facts, Finding, Fix, HiddenCard, Rule, RuleMeta, Safety, Severity, Site, cst


class CardNotVisible(Rule[HiddenCard]):
    meta = RuleMeta(
        code="DEV607",
        name="card-not-visible",
        summary="index of a GPU is too high for `CUDA_VISIBLE_DEVICES`",
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
        valid = f"the valid indices are 0 to {last}" if last else "the only valid index is 0"
        message = (
            f"GPU index {event.index} is too high: `CUDA_VISIBLE_DEVICES` is `{','.join(event.visible)}`, and CUDA numbers "
            f"the visible GPUs from 0, so {valid}"
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
        return Fix("Number the visible GPUs from 0", Safety.HINT)
