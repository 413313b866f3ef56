"""A function that takes a device or a device type gets an argument of the wrong kind.

## What it flags
- `.cuda(True)`: the first parameter is the device. The caller meant `non_blocking`.
- `.cuda(cuda_device=0)`: the method has no parameter `cuda_device`.
- `torch.device(True)` and `torch.device(config.dtype)`: a flag or a dtype is not a device.
- `dtype=x.get_device()`: a device is given as the dtype.
- `x.to(x)`: the tensor is moved to its own device, so the call does nothing.
- `x.to(other=y)`: torch calls this parameter `tensor`. Only the documentation calls it `other`.
- `torch.FloatTensor(data, device=...)` and similar constructors: these constructors create CPU tensors only.
- `torch.autocast(device)` and `torch.amp.GradScaler(device)` with a `torch.device`: both functions take the device
  type, which is a string.
- `torch.autocast()`, `torch.autocast(torch.bfloat16)` and `torch.get_device()`: the device type or the tensor is
  missing.
- `torch.device("gpu:0")`, `x.to("CUDA")`, `device=f"gpu:{i}"`, `f"cuda{rank}"`: torch does not know these device
  names.
- `x.to(torch.device)` and `device=torch.device`: the class is given instead of a device.
- `torch.tensor(x, device)` and `torch.zeros(n, "cuda")`: `device` is a keyword-only argument.
- `torch.from_numpy(x, device=d)`, `torch.stack(xs, dev=d)` and `model.load_state_dict(state, map_location=d)`: these
  functions do not take a device.
- `torch.cuda.device(n)` as a statement: `torch.cuda.device` is a context manager, so the statement does nothing.
- `place = torch.cuda.device(n)` with `x.to(place)`: the context manager is no device, so the move raises an error.

With `inference = "new"`, the rule also follows values. It reports `x.cuda(wait)` if `wait` is a bool, and a device name
or a dtype that comes from a function, an attribute or a caller.

## Why it matters
Most of these calls raise an error at once, or on the first machine with an accelerator. `x.to(x)` does nothing,
although the author meant `x.to(device)`. The gradient scaler accepts any argument. With a wrong argument, it stays
enabled on machines without the device.

## Example
    import torch

    def step(model, x: torch.Tensor):
        with torch.autocast(x.device):
            return model(x)

Use instead:

    import torch

    def step(model, x: torch.Tensor):
        with torch.autocast(x.device.type):
            return model(x)

## Fix safety
- The fix is safe for calls that raise an error on every machine: `.cuda(True)`, `x.to(other=y)`, `autocast(device)`, an
  unknown device name, a `device` without its keyword, and a device for a function that does not take a device.
- The fix is unsafe for the gradient scaler and for the constructors that create CPU tensors only. It is also unsafe for
  the statement `torch.cuda.device(n)`, which becomes `set_device`, and for the context manager that becomes a
  `torch.device`.
- Otherwise the rule makes a suggestion without an edit.

## Known limits
An argument is not reported if it may be of the right kind. Examples are a command-line option and a parameter without
an annotation.
"""

from __future__ import annotations

import ast
import re
from dataclasses import replace
from typing import NamedTuple

from devlint.api import (
    CPU,
    ApiCall,
    Call,
    CudaMethod,
    Edit,
    Event,
    Facts,
    Finding,
    Fix,
    InferredCall,
    NoDevice,
    Operand,
    Origin,
    Part,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    Span,
    cst,
)

from ._api import argument, is_device_object, spelled
from ._given import context_as_device
from ._legacy import keyword, modern_tensor
from ._shared import moved, parenthesized

_OLD = frozenset(
    f"torch.{kind}Tensor"
    for kind in ("", "Float", "Double", "Half", "BFloat16", "Byte", "Char", "Short", "Int", "Long", "Bool")
)
_AUTOCAST = frozenset({"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"})
_SCALER = frozenset({"torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler"})
_MEANT = frozenset({"cuda_device", "device_id", "gpu", "gpu_id"})
_TAKEN = frozenset({"device", "non_blocking", "memory_format", "async"})
_DTYPE = re.compile(r"torch\.(?:bfloat16|float16|float32|float64|half|float|double)\Z")
#: What devices are called where a function takes none.
_DEVICES = frozenset({"device", "dev", "map_location"})
_NO_DEVICE = "torch has no device `{}`: the call raises RuntimeError"
_USE_A_NAME = "Use a device name of torch: `cuda`, `cuda:0` or `cpu`"
_NAME = re.compile(r"(?:cpu|cuda|xpu|mps)(?::\d+)?\Z")
#: What takes a device first [torch/_C/__init__.pyi, torch/nn/modules/module.py].
_PLACED = frozenset({"torch.device"})
_FLAGGED = frozenset({"cuda", "xpu"})
_MOVES = _FLAGGED | {"to"}
_CONTEXT = "torch.cuda.device"
_CHOOSE = "Make a `torch.device` for the moves"
_STATEMENTS = {
    "torch.cuda.device": "torch.cuda.set_device",
    "torch.accelerator.device_index": "torch.accelerator.set_device_index",
}


class WrongDeviceArgument(Rule[Event]):
    meta = RuleMeta(
        code="DEV303",
        name="wrong-device-argument",
        summary="wrong kind of argument for a device or device type",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="sometimes",
        words=(
            ".cuda(",
            ".to(",
            "Tensor(",
            "device(",
            "device=",
            "dtype=",
            "dev=",
            "map_location",
            "autocast",
            "GradScaler",
            "device_index",
            ".xpu(",
        ),
    )
    event = Event
    also = (InferredCall,)

    def suspects(self, event: Event, facts: Facts) -> bool:
        if isinstance(event, InferredCall):
            said = {each.text for each in facts.events if isinstance(each, NoDevice)}
            wrong = _wrong(event)
            return wrong is not None and not (wrong.what == "text" and wrong.part.constant in said)
        if isinstance(event, CudaMethod):
            return _flag(event) is not None or (_unknown(event) is not None and "def cuda(" not in facts.text)
        if isinstance(event, NoDevice):
            of_text = event.text is not None and not event.is_class
            return not event.under.catches("RuntimeError" if of_text else "TypeError")
        if isinstance(event, Call):
            return is_move_to_itself(event) or is_device_as_dtype(event) or is_beside_other(event)
        if not isinstance(event, ApiCall) or not event.is_call or event.under.catches("RuntimeError", "TypeError"):
            return False
        what = self._what(event)
        if what == "context":
            found = context_as_device(facts)
            return found is not None and isinstance(event.node, ast.Call) and _place(found.node) == _place(event.node)
        # under another default tensor type the legacy constructors are those of that type's device
        return what != "" and not (what == "old" and "set_default_tensor_type" in facts.text)

    def _what(self, event: ApiCall) -> str:
        """Which of the mistakes it is, "" for none."""
        name = event.qualname
        if name == "torch.device":
            given = argument(event, "type", 0) or argument(event, "device", 0)
            if given is not None and (_DTYPE.match(given.text) or given.text.endswith(".dtype")):
                return "dtype as device"
            return "bool" if given is not None and isinstance(given.value.constant, bool) else ""
        if name in _OLD:
            given = event.arguments.get("device")
            return "old" if given is not None and given.value.kind != "none" and given.value.device != CPU else ""
        if name in _AUTOCAST or name in _SCALER:
            given = _typed(event)
            if given is None:
                return "missing" if name in _AUTOCAST and not event.star else ""
            return "device" if is_device_object(given) else "dtype" if _DTYPE.match(given.text) else ""
        if name == "torch.get_device":
            return "missing" if not event.arguments and not event.star else ""
        return "statement" if name in _STATEMENTS and event.discarded else "context" if name == _CONTEXT else ""

    def judge(self, event: Event, site: Site) -> Finding | None:
        if isinstance(event, InferredCall):
            return self._inferred(event, site)
        if isinstance(event, CudaMethod):
            return self._flagged(event, site)
        if isinstance(event, NoDevice) and event.is_class:
            message = f"`{site.code(site.node)}` is the class of devices, not a device"
            return Finding(event.span, message, Fix("Pass a device instead of the class", Safety.HINT))
        if isinstance(event, NoDevice) and event.by_place is not None:
            return _by_place(event, event.by_place, site)
        if isinstance(event, NoDevice):
            return _said(event, event.text, site) if event.text is not None else _not_taken(event, site)
        if isinstance(event, Call) and is_device_as_dtype(event):
            device = event.arguments["dtype"]
            return Finding(
                device.span, f"`dtype` gets a device: `{device.text}`", Fix("Use the keyword `device=`", Safety.HINT)
            )
        if isinstance(event, Call) and is_beside_other(event):
            return _by_other(event, site)
        if isinstance(event, Call):
            name = event.arguments["0"].text
            message = f"`{name}.to({name})` moves `{name}` to its own device, so it does nothing"
            return Finding(event.span, message, Fix("Pass the device to move to", Safety.HINT))
        assert isinstance(event, ApiCall)
        what, name, call = self._what(event), spelled(event, site), site.node
        if not isinstance(call, cst.Call):
            return None
        if what == "bool":
            return Finding(
                event.span, f"`{name}` takes a device type or an index, not a bool", Fix("Pass a device", Safety.HINT)
            )
        if what == "dtype as device":
            fix = Fix("Pass a device here, and pass the dtype as `dtype=`", Safety.HINT)
            return Finding(event.span, f"`{name}` takes a device, not a dtype", fix)
        if what == "missing":
            text = "the device type" if event.qualname in _AUTOCAST else "a tensor"
            return Finding(event.span, f"`{name}` needs {text} as its first argument", Fix(f"Pass {text}", Safety.HINT))
        if what == "dtype":
            given = _typed(event)
            assert given is not None
            message = f"the first argument of `{name}` is the device type, but `{given.text}` is a dtype"
            return Finding(
                event.span, message, Fix("Pass the device type first, and the dtype as `dtype=`", Safety.HINT)
            )
        if what == "statement":
            new = site.spell(_STATEMENTS[event.qualname])
            fix = Fix(f"Use `{new}`, or a `with` statement", Safety.UNSAFE, (Edit(call.func, site.expression(new)),))
            return Finding(event.span, f"`{name}` is a context manager, so the statement does nothing", fix)
        if what == "context":
            found = context_as_device(site.facts)
            assert found is not None
            fix = Fix(_CHOOSE, Safety.HINT)
            if not found.is_entered:
                fix = Fix(
                    "Use `torch.device`", Safety.UNSAFE, (Edit(call.func, site.expression(site.spell("torch.device"))),)
                )
            message = f"`{name}` makes a GPU current in a `with` statement, but `{found.name}` is used as a device"
            return Finding(event.span, message, fix)
        if what == "device":
            given = _typed(event)
            assert given is not None
            return _untyped(name, event.qualname, given, given.value.because, site)
        named = site.at(event.arguments["device"].span)
        assert isinstance(named, cst.BaseExpression)
        modern = modern_tensor(event, named, site)
        fix = Fix("Use `torch.tensor` or `torch.empty` with a dtype", Safety.HINT)
        if modern is not None:
            fix = Fix(f"Use `{site.code(modern.func)}` with a dtype", Safety.UNSAFE, (Edit(call, modern),))
        message = f"`{name}` creates CPU tensors only, so it raises an error for any other `device`"
        return Finding(event.span, message, fix, event.because)

    def _flagged(self, event: CudaMethod, site: Site) -> Finding | None:
        call = site.node
        if not isinstance(call, cst.Call) or not call.args:
            return None
        unknown = _unknown(event)
        if unknown is not None:
            message = f"`.{event.type}` has no parameter `{unknown}`; the device is its first argument"
            given = next(a for a in call.args if a.keyword is not None and a.keyword.value == unknown)
            if unknown not in _MEANT or len(call.args) > 1:
                return Finding(event.span, message, Fix("Pass only the device", Safety.HINT))
            edit = Edit(given, cst.Arg(given.value))
            return Finding(event.span, message, Fix(f"Remove the keyword `{unknown}=`", Safety.SAFE, (edit,)))
        return _as_keyword(event, event.type, str(_flag(event)), call)

    def _inferred(self, event: InferredCall, site: Site) -> Finding | None:
        """A wrong argument by its value, wherever that comes from."""
        wrong, call = _wrong(event), site.node
        if wrong is None or not isinstance(call, cst.Call):
            return None
        what, part = wrong
        if what == "flag":
            found = _as_keyword(event, event.name, part.text, call)
        elif what == "text":
            found = Finding(part.span, _NO_DEVICE.format(part.constant), Fix(_USE_A_NAME, Safety.HINT), event.because)
        elif what == "dtype":
            fix = Fix("Pass a device here, and pass the dtype as `dtype=`", Safety.HINT)
            found = Finding(event.span, f"`{site.code(call.func)}` takes a device, not a dtype", fix, event.because)
        else:
            found = _untyped(site.code(call.func), event.name, part, event.because, site)
        return replace(found, severity=Severity.WARNING) if part.evidence == "annotated" else found


class _Wrong(NamedTuple):
    """A wrong argument: "flag", "text", "dtype", or "device" where the type of one is taken."""

    what: str
    part: Part


def _wrong(event: InferredCall) -> _Wrong | None:
    """The argument of a call whose value cannot be what the call takes there; not one that is written as a literal."""
    owner, name = event.receiver, event.name
    moves = owner is not None and owner.kind in ("tensor", "module") and owner.evidence != "likely"
    by_name = "device_type" if name in _AUTOCAST else "device"
    part = event.arguments.get(by_name)
    if part is None and (name in _PLACED or name in _AUTOCAST or name in _SCALER or (moves and name in _MOVES)):
        part = event.arguments.get("0")
    if part is None or part.evidence == "likely" or event.under.catches("RuntimeError", "TypeError"):
        return None
    if not (moves and name in _MOVES) and not name.startswith("torch."):
        return None
    if name in _AUTOCAST or name in _SCALER:
        return _Wrong("device", part) if part.kind == "device" else None
    if part.kind == "bool" and name in _FLAGGED and not isinstance(part.node, ast.Constant):
        return _Wrong("flag", part)
    text = part.constant if part.kind == "string" else None
    if isinstance(text, str) and _meant(text) is not None and not _NAME.match(text):
        return _Wrong("text", part)
    return _Wrong("dtype", part) if part.kind == "dtype" and name == "torch.device" else None


def _as_keyword(event: CudaMethod | InferredCall, type: str, flag: str, call: cst.Call) -> Finding:
    """The flag of `x.cuda(flag)` gets its name."""
    first = call.args[0]
    message = f"the first argument of `.{type}` is the device, not `non_blocking`"
    if first.keyword is not None:
        return Finding(event.span, message, Fix("Pass a device", Safety.HINT))
    new = keyword("non_blocking", first.value).with_changes(comma=first.comma)
    fix = Fix(f"Use the keyword: `non_blocking={flag}`", Safety.SAFE, (Edit(first, new),))
    return Finding(event.span, message, fix)


def _untyped(name: str, qualname: str, given: Operand | Part, because: tuple[Origin, ...], site: Site) -> Finding:
    """A device where its type is taken."""
    node = site.at(given.span)
    assert isinstance(node, cst.BaseExpression)
    safety = Safety.SAFE if qualname in _AUTOCAST else Safety.UNSAFE
    edit = Edit(node, cst.Attribute(parenthesized(node), cst.Name("type")))
    message = f"`{name}` takes the device type as a string, not a `torch.device`"
    return Finding(given.span, message, Fix("Pass the `.type` of the device", safety, (edit,)), because)


def _place(node: ast.expr) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _said(event: NoDevice, text: str, site: Site) -> Finding:
    """A text that names no device; the one that is meant is put there where it is written in one piece."""
    node, fix = site.node, Fix(_USE_A_NAME, Safety.HINT)
    meant = _meant(text)
    if meant is not None and isinstance(node, cst.SimpleString):
        new = cst.SimpleString(f"{node.quote}{meant}{node.quote}")
        fix = Fix(f"Use the device name of torch: `{meant}`", Safety.SAFE, (Edit(node, new),))
    return Finding(event.span, _NO_DEVICE.format(text), fix)


def _meant(text: str) -> str | None:
    """The device that a text means, None where that is not plain."""
    found = re.fullmatch(r"(?i)(cpu|cuda|xpu|mps|gpu)(?:\s*:?\s*(\d{1,2}))?", text)
    if found is None:
        return None
    kind = found[1].lower().replace("gpu", "cuda")
    return kind if found[2] is None or kind in ("cpu", "mps") else f"{kind}:{int(found[2])}"


def _not_taken(event: NoDevice, site: Site) -> Finding | None:
    call = site.node
    if not isinstance(call, cst.Call):
        return None
    named = [a for a in call.args if a.keyword is not None and a.keyword.value in _DEVICES]
    left = [a for a in call.args if a not in named]
    given = [a.value for a in named]
    fix = Fix("Move the result: `.to(device)`", Safety.HINT)
    if event.call.endswith(".load_state_dict"):
        fix = Fix("Pass `map_location` to `torch.load` instead", Safety.HINT)
    elif left and len(given) == 1 and not site.has_comment(call):
        left[-1] = left[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
        new = moved(call.with_changes(args=left), given[0])
        fix = Fix("Move the result", Safety.SAFE, (Edit(call, new),))
    words = " and ".join(f"`{a.keyword.value}`" for a in named if a.keyword is not None)
    return Finding(event.span, f"`{event.call}` has no parameter {words}: the call raises TypeError", fix)


#: What takes its data by place, and nothing else [torch/csrc/utils/tensor_new.cpp].
_ONE_PLACE = frozenset({"tensor", "as_tensor", "asarray", "new_tensor"})


def _by_place(event: NoDevice, given: Span, site: Site) -> Finding | None:
    """A device that stands last among the arguments without names gets its name."""
    call = site.node
    if not isinstance(call, cst.Call):
        return None
    title = "Add the keyword `device=`"
    message, fix = (
        f"`device` is a keyword-only argument of `{event.call}`: torch raises TypeError",
        Fix(title, Safety.HINT),
    )
    places = [arg for arg in call.args if arg.keyword is None and not arg.star]
    plain = (
        len(places) <= 2 or event.call.rpartition(".")[2] not in _ONE_PLACE
    )  # what stands between has no place either
    is_last = plain and bool(places) and site.span(places[-1].value) == given and not any(arg.star for arg in call.args)
    if is_last and not isinstance(places[-1].value, cst.SimpleString):  # a text would be a fixed device then
        new = keyword("device", places[-1].value).with_changes(comma=places[-1].comma)
        fix = Fix(title, Safety.SAFE, (Edit(places[-1], new),))
    return Finding(given, message, fix)


def _typed(event: ApiCall) -> Operand | None:
    """The argument that autocast, or a scaler, takes the type of the device by."""
    return argument(event, "device_type" if event.qualname in _AUTOCAST else "device", 0)


def _unknown(event: CudaMethod) -> str | None:
    """A keyword that neither tensors nor modules take [torch/_C/__init__.pyi, torch/nn/modules/module.py]."""
    keywords = event.node.keywords if isinstance(event.node, ast.Call) else []
    found = next((k.arg for k in keywords if k.arg is not None and k.arg not in _TAKEN), None)
    known = event.receiver.value.is_tensor or event.receiver.value.kind == "module"
    return found if known or found in _MEANT else None  # an object of another library may take others


def _flag(event: CudaMethod) -> bool | None:
    value = getattr(event.argument, "value", None)
    return value if isinstance(value, bool) else None


def is_move_to_itself(event: Call) -> bool:
    """Whether a call is `x.to(x)`."""
    given = event.arguments.get("0")
    return event.qualname == "Tensor.to" and given is not None and given.text == getattr(event.receiver, "text", None)


def is_beside_other(event: Call) -> bool:
    """Whether a call is `x.to(other=y)`: torch's own name is `tensor` [torch/csrc/autograd/python_variable_methods.cpp]."""
    return event.qualname == "Tensor.to" and "other" in event.arguments and not event.under.catches("TypeError")


def _by_other(event: Call, site: Site) -> Finding | None:
    call = site.node
    if not isinstance(call, cst.Call):
        return None
    message = "`.to` has no parameter `other`: torch calls it `tensor` and raises TypeError"
    given = next(a for a in call.args if a.keyword is not None and a.keyword.value == "other")
    if call.args[0] is not given:
        return Finding(event.span, message, Fix("Pass the tensor first, without a keyword", Safety.HINT))
    edit = Edit(given, cst.Arg(given.value, comma=given.comma))
    return Finding(event.span, message, Fix("Remove the keyword `other=`", Safety.SAFE, (edit,)))


def is_device_as_dtype(event: Call) -> bool:
    """Whether a call is `torch.empty(3, dtype=x.device)`."""
    given = event.arguments.get("dtype")
    return event.qualname.startswith("torch.") and given is not None and given.value.kind in ("device", "index")
