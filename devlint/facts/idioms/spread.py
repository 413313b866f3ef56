"""Devices that a call is given in a dict: `options = {"device": x.device}`, `torch.zeros(3, **options)`."""

from __future__ import annotations

import ast
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
