"""From a call of one accelerator's module to its counterpart in `torch.accelerator`, as the lowest torch allows."""

from __future__ import annotations

from devlint.api import ApiCall, Facts, Site, cst

from ._torch import has_torch

#: Counterparts whose arguments are the same, given by position: none, or a device or index that they take as well.
_SAME_ARGUMENTS = frozenset(
    "torch.accelerator." + name
    for name in (
        "synchronize", "current_stream", "set_stream", "empty_cache", "memory_allocated", "max_memory_allocated",
        "memory_reserved", "max_memory_reserved", "memory_stats", "reset_peak_memory_stats", "set_device_index",
        "reset_accumulated_memory_stats", "get_memory_info", "device_index", "current_device_index", "device_count",
    )
)  # fmt: skip
_OBJECTS = {"torch.Event": frozenset({"enable_timing"}), "torch.Stream": frozenset({"device", "priority"})}


def replacement_call(event: ApiCall, site: Site) -> cst.Call | None:
    """The counterpart with the same arguments; None where torch lacks one, or it takes other arguments."""
    call = site.node
    new = event.replacement
    if not isinstance(call, cst.Call) or new is None or event.star or not has_replacement(event, site.facts):
        return None
    given = [(a.keyword.value if a.keyword is not None else None) for a in call.args]
    if new in _SAME_ARGUMENTS:
        if len(given) > 1 or any(name not in (None, "device") for name in given):
            return None
        if new == "torch.accelerator.device_index" and event.arguments and not _is_number(event):
            return None
        arguments = [a.with_changes(keyword=None, equal=cst.MaybeSentinel.DEFAULT) for a in call.args]
    elif new in _OBJECTS:
        if not all(name in _OBJECTS[new] for name in given):
            return None
        arguments = list(call.args)
    else:
        return None
    return call.with_changes(func=site.expression(site.spell(new)), args=arguments)


def has_replacement(event: ApiCall, facts: Facts) -> bool:
    """Whether the project's lowest torch has the counterpart."""
    return event.replacement is not None and (
        event.replacement_since is None or has_torch(event.replacement_since, facts)
    )


def _is_number(event: ApiCall) -> bool:
    given = event.arguments.get("0") or event.arguments.get("device")
    return given is not None and given.value.kind in ("number", "index")
