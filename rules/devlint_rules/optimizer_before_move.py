"""A model is moved after its optimizer was made, or got its state back.

## What it flags
`model.to(device)`, `model.cuda()` after an optimizer was given `model.parameters()`, by itself or through a list that was
filled with them; also when the state of the optimizer was loaded in between.

## Why it matters
`torch.optim` asks to move a model before its optimizer is made. State that exists already stays on the old device, and the
first step stops with "Expected all tensors to be on the same device": state that was loaded, and that which `Adagrad`
makes at once. Between the CPU and CUDA other optimizers happen to survive, because the parameters stay the same objects;
under XLA, with FSDP or from the meta device they do not, and the optimizer trains parameters that nobody uses.

## Example
    import torch
    from torch import nn


    def prepare(model: nn.Module, device: torch.device) -> torch.optim.Optimizer:
        optimizer = torch.optim.Adam(model.parameters())
        model.to(device)
        return optimizer

Use instead:

    import torch
    from torch import nn


    def prepare(model: nn.Module, device: torch.device) -> torch.optim.Optimizer:
        model.to(device)
        optimizer = torch.optim.Adam(model.parameters())
        return optimizer

## Fix safety
Unsafe: the statement that moves the model is put before the one that makes the optimizer, which what stands in between may
not expect. A hint where they are in different blocks, or where a name that the move uses gets its value in between.

## Known limits
Seen within one function. Silent where the model was moved before, where the name stands for another model in between, and
for moves to the CPU and back.
"""

from __future__ import annotations

from devlint.api import (
    Edit,
    Facts,
    Finding,
    Fix,
    InsertStatement,
    OptimizerOrder,
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
        summary="a model is moved after its optimizer was made, or got its state back",
        since="0.1.0",
        level="assume",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("optim", "Adam", "SGD"),
    )
    event = OptimizerOrder

    def suspects(self, event: OptimizerOrder, facts: Facts) -> bool:
        return not event.under.excepts

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
        if event.state_at_once:
            return f"the state that `{maker}` makes at once stays where the parameters were"
        return "torch asks to move a model before its optimizer is made"

    def _fix(self, event: OptimizerOrder, site: Site) -> Fix:
        title = f"Move {shared.name(event.model)} before its optimizer is made"
        statement = site.statement
        if not event.may_swap or not isinstance(statement, cst.BaseSmallStatement) or site.has_comment(statement):
            return Fix(title, Safety.HINT)
        edits = (Edit(statement, None), InsertStatement(event.optimizer.span, statement))
        return Fix(title, Safety.UNSAFE, edits)
