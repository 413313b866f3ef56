"""A model is moved after its optimizer has created state.

## What it flags
The rule reports `model.to(device)` and `model.cuda()` when an optimizer already holds the parameters and has state. The
optimizer gets `model.parameters()` directly or in a list. The optimizer has state in these cases:

* The state was loaded.
* The optimizer made a step.
* The constructor of the optimizer creates state, as `Adagrad` does.

If the target is XLA, the move is reported even when the optimizer has no state.

## Why it matters
The documentation of `torch.optim` says to move a model before its optimizer is created. A move after that does not move
the state of the optimizer. The next step stops with "Expected all tensors to be on the same device".

Without state, a move between the CPU and CUDA, MPS or XPU does no harm, because the parameters stay the same objects.
On XLA, the move creates new parameters. The optimizer then trains the old parameters, and the model does not use them.

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
The fix moves the model before the optimizer is created. The fix is unsafe, because the statements between the optimizer
and the move may not expect a moved model.

The rule makes a suggestion without an edit in these cases:

* The move and the creation of the optimizer are in different blocks.
* The move uses a variable that gets its value after the optimizer is created.

## Known limits
The rule follows the model and the optimizer within one function. It also follows them into functions of the same file
that load the optimizer's state or move the model. A helper in another file may create the optimizer. The rule
recognizes this optimizer only by the names of the helper and of the variable.

The rule reports nothing in these cases:

* The optimizer has no state, and the model moves between the CPU, CUDA, MPS and XPU. A move under FSDP or from the meta
  device is still reported.
* The model was already moved before the optimizer was created.
* Between the two statements, the variable of the model gets a new model.
* The code reads `optimizer.state` and moves the state itself.
* The model moves to the CPU and back.
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

from . import _shared as shared


class OptimizerBeforeMove(Rule[OptimizerOrder]):
    meta = RuleMeta(
        code="DEV111",
        name="optimizer-before-move",
        summary="a model is moved after its optimizer has created state",
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
            return "the state that was loaded stays on the old device"
        if event.stepped:
            return "the state from its earlier steps stays on the old device"
        if event.state_at_once:
            return f"`{maker}` creates state in its constructor, and this state stays on the old device"
        return "the move replaces the parameters, and the optimizer keeps the old ones"

    def _fix(self, event: OptimizerOrder, site: Site) -> Fix:
        title = f"Move {shared.name(event.model)} before its optimizer is created"
        statement = site.statement
        if not event.may_swap or not isinstance(statement, cst.BaseSmallStatement) or site.has_comment(statement):
            return Fix(title, Safety.HINT)
        edits = (Edit(statement, None), InsertStatement(event.optimizer.span, statement))
        return Fix(title, Safety.UNSAFE, edits)
