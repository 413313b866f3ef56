"""Moves: `.to(...)`, `.cuda()`, `.cpu()` and their kin, of tensors and modules."""

from __future__ import annotations

import ast

from devlint.inference.library.protocols import is_torch_module
from devlint.inference.program.definitions import Class
from devlint.inference.summary import own_apply, walks
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.devices import device_of
from devlint.inference.summary.frame import Frame
from devlint.inference.terms.places import (
    CPU,
    DEFAULT,
    Alternative,
    Origin,
    Places,
    at,
    nowhere,
    place_of_type,
    single,
    zero_dim_of,
)
from devlint.inference.terms.values import NOTHING, Value

_METHODS = frozenset({"to", "cuda", "cpu", "xpu", "npu", "hpu", "mps", "ipu", "mtia", "type_as", "to_empty", "type"})


#: Kinds of what has no such method: what comes after the call never runs, and what it was it stays.
_IMMOVABLE = frozenset(
    {"optimizer", "scheduler", "loader", "dataset", "generator", "distribution", "list", "tuple", "dict", "iterator",
     "number", "string", "bool", "size", "dtype"}
)  # fmt: skip


def is_move(name: str) -> bool:
    return name in _METHODS


def target_of(frame: Frame, name: str, arguments: Arguments) -> Places | None:
    """Where a move goes. None where it changes no device, () where that is not known."""
    if name == "cpu":
        return single(CPU)
    if name == "type_as":
        other = arguments.value(0, "other")
        return other.places if other is not None else ()
    if name in ("to", "to_empty"):
        return _target_of_to(arguments)
    if name == "type":
        return _target_of_type(arguments)
    index = device_of(arguments.value(0, "device")) if arguments.positional or "device" in arguments.named else None
    first = arguments.value(0, "device")
    if first is not None and first.kind in ("number", "string", "device") and index:
        return index
    return single(at(name)) if first is None or first.kind in ("none", "bool") else index or single(at(name))


def _target_of_to(arguments: Arguments) -> Places | None:
    if "device" in arguments.named:
        return device_of(arguments.named["device"][1])
    first = arguments.value(0, "other", "tensor")
    if first is None:
        return () if arguments.stars or arguments.double else None
    if first.kind in ("dtype", "none", "bool", "other"):
        return None
    if first.kind == "library":
        return None if str(first.ref).startswith("torch.") else ()
    return device_of(first)


def _target_of_type(arguments: Arguments) -> Places | None:
    """`x.type(torch.FloatTensor)`: the old types name a device [torch/_tensor_docs.py, `Tensor.type`]."""
    first = arguments.value(0, "dtype")
    if first is None:
        return None
    if first.kind == "library":
        return first.places or place_of_type(first.ref) or None
    return place_of_type(first.constant) or None


def move(frame: Frame, node: ast.Call, base: Value, name: str, arguments: Arguments) -> Value:
    """What a move gives, and what it moves in place."""
    target = target_of(frame, name, arguments)
    if target is not None:
        target = tuple(each for each in target if each.atom != DEFAULT) or nowhere()
    if base.objects and base.kind in ("module", "instance", "unknown"):
        return _move_module(frame, node, base, target)
    if base.is_tensor:
        return _move_tensor(frame, node, base, name, target)
    if base.kind == "unknown":
        return _move_unknown(frame, node, base, name, target)
    return base if base.kind in _IMMOVABLE else NOTHING


def _move_tensor(frame: Frame, node: ast.Call, base: Value, name: str, target: Places | None) -> Value:
    if target is None:
        return base._replace(kind="batch" if base.kind == "batch" else "tensor", path=None)
    note(frame, base, target, node)
    zero_dim = zero_dim_of(base.places)
    kind = "batch" if base.kind == "batch" else "tensor"
    return Value(kind, _moved(frame, node, target, zero_dim), proved=base.proved)  # type: ignore[arg-type]


def _moved(frame: Frame, node: ast.AST, target: Places, zero_dim: bool | None) -> Places:
    return tuple(
        Alternative(
            each.atom, each.origin if each.atom == CPU and each.origin is not None else Origin("moved", node, frame.path),
            each.condition, each.soft, zero_dim,
        )
        for each in target
    )  # fmt: skip


def _move_module(frame: Frame, node: ast.Call, base: Value, target: Places | None) -> Value:
    """A module is moved in place and given back. An object of a class that is read and is no module has no such method."""
    class_ = frame.class_of(base)
    if isinstance(class_, Class) and not class_.may_be_module:
        frame.heap.forget(base.objects)
        return base
    if target is not None:
        places = tuple(each._replace(origin=Origin("moved", node, frame.path)) for each in target)
        every = walks.walks_over(frame, node.func.value) if isinstance(node.func, ast.Attribute) else []
        for objects in [(each,) for each in base.objects] if every else [base.objects]:
            frame.heap.move(objects, places)
        for walk in every:
            whole = walks.container_of(frame, walk)
            if whole.kind == "module" and (walk.itself or is_torch_module(frame.class_of(whole))):
                frame.heap.move(whole.objects, places)  # a container of torch has no parameters but those of its parts
        own_apply.run(frame, node, base, places)
    return base


def apply(frame: Frame, node: ast.Call, mover: Value, arguments: Arguments) -> Value:
    """Call the function that `_apply` gets: it moves one tensor."""
    tensor = arguments.value(0, "t")
    return _move_tensor(frame, node, tensor, "to", mover.places) if tensor is not None and tensor.is_tensor else NOTHING


def _move_unknown(frame: Frame, node: ast.Call, base: Value, name: str, target: Places | None) -> Value:
    """Something given: a tensor, which gives a moved copy, or a module, which is moved in place."""
    if target is None:
        return base
    note(frame, base, target, node)
    if base.path is not None:
        frame.heap.move((("path", base.path),), target)  # so it is, if it is a module
    for each in target:
        if each.atom.tag == "place":
            frame.site.asks.add(each.atom.key[0])
    ref = ("moved", base.path, target) if base.path is not None else None
    return Value("unknown", _moved(frame, node, target, None), proved=False, ref=ref)


def as_tensor(value: Value) -> Value:
    """An operand of arithmetic: what was moved is a tensor then, and no module."""
    is_moved = value.kind == "unknown" and isinstance(value.ref, tuple) and value.ref[0] == "moved"
    return Value("tensor", value.places) if is_moved else value


def moved_in_place(frame: Frame, value: Value) -> None:
    """A use shows that what was moved is a module: then it is the given one that was moved."""
    if isinstance(value.ref, tuple) and len(value.ref) == 3 and value.ref[0] == "moved":
        frame.heap.move((("path", value.ref[1]),), value.ref[2])


def note(frame: Frame, base: Value, target: Places, node: ast.AST) -> None:
    """What is moved was not there before: neither are the other parts of what it came with."""
    if all(each.atom == CPU for each in target):
        return
    for each in base.places:
        if each.atom.tag == "place" and len(each.atom.key) > 1:
            frame.site.moved.setdefault(each.atom.key[:-1], []).append(node)
