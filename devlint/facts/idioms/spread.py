"""Devices that a call is given in a dict: `options = {"device": x.device}`, `torch.zeros(3, **options)`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine


def device(machine: Machine, node: ast.expr, value: Value) -> Value | None:
    """The device that a dict holds under that name, where it is known; None where it holds none, or may hold another."""
    if value.kind != "dict" or not isinstance(value.elements, dict):
        return None
    path = machine.path(node)
    stored = machine.state.env.get(f"{path}['device']") if path is not None else None
    found = stored or value.elements.get("device")
    if found is None or found.kind not in ("device", "string") or not found.device:
        return None
    return Value("device", found.device, type_name=found.type_name, because=found.because, made=found.made)


def entries(given: Sequence[Value], named: Mapping[str, Value]) -> dict[str, Value] | None:
    """What `d.update({...}, a=x)` puts into a dict; None where it is not known in full."""
    found: dict[str, Value] = {}
    for value in given:
        if value.kind != "dict" or not isinstance(value.elements, dict) or "*" in value.elements:
            return None
        found.update(value.elements)
    return {**found, **named}


def text(machine: Machine, call: ast.Call, node: ast.expr) -> str:
    """The device that a call is given, as code: `options['device']` where the call gives `**options`."""
    whole = any(keyword.arg is None and keyword.value is node for keyword in call.keywords)
    return f"{machine.text(node)}['device']" if whole else machine.text(node)


def collected(given: dict[str, Value]) -> Value | None:
    """What a function finds in its `**options`, where one of those is a device."""
    found = given.get("device")
    if found is None or found.kind not in ("device", "string") or not found.device:
        return None
    return Value("dict", elements=dict(given))
