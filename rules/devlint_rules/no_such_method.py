"""The code calls a device method, such as `.to`, on an object that does not have this method.

## What it flags
- The code calls `.to`, `.cuda`, `.cpu` or a similar method, and the object has no such method. Examples of objects in
  torch and Python are optimizers, schedulers, data loaders, datasets, gradient scalers, generators, distributions,
  lists, tuples, dicts and numbers.
- The code makes the same call on an object from a library that is not torch. Examples are arrays, data frames, images,
  estimators, noise schedulers, tokenizers and processors of transformers, and torchvision transforms that are not
  modules.
- The code reads `module.device`, but the class `nn.Module` has no attribute `device`.
- A method lacks its parentheses: `x.cpu.numpy()` instead of `x.cpu().numpy()`.
- The code calls an attribute: `x.device()` or `x.is_cuda()`. The attribute `device` is a `torch.device`, and
  `is_cuda` is a bool.

The rule reports an object only if the code proves the type of the object. The class of the object may be in the file.
If it defines the method or attribute, there is no finding.

## Why it matters
The line raises `AttributeError` as soon as it runs. Most of these objects do not need the call. An optimizer keeps its
state on the device of the parameters. A program moves the batches of a data loader in the loop.

## Example
    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters()).to("cpu")

Use instead:

    import torch

    model = torch.nn.Linear(3, 1)
    optimizer = torch.optim.Adam(model.parameters())

## Fix safety
- The fix is safe if the object does not need to move. The fix removes the call, which raises an error on every machine.
- The fix is safe for `x.cpu.numpy()`. It adds the parentheses.
- The fix is safe for `x.device()`. It removes the parentheses.
- Otherwise the rule makes a suggestion without an edit. For example, the items of a list must be moved one by one.

## Known limits
- A value of unknown type is not reported. Most parameters without an annotation are such values.
- A parameter with the annotation `nn.Module` or `Dataset` is not reported. The caller may pass an object of a subclass,
  and the subclass may define the method.
- An object is not reported if its class has a base class from another package.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from devlint.api import (
    ACCELERATORS,
    Call,
    Edit,
    Facts,
    Finding,
    Fix,
    Inferred,
    InferredAttribute,
    InferredCall,
    Operand,
    Part,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
)

from . import _shared as shared

_MOVES = ACCELERATORS | {"to", "cpu"}
_MEMBERS = _MOVES | {"device"}
# Known by annotation only: the object is of a subclass, which may have the name.
_BASES = frozenset(
    "torch." + name
    for name in ("nn.Module", "nn.modules.module.Module", "utils.data.Dataset", "utils.data.dataset.Dataset")
)
_ASKS = ("hasattr", "getattr", "isinstance")  # a condition that looks at the object first

# What the object is called in a message, and what to do instead. The first group needs no move at all.
_NOTHING_MOVES = {
    "optimizer": ("an optimizer", "move the model first; the optimizer state follows its parameters"),
    "scheduler": ("a learning rate scheduler", "the scheduler holds no tensors that must move"),
    "loader": ("a data loader", "move each batch in the loop"),
    "dataset": ("a dataset", "move each batch in the loop"),
    "sampler": ("a sampler", "the sampler draws its indices on the CPU"),
    "scaler": ("a gradient scaler", "the scale is created on the device of the first loss"),
    "autocast": ("an autocast context", "pass the device type as the first argument of autocast"),
}
_OTHERS = {
    "list": ("a list", "move the items: `[x.to(device) for x in ...]`"),
    "tuple": ("a tuple", "move the items: `tuple(x.to(device) for x in ...)`"),
    "dict": ("a dict", "move the values: `{k: v.to(device) for k, v in ....items()}`"),
    "distribution": ("a distribution", "create the distribution from parameters that are on the device"),
    "generator": ("a generator", "create the generator on the device: `torch.Generator(device=...)`"),
    "device": ("a `torch.device`", "pass the device itself to `.to`"),
    "dtype": ("a `torch.dtype`", "remove the call: a dtype has no device"),
    "ndarray": ("an array", "create a tensor first: `torch.as_tensor(x, device=...)`"),
    "number": ("a number", "remove the call: a number has no device"),
    "string": ("a string", "remove the call: a string has no device"),
    "array": ("an array", "create a tensor first: `torch.as_tensor(x, device=...)`"),
    "bool": ("a bool", "remove the call: a bool has no device"),
    "size": ("a `torch.Size`", "remove the call: a size has no device"),
    "tensors": ("a tuple of tensors", "move each of the tensors"),
    "iterator": ("an iterator", "move the items"),
    "module": ("an `nn.Module`", "read the device of a parameter: `next(module.parameters()).device`"),
}
# The same by the family that the call names, for objects of other libraries; whether the call can be dropped without more.
_OF_LIBRARIES = {
    "Tokenizer": ("a tokenizer", 'move the result: `tokenizer(text, return_tensors="pt").to(device)`', True),
    "Processor": ("a processor", 'move the result: `processor(..., return_tensors="pt").to(device)`', True),
    "LRScheduler": ("a learning rate scheduler", "the scheduler holds no tensors that must move", True),
    "NoiseScheduler": ("a noise scheduler", "`set_timesteps(n, device=...)` sets the device of the steps", True),
    "Dataset": ("a dataset", "move each batch in the loop", True),
    "Transform": ("a transform but not a module", "move the result", True),
    "Trainer": ("a trainer", "the trainer moves the model and the batches itself", True),
    "Estimator": ("an estimator", "the estimator computes on the CPU", True),
    "DataFrame": ("a data frame", "create a tensor first: `torch.as_tensor(x.to_numpy(), device=...)`", False),
    "Image": ("an image", "create a tensor first", False),
    "number": ("a number", "a number has no device", True),
}


class _Missing(NamedTuple):
    """A member that an object lacks. `kind`: that of the object, "method" or "attribute" for what is not called, or wrongly."""

    receiver: Operand | Part
    kind: str
    member: str
    is_call: bool
    is_certain: bool  # whether no other object can be there
    is_annotated: bool = False  # whether an annotation alone says what the object is


class NoSuchMethod(Rule[Call | InferredCall | InferredAttribute]):
    meta = RuleMeta(
        code="DEV301",
        name="no-such-method",
        summary="device method on an object that does not have it",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=(".to", ".cuda", ".cpu", ".device", ".is_", ".xpu", ".npu", ".mps", ".mtia", ".hpu", ".ipu", "getattr"),
    )
    event = Call
    also = (InferredCall, InferredAttribute)

    def suspects(self, event: Call | InferredCall | InferredAttribute, facts: Facts) -> bool:
        missing = _missing(event)
        if missing is None or event.under.catches("AttributeError"):
            return False
        if missing.kind in ("method", "attribute"):
            return True
        if not missing.is_call and re.search(rf"\.{missing.member}\s*=[^=]", facts.text) is not None:
            return False  # the file sets it on some object
        if missing.member not in _MEMBERS or any(asks in test for test in event.under.tests for asks in _ASKS):
            return False
        known = missing.kind in _OF_LIBRARIES or missing.kind in _NOTHING_MOVES or missing.kind in _OTHERS
        if isinstance(missing.receiver, Part):
            return known
        return known and (
            missing.receiver.value.type_name not in _BASES or (missing.is_call and missing.member == "device")
        )

    def judge(self, event: Call | InferredCall | InferredAttribute, site: Site) -> Finding | None:
        missing = _missing(event)
        if missing is None:
            return None
        kind, member = missing.kind, missing.member
        if kind == "method":
            return self._uncalled(event, missing, site)
        if kind == "attribute":
            return self._called(event, missing, site)
        if kind in _OF_LIBRARIES:
            name, instead, droppable = _OF_LIBRARIES[kind]
        else:
            name, instead = (_NOTHING_MOVES | _OTHERS)[kind]
            droppable = kind in _NOTHING_MOVES
        what = "method" if missing.is_call else "attribute"
        message = (
            f"{shared.name(missing.receiver)} is {name}, which has no {what} `{member}`: the line raises AttributeError"
        )
        because = event.because
        if not because and isinstance(missing.receiver, Operand):
            because = missing.receiver.value.because
        severity = Severity.WARNING if missing.is_annotated else None
        fix = self._fix(event, missing, site, droppable, instead)
        return Finding(event.span, message, fix, because, severity=severity)

    def _uncalled(self, event: Call | Inferred, missing: _Missing, site: Site) -> Finding:
        """`x.cpu.numpy()`: what is read is an attribute of what the method returns."""
        method = shared.name(missing.receiver)
        message = f"{method} is a method without its parentheses, so it has no attribute `{missing.member}`"
        title = f"Add the parentheses to {method}"
        node = site.at(missing.receiver.span)
        if not isinstance(node, cst.Attribute) or node.attr.value not in ("cpu", "detach"):
            # `x.cuda()` runs with CUDA alone: where to is another question
            return Finding(event.span, message, Fix(title, Safety.HINT), event.because)
        called = node.with_changes(lpar=(), rpar=())
        fix = Fix(title, Safety.SAFE, (Edit(node, cst.Call(called, lpar=node.lpar, rpar=node.rpar)),))
        return Finding(event.span, message, fix, event.because)

    def _called(self, event: Call | Inferred, missing: _Missing, site: Site) -> Finding | None:
        """`x.device()`, `x.is_cuda()`: what is called is a device, or a truth value."""
        member, call = missing.member, site.node
        if not isinstance(call, cst.Call):
            return None
        what = "a `torch.device`" if member == "device" else "a bool"
        message = f"`{missing.receiver.text}.{member}` is {what}, not a method: the call raises TypeError"
        new = call.func.with_changes(lpar=[*call.lpar, *call.func.lpar], rpar=[*call.func.rpar, *call.rpar])
        fix = Fix("Remove the parentheses", Safety.SAFE, (Edit(call, new),))
        if site.has_comment(call):
            fix = Fix("Remove the parentheses", Safety.HINT)
        return Finding(event.span, message, fix, event.because)

    def _fix(
        self,
        event: Call | InferredCall | InferredAttribute,
        missing: _Missing,
        site: Site,
        nothing_moves: bool,
        instead: str,
    ) -> Fix:
        call, member = site.node, missing.member
        droppable = nothing_moves and missing.is_call and missing.is_certain and member in _MOVES
        if not droppable or not isinstance(call, cst.Call) or not isinstance(call.func, cst.Attribute):
            return Fix(instead[0].upper() + instead[1:], Safety.HINT)
        if site.has_comment(call):
            return Fix(instead[0].upper() + instead[1:], Safety.HINT)
        receiver = call.func.value
        title = f"Remove `.{member}(...)`; {instead}"
        if isinstance(receiver, cst.Name | cst.Attribute) and (_is_dropped(event) or _assigns_to(receiver, site)):
            return Fix(title, Safety.SAFE, (Edit(site.statement, None),))
        lpar, rpar = [*call.lpar, *receiver.lpar], [*receiver.rpar, *call.rpar]
        return Fix(title, Safety.SAFE, (Edit(call, receiver.with_changes(lpar=lpar, rpar=rpar)),))


def _missing(event: Call | InferredCall | InferredAttribute) -> _Missing | None:
    """What the object of an event lacks; None where it lacks nothing."""
    if isinstance(event, Call):
        if event.exists is not False or event.receiver is None:
            return None
        family, _, member = event.qualname.rpartition(".")
        is_word = family in ("method", "attribute") or family in _OF_LIBRARIES
        return _Missing(event.receiver, family if is_word else event.receiver.value.kind, member, event.is_call, True)
    part, is_call = event.receiver, isinstance(event, InferredCall)
    if part is None or part.evidence == "likely":
        return None
    if isinstance(event, InferredCall) and event.callee is not None:
        kind = "attribute" if event.callee.kind in ("device", "bool") else ""
        return _Missing(part, kind, event.name, True, True) if kind else None
    if event.exists is not False:
        return None
    is_annotated = part.evidence == "annotated"
    return _Missing(part, part.kind, event.name, is_call, part.evidence != "called", is_annotated)


def _is_dropped(event: Call | InferredCall | InferredAttribute) -> bool:
    return not isinstance(event, InferredAttribute) and event.discarded


def _assigns_to(receiver: cst.BaseExpression, site: Site) -> bool:
    """Whether the statement is `receiver = receiver.to(...)`, of which nothing is left without the call."""
    statement = site.statement
    if not isinstance(statement, cst.Assign) or statement.value is not site.node or len(statement.targets) != 1:
        return False
    return site.code(statement.targets[0].target) == site.code(receiver)
