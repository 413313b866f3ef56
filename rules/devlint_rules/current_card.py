"""Something goes to the current card of the process, where the tensors at hand may be on another one.

## What it flags
`.cuda()`, `device="cuda"` and `torch.cuda.FloatTensor(...)` without an index in code that runs because another tensor
`is_cuda`: on a machine with several cards that tensor may be on another one. And `torch.cuda.Stream()`,
`current_stream()` and `default_stream()` without a device in a function or class that was given one; `x.type(y.type())`
of a new tensor, `.cuda()` of one in a function for CUDA that is given another, `0 if str(device) != "cpu" else -1`, and the
type of a device where a device is wanted: `x.to(y.device.type)`.
Quiet in files that make a card current (`set_device`, `with torch.cuda.device(...)`), but for `cuda:0` in a function that
makes a card of its own choice current.

## Why it matters
An index-free `cuda` is the current card, which is card 0 unless the program says otherwise. The operation that follows
raises for tensors of two cards; a stream of another card than the copy it should order orders nothing.

## Example
    import torch

    def totals(x: torch.Tensor):
        if x.is_cuda:
            return x.cpu().cumsum(0).cuda()
        return x.cumsum(0)

Use instead:

    import torch

    def totals(x: torch.Tensor):
        if x.is_cuda:
            return x.cpu().cumsum(0).to(x.device)
        return x.cumsum(0)

## Fix safety
Unsafe: on a machine with several cards the tensor goes to another card than before. Only a hint where nothing but the
move follows the test: DEV207 rewrites both.

## Known limits
Flags that were computed from `is_cuda` elsewhere are not followed.
"""

from __future__ import annotations

import ast
import re

from devlint.api import (
    ApiCall,
    CardLost,
    CudaMethod,
    DeviceLiteral,
    Edit,
    Event,
    Facts,
    Finding,
    Fix,
    Followed,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    Symbol,
    cst,
)
from devlint_rules._api import is_legacy_type, is_written_out, spelled
from devlint_rules._calls import with_keyword
from devlint_rules._run_device import is_for_accelerator
from devlint_rules._shared import parenthesized

_STREAMS = frozenset(f"torch.cuda.{name}" for name in ("Stream", "current_stream", "default_stream"))
_IS_CUDA = re.compile(r"(?:\A|\band\s+\(?)([\w.\[\]]+)\.is_cuda\b(?!\s+or\b)")
_MAKES_CURRENT = re.compile(r"\bset_device(_index)?\(|\bcuda\.device(_of)?\(|CUDA_VISIBLE_DEVICES|\bdevice_guard\(")


class CurrentCard(Rule[Event]):
    meta = RuleMeta(
        code="DEV606",
        name="current-card",
        summary="the current card is taken, where a tensor or device at hand may be another card",
        since="0.1.0",
        level="assume",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("is_cuda", "Stream(", "_stream(", ".type(", "cuda", "device"),
    )
    event = Event

    def suspects(self, event: Event, facts: Facts) -> bool:
        if isinstance(event, CardLost):
            return not (event.problem in ("type", "method") and _MAKES_CURRENT.search(facts.text))
        if isinstance(event, CudaMethod):
            if event.type != "cuda" or event.argument is not None or event.index is not None:
                return False
        elif isinstance(event, DeviceLiteral):
            if event.type != "cuda" or event.index is not None or event.role != "argument":
                return False
        elif isinstance(event, ApiCall):
            if event.qualname in _STREAMS:
                return event.is_call and not event.arguments and _given(event) is not None and _is_open(facts)
            if not is_legacy_type(event.qualname) or not event.is_call:
                return False
        else:
            return False
        return _decider(event) is not None and _is_open(facts)

    def judge(self, event: Event, site: Site) -> Finding | None:
        if isinstance(event, CardLost):
            return _lost(event, site)
        call = site.node
        if isinstance(event, ApiCall) and event.qualname in _STREAMS:
            device = _given(event)
            if device is None or not isinstance(call, cst.Call) or not is_written_out(event, site):
                return None
            message = f"`{spelled(event, site)}()` is of the current card, `{device}` may be another one"
            edit = Edit(call, with_keyword(call, "device", site.expression(device)))
            return Finding(event.span, message, Fix(f"Pass `device={device}`", Safety.UNSAFE, (edit,)), event.because)
        tensor = _decider(event)
        if tensor is None or (isinstance(event, ApiCall) and not is_written_out(event, site)):
            return None
        message = f"goes to the current card, but `{tensor}`, which decides about it, may be on another one"
        followed = any(
            isinstance(other, Followed) and other.function == event.function and ast.unparse(other.leader) == tensor
            for other in site.facts.events
        )
        # where nothing but the move follows the test, DEV207 rewrites both
        fix = Fix(f"Use `{tensor}.device`", Safety.HINT) if followed else _fix(event, tensor, site)
        return Finding(event.span, message, fix, event.because)


def _lost(event: CardLost, site: Site) -> Finding:
    """A card that gets lost where no condition asks for it."""
    other = event.other
    if event.problem == "zero":
        message = f"every card becomes the first one, but `{other}` may name another"
        return Finding(event.span, message, Fix(f"Use `{other}` itself, or its index", Safety.HINT), event.because)
    if event.problem == "kind":
        whole, device = site.node, site.at(event.subject)
        assert isinstance(whole, cst.BaseExpression) and isinstance(device, cst.BaseExpression)
        message = f"`{other}.type` names no card, but `{other}` may be one of several"
        fix = Fix(f"Use `{other}`", Safety.UNSAFE, (Edit(whole, device),))
        if not event.direct:
            fix = Fix(f"Return `{other}`", Safety.HINT, why="who reads it may want a text")
        return Finding(event.span, message, fix, event.because)
    if event.problem == "first":
        message = f"this is always the first card, but `{other}` is made the current one"
        return Finding(event.span, message, Fix("Name that card", Safety.HINT), event.because)
    node = site.node
    subject = site.at(event.subject)
    target = other if event.problem == "type" else f"{other}.device"
    if event.problem == "type":
        message = f"`{other}.type()` names no card, so this goes to the current one, but `{other}` may be on another"
    else:
        message = f"goes to the current card, but `{other}` may be on another one"
    if not event.direct or not isinstance(node, cst.Call) or not isinstance(subject, cst.BaseExpression):
        return Finding(event.span, message, Fix(f"Use `.to({target})`", Safety.HINT), event.because)
    moved = node.with_changes(
        func=cst.Attribute(parenthesized(subject), cst.Name("to")), args=[cst.Arg(site.expression(target))]
    )
    return Finding(event.span, message, Fix(f"Use `.to({target})`", Safety.UNSAFE, (Edit(node, moved),)), event.because)


def _fix(event: Event, tensor: str, site: Site) -> Fix:
    node, device = site.node, site.expression(f"{tensor}.device")
    if isinstance(event, CudaMethod) and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        moved = node.with_changes(func=node.func.with_changes(attr=cst.Name("to")), args=[cst.Arg(device), *node.args])
        return Fix(f"Use `.to({tensor}.device)`", Safety.UNSAFE, (Edit(node, moved),))
    if isinstance(event, DeviceLiteral) and event.argument == "device" and event.call != "torch.device":
        return Fix(f"Use `{tensor}.device`", Safety.UNSAFE, (Edit(node, device),))
    return Fix(f"Make it on `{tensor}.device`", Safety.HINT)


def _decider(event: Event) -> str | None:
    """The tensor whose `is_cuda` is the innermost condition about a card that the place runs under, but the moved one."""
    for test in reversed(event.under.tests):
        found = _IS_CUDA.search(test)
        if found is None or test.startswith("not "):
            continue
        tensor = found[1]
        own = event.receiver.text if isinstance(event, CudaMethod) else ""
        same = own == tensor or (own.startswith(f"{tensor}.") and ".cpu()" not in own)
        return None if same else tensor
    return None


def _given(event: ApiCall) -> str | None:
    """The device that the function or its object was given: a caller may name any card."""
    path = event.run_device
    value = event.scope.get(path) if path is not None else None
    if path is None or value is None or value.kind not in ("device", "string") or len(value.device) != 1:
        return None
    (place,) = value.device
    return path if isinstance(place, Symbol) and not (value.type_name or "").startswith("chosen") else None


def _is_open(facts: Facts) -> bool:
    """Whether the file leaves it open which card is the current one."""
    return _MAKES_CURRENT.search(facts.text) is None and not is_for_accelerator(facts)
