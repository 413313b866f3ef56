"""Devices as values: what a device argument names."""

from __future__ import annotations

from devlint.inference.terms.places import (
    CPU,
    Alternative,
    Places,
    at,
    named_by,
    named_device,
    place_of,
    single,
)
from devlint.inference.terms.values import Value


def device_of(value: Value | None) -> Places | None:
    """The device that a value names. None where it names none, () where that is not known."""
    if value is None or value.kind == "none":
        return None
    if value.kind == "string":
        if isinstance(value.constant, str):
            return named_device(value.constant)
        return single(named_by(value.path)) if value.path is not None else ()
    if value.kind == "number":
        return single(at("cuda", str(value.constant) if isinstance(value.constant, int) else None))
    if value.kind == "device" or value.is_tensor:
        return tuple(_blamed(each) for each in value.places)
    if value.kind == "unknown":
        return tuple(_by_name(each) for each in value.places)
    return ()


def _blamed(each: Alternative) -> Alternative:
    """The device of a tensor that a factory put on the CPU: the factory is to blame for what follows it."""
    origin = each.origin
    keeps = each.atom == CPU and origin is not None and origin.why in ("factory", "option", "module")
    return Alternative(each.atom, origin if keeps else None, each.condition, each.soft)


def _by_name(each: Alternative) -> Alternative:
    atom = named_by(each.atom.key) if each.atom.tag == "place" else each.atom
    return Alternative(atom, None, each.condition, each.soft)


__all__ = ["device_of", "named_by", "place_of"]
