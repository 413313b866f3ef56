"""The code moves a new parameter, or a tensor that it will train, and the result of the move is a plain tensor.

## What it flags
The rule reports three cases:

* A new parameter is moved: `nn.Parameter(...).to(device)`, `nn.Parameter(...).cuda()` and similar calls.
* A new tensor with `requires_grad=True` is moved, and an optimizer gets the result:
  `torch.zeros(3, requires_grad=True).to(device)`.
* `x = x.to(device)` follows `x.requires_grad = True`, and the code later reads `x.grad`.

## Why it matters
A move to another device returns a new tensor. The new tensor is not a parameter: for torch, it is a result that was
computed from the parameter. The result has three problems:

* It collects no gradient, because torch collects gradients only for the original parameter.
* The module does not register it, and `parameters()` does not list it.
* An optimizer refuses it with "can't optimize a non-leaf Tensor".

On a machine without an accelerator the same line returns the parameter itself, and the code works.

## Example
    import torch
    from torch import nn


    class Scale(nn.Module):
        def __init__(self, initial: torch.Tensor, device: torch.device) -> None:
            super().__init__()
            self.factor = nn.Parameter(initial).to(device)

Use instead:

    import torch
    from torch import nn


    class Scale(nn.Module):
        def __init__(self, initial: torch.Tensor, device: torch.device) -> None:
            super().__init__()
            self.factor = nn.Parameter(initial.to(device))

## Fix safety
The fix moves the data before the parameter is created. The fix is safe. If the move changes nothing, the result is the
same. If the move copies the tensor, the program without the fix has no parameter.

If a factory call creates the data, the fix adds `device=` to the call. The fix with `device=` is unsafe when the values
depend on the device, as random numbers do. The fix for a tensor with `requires_grad=True` follows the same rules.

If the move has further arguments, or the edit would remove a comment, the rule makes a suggestion without an edit.

## Known limits
The rule reports nothing in these cases:

* The tensor moves to the CPU or to a dtype.
* The argument of `.to` may be something other than a device, such as a dtype.
* The parameter has `requires_grad=False`, so it is not trained.
* The code writes the result into `_parameters` of a module.
* The parameter is assigned to a name before the move.
* The moved tensor is assigned to a variable with a different name.
"""

from __future__ import annotations

import ast

from devlint.api import (
    Edit,
    Event,
    Facts,
    Finding,
    Fix,
    Move,
    NoLeaf,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
    describe,
    may_be_accelerator,
)

from . import _shared as shared
from ._calls import with_keyword

_EXACT = frozenset("torch." + name for name in ("zeros", "ones", "full", "empty", "eye", "tensor"))


class TransferredParameter(Rule[Event]):
    meta = RuleMeta(
        code="DEV108",
        name="transferred-parameter",
        summary="moving a new `nn.Parameter`, or a tensor to be trained, returns a plain tensor",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("Parameter", "requires_grad"),
    )
    event = Event

    def suspects(self, event: Event, facts: Facts) -> bool:
        if isinstance(event, NoLeaf):
            return True
        if (
            not isinstance(event, Move)
            or event.target is None
            or not may_be_accelerator(event.target.device)
            or event.discarded
        ):
            return False
        if event.target.device & event.receiver.value.device:
            return False  # the data is there already, on some path at least
        made = event.receiver.node
        if event.receiver.value.kind != "parameter" or not isinstance(made, ast.Call) or not made.args:
            return False
        if not ast.unparse(made.func).rpartition(".")[2].endswith("Parameter"):
            return False
        if event.target_node is not None and is_where(made.args[0], event.target_node):
            return False
        return not any(k.arg == "requires_grad" and ast.unparse(k.value) == "False" for k in made.keywords)

    def judge(self, event: Event, site: Site) -> Finding | None:
        if isinstance(event, NoLeaf):
            made, target = shared.short(event.receiver.text), describe(event.target.device)
            message = (
                f"moving `{made}` to {target} returns a tensor that is not a leaf: it collects no gradient, and an optimizer "
                "refuses it"
            )
            return Finding(event.span, message, _made_there(event, site), event.because)
        assert isinstance(event, Move) and event.target is not None
        if is_registered_by_hand(site.statement):
            return None
        made = shared.short(event.receiver.text)
        message = (
            f"moving `{made}` to {describe(event.target.device)} returns a plain tensor, not a parameter: "
            "the module does not register it, and an optimizer refuses it"
        )
        return Finding(event.span, message, self._fix(event, site), shared.trail(event, event.span))

    def _fix(self, event: Move, site: Site) -> Fix:
        call = site.node
        title = "Move the data before the parameter is made"
        hint = Fix(title, Safety.HINT)
        if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or site.has_comment(call):
            return hint
        made = call.func.value
        if not event.only_device or not isinstance(made, cst.Call) or not made.args or made.args[0].star:
            return hint
        data = made.args[0].value
        safety = Safety.SAFE
        creation = next((c for c in event.receiver.value.made if c.span == site.span(data)), None)
        if creation is not None and creation.handed is None and creation.takes_device and isinstance(data, cst.Call):
            if event.method != "to":
                return hint
            moved: cst.BaseExpression = with_keyword(data, "device", call.args[0].value)
            safety = Safety.SAFE if creation.function in _EXACT else Safety.UNSAFE
            title = "Create the data on its device"
        else:
            moved = call.with_changes(func=call.func.with_changes(value=shared.parenthesized(data)), lpar=(), rpar=())
        built = made.with_changes(
            args=[made.args[0].with_changes(value=moved), *made.args[1:]], lpar=call.lpar, rpar=call.rpar
        )
        return Fix(title, safety, (Edit(call, built),))


def _made_there(event: NoLeaf, site: Site) -> Fix:
    """`torch.zeros(3, requires_grad=True).to(device)` as `torch.zeros(3, device=device, requires_grad=True)`."""
    named = isinstance(event.receiver.node, ast.Name)
    hint = Fix(
        "Move the tensor before it requires gradients" if named else "Create the tensor on its device", Safety.HINT
    )
    call = site.node
    if not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute) or site.has_comment(call):
        return hint
    made, creation = call.func.value, next(iter(event.receiver.value.made), None)
    if creation is None or creation.handed is not None or not creation.takes_device or not event.only_device:
        return hint
    if (
        event.method != "to"
        or len(call.args) != 1
        or not isinstance(made, cst.Call)
        or creation.span != site.span(made)
    ):
        return hint
    safety = Safety.SAFE if creation.function in _EXACT else Safety.UNSAFE
    built = with_keyword(made, "device", call.args[0].value).with_changes(lpar=call.lpar, rpar=call.rpar)
    return Fix("Create the tensor on its device", safety, (Edit(call, built),))


def is_registered_by_hand(statement: cst.CSTNode | None) -> bool:
    """Whether a statement puts something where a module keeps its parameters: `module._parameters[name] = ...`."""
    if not isinstance(statement, cst.Assign):
        return False
    kept = (t.target.value for t in statement.targets if isinstance(t.target, cst.Subscript))
    return any(isinstance(each, cst.Attribute) and each.attr.value == "_parameters" for each in kept)


def is_where(data: ast.expr, target: ast.expr) -> bool:
    """Whether what a parameter is made of comes from where it is moved: `Parameter(p.data.float()).to(p.device)`."""
    while isinstance(data, (ast.Attribute, ast.Call)):
        data = data.func if isinstance(data, ast.Call) else data.value
        if ast.unparse(target) == f"{ast.unparse(data)}.device":
            return True
    return False
