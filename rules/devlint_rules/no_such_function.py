"""The code uses a function or class that no version of torch has.

## What it flags
The rule reports a name that the code imports from a torch module, or reads as an attribute of a torch module. It
reports the name if no known version of the torch module has it. The message lists existing names with a similar
spelling.

- A name that is imported directly is reported at the import, for example `from torch.cuda import synchronise`. Later
  uses of the name are not reported.
- A name is not reported inside a `try` that catches the error, or under a `hasattr` test.
- A name is not reported if the torch module creates attributes at run time.

## Why it matters
The line raises `AttributeError` or `ImportError` as soon as it runs. Type annotations are an exception in a file with
`from __future__ import annotations`. Python does not evaluate these annotations, so nothing fails. Often the name
belongs to another module or another library, or torch removed the name long ago.

## Example
    import torch

    def wait():
        if torch.cuda.is_available():
            torch.cuda.synchronise()

Use instead:

    import torch

    def wait():
        if torch.cuda.is_available():
            torch.cuda.synchronize()

## Fix safety
The rule makes a suggestion without an edit. The name with the nearest spelling may not be the intended name.

## Known limits
- Another file of the program may add a name to torch. The rule does not see this and reports the name.
- Private names are not reported.
- A project is not checked if its requirements allow only versions before torch 2.2.
"""

from __future__ import annotations

import re
from functools import lru_cache

from devlint.api import ApiCall, ApiName, Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site, cst

from ._api import asks_version, fails_earlier, hangs_on_import, hangs_on_version, is_called, is_written_out
from ._calls import path_to

#: What every module of torch for a kind of device has: `torch.cuda.device_count`.
_OF_DEVICE_MODULES = (
    "is_available|device_count|current_device|set_device|get_device_properties|synchronize|current_stream|Stream|Event|"
    "manual_seed|manual_seed_all|empty_cache|memory_allocated|get_rng_state|set_rng_state"
)


class NoSuchFunction(Rule[ApiName]):
    meta = RuleMeta(
        code="DEV302",
        name="no-such-function",
        summary="torch has no such name in any version",
        since="0.1.0",
        level="certain",
        severity=Severity.ERROR,
        fix="hint",
        words=("torch",),
    )
    event = ApiName

    def suspects(self, event: ApiName, facts: Facts) -> bool:
        if event.exists is not False or event.under.catches("AttributeError", "ImportError") or not facts.covers_torch:
            return False
        if fails_earlier(event):
            return False
        name = event.qualname.rpartition(".")[2]
        if asks_version(event) or any(name.lower() in test.lower() for test in event.under.tests):
            return False
        if hangs_on_import(event, facts) or hangs_on_version(event, facts):
            return False
        if ".xpu." in event.qualname and (
            "intel_extension" in facts.text or name.endswith("Tensor") or "autocast" in name
        ):
            return False  # a package of its vendor, or a build for it, adds more
        return not _is_added(name, facts) and not _is_device_module(event.qualname, facts)

    def judge(self, event: ApiName, site: Site) -> Finding | None:
        if isinstance(event, ApiCall):
            if (not event.is_call and is_called(event, site)) or not is_written_out(event, site):
                return None
        module, _, name = event.qualname.rpartition(".")
        message = f"`{module}` has no `{name}` in any version"
        if event.nearest:
            message += "; similar names: " + ", ".join(f"`{near}`" for near in event.nearest[:2])
        if isinstance(event, ApiCall) and _is_text(site):
            message += " (the annotation is not evaluated at import)"
        title = f"Use `{event.nearest[0]}`" if event.nearest else f"Remove `{name}`"
        return Finding(event.span, message, Fix(title, Safety.HINT), event.because)


def _is_text(site: Site) -> bool:
    """Whether the name stands in an annotation that stays text: `from __future__ import annotations`."""
    if site.facts.imports.get("annotations") != "__future__.annotations":
        return False
    return any(isinstance(node, cst.Annotation) for node in path_to(site, site.node))


def _is_device_module(qualname: str, facts: Facts) -> bool:
    """Whether the file uses a name as torch's module for a kind of device, which a vendor's plug-in brings: `torch.supa`."""
    if qualname.rpartition(".")[2] not in _device_modules(facts.text):
        return False
    return len(set(re.findall(rf"\b{re.escape(qualname)}\.({_OF_DEVICE_MODULES})\b", facts.text))) > 1


def _is_added(name: str, facts: Facts) -> bool:
    """Whether the file itself gives torch this name, or asks whether it has it."""
    if name not in _words_added(facts.text):
        return False
    pattern = rf"\.{name}\s*=(?!=)|(setattr|hasattr|getattr)\([^\n]*[\"']{name}[\"']"
    return re.search(pattern, facts.text) is not None


@lru_cache(4)
def _device_modules(text: str) -> frozenset[str]:
    """The last names of what a file uses like a module for a kind of device, found in one pass for all its names."""
    return frozenset(m[1] for m in re.finditer(rf"(\w+)(?=\.(?:{_OF_DEVICE_MODULES})\b)", text))


@lru_cache(4)
def _words_added(text: str) -> frozenset[str]:
    """The names that a file binds as attributes, or has in strings."""
    return frozenset(m[1] or m[2] for m in re.finditer(r"\.(\w+)\s*=(?!=)|[\"'](\w+)(?=[\"'])", text))
