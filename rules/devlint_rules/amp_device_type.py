"""Mixed precision works only for CUDA and ignores the device that the program chose.

## What it flags
The rule reports these cases:

* The code uses a deprecated name: `autocast`, `GradScaler`, `custom_fwd` or `custom_bwd` of `torch.cuda.amp` or
  `torch.cpu.amp`. torch 2.4 deprecated these names.
* `torch.autocast("cuda")` is used where a variable holds the device of the program, or as the decorator of a method.
* `torch.amp.GradScaler` is created for CUDA where a variable holds the device of the program.
* The device type or the `enabled` argument of an autocast depends on `torch.cuda.is_available()`. `is_available` does
  not say where the tensors are.

## Why it matters
On another device, an autocast for CUDA only prints a warning. The run then uses full precision, and no error appears.
The names in `torch.cuda.amp` print a warning at every use.

## Example
    import torch

    def step(model, batch):
        with torch.cuda.amp.autocast():
            return model(batch)

Use instead:

    import torch

    def step(model, batch):
        with torch.autocast("cuda"):
            return model(batch)

## Fix safety
The fix is safe when the new name keeps `"cuda"`. The new name does the same as the old name. The fix passes the
arguments by keyword.

The fix is unsafe when the device type follows the device of the program. The rule offers this fix when a variable in
scope holds the device. The fix enables a gradient scaler only on CUDA.

The fix uses only names that the lowest supported torch has.

## Known limits
The rule does not report a name that is not deprecated in these cases:

* The call is under a condition that is true only if CUDA is present.
* The call has `enabled=False`, or its `enabled` argument depends on the device.
* The file loads CUDA kernels.
* The call is `torch.autocast("cuda")`, and no variable of the function holds the device.

The fix does not remove the import of an old name from `torch.cuda.amp`.
"""

from __future__ import annotations

import ast
import re

from devlint.api import (
    ApiCall,
    Edit,
    Facts,
    Finding,
    Fix,
    LeftAlone,
    Operand,
    Place,
    Portability,
    Rule,
    RuleMeta,
    Safety,
    Severity,
    Site,
    cst,
)

from ._api import (
    argument,
    asks_version,
    is_bound_twice,
    is_called,
    is_device_object,
    is_written_out,
    needs_torch,
    spelled,
    version,
)
from ._calls import path_to
from ._conversion import RunDevice, converts, is_safe, run_device
from ._run_device import purpose_of
from ._torch import has_torch

_OLD = re.compile(
    r"torch\.(?P<type>cuda|cpu)\.amp\.(autocast_mode\.|grad_scaler\.)?(?P<name>autocast|GradScaler"
    r"|custom_fwd|custom_bwd)\Z"
)
_AUTOCAST = frozenset({"torch.autocast", "torch.amp.autocast", "torch.amp.autocast_mode.autocast"})
_SCALER = frozenset({"torch.amp.GradScaler", "torch.amp.grad_scaler.GradScaler"})
#: Positional parameters of the old names, and the first torch with the new ones.
_PARAMETERS = {
    "autocast": ("enabled", "dtype", "cache_enabled"),
    "GradScaler": ("init_scale", "growth_factor", "backoff_factor", "growth_interval", "enabled"),
}
#: Those of the new names behind the device.
_NEW_PARAMETERS = {**_PARAMETERS, "autocast": ("dtype", "enabled", "cache_enabled")}
_NEW = {
    "autocast": ("torch.autocast", (2, 2)),
    "GradScaler": ("torch.amp.GradScaler", (2, 3)),
    "custom_fwd": ("torch.amp.custom_fwd", (2, 4)),
    "custom_bwd": ("torch.amp.custom_bwd", (2, 4)),
}
_CUDA = frozenset({Place("cuda")})
_DEVICE_NAMES = frozenset({"device", "dev"})
# Says which process it is, and nothing of what it runs on.
_FIRST_CARD = re.compile(r"\b\w*gpu\w*\s*==\s*0\b")
_ASKS_DEVICE = re.compile(r"(?i)cuda|gpu|device|\bFalse\b|amp")


class AmpDeviceType(Rule[ApiCall]):
    meta = RuleMeta(
        code="DEV209",
        name="amp-device-type",
        summary="mixed precision is tied to CUDA",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("amp", "autocast", "GradScaler", "custom_fwd", "custom_bwd"),
        portability=Portability(),
    )
    event = ApiCall

    def suspects(self, event: ApiCall, facts: Facts) -> bool:
        if _OLD.match(event.qualname):
            return not asks_version(event)
        if event.qualname in _AUTOCAST:
            given = argument(event, "device_type", 0)
            if given is None or not event.is_call or purpose_of(facts) is not None:
                return False
            if _by_availability(given.text) or _only_for_type(given, event, facts):
                return True
            if not _is_cuda(given.value.constant) or _is_meant(event):
                return False
            return _varies(event) or _decorates(event, facts)
        if event.qualname in _SCALER and event.is_call and not event.star:
            given = argument(event, "device", 0)
            fixed = given is None or _is_cuda(given.value.constant)
            return fixed and _varies(event) and not _is_meant(event)
        return False

    def left_alone(self, event: ApiCall, facts: Facts) -> LeftAlone | None:
        takes = "device_type" if event.qualname in _AUTOCAST else "device" if event.qualname in _SCALER else None
        given = argument(event, takes, 0) if takes is not None else None
        if not event.is_call or given is None or not _is_cuda(given.value.constant) or not _varies(event):
            return None
        return purpose_of(facts) or (LeftAlone("a check for CUDA surrounds it") if _is_meant(event) else None)

    def judge(self, event: ApiCall, site: Site) -> Finding | None:
        if not event.is_call and is_called(event, site):
            return None
        old = _OLD.match(event.qualname)
        if old is not None:
            statement = site.statement
            patched = isinstance(statement, cst.Assign) and site.code(statement.targets[0].target).startswith("torch.")
            if patched or not is_written_out(event, site) or is_bound_twice(event, site):
                return None
            message = f"`{spelled(event, site)}` is deprecated since torch 2.4 and tied to {old['type'].upper()}"
            told = _told_device(event)
            if told is not None and old["name"] in _PARAMETERS:
                takes = _PARAMETERS[old["name"]][0]
                message = f'`{spelled(event, site)}` takes no device: "{told}" is passed as `{takes}`'
                if takes in event.arguments:
                    message += ", which is passed twice: this raises a TypeError"
            return Finding(event.span, message, self._modern(event, old, site), event.because)
        given = argument(event, "device_type", 0) or argument(event, "device", 0)
        if given is not None and not _is_cuda(given.value.constant):
            message = "the device type depends on whether CUDA is present, not on where the tensors are"
            return Finding(event.span, message, Fix("Use the type of the device that the tensors are on", Safety.HINT))
        message = f"`{spelled(event, site)}` is tied to CUDA"
        device = _device_in_scope(event)
        if device is not None:
            message += f"; the program's device is `{device}`"
        return Finding(event.span, message, self._follow(event, site), event.because)

    def _modern(self, event: ApiCall, old: re.Match[str], site: Site) -> Fix:
        """The new name: for the type of the run's device where that varies, else for the type of the old one."""
        new, since = _NEW[old["name"]]
        hint = Fix(f"Use `{new}`", Safety.HINT)
        if not has_torch(since, site.facts):
            return Fix(f"Use `{new}` from torch {version(since)} on", Safety.HINT)
        name = site.expression(site.spell(new))
        node = site.node
        if old["name"].startswith("custom"):
            return self._decorator(event, old, name, site) or hint
        if not isinstance(node, cst.Call) or event.star or any(a.star for a in node.args):
            return hint
        parameters = _PARAMETERS[old["name"]]
        told, written = _told_device(event), list(node.args)
        if told is not None:
            if told != old["type"]:
                return hint
            written = written[1:]
            parameters = _NEW_PARAMETERS[old["name"]]
        given: dict[str, cst.Arg] = {}
        for position, arg in enumerate(written):
            keyword = arg.keyword.value if arg.keyword is not None else None
            if keyword is None and position >= len(parameters):
                return hint
            given[keyword or parameters[position]] = arg if keyword else _named(arg, parameters[position])
        follows = old["type"] == "cuda" and _varies(event) and not _is_meant(event)
        enabled = event.arguments.get("enabled") or (event.arguments.get("0") if told is None else None)
        if not follows and old["name"] == "autocast" and enabled is not None and _by_availability(enabled.text):
            return Fix(f"Use `{new}` with the type of the device that the tensors are on", Safety.HINT)
        device = _converted(event, site) if old["type"] == "cuda" and not follows else None
        type = (
            f"{_type_of(event, site)}"
            if follows
            else f'"{old["type"]}"'
            if device is None
            else _type_of_new(device, event, site)
        )
        first = cst.Arg(site.expression(type))
        given.pop("device_type", None)
        arguments = list(given.values())
        if (follows or device is not None) and old["name"] == "GradScaler":
            arguments = _only_on_cuda(arguments, type, site)
        elif follows and "enabled" in given and _by_availability(site.code(given["enabled"].value)):
            arguments = [a for a in arguments if a is not given["enabled"]]
        if arguments and isinstance(node.whitespace_before_args, cst.ParenthesizedWhitespace):
            first = first.with_changes(comma=cst.Comma(whitespace_after=node.whitespace_before_args))
        replaced = node.with_changes(func=name, args=[first, *arguments])
        edit = Edit(node, replaced)
        unsure = follows or (device is not None and not is_safe("cuda", site.facts))
        safety = Safety.UNSAFE if unsure else Safety.SAFE
        return Fix(
            f"Use `{site.code(name)}({type}, ...)`" if arguments else f"Use `{site.code(name)}({type})`",
            safety,
            (edit,),
            (*needs_torch(site.facts), *(device.needs if device is not None else ())),
        )

    def _decorator(self, event: ApiCall, old: re.Match[str], name: cst.BaseExpression, site: Site) -> Fix | None:
        """`@custom_fwd` and `@custom_fwd(cast_inputs=...)` with the type as a keyword."""
        node = site.node
        keyword = _named(cst.Arg(site.expression(f'"{old["type"]}"')), "device_type")
        title = f"Use `{site.code(name)}(device_type=...)`"
        if isinstance(node, cst.Call):
            if event.star or any(a.keyword is None for a in node.args):
                return None
            edit = Edit(node, node.with_changes(func=name, args=[*node.args, keyword]))
            return Fix(title, Safety.SAFE, (edit,), needs_torch(site.facts))
        above = path_to(site, node)
        if len(above) < 2 or not isinstance(above[-2], cst.Decorator) or not isinstance(node, cst.BaseExpression):
            return None
        return Fix(title, Safety.SAFE, (Edit(node, cst.Call(name, [keyword])),), needs_torch(site.facts))

    def _follow(self, event: ApiCall, site: Site) -> Fix:
        node = site.node
        if not isinstance(node, cst.Call) or _device_in_scope(event) is None:
            return Fix("Use the type of the device that the tensors are on", Safety.HINT)
        type = _type_of(event, site)
        arguments = list(node.args)
        first = next(
            (i for i, a in enumerate(arguments) if a.keyword is None or a.keyword.value in ("device_type", "device")),
            None,
        )
        if first is None:
            arguments.insert(0, cst.Arg(site.expression(type)))
        else:
            arguments[first] = arguments[first].with_changes(value=site.expression(type))
        if event.qualname in _SCALER:
            arguments = _only_on_cuda(arguments, type, site)
        return Fix(f"Use `{type}`", Safety.UNSAFE, (Edit(node, node.with_changes(args=arguments)),))


def _converted(event: ApiCall, site: Site) -> RunDevice | None:
    """The device that the conversion of the file gives it, where the file names the card otherwise without asking for it."""
    if _is_asked(event) or not converts("cuda", site.facts):
        return None
    device = run_device(event.run_device, site, event)
    off = event.arguments.get("enabled") or event.arguments.get("0")
    is_off = off is not None and off.value.constant is False
    return None if is_off and device is not None and device.text.endswith(".device") else device


def _type_of_new(device: RunDevice, event: ApiCall, site: Site) -> str:
    value = event.scope.get(device.text)
    is_device = value is not None and is_device_object(Operand(event.span, ast.Name(device.text), device.text, value))
    return (
        f"{device.text}.type"
        if is_device or (device.needs and not device.is_text)
        else f"{site.spell('torch.device')}({device.text}).type"
    )


def _told_device(event: ApiCall) -> str | None:
    """The type of device that the first positional argument of a call names, which the old names take for something else."""
    first = event.arguments.get("0")
    constant = first.value.constant if first is not None else None
    type = constant.partition(":")[0] if isinstance(constant, str) else ""
    return type if type in ("cuda", "cpu", "xpu", "mps", "hpu", "npu") else None


def _is_cuda(constant: object) -> bool:
    return isinstance(constant, str) and constant.partition(":")[0] == "cuda"


def _device_in_scope(event: ApiCall) -> str | None:
    """An expression for the device that the program was given: the run's, else a variable whose name says device."""
    if event.run_device is not None:
        return event.run_device
    for path, value in event.scope.items():
        if (
            path.rpartition(".")[2] in _DEVICE_NAMES
            and value.kind in ("device", "string", "unknown")
            and (value.device != _CUDA)
        ):
            return path
    return None


def _varies(event: ApiCall) -> bool:
    """Whether a device is in scope that need not be CUDA."""
    return _device_in_scope(event) is not None and not event.run_device_is_proved


def _decorates(event: ApiCall, facts: Facts) -> bool:
    """Whether the call decorates a method, with a type that is fixed when the class is made, wherever its module will be."""
    line = facts.text.rfind("\n", 0, event.span.start) + 1
    before = facts.text[line : event.span.start]
    enabled = event.arguments.get("enabled")
    return before.strip() == "@" and len(before) > 1 and (enabled is None or enabled.value.constant is not False)


def _only_for_type(given: Operand, event: ApiCall, facts: Facts) -> bool:
    """Whether the type is a local choice by `torch.cuda.is_available()` that decides nothing else."""
    if not event.function or given.value.type_name != "chosen:cuda" or not given.text.isidentifier():
        return False
    uses = re.findall(rf"\b{given.text}\b(?!\s*=[^=])", facts.text)
    choices = re.findall(rf"\b{given.text}\s*=[^=]", facts.text)  # each function makes its own
    return len(uses) <= len(choices)


def _is_guarded(event: ApiCall) -> bool:
    """Whether CUDA is asked for around the call."""
    tests = (_FIRST_CARD.sub("", test) for test in event.under.tests)
    return event.under.allow("cuda") or any(re.search(r"(?i)cuda|gpu", test) for test in tests)


def _is_meant(event: ApiCall) -> bool:
    """Whether CUDA is asked for around the call, or by its `enabled` argument."""
    enabled = event.arguments.get("enabled") or (
        event.arguments.get("0") if event.qualname.endswith((".cuda.amp.autocast", ".cpu.amp.autocast")) else None
    )
    return _is_guarded(event) or (enabled is not None and _ASKS_DEVICE.search(enabled.text) is not None)


def _is_asked(event: ApiCall) -> bool:
    """Whether the card is asked for around the call or by its `enabled`, which names the card or a device."""
    enabled = event.arguments.get("enabled") or event.arguments.get("0")
    asks = enabled is not None and re.search(r"(?i)cuda|gpu|device", enabled.text) is not None
    return asks or _is_guarded(event)


def _by_availability(text: str) -> bool:
    """Whether an expression is about CUDA being there: `torch.cuda.is_available()`, alone or choosing a type."""
    return "cuda.is_available()" in text


def _type_of(event: ApiCall, site: Site) -> str:
    """The type of the run's device, whether that is a `torch.device` or a string."""
    path = _device_in_scope(event)
    assert path is not None
    value = event.scope.get(path)
    known = value is not None and is_device_object(Operand(event.span, ast.Name(path), path, value))
    if known or _is_annotated(path, event, site.facts):
        return f"{path}.type"
    if value is not None and value.kind == "string" and path.endswith("type"):
        return path
    return f"{site.spell('torch.device')}({path}).type"


def _is_annotated(name: str, event: ApiCall, facts: Facts) -> bool:
    """Whether a name is a parameter annotated as `torch.device` that the file never assigns to."""
    function = event.function.rpartition(".")[2]
    header = re.search(rf"\bdef {re.escape(function)}\((.*?)\)\s*(->[^:\n]*)?:\s", facts.text, re.DOTALL)
    if not function or header is None or not name.isidentifier():
        return False
    annotated = re.search(rf"\b{name}\s*:\s*(\w+\.)?device\b(?!\s*\|)", header[1]) is not None
    return annotated and re.search(rf"^\s*{name}\s*=", facts.text, re.MULTILINE) is None


def _named(arg: cst.Arg, name: str) -> cst.Arg:
    none = cst.SimpleWhitespace("")
    return arg.with_changes(
        keyword=cst.Name(name), equal=cst.AssignEqual(whitespace_before=none, whitespace_after=none)
    )


def _only_on_cuda(arguments: list[cst.Arg], type: str, site: Site) -> list[cst.Arg]:
    """The arguments of a scaler with `enabled` true on CUDA alone, where a scaler for CUDA was on."""
    test = f'{type} == "cuda"'
    for index, arg in enumerate(arguments):
        if arg.keyword is not None and arg.keyword.value == "enabled":
            old = site.code(arg.value)
            old = old if arg.value.lpar or re.fullmatch(r"[\w.()]+", old) else f"({old})"
            text = test if old == "True" else f"{old} and {test}"
            return [*arguments[:index], arg.with_changes(value=site.expression(text)), *arguments[index + 1 :]]
    return [*arguments, _named(cst.Arg(site.expression(test)), "enabled")]
