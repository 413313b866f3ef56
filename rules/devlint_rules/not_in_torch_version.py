"""A name of torch is missing from some version that the project supports.

## What it flags
- The code uses a name that torch added after the lowest version that the project supports. The setting `torch-version`
  or the packaging files state the lowest version.
- The code uses a name that a later version of torch has removed.

The rule reports the first place that fails:

- A name that is imported directly is reported at the import. Later uses of the name are not reported.
- If several statements fail during the import of the file, only the first one is reported. Python stops the import at
  this statement.

A name is not reported in these cases:

- The code is inside a `try` that catches the error.
- The code runs under a test of the torch version or of the name. A flag in the file, or a decorator that names a
  version, is also such a test.
- No file states the lowest version of torch. The rule then reports no name as too new.
- A `requirements.txt` next to the program leaves the torch version open. A notebook may also install its own packages.

## Why it matters
The code works on the author's machine. It raises `AttributeError` or `ImportError` where another version of torch is
installed.

## Example
    import torch

    def free() -> None:
        if torch.accelerator.is_available():
            torch.accelerator.empty_cache()

Use instead:

    import torch

    def free() -> None:
        if torch.accelerator.is_available() and hasattr(torch.accelerator, "empty_cache"):
            torch.accelerator.empty_cache()

## Fix safety
The rule makes a suggestion without an edit. Require a newer torch, or test for the name first.

## Known limits
devlint knows the names of torch 2.2 to 2.15. Other versions are not checked.
"""

from __future__ import annotations

import re

from devlint.api import ApiCall, ApiImport, ApiName, Facts, Finding, Fix, Rule, RuleMeta, Safety, Severity, Site

from ._api import (
    asks_version,
    fails_earlier,
    hangs_on_import,
    hangs_on_version,
    is_called,
    is_kept_for_version,
    version,
)


class NotInTorchVersion(Rule[ApiName]):
    meta = RuleMeta(
        code="DEV304",
        name="not-in-torch-version",
        summary="name is missing from a torch version that the project supports",
        since="0.1.0",
        level="certain",
        severity=Severity.WARNING,
        fix="hint",
        words=("torch",),
    )
    event = ApiName

    def suspects(self, event: ApiName, facts: Facts) -> bool:
        late = event.since is not None and event.since > facts.torch_version and facts.torch_stated
        newest = facts.torch_newest
        gone = event.removed is not None and (newest is None or newest >= event.removed)
        if not (late or gone) or event.under.catches("AttributeError", "ImportError", "TypeError", "RuntimeError"):
            return False
        name = event.qualname.rpartition(".")[2]
        if asks_version(event) or is_kept_for_version(event) or any(name in test for test in event.under.tests):
            return False
        if hangs_on_import(event, facts) or hangs_on_version(event, facts):
            return False
        if event.qualname.startswith("torch.xpu.") and facts.torch_version < (2, 3) and _is_of_extension(event, facts):
            return False  # such an XPU comes with its vendor's extension of torch, which has the name
        if event.qualname.startswith("torch.Tensor.") or not _is_first_to_fail(event, facts):
            return False
        return not _is_asked_for(event, facts)

    def judge(self, event: ApiName, site: Site) -> Finding | None:
        if isinstance(event, ApiCall) and not event.is_call and is_called(event, site):
            return None
        lowest = site.facts.torch_version
        if event.since is not None and event.since > lowest:
            when = f"is new in torch {version(event.since)}, but the project supports torch {version(lowest)}"
            title = f"Require torch {version(event.since)}, or test for the name with `hasattr`"
        else:
            assert event.removed is not None
            when = f"was removed in torch {version(event.removed)}"
            title = "Use its replacement"
        return Finding(event.span, f"`{event.qualname}` {when}", Fix(title, Safety.HINT), event.because)


def _is_of_extension(event: ApiName, facts: Facts) -> bool:
    """Whether a place runs where there is an XPU: under a test for one, or for what the file calls so and finds with the
    vendor's extension."""
    imported = "intel_extension_for_pytorch" in facts.imports.values()
    asked = any("xpu" in test.lower() and not test.startswith("not ") for test in event.under.tests)
    return "xpu" in event.under.holds or (imported and asked)


def _fails_before(event: ApiName, facts: Facts) -> bool:
    """Whether the file ends with an error before a place at module level is reached: an earlier call there needs a later
    torch in any case."""
    return not event.function and any(
        isinstance(e, ApiCall)
        and e.is_call
        and not (e.function or e.under.tests or e.under.caught or is_kept_for_version(e))
        and e.since is not None
        and e.since > facts.torch_version
        and e.span < event.span
        and not _is_asked_for(e, facts)
        for e in facts.events
    )


def _is_asked_for(event: ApiName, facts: Facts) -> bool:
    """Whether the file asks anywhere whether torch has the name."""
    asked = "|".join(map(re.escape, event.qualname.split(".")[1:]))
    return re.search(rf"hasattr\([^\n]*[\"']({asked})[\"']", facts.text) is not None


def _is_first_to_fail(event: ApiName, facts: Facts) -> bool:
    """Whether no import fails before the place is reached, of the name, of the class that it belongs to, or of another one,
    and no call where the file is imported."""
    if isinstance(event, ApiImport):
        late = (
            e.span
            for e in facts.events
            if isinstance(e, ApiImport) and not e.function and e.since is not None and e.since > facts.torch_version
        )
        return event.since is None or bool(event.function) or event.span == min(late, default=event.span)
    owner, _, _ = event.qualname.rpartition(".")
    is_class = owner.rpartition(".")[2][:1].isupper()
    is_imported = is_class and owner in facts.imports.values()
    return not fails_earlier(event) and not is_imported and not _fails_before(event, facts)
