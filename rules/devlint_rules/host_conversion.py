"""A tensor that may be on an accelerator is passed to NumPy or to another library that reads only CPU memory.

## What it flags
The rule reports a tensor that is on an accelerator, or may be, in these cases:

* The code calls `x.numpy()`.
* The tensor is passed to a function of NumPy, matplotlib, scikit-learn, OpenCV, PIL or pandas.
* The tensor is stored in a NumPy array: `scores[:, 0] = x`.
* The tensor is the index of a NumPy array: `labels[order]`.
* The second operand of an operation on the tensor is a NumPy array: `x * weights`.

## Why it matters
These libraries read only CPU memory. `x.numpy()` stops with "can't convert cuda:0 device type tensor to numpy. Use
Tensor.cpu() to copy the tensor to host memory first". Library functions that call `x.numpy()` stop with the same error.

## Example
    import numpy as np
    import torch


    def score(model: torch.nn.Module, images: torch.Tensor) -> float:
        predictions = model(images)
        return float(np.median(predictions.numpy()))

Use instead:

    import numpy as np
    import torch


    def score(model: torch.nn.Module, images: torch.Tensor) -> float:
        predictions = model(images)
        return float(np.median(predictions.detach().cpu().numpy()))

## Fix safety
The fix adds `.cpu()`, and `.detach()` where the tensor may have a gradient. The fix is safe. For a CPU tensor, `.cpu()`
returns the tensor itself and `.detach()` shares its memory. For a tensor with a gradient, the call without `.detach()`
always fails.

The fix is unsafe when the called function may write to the array, for example with `out=`. The tensor would not get the
result.

There is no fix when the edit would remove a comment. For a list of tensors, the rule makes a suggestion without an
edit.

## Known limits
The rule reports nothing in these cases:

* The device of the tensor is unknown.
* The code calls `numpy(force=True)`.
* The call is inside a `try` that catches `TypeError` by name.
* The code belongs to a data set, a sampler or a collate function. These objects run on the CPU.
* NumPy reads the tensor as a number. Examples are one element of an array, `losses[i] = loss`, and an index with one
  element, `labels[x[i : i + 1]]`.
* NumPy keeps the tensor as an object. Examples are an array of objects and `np.nonzero(x)`.

For a function argument, the rule assumes an accelerator only if the file handles devices. If the file calls the
function, at least one of the calls must pass a moved tensor or the output of a model.
"""

from __future__ import annotations

import ast
import builtins

from devlint.api import DeviceMismatch, Edit, Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site, Use, cst

from . import _mismatch as mismatch
from . import _shared as shared
from ._calls import path_to

#: Methods that give the same elements in another form, and are given nothing but numbers.
_VIEWS = frozenset({"view", "reshape", "flatten", "squeeze", "unsqueeze", "permute", "transpose", "t", "contiguous"})


class HostConversion(Rule[Use | DeviceMismatch]):
    meta = RuleMeta(
        code="DEV109",
        name="host-conversion",
        summary="a tensor that may be on an accelerator is passed to a library for CPU data",
        since="0.1.0",
        level="certain / assume",
        severity=Severity.ERROR,
        fix="sometimes",
        words=("torch",),
    )
    event = Use
    also = (DeviceMismatch,)

    def suspects(self, event: Use | DeviceMismatch, facts: Facts) -> bool:
        if isinstance(event, DeviceMismatch):
            return event.code == self.meta.code
        # up to 0.4.1 a tensor copied itself to the host for functions of numpy [torch/tensor.py, `__array__`]
        by_itself = facts.torch_newest is not None and facts.torch_newest < (1, 0) and event.consumer != "numpy"
        return not by_itself and not event.under.catches_named("TypeError")

    def judge(self, event: Use | DeviceMismatch, site: Site) -> Finding | None:
        if isinstance(event, DeviceMismatch):
            return mismatch.judge(event, site)
        consumer = "`.numpy()`" if event.consumer == "numpy" else f"`{event.consumer}`"
        operand = event.operand
        message = f"{shared.name(operand)} {shared.whereabouts(operand.value)}; {consumer} reads only CPU memory"
        span = event.span if event.consumer == "numpy" else operand.span
        return Finding(span, message, self._fix(event, site), shared.trail(event, span))

    def _fix(self, event: Use, site: Site) -> Fix | None:
        node = site.at(event.operand.span)
        if not isinstance(node, cst.BaseExpression) or site.has_comment(node):
            return None
        detached = event.detached or ends_with_detach(event.operand.node)
        methods = ("cpu",) if detached else ("detach", "cpu")
        if event.consumer.startswith("torch."):
            return Fix("Copy the tensor to the CPU first: `.cpu()`", Safety.HINT)
        if event.consumer != "numpy" and not is_one_tensor(event):
            return Fix("Copy each tensor to the CPU", Safety.HINT)
        if event.also_arrays:
            return Fix("Copy the tensor to the CPU where the function is called", Safety.HINT)
        title = f"Copy the tensor to the CPU: `{'.'.join(f'{method}()' for method in methods)}`"
        safety = Safety.UNSAFE if event.consumer == "numpy" and may_be_written(site) else Safety.SAFE
        return Fix(title, safety, (Edit(node, shared.chain(node, *methods)),))


#: Libraries whose functions read the arrays that they are given, and functions that write to what they are given.
_READ = (
    "numpy",
    "scipy",
    "sklearn",
    "matplotlib",
    "pandas",
    "PIL",
    "torch",
    "torchvision",
    "seaborn",
    "imageio",
    "skimage",
)
_WRITE = frozenset({"copyto", "put", "place", "putmask", "put_along_axis", "fill_diagonal", "readinto", "recv_into"})
#: Methods that keep what they are given, and builtins that read it.
_KEEP = frozenset({"append", "extend", "add", "insert", "appendleft", "update", "put", "setdefault"})


def may_be_written(site: Site) -> bool:
    """Whether an array is given to a call that may write to it: a copy on the host would take what is written with it.

    What a call gives back is thrown away where it does something to what it is given, or elsewhere.
    """
    above = path_to(site, site.node)
    if len(above) < 3 or not isinstance(given := above[-2], cst.Arg) or not isinstance(call := above[-3], cst.Call):
        return False
    if given.keyword is not None and given.keyword.value == "out":
        return True
    root, _, rest = site.code(call.func).partition(".")
    qualname = site.facts.imports.get(root, "")
    name = rest.rpartition(".")[2] or qualname.rpartition(".")[2] or root
    if name in _WRITE:
        return not (name in _KEEP and not qualname)
    if not isinstance(site.statement, cst.Expr) or site.statement.value is not call:
        return False
    if qualname:
        return not f"{qualname}.".startswith(tuple(f"{each}." for each in _READ))
    return name not in _KEEP if rest else not hasattr(builtins, name)


def ends_with_detach(node: ast.expr) -> bool:
    """Whether an expression is `x.detach()`, or a view of it: `x.detach().view(-1)`."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr in _VIEWS:
        return ends_with_detach(node.func.value)
    return node.func.attr == "detach"


def is_one_tensor(event: Use) -> bool:
    """Whether the operand is a tensor itself: a list or tuple of tensors has no `cpu`."""
    return not event.several and event.operand.value.kind in ("tensor", "parameter", "buffer")
