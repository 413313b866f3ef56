"""A CUDA tensor type is used instead of a dtype and a device.

## What it flags
The rule reports these cases:

* A tensor type such as `torch.cuda.FloatTensor` is called as a constructor.
* A tensor type is passed to `.type`, as a class or as text: `.type("torch.cuda.FloatTensor")`.
* A tensor type is kept in a variable.
* The type of a tensor is compared with a text: `x.type() == "torch.cuda.HalfTensor"`.
* A storage type of `torch.cuda` is used.

## Why it matters
In a torch build without CUDA the constructor raises `TypeError`. With CUDA it creates the tensor on the current GPU and
ignores the device that the program chose. Without data, the constructor returns uninitialized memory. If the argument
is a single number, it is a size, not a value.

## Example
    import torch

    def weights():
        return torch.cuda.FloatTensor([0.1, 0.9])

Use instead:

    import torch

    device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")

    def weights():
        return torch.tensor([0.1, 0.9], dtype=torch.float32, device=device)

## Fix safety
The fix is unsafe, because the tensor moves to the device that the program chose. If no variable in scope holds this
device, the fix adds a variable.

* A list or an array becomes an argument of `torch.tensor`.
* Numbers become the sizes of `torch.empty`. If the code fills the tensor at once, the fix uses `torch.zeros` or
  `torch.ones`.
* A comparison of types becomes a comparison of dtypes. The dtype is the same on every device.

The rule makes a suggestion without an edit in these cases:

* The argument of the constructor may be data or a size.
* The type is kept in a variable.

## Known limits
The rule does not report these cases:

* The code is under a condition that is true only if CUDA is present. The choice
  `torch.cuda.FloatTensor if use_cuda else torch.FloatTensor` contains such a condition too.
* The type is used in `isinstance`, in a tuple or in a comparison of types.
* The type is an argument of `torch.set_default_tensor_type`, which DEV204 reports.
* The file loads CUDA kernels.
* The type is built from text.
"""

from __future__ import annotations

import re

from devlint.api import (
    ApiCall,
    Edit,
    Event,
    Facts,
    Finding,
    Fix,
    LeftAlone,
    Move,
    Portability,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    TypeTest,
    cst,
)

from ._api import dtype_of, is_called, is_legacy_type, is_written_out, service_of, spelled
from ._calls import path_to
from ._conversion import run_device
from ._legacy import modern_tensor
from ._run_device import asked_around, purpose_of, under_condition
from ._shared import parenthesized

_ASKED_DTYPES = frozenset({"torch.float16", "torch.bfloat16", "torch.float64"})
_QUIET_CALLS = frozenset(
    {"isinstance", "issubclass", "torch.set_default_tensor_type", "set_default_tensor_type", "hasattr"}
)


class LegacyCudaType(Rule[Event]):
    meta = RuleMeta(
        code="DEV203",
        name="legacy-cuda-type",
        summary="tensor type of `torch.cuda` instead of a dtype and a device",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("cuda.", "xpu."),
        portability=Portability(stops=True),
    )
    event = Event

    def suspects(self, event: Event, facts: Facts) -> bool:
        return _names_type(event) and self.left_alone(event, facts) is None

    def left_alone(self, event: Event, facts: Facts) -> LeftAlone | None:
        if not _names_type(event):
            return None
        if isinstance(event, ApiCall):
            return service_of(event, facts)
        if isinstance(event, Move):
            for test in event.under.tests:
                if re.search(r"(?i)cuda|gpu", test):
                    return under_condition(test)
            if event.under.allow("cuda"):
                return asked_around("cuda")
            if "cuda" in event.function.lower():
                return LeftAlone(f"`{event.function}` is written for CUDA, as its name says")
        return purpose_of(facts)

    def judge(self, event: Event, site: Site) -> Finding | None:
        if isinstance(event, TypeTest):
            return _test(event, site)
        if isinstance(event, Move):
            name = _given_text(event)
            assert name is not None
            message = f"`.type` with `{name}` moves the tensor to CUDA"
            expression, _ = _in_scope(event, site.facts)
            return Finding(event.span, message, _move(name, site.node, expression, event, site), event.because)
        assert isinstance(event, ApiCall)
        if not event.is_call and is_called(event, site):
            return None
        if not is_written_out(event, site):
            return None  # a variable that was given the type, which is reported where that was done
        around = _argument_of(site)
        if around is not None and site.code(around.func) in _QUIET_CALLS:
            return None
        above = path_to(site, site.node)
        if any(isinstance(node, cst.Comparison | cst.Annotation) for node in above):
            return None
        if not event.is_call and any(isinstance(node, cst.Tuple) for node in above[-3:-1]):
            return None  # types in a row are what `isinstance` asks for; the type itself exists on every build
        message = f"`{spelled(event, site)}` only works with CUDA"
        return Finding(event.span, message, self._fix(event, around, site), event.because)

    def _fix(self, event: ApiCall, around: cst.Call | None, site: Site) -> Fix:
        if not event.is_call:
            if around is not None and isinstance(around.func, cst.Attribute) and around.func.attr.value == "type":
                return _move(event.qualname, around, event.run_device, event, site)
            return Fix("Store a dtype and a device instead", Safety.HINT)
        device = run_device(event.run_device, site, event)
        if device is None:
            return Fix("Use `torch.tensor` or `torch.empty` with a dtype and a device", Safety.HINT)
        outer, filled = _filled(site)
        new = modern_tensor(event, site.expression(device.text), site, filled)
        if new is None or not isinstance(site.node, cst.Call):
            return Fix("Use `torch.tensor` or `torch.empty` with a dtype and a device", Safety.HINT)
        return Fix(
            f"Use `{site.code(new.func)}` with a dtype and a device",
            Safety.UNSAFE,
            (Edit(outer if site.code(new.func) == site.spell(filled or "") else site.node, new),),
            device.needs,
        )


def _names_type(event: Event) -> bool:
    """Whether a tensor type of CUDA is named: called or read, moved to, or compared with."""
    if isinstance(event, ApiCall):
        return is_legacy_type(event.qualname) and not event.under.catches("RuntimeError", "TypeError", "AttributeError")
    if isinstance(event, Move) and event.method == "type":
        text = _given_text(event)
        return (
            text is not None
            and is_legacy_type(text)
            and not event.under.catches("RuntimeError", "TypeError", "AttributeError")
        )
    # a test of float tensors asks where they are
    return isinstance(event, TypeTest) and dtype_of(event.type_name) in _ASKED_DTYPES


def _filled(site: Site) -> tuple[cst.CSTNode, str | None]:
    """The call of `.zero_()` or `.fill_(0)` on the new tensor, and the function that makes it so at once."""
    above = path_to(site, site.node)
    call = above[-3] if len(above) > 2 else None
    if isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute) and call.func is above[-2]:
        given = [site.code(argument.value) for argument in call.args]
        if (call.func.attr.value, given) in (("zero_", []), ("fill_", ["0"]), ("fill_", ["0.0"]), ("fill_", ["0."])):
            return call, "torch.zeros"
        if (call.func.attr.value, given) in (("fill_", ["1"]), ("fill_", ["1.0"]), ("fill_", ["1."])):
            return call, "torch.ones"
    return site.node, None


def _test(event: TypeTest, site: Site) -> Finding | None:
    """`x.type() == "torch.cuda.HalfTensor"` as `x.dtype == torch.float16`."""
    dtype = dtype_of(event.type_name)
    message = f"`.type()` is compared with `{event.type_name}`, but it returns this type only on CUDA"
    if dtype is None or site.has_comment(site.node):
        return None
    subject = site.at(event.subject)
    if not isinstance(subject, cst.BaseExpression):
        return None
    operator: cst.BaseCompOp = cst.Equal() if event.equal else cst.NotEqual()
    target = cst.ComparisonTarget(operator, site.expression(site.spell(dtype)))
    new = cst.Comparison(cst.Attribute(parenthesized(subject), cst.Name("dtype")), [target])
    return Finding(event.span, message, Fix("Compare the dtype", Safety.UNSAFE, (Edit(site.node, new),)), event.because)


def _given_text(event: Move) -> str | None:
    node = event.target_node
    value = getattr(node, "value", None)
    return value if isinstance(value, str) else None


def _in_scope(event: Move, facts: Facts) -> tuple[str | None, bool]:
    """The device of the run as another event of the same function knows it."""
    for other in facts.events:
        if isinstance(other, ApiCall) and other.function == event.function and other.run_device is not None:
            return other.run_device, other.run_device_is_proved
    return None, False


def _move(type_name: str, call: cst.CSTNode, in_scope: str | None, event: Event, site: Site) -> Fix:
    """`x.type(...)` as `x.to(device, dtype)`."""
    dtype = dtype_of(type_name)
    if (
        dtype is None
        or not isinstance(call, cst.Call)
        or not isinstance(call.func, cst.Attribute)
        or len(call.args) != 1
    ):
        return Fix("Move with `.to(device, dtype)`", Safety.HINT)
    device = run_device(in_scope, site, event)
    if device is None:
        return Fix("Move with `.to(device, dtype)`", Safety.HINT)
    moved = call.with_changes(
        func=call.func.with_changes(attr=cst.Name("to")),
        args=[cst.Arg(site.expression(device.text)), cst.Arg(site.expression(site.spell(dtype)))],
    )
    return Fix(f"Use `.to({device.text}, {site.spell(dtype)})`", Safety.UNSAFE, (Edit(call, moved),), device.needs)


def _argument_of(site: Site) -> cst.Call | None:
    """The call whose argument the name is."""
    above = path_to(site, site.node)
    call = above[-3] if len(above) > 2 else None
    return call if isinstance(call, cst.Call) and isinstance(above[-2], cst.Arg) else None
