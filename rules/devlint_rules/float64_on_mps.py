"""A float64 tensor is created on a device that may be MPS, which does not support float64.

## What it flags
The rule is off by default. It reports two cases:

* A factory call has `dtype=torch.float64` or `torch.double`, and its device may be MPS. A factory call is a call that
  creates a tensor, such as `torch.zeros`.
* `.to(torch.float64)` converts a tensor that may be on MPS.

A device may be MPS in these cases:

* The code names MPS.
* The code chooses among all accelerators, for example with `torch.accelerator.current_accelerator()`.
* The device is an argument, and the file mentions MPS.

## Why it matters
MPS raises `TypeError` for float64. Code that runs on the CPU and on CUDA stops on MPS.

## Example
    import torch

    def steps(n):
        return torch.ones(n, dtype=torch.float64, device="mps:0" if torch.backends.mps.is_available() else "cpu")

Use instead:

    import torch

    def steps(n):
        return torch.ones(n, dtype=torch.float32, device="mps:0" if torch.backends.mps.is_available() else "cpu")

## Fix safety
The rule makes a suggestion without an edit. The author must decide whether float32 is enough, or whether the tensor
belongs on the CPU.

## Known limits
The rule does not follow `.double()` or float64 data from NumPy.
"""

from __future__ import annotations

import ast
import re

from devlint.api import Create, Event, Facts, Finding, Fix, Move, Place, Rule, RuleMeta, Safety, Severity, Site, Value

_FLOAT64 = re.compile(r"(float64|double)\Z")
_TESTED = re.compile(r"(?i)mps|cpu|cuda")


class Float64OnMps(Rule[Event]):
    meta = RuleMeta(
        code="DEV214",
        name="float64-on-mps",
        summary="float64 on a device that may be MPS",
        since="0.1.0",
        level="assume",
        severity=Severity.INFO,
        fix="hint",
        words=("mps", "accelerator"),
        opt_in=True,
    )
    event = Event

    def suspects(self, event: Event, facts: Facts) -> bool:
        if any(_TESTED.search(test) for test in event.under.tests) and not event.under.allow("mps"):
            return False
        if isinstance(event, Create):
            return event.device is not None and _has_float64(event.node) and _may_be_mps(event.device, facts)
        if isinstance(event, Move) and event.receiver.value.is_tensor:
            where = event.target or event.receiver.value
            return _has_float64(event.node) and _may_be_mps(where, facts)
        return False

    def judge(self, event: Event, site: Site) -> Finding | None:
        message = "this tensor is float64, and its device may be MPS, which does not support float64"
        return Finding(
            event.span, message, Fix("Use float32, or keep the tensor on the CPU", Safety.HINT), event.because
        )


def _has_float64(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    given = [*node.args, *(k.value for k in node.keywords if k.arg == "dtype")]
    return any(isinstance(a, ast.Attribute | ast.Name) and _FLOAT64.search(ast.unparse(a)) for a in given)


def _may_be_mps(value: Value, facts: Facts) -> bool:
    if value.type_name == "chosen:accelerator":
        return True
    mentioned = "mps" in facts.text
    return mentioned and any(p.type == "mps" if isinstance(p, Place) else True for p in value.device)
