"""A checkpoint is loaded to the device from which it was saved.

## What it flags
The rule reports `torch.load`, `torch.jit.load`, `torch.hub.load_state_dict_from_url` and `model_zoo.load_url` when
`map_location` is missing or is a literal `None`.

## Why it matters
torch loads every tensor to the device from which it was saved. On a machine without this device, the call raises an
error. If several processes load the checkpoint, each of them uses memory on the first GPU.

## Example
    import torch

    state = torch.load("checkpoint.pt")

Use instead:

    import torch

    state = torch.load("checkpoint.pt", map_location="cpu")

## Fix safety
The fix is unsafe, because later code may rely on the device of the tensors.

* If a variable in scope holds the device that the code chose, the fix passes this device.
* Otherwise the fix passes `"cpu"`. `load_state_dict` then copies each tensor to the device of its parameter.
* There are two exceptions: the code uses a whole module from the checkpoint directly, or a function returns what it
  loads. If the file uses an accelerator, the fix then passes an available device.

## Known limits
The rule does not report these cases:

* `**kwargs` may contain `map_location`.
* The call is under a condition that is true only if CUDA is present.
* The condition around the call names the accelerator, and the other branch passes `map_location`.
* The checkpoint contains no tensors. The rule sees this only if the same file saves only numbers, or passes the loaded
  data to `torch.from_numpy`.
"""

from __future__ import annotations

import ast
from typing import TypeGuard

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

from ._calls import with_keyword
from ._conversion import run_device
from ._run_device import says_accelerator
from ._shared import is_none, parsed
from ._taken import innermost
from ._uses import place_of


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
        return (given is None or is_none(given.node)) and not _is_chosen_beside(event, facts)

    def judge(self, event: Load, site: Site) -> Finding | None:
        call = site.node
        if not isinstance(call, cst.Call):
            return None
        needs: tuple[RunDeviceNeed, ...] = ()
        where = event.run_device if _is_chosen(event) and event.run_device is not None else '"cpu"'
        keeps_place = event.module or _gives_object(event, site.facts) or _is_returned(event, site.facts)
        if keeps_place and where == '"cpu"' and (event.run_device is not None or _uses_accelerator(site.facts)):
            device = run_device(event.run_device, site, event)
            if device is not None:
                where, needs = device.text, device.needs
        value = site.expression(where)
        edit = (
            Edit(call, with_keyword(call, "map_location", value))
            if event.map_location is None
            else Edit(site.at(event.map_location.span), value)
        )
        message = (
            f"`{site.code(call.func)}` puts each tensor on the device from which it was saved, and raises an error on a "
            "machine without this device"
        )
        fix = Fix(f"Pass `map_location={where}`", Safety.UNSAFE, (edit,), needs)
        return Finding(event.span, message, fix, event.because)


def _is_chosen_beside(event: Load, facts: Facts) -> bool:
    """Whether the code loads for the accelerator here, and says the place in the other branch, which other machines take."""
    tree, row = parsed(facts.text), getattr(event.node, "lineno", 0)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.If) and node.orelse and says_accelerator(ast.unparse(node.test)):
            within = node.body[0].lineno <= row <= (node.body[-1].end_lineno or 0)
            parts = (each for statement in node.orelse for each in ast.walk(statement))
            places = [each.value for each in parts if isinstance(each, ast.keyword) and each.arg == "map_location"]
            if within and places and not any(says_accelerator(ast.unparse(each)) for each in places):
                return True
    return False


def _gives_object(event: Load, facts: Facts) -> bool:
    """Whether what is loaded becomes a part of an object, `net.module, epoch = torch.load(path)`: nothing moves it then."""
    tree = parsed(facts.text)
    for node in ast.walk(tree) if tree is not None and isinstance(event.node, ast.expr) else ():
        if isinstance(node, ast.Assign) and place_of(node.value) == place_of(event.node):
            parts = [part for target in node.targets for part in (target.elts if _is_row(target) else [target])]
            return any(isinstance(part, ast.Attribute) and ast.unparse(part.value) != "self" for part in parts)
    return False


def _is_returned(event: Load, facts: Facts) -> bool:
    """Whether a function of the file returns what is loaded: its callers may rely on where it is."""
    tree = parsed(facts.text)
    function = innermost(tree, getattr(event.node, "lineno", 0)) if tree is not None else None
    nodes = list(ast.walk(function)) if function is not None else []
    returned = [node.value for node in nodes if isinstance(node, ast.Return) and node.value is not None]
    names = {each.id for each in returned if isinstance(each, ast.Name)}
    bound = [
        node.value
        for node in nodes
        if isinstance(node, ast.Assign)
        and any(isinstance(each, ast.Name) and each.id in names for each in node.targets)
    ]
    return any(place_of(each) == place_of(event.node) for each in (*returned, *bound))


def _is_row(target: ast.expr) -> TypeGuard[ast.Tuple | ast.List]:
    return isinstance(target, ast.Tuple | ast.List)


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
