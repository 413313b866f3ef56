"""A module keeps a tensor in a plain attribute, and the tensor does not move with the module.

## What it flags
The rule reports an attribute of an `nn.Module` when all of these are true:

* The attribute holds a tensor, or a list, a tuple or a dict of tensors.
* The tensor is neither a parameter nor a buffer.
* A method combines the tensor with inputs, parameters or buffers.

There is one more case: the tensor has `requires_grad=True`, and a method passes it to a function together with other
arguments.

## Why it matters
`module.to(device)` moves parameters, buffers and submodules. A plain tensor is not moved. If the module is on an
accelerator, `forward` stops with "Expected all tensors to be on the same device".

## Example
    import torch
    from torch import nn


    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factors = torch.ones(8)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factors

Use instead:

    import torch
    from torch import nn


    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("factors", torch.ones(8), persistent=False)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * self.factors

## Fix safety
The fix registers the attribute as a non-persistent buffer, so checkpoints do not change. The fix is unsafe. `.half()`
and `.double()` also convert a buffer, and `buffers()` lists it.

The rule makes a suggestion without an edit in these cases:

* The attribute is set more than once. `register_buffer` refuses a name that exists.
* The attribute may hold an object that is not a tensor.
* The attribute is a container. Each tensor in the container needs its own buffer.

## Known limits
The rule reports nothing in these cases:

* Every use moves the tensor first.
* The methods use the attribute without other tensors.
* Another method makes the attribute a parameter.
* The base class is not known to be a module.
"""

from __future__ import annotations

from devlint.api import CPU, Edit, Facts, Finding, Fix, Register, Rule, RuleMeta, Safety, Severity, Site, cst

from . import _shared as shared


class UnregisteredTensor(Rule[Register]):
    meta = RuleMeta(
        code="DEV106",
        name="unregistered-tensor",
        summary="a module keeps a tensor in a plain attribute, which does not move with the module",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("torch",),
    )
    event = Register

    def suspects(self, event: Register, facts: Facts) -> bool:
        return event.what in ("tensor", "tensors") and bool(event.uses)

    def judge(self, event: Register, site: Site) -> Finding | None:
        held = {None: "container", "comprehension": "list"}.get(event.container, event.container)
        what = "a plain tensor" if event.what == "tensor" else f"a plain {held} of tensors"
        if event.container == "distribution":
            what = "a distribution of plain tensors"
        line = site.line(event.uses[0].span)
        used = (
            f"it is returned by `forward` on {line}" if event.returned else f"{line} combines it with tensors that move"
        )
        if event.handed_to is not None:
            used = f"it is passed to `{event.handed_to}` on {line}"
        message = f"`self.{event.attribute}` is {what}: it does not move with `{event.class_name}`, but {used}"
        if event.to_be_trained:
            message = (
                f"`self.{event.attribute}` requires a gradient, but it is not a parameter of `{event.class_name}`: "
                f"it does not move with the module, but {used}"
            )
        return Finding(event.span, message, self._fix(event, site), tuple(dict.fromkeys(event.uses + event.because)))

    def _fix(self, event: Register, site: Site) -> Fix:
        if event.what == "tensors":
            return Fix("Register each tensor as a non-persistent buffer", Safety.HINT)
        if event.to_be_trained:
            return self._as_parameter(event, site)
        title = f'Register "{event.attribute}" as a non-persistent buffer'
        statement = site.statement
        surely_a_tensor = event.value.value.device == CPU
        if (
            not surely_a_tensor
            or event.reassigned
            or not isinstance(statement, cst.Assign)
            or len(statement.targets) != 1
        ):
            return Fix(title, Safety.HINT)
        target = statement.targets[0].target
        if not isinstance(target, cst.Attribute) or not isinstance(target.value, cst.Name):
            return Fix(title, Safety.HINT)
        if site.has_comment(statement):
            return Fix(title, Safety.HINT)
        tight = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
        register = cst.Call(
            cst.Attribute(target.value, cst.Name("register_buffer")),
            args=[
                cst.Arg(cst.SimpleString(f'"{event.attribute}"')),
                cst.Arg(shared.as_argument(statement.value)),
                cst.Arg(cst.Name("False"), keyword=cst.Name("persistent"), equal=tight),
            ],
        )
        if not shared.is_initialized(event.span, site.facts):
            return Fix(f"{title}, after `super().__init__()`", Safety.HINT)  # before it a module takes no buffers
        return Fix(title, Safety.UNSAFE, (Edit(statement, cst.Expr(register)),))

    def _as_parameter(self, event: Register, site: Site) -> Fix:
        """`nn.Parameter(torch.zeros(n))` for `torch.zeros(n, requires_grad=True)`."""
        holder = site.spell("torch.nn.Parameter")
        title = f"Make it a parameter: `{holder}`"
        made = site.at(event.value.span)
        if not isinstance(made, cst.Call) or event.reassigned or site.has_comment(made):
            return Fix(title, Safety.HINT)
        if not shared.is_initialized(event.span, site.facts):
            return Fix(f"{title}, after `super().__init__()`", Safety.HINT)
        kept = [arg for arg in made.args if arg.keyword is None or arg.keyword.value != "requires_grad"]
        if kept:
            kept[-1] = kept[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        wrapped = cst.Call(site.expression(holder), args=[cst.Arg(made.with_changes(args=kept))])
        return Fix(title, Safety.UNSAFE, (Edit(made, wrapped),))
