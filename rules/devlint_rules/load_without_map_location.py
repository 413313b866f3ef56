"""A checkpoint is loaded onto the device that saved it.

## What it flags
`torch.load`, `torch.jit.load`, `torch.hub.load_state_dict_from_url` and `model_zoo.load_url` without `map_location`, or
with a literal `None`. Quiet when `**kwargs` may carry it, under a guard for CUDA, and where
the file holds no tensors: what the same class or file saves are numbers, or what is loaded goes to `torch.from_numpy`.

## Why it matters
Every storage goes back to the device it was saved from. On a machine without that device the
call raises; with several processes each of them loads onto the first card.

## Example
    import torch

    state = torch.load("checkpoint.pt")

Use instead:

    import torch

    state = torch.load("checkpoint.pt", map_location="cpu")

## Fix safety
Unsafe: code after the load may rely on where the tensors are. The device of the run is used where the code
chooses one in scope, else `"cpu"`, from where `load_state_dict` copies to each parameter's device. A whole module that is
used where it was loaded to goes to the device of the run where the file uses an accelerator.

## Known limits
Files that hold no tensors need no `map_location`; that can be seen only where the same file writes or reads them.
"""

from __future__ import annotations

import ast

from devlint.api import (
    ACCELERATORS,
    CudaMethod,
    DeviceLiteral,
    Edit,
    Facts,
    Finding,
    Fix,
    Load,
    Portability,
    Rule,
    RuleMeta,
    RunDeviceNeed,
    Safety,
    Severity,
    Site,
    cst,
)
from devlint_rules._at_hand import run_device
from devlint_rules._calls import with_keyword


class LoadWithoutMapLocation(Rule[Load]):
    meta = RuleMeta(
        code="DEV208",
        name="load-without-map-location",
        summary="checkpoint is loaded without `map_location`",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="always",
        words=("load",),
        portability=Portability(),
    )
    event = Load

    def suspects(self, event: Load, facts: Facts) -> bool:
        if event.star_arguments or not event.tensors or event.under.allow("cuda"):
            return False
        given = event.map_location
        return given is None or _is_none(given.node)

    def judge(self, event: Load, site: Site) -> Finding | None:
        call = site.node
        if not isinstance(call, cst.Call):
            return None
        needs: tuple[RunDeviceNeed, ...] = ()
        where = event.run_device if _is_chosen(event) and event.run_device is not None else '"cpu"'
        if event.module and where == '"cpu"' and (event.run_device is not None or _uses_accelerator(site.facts)):
            device = run_device(event.run_device, site, event)
            if device is not None:
                where, needs = device.text, device.needs
        value = site.expression(where)
        edit = (
            Edit(call, with_keyword(call, "map_location", value))
            if event.map_location is None
            else Edit(site.at(event.map_location.span), value)
        )
        message = f"`{site.code(call.func)}` puts the tensors on the device that saved them"
        fix = Fix(f"Pass `map_location={where}`", Safety.UNSAFE, (edit,), needs)
        return Finding(event.span, message, fix, event.because)


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def _uses_accelerator(facts: Facts) -> bool:
    """Whether the file moves anything to an accelerator, or makes it there: what meets the module then is not on the CPU."""
    return any(
        isinstance(event, CudaMethod)
        or (isinstance(event, DeviceLiteral) and event.role in ("argument", "assigned") and event.type in ACCELERATORS)
        for event in facts.events
    )


def _is_chosen(event: Load) -> bool:
    """Whether the run's device is one that the code chooses: an argument may be None, an index or an empty text."""
    value = event.scope.get(event.run_device) if event.run_device is not None else None
    return value is not None and (value.type_name or "").startswith("chosen")
