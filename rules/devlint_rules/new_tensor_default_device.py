"""A new tensor is made without a device and then meets tensors that may be on an accelerator.

## What it flags
A factory call such as `torch.zeros` or `torch.arange` that names no device, so that its tensor is on the CPU, when that
tensor, or a view of it, or arithmetic on it, then meets a tensor of an argument, a parameter, a buffer or a gradient.
Also one that such a tensor's values are written into, in a module's `forward` and in functions on annotated tensors of
a file that works with torch alone, or that is made in the size of such a tensor and is returned or kept: its result
stays on the CPU. So does one that a function returns on one path where its other paths return what is computed from its
arguments, one of host data that is returned together with others of which each was moved, one that stays in a list beside
an accelerator's tensors, and one that is sent through the default process group, since NCCL takes no CPU tensor; not
where the file makes that group without a backend, or leaves the backend to other code.
It is reported where the tensor is made; where that is a helper without a device
(no tensor that may be on an accelerator, no `device` that it is given), at the call of the helper. Where what it meets is
a tensor by the operation alone, and comes from an argument (`torch.cat([torch.ones(n, 1), data.x])`), that counts as well.
So does what the annotated fields of a data class or a named tuple hold, and, in a method of a module or of a loss, what
has the name of a loss and is added in place to a scalar of the CPU.

## Why it matters
This is the commonest device bug: the code works on the CPU, where it is tested, and stops with "Expected all tensors
to be on the same device" as soon as its inputs are on an accelerator.

## Example
    import torch


    def shift(x: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(x.shape[-1])
        return x + steps

Use instead:

    import torch


    def shift(x: torch.Tensor) -> torch.Tensor:
        steps = torch.arange(x.shape[-1], device=x.device)
        return x + steps

## Fix safety
Safe where the new tensor meets the other in an operation: where the program works today, both are on one device
already. Unsafe where a result merely stays on the CPU, since what follows may count on that, where an element of a tensor is
written, which may be 0-dim, and where nothing says where the other tensor is.
Only `device=` is added, never `zeros_like` or `new_zeros`, which would take the dtype of the
other tensor too. Constructors that take no `device`, such as `torch.from_numpy` and `torch.FloatTensor`, are followed
by `.to(...)` instead, and so are calls of helpers that take none. There is no fix next to `**kwargs`, across a comment,
or where nothing in scope says the device; then it is a hint.

## Known limits
Mostly assumes that a function's tensor arguments and a module's parameters may be on an accelerator. Silent where what the
tensor meets is not known to be a tensor, where it may be a scalar itself, where a module of the project takes it and does
not compute with it, after `torch.set_default_device` or inside `with torch.device(...)`, where a condition or a flag keeps
the path that makes the tensor from the place where it would meet another, for a part of a batch that stays while others
are moved, and for a buffer of which every computation moves a copy.
"""

from __future__ import annotations

import ast
import re

from devlint.api import (
    Creation,
    DeviceMismatch,
    Edit,
    Facts,
    Finding,
    Fix,
    Meet,
    Operand,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
)
from devlint_rules import _mismatch as mismatch
from devlint_rules import _shared as shared
from devlint_rules._calls import with_keyword

#: In how many places a fix may create the tensor.
PLACES = 8


class NewTensorDefaultDevice(Rule[Meet | DeviceMismatch]):
    meta = RuleMeta(
        code="DEV102",
        name="new-tensor-default-device",
        summary="a tensor made without a device meets tensors that may be on an accelerator",
        since="0.1.0",
        level="certain / assume",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("torch",),
    )
    event = Meet
    also = (DeviceMismatch,)

    def suspects(self, event: Meet | DeviceMismatch, facts: Facts) -> bool:
        if isinstance(event, DeviceMismatch):
            return event.code == self.meta.code
        return shared.owner(event) == "DEV102" and not shared.was_taken(event, facts)

    def judge(self, event: Meet | DeviceMismatch, site: Site) -> Finding | None:
        if isinstance(event, DeviceMismatch):
            return mismatch.judge(event, site)
        first = event.off.value.made[0]
        does = f"`{first.function}` makes a CPU tensor" if first.handed is None else self._gives(first, site)
        message = f"{does}{self._consequence(event, site)}"
        trail = shared.trail(event, first.span)
        if first.handed is not None and all(origin.span != first.handed.factory.span for origin in trail):
            trail = (first.handed.factory, *trail)
        return Finding(first.span, message, self._fix(event, site), trail)

    def _gives(self, creation: Creation, site: Site) -> str:
        """What the call of a helper gives that has no device of its own."""
        handed = creation.handed
        assert handed is not None
        line = site.line(handed.factory.span)
        option = "" if handed.option is None else f" without a `{handed.option}`"
        return f"`{handed.helper}(...)`{option} gives a CPU tensor (made by `{creation.function}` on {line})"

    def _consequence(self, event: Meet, site: Site) -> str:
        """What becomes of the new tensor, as the rest of the sentence."""
        other = f"{shared.name(event.other)}, which {shared.whereabouts(event.other.value)}"
        line = f"on {site.line(event.span)}"
        if event.how == "copy":
            return f" and stays on the CPU; {other}, is written into it {line}"
        if event.how == "buffer":
            return f" and takes the place of the buffer `self.{event.operation}` {line}, which moves with the module"
        if event.how == "kept":
            return f" and stays where it is not replaced; {other}, is put beside it {line}"
        if event.how == "paths":
            return f" that is returned here; what other paths return {shared.whereabouts(event.other.value)}"
        if event.how == "beside":
            return f" that is returned {line}, beside {other}"
        if event.how == "collective":
            return (
                f"; {shared.name(event.other)} {line} sends it through the process group, and NCCL takes no CPU tensor"
            )
        if event.how == "size":
            return f" in the size of {other}, and leaves the function {line}"
        return f"; it meets {other}, in {shared.operation(event)} {line}"

    def _fix(self, event: Meet, site: Site) -> Fix:
        """Every call that has a part in the tensor gets its device; a hint where one of them cannot."""
        edits = []
        title = "Create it on the device of " + shared.name(event.other)
        if len(event.off.value.made) > PLACES:
            return Fix(f"{title}: pass `device=`", Safety.HINT)
        for creation in event.off.value.made:
            device = (
                _of_size(event.other, creation)
                or _of_measured(event.other, creation, site)
                or shared.device_of(event.other, creation.scope, site.facts, creation.span)
            )
            edit = self._edit(creation, device, site) if device is not None else None
            if edit is None or device is None:
                return Fix(f"{title}: pass `device=`", Safety.HINT)
            edits.append(edit)
            title = f"Create it on `{device}`" if _is_created(creation) else f"Move what it gives to `{device}`"
        stays = event.how in ("copy", "size", "kept", "paths", "buffer", "beside") or _may_write_number(event)
        safety = Safety.UNSAFE if stays or event.other.value.is_unplaced else Safety.SAFE
        return Fix(title, safety, tuple(edits))

    def _edit(self, creation: Creation, device: str, site: Site) -> Edit | None:
        if self._binds(creation, device.partition(".")[0], site):
            return None
        call = site.at(creation.span)
        if not isinstance(call, cst.Call) or site.has_comment(call):
            return None
        written = site.expression(device)
        if creation.handed is not None and creation.handed.option is None:
            return Edit(call, shared.moved(call, written)) if creation.handed.whole else None
        if any(argument.star == "**" for argument in call.args):
            return None
        if creation.handed is not None and creation.handed.option is not None:
            return Edit(call, with_keyword(call, creation.handed.option, written))
        if not creation.takes_device:
            return Edit(call, shared.moved(call, written))
        return Edit(call, with_keyword(call, "device", written))

    def _binds(self, creation: Creation, name: str, site: Site) -> bool:
        """Whether the call's statement gives `name` its first value: `x = torch.zeros(3)`, as under `if x is None`."""
        statement = site.statement_at(creation.span)
        if not isinstance(statement, cst.Assign):
            return False
        targets = {site.code(target.target).strip() for target in statement.targets}
        return name in targets and not re.search(rf"\b{re.escape(name)}\b", site.code(statement.value))


def _may_write_number(event: Meet) -> bool:
    """Whether what is written at an index is an element of a tensor, which may be 0-dim and is taken from any device then."""
    written = event.other.node
    if event.how != "index" or not isinstance(written, ast.Subscript):
        return False
    parts = written.slice.elts if isinstance(written.slice, ast.Tuple) else [written.slice]
    return not any(isinstance(part, ast.Slice) for part in parts)


def _of_size(other: Operand, creation: Creation) -> str | None:
    """The device of a tensor that the factory call itself asks for its size: `torch.zeros(layer.weight.shape)`."""
    asked = creation.span.start < other.span.start and other.span.end < creation.span.end
    return f"{other.text}.device" if asked and other.value.kind == "tensor" else None


def _of_measured(other: Operand, creation: Creation, site: Site) -> str | None:
    """The device of a tensor that the new one is as large as, and that what it meets is computed from.

    `torch.eye(grad.shape[0])` that meets `torch.outer(grad, grad)`: another tensor in scope may be elsewhere.
    """
    call = ast.parse(site.code(site.at(creation.span)).strip(), mode="eval")
    operands = {ast.unparse(node) for node in ast.walk(other.node) if isinstance(node, ast.Name | ast.Attribute)}
    for node in ast.walk(call):
        if isinstance(node, ast.Attribute) and node.attr in ("shape", "size"):
            measured = ast.unparse(node.value)
            value = creation.scope.get(measured)
            if measured in operands and value is not None and value.kind == "tensor":
                return f"{measured}.device"
    return None


def _is_created(creation: Creation) -> bool:
    """Whether the call to blame can be told a device, or is the factory itself."""
    return creation.handed is None or creation.handed.option is not None
