"""A model is moved after its optimizer got state.

## What it flags
`model.to(device)`, `model.cuda()` after an optimizer was given `model.parameters()`, by itself or through a list that was
filled with them, and has state: it was loaded, a step was made, or the optimizer makes it at once, as `Adagrad` does. With
XLA named as the target also without state.

## Why it matters
`torch.optim` asks to move a model before its optimizer is made. State that exists already stays on the old device, and the
next step stops with "Expected all tensors to be on the same device". Without state the optimizer survives a move between
the CPU and CUDA, MPS or XPU, because the parameters stay the same objects; under XLA they do not, and the optimizer trains
parameters that nobody uses.

## Example
    import torch
    from torch import nn


    def prepare(model: nn.Module, device: torch.device) -> torch.optim.Optimizer:
        optimizer = torch.optim.Adagrad(model.parameters())
        model.to(device)
        return optimizer

Use instead:

    import torch
    from torch import nn


    def prepare(model: nn.Module, device: torch.device) -> torch.optim.Optimizer:
        model.to(device)
        optimizer = torch.optim.Adagrad(model.parameters())
        return optimizer

## Fix safety
Unsafe: the statement that moves the model is put before the one that makes the optimizer, which what stands in between may
not expect. A hint where they are in different blocks, or where a name that the move uses gets its value in between.

## Known limits
Seen within one function, in functions of the file that load the state of the optimizer that it hands them, and in those that
move the model which it hands them. What a helper makes that is not seen is an optimizer where both are called so. Silent
without state, where nothing fails between common devices (with FSDP, and from the meta device, it does), where the model was
moved before, where the name stands for another model in between, where the code reads `optimizer.state` to move it itself,
and for moves to the CPU and back.
"""

from __future__ import annotations

from devlint.api import (
    Edit,
    Facts,
    Finding,
    Fix,
    InsertStatement,
    OptimizerOrder,
    Place,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
    describe,
)
from devlint_rules import _shared as shared


class OptimizerBeforeMove(Rule[OptimizerOrder]):
    meta = RuleMeta(
        code="DEV111",
        name="optimizer-before-move",
        summary="a model is moved after its optimizer got state, which stays behind",
        since="0.1.0",
        level="assume",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("optim", "Adam", "SGD"),
    )
    event = OptimizerOrder

    def suspects(self, event: OptimizerOrder, facts: Facts) -> bool:
        to_xla = any(isinstance(place, Place) and place.type == "xla" for place in event.target.device)
        # the step that fails comes later: a handler around the move that does not name its error only reports
        by_name = event.under.catches_named("RuntimeError")
        return (event.loaded or event.stepped or event.state_at_once or to_xla) and not by_name

    def judge(self, event: OptimizerOrder, site: Site) -> Finding | None:
        maker = event.optimizer.function.rpartition(".")[2]
        line = site.line(event.optimizer.span)
        message = (
            f"{shared.name(event.model)} is moved to {describe(event.target.device)} after `{maker}` got its parameters "
            f"on {line}: {self._consequence(event, maker)}"
        )
        return Finding(event.span, message, self._fix(event, site), shared.trail(event, event.span))

    def _consequence(self, event: OptimizerOrder, maker: str) -> str:
        if event.loaded:
            return "the state that was loaded stays where the parameters were"
        if event.stepped:
            return "the state of its steps stays where the parameters were"
        if event.state_at_once:
            return f"the state that `{maker}` makes at once stays where the parameters were"
        return "the move replaces the parameters"

    def _fix(self, event: OptimizerOrder, site: Site) -> Fix:
        title = f"Move {shared.name(event.model)} before its optimizer is made"
        statement = site.statement
        if not event.may_swap or not isinstance(statement, cst.BaseSmallStatement) or site.has_comment(statement):
            return Fix(title, Safety.HINT)
        edits = (Edit(statement, None), InsertStatement(event.optimizer.span, statement))
        return Fix(title, Safety.UNSAFE, edits)
