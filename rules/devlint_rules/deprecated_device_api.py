"""The code uses a device function or attribute that torch has deprecated.

## What it flags
The rule reports functions, attributes and arguments that deal with devices and are deprecated. torch warns about them
at run time, or its documentation calls them deprecated. Examples are `torch.cuda.memory_cached`,
`torch.cuda.reset_max_memory_allocated`, `torch.accelerator.current_device_idx`, `torch.has_cuda` and
`DataLoader(pin_memory_device=...)`.

Two groups of deprecated names have their own rules. DEV209 reports the deprecated functions and classes for mixed
precision. DEV204 reports `set_default_tensor_type`.

## Why it matters
Most of these functions and attributes warn at every use. A later version of torch may remove them.

## Example
    import torch

    def used() -> int:
        return torch.cuda.memory_cached() if torch.cuda.is_available() else 0

Use instead:

    import torch

    def used() -> int:
        return torch.cuda.memory_reserved() if torch.cuda.is_available() else 0

## Fix safety
- The fix is safe if the new name does the same on every supported torch.
- The fix is unsafe for `pin_memory_device`. torch ignores this argument from version 2.9 on.
- Otherwise the rule makes a suggestion without an edit. For example, the lowest supported torch may not have the new
  name.

## Known limits
- Deprecated names that have nothing to do with devices are not reported.
- A name is not reported under a test of the torch version, or under `if not hasattr(...)`.
"""

from __future__ import annotations

import re

from devlint.api import ApiCall, Edit, Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site, cst

from ._agnostic import has_replacement
from ._api import is_called, needs_torch, service_of, spelled, version

_BELOW = ("torch.cuda.", "torch.accelerator.", "torch.xpu.", "torch.mps.", "torch.mtia.", "torch.backends.cuda.")
# Values that became functions [torch/__init__.py, _deprecated_attrs].
_FLAGS = {
    "torch.has_cuda": "torch.backends.cuda.is_built",
    "torch.has_cudnn": "torch.backends.cudnn.is_available",
    "torch.has_mps": "torch.backends.mps.is_built",
    "torch.has_mkldnn": "torch.backends.mkldnn.is_available",
}
_VERSION = re.compile(r"(?i)(?<!con)(?<!in)version|torch\w*_(ge|gt|le|lt)\b|at_least")
_LACKS = re.compile(r"not \(?hasattr\(")
_OLDEST = (2, 2)  # what was deprecated there may have been so before
#: The first torch whose `DataLoader` takes the accelerator whatever `pin_memory_device` says [torch/utils/data/dataloader.py].
_TAKES_THE_ACCELERATOR = (2, 9)
_OTHERS = frozenset({"torch.nn.parallel.DistributedDataParallelCPU"})


class DeprecatedDeviceApi(Rule[ApiCall]):
    meta = RuleMeta(
        code="DEV306",
        name="deprecated-device-api",
        summary="deprecated device function or attribute of torch",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="sometimes",
        words=("torch",),
    )
    event = ApiCall

    def suspects(self, event: ApiCall, facts: Facts) -> bool:
        if not facts.covers_torch:
            return False  # the name's successor may be missing from the old torch that the project pins
        if event.under.catches("ImportError") or any(map(_VERSION.search, event.under.tests)):
            return False  # for the versions that lack its successor
        if any(map(_LACKS.match, event.under.tests)):
            return False  # for a torch that lacks a name, its successor for the most part
        if event.qualname in _FLAGS:
            return True
        if event.qualname == "torch.utils.data.DataLoader":
            given = event.arguments.get("pin_memory_device")
            pinned = facts.torch_newest is not None and facts.torch_newest < _TAKES_THE_ACCELERATOR
            return given is not None and given.value.constant != "" and not pinned
        if ".amp." in event.qualname or not (event.deprecated is not None or event.remedy == "D"):
            return False
        return event.qualname.startswith(_BELOW) or event.qualname in _OTHERS

    def judge(self, event: ApiCall, site: Site) -> Finding | None:
        if not event.is_call and is_called(event, site):
            return None
        given = event.arguments.get("pin_memory_device")
        if event.qualname == "torch.utils.data.DataLoader" and given is not None:
            return Finding(
                given.span,
                "`pin_memory_device` is deprecated: torch pins for the current accelerator",
                _drop(event, site),
            )
        since = event.deprecated
        since_text = f" since torch {version(since)}" if since is not None and since > _OLDEST else ""
        return Finding(
            event.span, f"`{spelled(event, site)}` is deprecated{since_text}", self._fix(event, site), event.because
        )

    def _fix(self, event: ApiCall, site: Site) -> Fix:
        node = site.node
        flag = _FLAGS.get(event.qualname)
        if flag is not None:
            new = cst.Call(site.expression(site.spell(flag)))
            return Fix(f"Use `{site.code(new)}`", Safety.SAFE, (Edit(node, new),), needs_torch(site.facts))
        if event.replacement is None:
            return Fix("Use the replacement that the warning of torch names", Safety.HINT)
        name = site.spell(event.replacement)
        if event.remedy != "D" or not has_replacement(event, site.facts):
            return Fix(f"Use `{name}`", Safety.HINT)
        old = node.func if isinstance(node, cst.Call) else node
        safety = Safety.UNSAFE if _raises_unguarded(event, site.facts) else Safety.SAFE
        return Fix(f"Use `{name}`", safety, (Edit(old, site.expression(name)),), needs_torch(site.facts))


def _raises_unguarded(event: ApiCall, facts: Facts) -> bool:
    """Whether the call raises without the accelerator: DEV205 reports the new name, so the guard belongs to the fix."""
    caught = event.under.catches("RuntimeError", "AssertionError")
    return event.raises and event.is_call and not caught and service_of(event, facts) is None


def _drop(event: ApiCall, site: Site) -> Fix:
    call = site.node
    title = "Remove `pin_memory_device`"
    if isinstance(call, cst.Call):
        for arg in call.args:
            if arg.keyword is not None and arg.keyword.value == "pin_memory_device":
                return Fix(title, Safety.UNSAFE, (Edit(arg, None),))
    return Fix(title, Safety.HINT)
