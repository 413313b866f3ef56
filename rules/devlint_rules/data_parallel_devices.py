"""`DataParallel` lists fixed GPU numbers, or the module or the targets are on the wrong GPU.

## What it flags
- `device_ids` lists fixed GPU numbers.
- `device_ids` is computed from `torch.cuda.device_count()`, and the code does not check for CUDA.
- The module was moved to a GPU that is not the first entry of `device_ids`.
- The module was moved to a GPU that is not GPU 0, and `device_ids` is missing. The move may follow the wrapping.
- A loss compares the module's output with targets that were moved to a different GPU.

A function may get the GPU indices or the device of the module as an argument. In such a function, the severity is
info.

## Why it matters
A program with fixed GPU numbers runs only on a machine that has these GPUs. The parameters of the module must be on the
first GPU, or the first call raises `RuntimeError`. The output is on the first GPU or on `output_device`.

## Example
    import torch

    def wrap(model):
        return torch.nn.DataParallel(model, device_ids=[0, 1, 2, 3])

Use instead:

    import torch

    def wrap(model):
        return torch.nn.DataParallel(model)

## Fix safety
The fix is unsafe. Without `device_ids`, `DataParallel` uses all visible GPUs. This may be a different number of GPUs,
and `DataParallel` then splits each batch into a different number of parts.

## Known limits
- `device_ids=[0]` is not reported.
- `device_ids` from a variable is not reported.
- A file that sets `CUDA_VISIBLE_DEVICES` is not checked.
"""

from __future__ import annotations

import ast
from dataclasses import replace

from devlint.api import Edit, Facts, Finding, Fix, Parallel, Rule, RuleMeta, Safety, Severity, Site, cst

from ._at_hand import head_of
from ._shared import name


class DataParallelDevices(Rule[Parallel]):
    meta = RuleMeta(
        code="DEV601",
        name="data-parallel-devices",
        summary="`DataParallel` gets GPUs that do not match the machine, the module or the targets",
        since="0.1.0",
        level="certain / assume",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("DataParallel",),
    )
    event = Parallel

    def suspects(self, event: Parallel, facts: Facts) -> bool:
        return event.wrapper == "DataParallel"

    def judge(self, event: Parallel, site: Site) -> Finding | None:
        found = self._judge(event, site)
        return replace(found, severity=Severity.INFO) if _is_up_to_callers(event, site.facts) else found

    def _judge(self, event: Parallel, site: Site) -> Finding:
        ids = f"`device_ids={event.ids.text}`"
        if event.problem == "literal":
            message = f"{ids} works only on a machine with these GPUs"
            return Finding(event.span, message, self._fix(event, site), event.because)
        if event.problem == "every":
            message = f"{ids} is empty without CUDA, and the default value with CUDA"
            return Finding(event.span, message, self._fix(event, site), event.because)
        if event.problem == "module-elsewhere":
            message = (
                f"the module is on `{event.found}`, but `DataParallel` needs it on its first GPU, `{event.expected}`"
            )
            fix = Fix(f"Move the module to `{event.expected}`", Safety.HINT)
            if not event.numbers:
                message += ": it uses all GPUs in their order"
                title = f"List the GPUs, with the GPU of the module first: `device_ids=[{event.found.partition(':')[2]}, ...]`"
                fix = Fix(title, Safety.HINT)
        else:
            message = f"{name(event.ids)} is on `{event.found}`, but the output of the module is on `{event.expected}`"
            fix = Fix("Move the targets to the device of the output", Safety.HINT)
        return Finding(event.span, message, fix, event.because)

    def _fix(self, event: Parallel, site: Site) -> Fix:
        call = site.node
        hint = Fix("Take the GPUs from a setting", Safety.HINT)
        if not isinstance(call, cst.Call) or event.numbers[:1] not in ((), (0,)) or event.flag is None:
            return hint
        keywords = {given.keyword.value: given for given in call.args if given.keyword is not None}
        if "output_device" in keywords or site.has_comment(keywords["device_ids"]):
            return hint
        return Fix("Use all visible GPUs", Safety.UNSAFE, (Edit(keywords["device_ids"], None),))


def _is_up_to_callers(event: Parallel, facts: Facts) -> bool:
    """Whether an argument of the function says which cards there are, or where the module is."""
    head = head_of(event, facts)
    if head is None:
        return False
    given = {a.arg for a in (*head.args.posonlyargs, *head.args.args, *head.args.kwonlyargs)}
    decides: list[ast.AST] = [event.ids.node]
    if event.problem == "module-elsewhere" and isinstance(event.node, ast.Call):
        decides += event.node.args[:1]
    return any(isinstance(n, ast.Name) and n.id in given for part in decides for n in ast.walk(part))
