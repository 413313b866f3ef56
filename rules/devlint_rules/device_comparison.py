"""A comparison of devices does not test what the code suggests.

## What it flags
The rule reports comparisons whose result is always the same:

* A `torch.device` is compared with a string: `x.device == "cuda"`, `x.device in ("cuda", "cpu")`, `device == "gpu"`.
* The device of a tensor is compared with a device without an index: `x.device == torch.device("cuda")`. The device
  without an index may also be in a variable or in a parameter of a test function.
* The text of a tensor's device is compared with a name without an index: `str(x.device) == "cuda"`.
* The type of a device is compared with a name with an index: `device.type == "cuda:0"`.
* The text of a device is searched for a name that torch does not use: `"gpu" in str(device)`.
* Two devices are compared by identity: `x.device is y.device`.
* A dtype is compared with a device: `x.dtype == "cpu"`.
* The attribute `device` of a model is compared with a string: `model.device == "cuda"`. The same comparison is reported
  for an object that the function treats as a tensor: `boxes.xy.device == "cuda"`.

The rule also reports these tests:

* A device or an index is tested for truth: `if device:`, `device.index or -1`. Index 0 counts as false.
* A function is tested instead of called: `if torch.cuda.is_available:`.
* A device is used like a string: `"cuda" in x.device`, `x.device.startswith("cuda")`. A device has no such operation,
  so torch raises an error.
* `device.index >= n` compares the index of `torch.device(name)`. The index may be None.
* A tensor is moved to the device of another tensor, but only for CUDA: `if x.is_cuda: y = y.cuda()`.
* A test is skipped under the wrong condition: `skipif(torch.cuda.is_available(), reason="No CUDA")`.

## Why it matters
A `torch.device` never equals a string. The device of a CUDA tensor has an index, so it never equals
`torch.device("cuda")`. So the code under such a condition never runs.

Index 0 is the first GPU, but in a condition it is false, like a missing index. A function is always true in a
condition, so the program may use a GPU that does not exist.

## Example
    import torch

    def pinned(x: torch.Tensor):
        return x.device == "cuda"

Use instead:

    import torch

    def pinned(x: torch.Tensor):
        return x.device.type == "cuda"

## Fix safety
The fix is safe in these cases:

* The comparison is false on every machine. The fix compares `.type` instead of the device.
* A function is tested instead of called. The fix calls the function.

The fix is unsafe in these cases:

* The string has an index.
* The device is the result of a function.
* A truth test becomes `is not None`.
* A move becomes `y = y.to(x.device)`. With several GPUs, `y` then moves to the GPU of `x`, not to the current GPU.

## Known limits
The rule does not report these comparisons:

* The code compares `.type`.
* The code compares two strings: `args.device == "cuda"`.
* The code compares two devices without an index.
* The device may be a string. Every argument, every option, and every attribute that another file sets may be a string.

The rule reports `if x.is_cuda: y = y.cuda()` only if the branch contains nothing but the move.
"""

from __future__ import annotations

import ast
import re

from devlint.api import (
    ACCELERATORS,
    Compare,
    DeviceTest,
    Edit,
    Event,
    Facts,
    Finding,
    Fix,
    Followed,
    LeftAlone,
    Operand,
    Place,
    ReplaceBlock,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    Span,
    cst,
)

from ._api import is_device_object
from ._calls import path_to
from ._run_device import purpose_of
from ._shared import parenthesized

_EQUALITY = frozenset({"==", "!="})
_MEMBERSHIP = frozenset({"in", "not in"})
_IDENTITY = frozenset({"is", "is not"})
_INDEX_FREE = re.compile(r"chosen:(cuda|xpu)\Z")
_GPU = re.compile(r"gpu(?::\d+)?\Z")
#: Conditions that ask what a device is before it is used.
_ASKS_CLASS = ("isinstance(", "hasattr(", "type(")


class DeviceComparison(Rule[Event]):
    meta = RuleMeta(
        code="DEV207",
        name="device-comparison",
        summary="comparison of a device that does not test what the code suggests",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("device", ".index", ".is_cuda", ".is_xpu", ".is_mps", "is_available", "is_built"),
    )
    event = Event

    def suspects(self, event: Event, facts: Facts) -> bool:
        if isinstance(event, Followed):
            return purpose_of(facts) is None
        if isinstance(event, DeviceTest):
            return True
        if not isinstance(event, Compare):
            return False
        if event.operator == "truth" or event.operator.startswith("text "):
            return True
        if event.operator == "method":
            return is_device_object(event.left) and not _is_told_apart(event)
        if event.operator in _MEMBERSHIP:
            return _asks_text(event) or _among_texts(event)
        if event.operator in _IDENTITY:
            return _is_new(event)
        return event.operator in _EQUALITY and (_sides(event) is not None or _no_name(event) is not None)

    def left_alone(self, event: Event, facts: Facts) -> LeftAlone | None:
        return purpose_of(facts) if isinstance(event, Followed) else None

    def judge(self, event: Event, site: Site) -> Finding | None:
        if isinstance(event, Followed):
            return _follow(event, site)
        if isinstance(event, DeviceTest):
            return _asked(event, site)
        assert isinstance(event, Compare)
        if event.operator in _MEMBERSHIP:
            return _in_text(event, site) if _asks_text(event) else _in_names(event, site)
        if event.operator in _IDENTITY:
            return _identity(event, site)
        if event.operator == "method":
            return _method(event, site)
        if event.operator.startswith("text "):
            return _text(event, site)
        always = "True" if event.operator == "!=" else "False"
        if event.right is None:
            return self._truth(event, site)
        sides = _sides(event)
        if sides is None:
            return _unnamed(event, always, site)
        device, other = sides
        (place,) = other.value.device
        if not isinstance(place, Place):
            return _variable(event, device, other, site)
        if other.value.kind == "string":
            message = f"a `torch.device` never equals the string {other.text}: the comparison is always {always}"
        else:
            message = (
                f"a tensor's device has an index, so it never equals `{other.text}`: the comparison is always {always}"
            )
        try:
            left, right = site.at(device.span), site.at(other.span)
        except LookupError:
            return Finding(event.span, message, Fix("Compare the device type", Safety.HINT), event.because)
        if not isinstance(left, cst.BaseExpression) or not isinstance(right, cst.BaseExpression):
            return None
        if place.card is not None:
            new = site.expression(f"{site.spell('torch.device')}({other.text})")
            return Finding(
                event.span, message, Fix("Compare with a `torch.device`", Safety.UNSAFE, (Edit(right, new),))
            )
        edits = [Edit(left, cst.Attribute(parenthesized(left), cst.Name("type")))]
        if other.value.kind != "string":
            edits.append(Edit(right, site.expression(f'"{place.type}"')))
        sure = is_device_object(device)
        fix = Fix("Compare the device type", Safety.SAFE if sure else Safety.UNSAFE, tuple(edits))
        return Finding(event.span, message, fix, event.because)

    def _truth(self, event: Compare, site: Site) -> Finding | None:
        if event.left.value.kind == "namespace":
            return _question(event, site)
        message = f"`{event.left.text}` is tested for truth, but index 0 (the first GPU) counts as false"
        hint = Fix("Compare with None", Safety.HINT)
        if event.span != event.left.span:
            return Finding(event.left.span, message, hint, event.because)
        node = site.node
        if not isinstance(node, cst.BaseExpression):
            return None
        above = path_to(site, node)
        if len(above) > 1 and isinstance(around := above[-2], cst.BooleanOperation):
            if isinstance(around.operator, cst.Or) and site.code(around.right) == "0":
                return None  # index 0 stays 0
            if isinstance(around.operator, cst.Or) and around.left is node:
                return Finding(event.span, message, hint, event.because, Severity.INFO)
        if len(above) > 1 and isinstance(choice := above[-2], cst.IfExp) and site.code(choice.orelse) == "0":
            return None  # index 0 stays 0
        test = site.expression(f"{site.code(node)} is not None")
        return Finding(event.span, message, Fix("Compare with None", Safety.UNSAFE, (Edit(node, test),)), event.because)


def _asks_text(event: Compare) -> bool:
    """`"cuda" in x.device`: what a tensor's device is asked for, as if it were a text."""
    right = event.right
    if right is None or event.left.value.kind != "string":
        return False
    return right.value.type_name == "Tensor.device" or (is_device_object(right) and not _is_told_apart(event))


def _in_text(event: Compare, site: Site) -> Finding:
    assert event.right is not None
    return _no_text(event, event.right.span, event.right.text, site)


def _no_text(event: Event, span: Span, text: str, site: Site) -> Finding:
    message = f"`{text}` may be a `torch.device`, which is not a string: `in` raises a TypeError"
    node = site.at(span)
    fix = Fix("Use the text of the device", Safety.UNSAFE, (Edit(node, site.expression(f"str({text})")),))
    return Finding(event.span, message, fix, event.because)


def _among_texts(event: Compare) -> bool:
    """`x.device in ("cuda", "cpu")`: a device among names alone."""
    if event.right is None or not is_device_object(event.left) or _is_told_apart(event):
        return False
    names = getattr(event.right.node, "elts", None)
    return bool(names) and all(isinstance(n, ast.Constant) and isinstance(n.value, str) for n in names or ())


def _is_new(event: Compare) -> bool:
    """Whether a device is asked whether it is the very object that a name is, or that another tensor's `device` makes."""
    if event.right is None or not is_device_object(event.left) or _is_told_apart(event):
        return False
    if event.right.value.kind == "string":
        return event.right.value.constant is not None
    made = isinstance(event.right.node, ast.Call) and event.right.value.type_name == "torch.device"
    return event.right.value.type_name == "Tensor.device" or made


def _is_told_apart(event: Compare) -> bool:
    """Whether a condition around it asks what the device is: a text, or a `torch.device`."""
    return any(word in test for test in event.under.tests for word in _ASKS_CLASS)


def _in_names(event: Compare, site: Site) -> Finding:
    """`x.device in ("cuda", "cpu")` as `x.device.type in ("cuda", "cpu")`."""
    assert event.right is not None
    always = "True" if event.operator == "not in" else "False"
    message = f"a `torch.device` is none of the strings {event.right.text}: the comparison is always {always}"
    device = event.left
    indexed = ":" in event.right.text
    text = f"str({device.text})" if indexed else f"{device.text}.type"
    title = "Compare the text of the device" if indexed else "Compare the device type"
    fix = Fix(title, Safety.UNSAFE, (Edit(site.at(device.span), site.expression(text)),))
    return Finding(event.span, message, fix, event.because)


def _identity(event: Compare, site: Site) -> Finding:
    """`x.device is y.device`."""
    assert event.right is not None
    equal = "!=" if event.operator == "is not" else "=="
    always = "True" if event.operator == "is not" else "False"
    message = f"`is` compares objects, and each device is a separate object: the comparison is always {always}"
    return Finding(event.span, message, Fix(f"Compare by `{equal}`", Safety.HINT), event.because)


def _method(event: Compare, site: Site) -> Finding:
    """`device.startswith("cuda")` as `str(device).startswith("cuda")`."""
    assert event.right is not None
    device = event.left
    message = f"`{device.text}` is a `torch.device`, which has no method `{event.right.value.constant}`"
    edit = Edit(site.at(device.span), site.expression(f"str({device.text})"))
    return Finding(event.span, message, Fix("Use the text of the device", Safety.SAFE, (edit,)), event.because)


def _text(event: Compare, site: Site) -> Finding:
    """`str(x.device) == "cuda"` as `x.device.type == "cuda"`."""
    assert event.right is not None
    always = "True" if event.operator.endswith("!=") else "False"
    message = (
        f"the text of a tensor's device has an index, so it never equals {event.right.text}: "
        f"the comparison is always {always}"
    )
    node = event.left.node
    inner = node.args[0] if isinstance(node, ast.Call) else None
    if inner is None:
        return Finding(event.span, message, Fix("Compare the device type", Safety.HINT), event.because)
    edit = Edit(site.at(event.left.span), site.expression(f"{ast.unparse(inner)}.type"))
    return Finding(event.span, message, Fix("Compare the device type", Safety.UNSAFE, (edit,)), event.because)


def _variable(event: Compare, device: Operand, other: Operand, site: Site) -> Finding:
    """`x.device == device`, where `device` is a string, or "cuda" without an index where there is CUDA."""
    always = "True" if event.operator == "!=" else "False"
    if other.value.kind == "string":
        message = (
            f"`{other.text}` is a string, and a `torch.device` never equals a string: the comparison is always {always}"
        )
        if _INDEX_FREE.match(other.value.type_name or ""):
            edit, title = Edit(site.at(device.span), site.expression(f"{device.text}.type")), "Compare the device type"
        else:
            new = site.expression(f"{site.spell('torch.device')}({other.text})")
            edit, title = Edit(site.at(other.span), new), "Compare with a `torch.device`"
        return Finding(event.span, message, Fix(title, Safety.UNSAFE, (edit,)), event.because)
    message = (
        f"on CUDA, a tensor's device has an index and `{other.text}` has none: the comparison is then always {always}"
    )
    edits = tuple(Edit(site.at(o.span), site.expression(f"{o.text}.type")) for o in (device, other))
    return Finding(event.span, message, Fix("Compare the device types", Safety.UNSAFE, edits), event.because)


def _asked(event: DeviceTest, site: Site) -> Finding | None:
    """What never holds by the names that torch gives its devices."""
    always = "True" if event.negated else "False"
    node = site.at(event.subject)
    if event.problem == "in-device":
        return _no_text(event, event.subject, event.text, site)
    if event.problem == "dtype":
        assert isinstance(node, cst.Attribute)
        message = f"a dtype never equals {event.word}, which names a device: the comparison is always {always}"
        asked = cst.Attribute(cst.Attribute(node.value, cst.Name("device")), cst.Name("type"))
        plain = ":" not in event.word
        edits = (Edit(node, asked),) if plain else ()
        fix = Fix("Compare the device type", Safety.UNSAFE if plain else Safety.HINT, edits)
    elif event.problem == "no-type":
        message = f"torch has no device `{event.word}`, its name is `cuda`: the comparison is always {always}"
        new = site.expression(event.text.replace("gpu", "cuda"))
        plain = ":" not in event.word  # a type has no index
        fix = Fix("Use `cuda`", Safety.UNSAFE if plain else Safety.HINT, (Edit(node, new),) if plain else ())
    elif event.problem == "either":
        message = (
            f"this function also accepts a `torch.device` as `{event.text}`, and a `torch.device` never equals the string "
            f"{event.word}"
        )
        fix = Fix("Check the class of the value first, or compare its text", Safety.HINT)
    elif event.problem == "skips":
        message = "this test is skipped on a machine with the accelerator and runs on a machine without it"
        fix = Fix("Negate the condition", Safety.UNSAFE, (Edit(node, site.expression(f"not {event.text}")),))
    elif event.problem in ("model", "moved"):
        whose = "a model's device" if event.problem == "model" else f"`{event.text}`"
        message = f"{whose} is a `torch.device`, which never equals the string {event.word}: the comparison is always {always}"
        indexed = ":" in event.word
        text = f"str({event.text})" if indexed else f"{event.text}.type"
        fix = Fix(
            "Compare the text of the device" if indexed else "Compare the device type",
            Safety.UNSAFE,
            (Edit(node, site.expression(text)),),
        )
    elif event.problem == "typed":
        message = (
            f"the type of a device has no index, so it never equals {event.word}: the comparison is always {always}"
        )
        fix = Fix("Compare with a type without an index, or compare the devices", Safety.HINT)
    elif event.problem == "no-index":
        message = (
            f"`{event.text}` is None for a device without an index, such as `cuda`: the comparison raises a TypeError"
        )
        fix = Fix("Check first that the index is not None", Safety.HINT)
    elif event.problem == "without-index":
        message = (
            f"this line may compare `{event.text}` with `{event.word}`; `{event.word}` has no index, but the device of a "
            "tensor has one, so they are never equal"
        )
        fix = Fix("Compare the device types", Safety.HINT)
    else:
        message = (
            f"this line may also compare `{event.word}` with `{event.text}`; only the first has an index, so they are never "
            "equal"
        )
        fix = Fix("Compare the device types", Safety.HINT)
    return Finding(event.span, message, fix, event.because)


def _question(event: Compare, site: Site) -> Finding | None:
    """`if torch.cuda.is_available:`, a function that is not called."""
    name = event.left.text
    node = site.node
    if event.span != event.left.span or not isinstance(node, cst.BaseExpression):
        return None
    above = path_to(site, node)
    around = above[-2] if len(above) > 1 else None
    if isinstance(around, cst.BooleanOperation):
        if isinstance(around.operator, cst.Or) and around.right is node:
            return None  # `check or torch.cuda.is_available`: the function itself may be what is wanted
        other = site.code(around.right if around.left is node else around.left)
        if f"{name}(" in other or other.startswith(("hasattr(", "callable(")):
            return None  # asked whether it is there, and then called
    message = f"`{name}` is a function that is not called, and a function is always true"
    fix = Fix("Call the function", Safety.SAFE, (Edit(node, site.expression(f"{name}()")),))
    return Finding(event.span, message, fix, event.because)


def _follow(event: Followed, site: Site) -> Finding:
    """`if x.is_cuda: y = y.cuda()` as `y = y.to(x.device)`."""
    leader = ast.unparse(event.leader)
    device = f"{leader.removesuffix('.data')}.device"  # `.data` shares the memory of its tensor
    type = event.type.upper()
    moved_names = ", ".join(f"`{target}`" for target in event.targets)
    message = (
        f"`{leader}` may be on an accelerator other than {type}, but the code under this condition moves "
        f"{moved_names or 'the other tensor'} only for {type}"
    )
    if event.moved:
        node = site.node
        moved = site.at(event.moved[0])
        if not isinstance(moved, cst.BaseExpression) or site.has_comment(node):
            return Finding(event.span, message, None, event.because)
        new = cst.Call(cst.Attribute(parenthesized(moved), cst.Name("to")), [cst.Arg(site.expression(device))])
        return Finding(
            event.span, message, Fix(f"Use `.to({device})`", Safety.UNSAFE, (Edit(node, new),)), event.because
        )
    statements = tuple(
        cst.Assign([cst.AssignTarget(site.expression(target))], site.expression(f"{target}.to({device})"))  # type: ignore[arg-type]
        for target in event.targets
    )
    fix = Fix(
        f"Move {moved_names} to `{device}` without the condition",
        Safety.UNSAFE,
        (ReplaceBlock(event.span, statements),),
    )
    return Finding(event.span, message, fix, event.because)


def _sides(event: Compare) -> tuple[Operand, Operand] | None:
    """The device, and what it never equals: a string, or a device without an index; None where it may hold."""
    if event.right is None:
        return None
    if "torch.device" in (event.left.value.type_name, event.right.value.type_name) and _is_told_apart(event):
        return None
    for device, other in ((event.left, event.right), (event.right, event.left)):
        if len(other.value.device) != 1:
            continue
        (place,) = other.value.device
        if not isinstance(place, Place):
            if _is_chosen(other) and (_is_tensors(device) if other.value.kind == "device" else _is_sure(device)):
                return device, other
            continue
        if other.value.kind == "string" and other.value.constant is not None:
            if is_device_object(device) or _calls_device(device.node):
                return device, other
        elif other.value.kind == "device" and place.card is None and place.type in ACCELERATORS - {"mps"}:
            if _is_tensors(device) and _is_written_out(other.node):
                return device, other
    return None


def _no_name(event: Compare) -> tuple[Operand, Operand] | None:
    """The device, and a text that names none of torch: `device == "gpu"`."""
    if event.right is None or _is_told_apart(event):
        return None
    for device, other in ((event.left, event.right), (event.right, event.left)):
        text = other.value.constant if other.value.kind == "string" else None
        if isinstance(text, str) and _GPU.match(text) and is_device_object(device):
            return device, other
    return None


def _unnamed(event: Compare, always: str, site: Site) -> Finding | None:
    """`device == "gpu"` as `device.type == "cuda"`."""
    sides = _no_name(event)
    if sides is None:
        return None
    device, other = sides
    message = (
        f"a `torch.device` never equals the string {other.text}, its name is `cuda`: the comparison is always {always}"
    )
    edits = (
        Edit(site.at(device.span), site.expression(f"{device.text}.type")),
        Edit(site.at(other.span), site.expression('"cuda"')),
    )
    written_out = isinstance(other.node, ast.Constant) and other.text.strip("\"'") == "gpu"
    fix = (
        Fix("Compare the device type", Safety.UNSAFE, edits)
        if written_out
        else Fix("Compare the device type", Safety.HINT)
    )
    return Finding(event.span, message, fix, event.because)


def _is_chosen(operand: Operand) -> bool:
    """Whether it is a string that the code chooses, or a choice between the CPU and a device without an index."""
    chosen = operand.value.type_name or ""
    return chosen.startswith("chosen") if operand.value.kind == "string" else _INDEX_FREE.match(chosen) is not None


def _is_sure(operand: Operand) -> bool:
    """Whether it is a `torch.device`, and not the option of an object under its usual name."""
    return is_device_object(operand) and operand.value.kind == "device"


def _is_tensors(operand: Operand) -> bool:
    """Whether it is the device of a tensor, `x.device` of a tensor `x`."""
    return (
        isinstance(operand.node, ast.Attribute)
        and operand.node.attr == "device"
        and is_device_object(operand)
        and (not operand.text.startswith(("self.", "cls.", "args.", "cfg.", "config.")))
    )


def _is_written_out(node: ast.expr) -> bool:
    """Whether a device is made where it is compared: `torch.device("cuda")`."""
    return isinstance(node, ast.Call) and len(node.args) == 1 and isinstance(node.args[0], ast.Constant)


def _calls_device(node: ast.expr) -> bool:
    """Whether it is the result of a function named `device`, `idist.device()`, which gives a `torch.device`."""
    return (
        isinstance(node, ast.Call)
        and not node.args
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "device"
    )
