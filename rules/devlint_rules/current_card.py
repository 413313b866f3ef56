"""A tensor goes to the current GPU, although the code works with a tensor or a device that may be on another GPU.

## What it flags
A CUDA device without an index means the current GPU: `.cuda()`, `device="cuda"` and `torch.cuda.FloatTensor(...)`. The
rule reports these expressions, and the same expressions with index 0, under one of two conditions:

- The condition tests `is_cuda` of another tensor.
- The condition tests that the type of a given device is "cuda".

On a machine with several GPUs, the tested tensor or device may be on a GPU that is not the current GPU. The rule also
reports these cases:

- The function or class was given a device, but it calls `torch.cuda.Stream()`, `current_stream()` or
  `default_stream()` without a device.
- The function or class was given a device, but it reads the memory use without a device, for example with
  `max_memory_allocated()`.
- `x.type(y.type())` moves a new tensor.
- A function for CUDA gets one tensor and calls `.cuda()` on another tensor.
- `0 if str(device) != "cpu" else -1` turns each GPU into GPU 0.
- A device type is used as a device: `x.to(y.device.type)`.

A file that sets the current GPU (`set_device`, `with torch.cuda.device(...)`) is not reported. In such a file, the rule
still reports `cuda:0` in a function that makes another GPU the current GPU.

## Why it matters
The current GPU is GPU 0 unless the program sets another GPU. An operation on tensors of two GPUs raises `RuntimeError`.
A stream of one GPU does not control the order of copies to another GPU.

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
- The fix is unsafe. On a machine with several GPUs, the tensor may go to a different GPU.
- The rule makes a suggestion without an edit if the condition decides only about the move. DEV207 then rewrites the
  condition and the move.

## Known limits
The rule does not follow a flag that another function computes from `is_cuda`.
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
    Place,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    Symbol,
    cst,
)

from ._api import is_legacy_type, is_written_out, spelled
from ._calls import with_keyword
from ._run_device import is_for_accelerator, placement_of
from ._shared import parenthesized

_STREAMS = frozenset(f"torch.cuda.{name}" for name in ("Stream", "current_stream", "default_stream"))
#: These tell something of one card.
_OF_CARD = _STREAMS | {
    f"torch.cuda.{name}"
    for name in (
        "memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved", "reset_peak_memory_stats",
        "memory_stats", "mem_get_info", "get_device_capability", "get_device_name",
    )
}  # fmt: skip
_IS_OF_CUDA = re.compile(
    r"(?:\A|\band\s+\(?)(?:((?:[\w.]+[._])?device)\.type\s*==\s*[\"']cuda[\"']|[\"']cuda[\"'] in str\(((?:[\w.]+[._])?device)\)"
    r"|str\(((?:[\w.]+[._])?device)\)\.startswith\([\"']cuda[\"']\))(?!\s+or\b)"
)
_IS_CUDA = re.compile(r"(?:\A|\band\s+\(?)([\w.\[\]]+)\.is_cuda\b(?!\s+or\b)")
_MAKES_CURRENT = re.compile(r"\bset_device(_index)?\(|\bcuda\.device(_of)?\(|CUDA_VISIBLE_DEVICES|\bdevice_guard\(")


class CurrentCard(Rule[Event]):
    meta = RuleMeta(
        code="DEV606",
        name="current-card",
        summary="tensor goes to the current GPU, but the tensor or device at hand may be another GPU",
        since="0.1.0",
        level="assume",
        severity=Severity.INFO,
        fix="sometimes",
        words=("is_cuda", "Stream(", "_stream(", ".type(", "cuda", "device"),
        gives_way=("DEV207",),
    )
    event = Event

    def suspects(self, event: Event, facts: Facts) -> bool:
        if isinstance(event, CardLost):
            return not (event.problem in ("type", "method") and _MAKES_CURRENT.search(facts.text))
        if isinstance(event, CudaMethod):
            if event.type != "cuda" or (event.argument is not None and event.index is None):
                return False
        elif isinstance(event, DeviceLiteral):
            if event.type != "cuda" or event.role != "argument" or event.argument != "device":
                return False
        elif isinstance(event, ApiCall):
            if event.qualname in _OF_CARD:
                return event.is_call and not event.arguments and _given(event) is not None and _is_open(facts)
            if not is_legacy_type(event.qualname) or not event.is_call:
                return False
        else:
            return False
        if (index := _index_of(event)) is not None:
            return (
                index == 0
                and _decider(event) is not None
                and not is_for_accelerator(facts)
                and placement_of(facts, "cuda") is None
            )
        return _decider(event) is not None and _is_open(facts)

    def judge(self, event: Event, site: Site) -> Finding | None:
        if isinstance(event, CardLost):
            return _lost(event, site)
        call = site.node
        if isinstance(event, ApiCall) and event.qualname in _OF_CARD:
            device = _given(event)
            if device is None or not isinstance(call, cst.Call) or not is_written_out(event, site):
                return None
            does = "belongs to" if event.qualname in _STREAMS else "asks"
            message = f"`{spelled(event, site)}()` {does} the current GPU, but `{device}` may be another GPU"
            edit = Edit(call, with_keyword(call, "device", site.expression(device)))
            return Finding(event.span, message, Fix(f"Pass `device={device}`", Safety.UNSAFE, (edit,)), event.because)
        found = _decider(event)
        if found is None or (isinstance(event, ApiCall) and not is_written_out(event, site)):
            return None
        tensor, device = found
        index = _index_of(event)
        where = "the current GPU" if index is None else f"GPU {index}"
        means = "be on another GPU" if tensor != device else "be another GPU"
        message = f"this goes to {where}, but `{tensor}` in the condition may {means}"
        followed = any(
            isinstance(other, Followed) and other.function == event.function and ast.unparse(other.leader) == tensor
            for other in site.facts.events
        )
        # where nothing but the move follows the test, DEV207 rewrites both
        fix = Fix(f"Use `{device}`", Safety.HINT) if followed else _fix(event, device, site)
        return Finding(event.span, message, fix, event.because)


def _lost(event: CardLost, site: Site) -> Finding:
    """A card that gets lost where no condition asks for it."""
    other = event.other
    if event.problem == "zero":
        message = f"each GPU becomes GPU 0, but `{other}` may be another GPU"
        return Finding(event.span, message, Fix(f"Use `{other}` itself, or its index", Safety.HINT), event.because)
    if event.problem == "kind":
        whole, device = site.node, site.at(event.subject)
        assert isinstance(whole, cst.BaseExpression) and isinstance(device, cst.BaseExpression)
        message = f"`{other}.type` has no index, but `{other}` may be one of several GPUs"
        fix = Fix(f"Use `{other}`", Safety.UNSAFE, (Edit(whole, device),))
        if not event.direct:
            fix = Fix(f"Return `{other}`", Safety.HINT, why="the caller may need a string")
        return Finding(event.span, message, fix, event.because)
    if event.problem == "first":
        message = f"this is always GPU 0, but `{other}` is made the current GPU"
        return Finding(event.span, message, Fix("Use the GPU that is made current", Safety.HINT), event.because)
    node = site.node
    subject = site.at(event.subject)
    target = other if event.problem == "type" else f"{other}.device"
    if event.problem == "type":
        message = f"`{other}.type()` has no index, so this goes to the current GPU, but `{other}` may be on another GPU"
    else:
        message = f"this goes to the current GPU, but `{other}` may be on another GPU"
    if not event.direct or not isinstance(node, cst.Call) or not isinstance(subject, cst.BaseExpression):
        return Finding(event.span, message, Fix(f"Use `.to({target})`", Safety.HINT), event.because)
    moved = node.with_changes(
        func=cst.Attribute(parenthesized(subject), cst.Name("to")), args=[cst.Arg(site.expression(target))]
    )
    return Finding(event.span, message, Fix(f"Use `.to({target})`", Safety.UNSAFE, (Edit(node, moved),)), event.because)


def _fix(event: Event, device: str, site: Site) -> Fix:
    node, written = site.node, site.expression(device)
    if isinstance(event, CudaMethod) and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        rest = node.args if event.argument is None else ()
        if event.argument is not None and len(node.args) > 1:
            return Fix(f"Use `.to({device})`", Safety.HINT)
        moved = node.with_changes(func=node.func.with_changes(attr=cst.Name("to")), args=[cst.Arg(written), *rest])
        return Fix(f"Use `.to({device})`", Safety.UNSAFE, (Edit(node, moved),))
    if isinstance(event, DeviceLiteral) and event.argument == "device" and event.call != "torch.device":
        return Fix(f"Use `{device}`", Safety.UNSAFE, (Edit(node, written),))
    return Fix(f"Create the tensor on `{device}`", Safety.HINT)


def _index_of(event: Event) -> int | None:
    """The card that a literal names."""
    return event.index if isinstance(event, CudaMethod | DeviceLiteral) else None


def _decider(event: Event) -> tuple[str, str] | None:
    """What the innermost condition about a card asks that the place runs under: the tensor, but the moved one, or the device.

    With the expression of its device. A device that the code chooses without an index is the current card.
    """
    for test in reversed(event.under.tests):
        if test.startswith("not "):
            continue
        found = _IS_CUDA.search(test)
        if found is None:
            named = _IS_OF_CUDA.search(test)
            device = next(filter(None, named.groups()), None) if named is not None else None
            if device is None:
                continue
            held = event.scope.get(device.removesuffix(".device"))
            if held is None or not held.is_tensor or not device.endswith(".device"):
                return (device, device) if _may_name_card(event, device) else None
            tensor = device.removesuffix(".device")
        else:
            tensor = found[1]
        own = event.receiver.text if isinstance(event, CudaMethod) else ""
        same = own == tensor or (own.startswith(f"{tensor}.") and ".cpu()" not in own)
        return None if same else (tensor, f"{tensor}.device")
    return None


def _may_name_card(event: Event, device: str) -> bool:
    """Whether a device is one that the function or its object is given, so that it may have an index."""
    value = event.scope.get(device)
    if value is None or value.kind not in ("device", "unknown"):
        return False
    if (value.type_name or "").startswith("chosen") or (value.kind == "unknown" and "." not in device):
        return False
    return not any(isinstance(place, Place) for place in value.device)


def _given(event: ApiCall) -> str | None:
    """The device that the function or its object was given: a caller may name any card, but for a text that is just "cuda"."""
    path = event.run_device
    if path is not None and any(
        test.startswith((f'{path} == "cuda"', f"{path} == 'cuda'")) for test in event.under.tests
    ):
        return None
    if event.qualname not in _STREAMS and not any(f"{path}.type ==" in test for test in event.under.tests):
        return None  # these raise for the CPU, and take it as no device
    value = event.scope.get(path) if path is not None else None
    if path is None or value is None or value.kind not in ("device", "string") or len(value.device) != 1:
        return None
    (place,) = value.device
    return path if isinstance(place, Symbol) and not (value.type_name or "").startswith("chosen") else None


def _is_open(facts: Facts) -> bool:
    """Whether the file leaves it open which card is the current one."""
    return _MAKES_CURRENT.search(facts.text) is None and not is_for_accelerator(facts)
