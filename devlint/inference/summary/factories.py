"""New tensors: where a factory makes them."""

from __future__ import annotations

import ast

from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.frame import Frame
from devlint.inference.terms.places import CPU, DEFAULT, Alternative, Origin, Places, nowhere, single
from devlint.inference.terms.values import Value


def new(
    frame: Frame, node: ast.Call, name: str, device: Places | None, arguments: Arguments, dims: bool | str | None
) -> Value:
    """A new tensor: on the device that is given, else on the default one."""
    zero_dim = dims if isinstance(dims, bool) else None
    if device is None:
        if frame.default is not None:
            places = tuple(
                p._replace(origin=Origin("named", node, frame.path, name), zero_dim=zero_dim) for p in frame.default
            )
            return Value("tensor", places)
        origin = Origin("factory", node, frame.path, name, extent_of(frame, arguments.values()), maker=frame.site)
        return Value("tensor", single(CPU, origin, zero_dim=zero_dim))
    return Value("tensor", tuple(_named(frame, node, name, each, zero_dim) for each in device) or nowhere())


def _named(frame: Frame, node: ast.Call, name: str, each: Alternative, zero_dim: bool | None) -> Alternative:
    if each.atom == DEFAULT:
        return Alternative(CPU, Origin("option", node, frame.path, name), each.condition, False, zero_dim)
    if each.atom == CPU and each.origin is not None:
        return each._replace(zero_dim=zero_dim)  # where another new tensor is: that one is to blame
    return Alternative(each.atom, Origin("named", node, frame.path, name), each.condition, each.soft, zero_dim)


def extent_of(frame: Frame, values: list[Value]) -> tuple[Alternative, ...]:
    """The places of the tensor whose size is among these numbers."""
    for value in values:
        if value.kind in ("size", "number") and value.places:
            return tuple(Alternative(p.atom, None, p.condition) for p in value.places)
        if value.kind in ("tuple", "list"):
            found = extent_of(frame, frame.heap.parts_of(value))
            if found:
                return found
    return ()


def with_dims(places: Places, dims: str) -> Places:
    """`dims` says what becomes of the dimensions: "keep" keeps what is known, "stays" keeps that there are some."""
    if dims == "keep":
        return places
    return tuple(p if p.zero_dim is not True else p._replace(zero_dim="perhaps") for p in places)
