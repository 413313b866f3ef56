"""A new tensor is created without a device and is then combined with tensors that may be on an accelerator.

## What it flags
A factory call is a call that creates a tensor, such as `torch.zeros` or `torch.arange`. Without a device it creates a
CPU tensor. The rule reports the call when an operation combines this tensor with an argument, a parameter, a buffer or
a gradient. It also reports the call when the operation uses a view of the new tensor, or a result that is computed from
it.

The rule also reports these cases:

* The values of a tensor on an accelerator are copied into the new tensor. The rule reports this in `forward`, and in
  functions whose tensor arguments are annotated. It does not report it if the file also uses another array library.
* The new tensor gets its size from a tensor that may be on an accelerator, and the function returns or keeps the new
  tensor. The result stays on the CPU.
* A function returns the new tensor on one path. On other paths it returns a result computed from its arguments.
* A function creates several tensors from host data and returns them. It moves all of these tensors except one.
* The new tensor stays in a list that also holds tensors on an accelerator.
* The new tensor is sent through the default process group, and NCCL accepts no CPU tensor. The rule reports nothing if
  the file creates the process group without a backend, or if other code chooses the backend.

The finding points to the call that creates the tensor. The call may be inside a helper function that has no `device`
argument and gets no tensor that may be on an accelerator. The finding then points to the call of the helper.

The other operand counts as a tensor in these cases:

* The operand comes from an argument, and the operation accepts only tensors: `torch.cat([torch.ones(n, 1), data.x])`.
* The operand is a field of a data class or a named tuple, and the field is annotated as a tensor.
* The name of the operand says that it is a loss, and a method of a module or a loss adds the operand in place to a CPU
  scalar.

## Why it matters
A new tensor without a device is the most common device bug. The code works on the CPU, where it is tested. The code
stops with "Expected all tensors to be on the same device" as soon as its inputs are on an accelerator.

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
The fix adds `device=` to the factory call. The fix never uses `zeros_like` or `new_zeros`, because these functions
would also copy the dtype of the other tensor. Some constructors accept no `device`, such as `torch.from_numpy` and
`torch.FloatTensor`. The fix adds `.to(...)` after them, and after helpers without a `device` argument.

The fix is safe when an operation combines the two tensors. Where the program works without the fix, both tensors are on
one device, and the fix changes nothing.

The fix is unsafe in these cases:

* The result stays on the CPU, and nothing fails. Later code may rely on a CPU tensor.
* The code writes an element of the other tensor. The new tensor may be 0-dim, and torch copies a 0-dim tensor from any
  device.
* The code does not say on which device the other tensor is.

The rule makes a suggestion without an edit in these cases:

* The call has `**kwargs`.
* The edit would remove a comment.
* No variable in scope holds the device.

## Known limits
Most findings assume that tensor arguments and module parameters may be on an accelerator. The rule reports nothing in
these cases:

* The other operand is not known to be a tensor, or it may be a Python number.
* The other operand is only passed to a module of the project, and this module does not compute with it.
* The call comes after `torch.set_default_device` or is inside `with torch.device(...)`.
* A condition or a flag ensures that the operation does not run after the tensor is created.
* The tensor is a part of a batch, and the other parts are moved.
* The tensor is a buffer, and every computation moves a copy of it.
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

from . import _mismatch as mismatch
from . import _shared as shared
from ._calls import with_keyword

#: In how many places a fix may create the tensor.
PLACES = 8


class NewTensorDefaultDevice(Rule[Meet | DeviceMismatch]):
    meta = RuleMeta(
        code="DEV102",
        name="new-tensor-default-device",
        summary="a tensor made without a device is combined with tensors that may be on an accelerator",
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
        return f"`{handed.helper}(...)`{option} returns a CPU tensor (made by `{creation.function}` on {line})"

    def _consequence(self, event: Meet, site: Site) -> str:
        """What becomes of the new tensor, as the rest of the sentence."""
        other = f"{shared.name(event.other)}, {shared.which(event.other.value)}"
        line = f"on {site.line(event.span)}"
        if event.how == "copy":
            return f" that stays on the CPU; {other}, is copied into it {line}"
        if event.how == "buffer":
            return f" that replaces the buffer `self.{event.operation}` {line}; a buffer moves with the module"
        if event.how == "kept":
            return f" that stays in some items; {other}, is stored in other items {line}"
        if event.how == "paths":
            return f" that is returned here; other paths return a tensor that {shared.whereabouts(event.other.value)}"
        if event.how == "beside":
            return f" that is returned {line}, together with {other}"
        if event.how == "collective":
            return f"; {shared.name(event.other)} {line} sends it through the process group, and NCCL accepts no CPU tensors"
        if event.how == "size":
            return f" with the size of {other}; the CPU tensor leaves the function {line}"
        return f"; in {shared.operation(event)} {line} it meets {other}"

    def _fix(self, event: Meet, site: Site) -> Fix:
        """Every call that has a part in the tensor gets its device; a hint where one of them cannot."""
        edits = []
        title = "Create the tensor on the device of " + shared.name(event.other)
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
            title = f"Create the tensor on `{device}`" if _is_created(creation) else f"Move the result to `{device}`"
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
