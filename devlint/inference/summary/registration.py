"""What a module registers: its parameters, buffers and parts are where the module is."""

from __future__ import annotations

from devlint.inference.summary.frame import Frame
from devlint.inference.terms.places import CPU, Alternative, home_of, single, zero_dim_of
from devlint.inference.terms.values import Identity, Value


def registered(frame: Frame, owner: Identity, value: Value) -> Value:
    """A value as a module keeps it under a name [torch/nn/modules/module.py, `__setattr__`].

    A parameter becomes the module's. A module becomes a part and is moved with it. A plain tensor stays where it is: a later
    move of the module leaves it there.
    """
    if value.kind == "tensor" and value.ref == "parameter":
        _place_module(frame, owner, value)
        return value._replace(places=single(home_of(owner), zero_dim=zero_dim_of(value.places)), ref=None, path=None)
    if value.kind == "tensor" and value.path is None:
        return value._replace(places=tuple(_kept(frame, each) for each in value.places))
    return value


def _place_module(frame: Frame, owner: Identity, parameter: Value) -> None:
    """A module is where its parameters are made, until it is moved."""
    made_elsewhere = [p for p in parameter.places if p.origin is None or p.origin.why != "factory"]
    thing = frame.heap.get(owner)
    is_new = thing.home is None or all(p.origin is not None and p.origin.why == "module" for p in thing.home)
    if (
        is_new and made_elsewhere and len(made_elsewhere) == len(parameter.places) and owner != ("path", ("self",))
    ) or (is_new and made_elsewhere and thing.whole):
        frame.heap.put(owner, thing._replace(home=parameter.places))


def stays_buffer(frame: Frame, owner: Identity, entry: str, value: Value) -> bool:
    """Whether a tensor that is bound to the name of a buffer is where the module is: it is a buffer of it then.

    Source: torch/nn/modules/module.py, `__setattr__`.
    """
    known = frame.heap.get(owner).fields.get(entry)
    if known is None or value.kind != "tensor" or not known.is_tensor or not value.places:
        return False
    is_registered = bool(known.places) and all(each.atom == home_of(owner) for each in known.places)
    home = {each.atom for each in frame.heap.home(owner)}
    return is_registered and {each.atom for each in value.places} <= {*home, home_of(owner)}


def as_buffer(frame: Frame, owner: Identity, value: Value) -> Value:
    """What `register_buffer` keeps."""
    _place_module(frame, owner, value)
    return Value("tensor", single(home_of(owner), zero_dim=zero_dim_of(value.places)))


def _kept(frame: Frame, each: Alternative) -> Alternative:
    origin = each.origin
    if each.atom == CPU and origin is not None and origin.why in ("factory", "host") and origin.registered:
        return each._replace(origin=origin._replace(registered=False))
    return each
