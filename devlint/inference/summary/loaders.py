"""What a data loader gives: what its data set or its collate function makes, in host memory where nothing else is said."""

from __future__ import annotations

import ast

from devlint.inference.objects.heap import ITEM, Thing
from devlint.inference.program.definitions import Class
from devlint.inference.summary.arguments import Arguments
from devlint.inference.summary.frame import Frame
from devlint.inference.terms.places import CPU, Origin, Path, nowhere, single
from devlint.inference.terms.values import NOTHING, Kind, Value, given

#: The data set that gives what it was given [torch/utils/data/dataset.py].
TENSORS = "torch.utils.data.TensorDataset"


def batch_of(frame: Frame, node: ast.Call, arguments: Arguments) -> Value:
    """One batch of `DataLoader(dataset, ...)` [torch/utils/data/dataloader.py]."""
    if frame.default is not None:
        return Value("batch", nowhere(), proved=False)
    origin = Origin("loader", node, frame.path, "torch.utils.data.DataLoader")
    dataset = arguments.value(0, "dataset") or NOTHING
    collate = arguments.value(6, "collate_fn")
    if collate is not None and collate.kind != "none":
        return _made(frame, node, collate, origin)
    if dataset.kind == "dataset" and dataset.ref == TENSORS and not all(p.is_tensor for p in dataset.parts or ()):
        return Value("batch", nowhere(), proved=False)
    if dataset.kind == "dataset" and dataset.parts and dataset.ref == TENSORS:
        parts = tuple(
            part._replace(
                places=tuple(p._replace(origin=origin) if p.atom == CPU else p for p in part.places), path=None
            )
            for part in dataset.parts
        )
        return Value("tuple", parts=parts)
    class_ = frame.class_of(dataset)
    if isinstance(class_, Class):
        method = class_.method("__getitem__")
        item = frame.analyser.call(frame, method, dataset, [NOTHING], node) if method is not None else NOTHING
        if _is_elsewhere(item):
            return Value("batch", nowhere(), proved=False)
        if item.is_tensor and all(each.atom.tag == "place" for each in item.places):
            return Value("batch", item.places, proved=False)
        if item.kind == "tuple" and item.parts and all(_is_given(part) for part in item.parts):
            return Value("tuple", parts=tuple(part._replace(kind="tensor") for part in item.parts))
    return Value("batch", single(CPU, origin))


def given_loader(frame: Frame, node: ast.arg, path: Path) -> Value:
    """A loader that is given: its workers make batches in host memory [torch/utils/data/dataloader.py]."""
    if frame.default is not None:
        return given(path)
    origin = Origin("loader", node, frame.path, "torch.utils.data.DataLoader")
    return Value("loader", parts=(Value("batch", single(CPU, origin)),), path=path)


def _made(frame: Frame, node: ast.Call, collate: Value, origin: Origin) -> Value:
    if collate.kind == "function" and isinstance(collate.ref, tuple):
        made = frame.analyser.call(frame, collate.ref[0], collate.ref[1], [NOTHING], node)
        if _is_elsewhere(made) or any(_is_elsewhere(part) for part in frame.heap.parts_of(made)):
            return Value("batch", nowhere(), proved=False)
        if made.kind == "tuple" and any(part.kind in ("list", "dict") for part in made.parts or ()):
            return made._replace(parts=tuple(_collated(frame, node, part, origin) for part in made.parts or ()))
    elif collate.kind == "unknown":
        return Value("batch", single(CPU, origin), proved=False)
    return Value("batch", single(CPU, origin))


def _collated(frame: Frame, node: ast.Call, part: Value, origin: Origin) -> Value:
    """One part of what a collate function makes: tensors of host memory, or a list or dict of them."""
    item = Value("tensor", single(CPU, origin), proved=False)
    if part.kind not in ("list", "dict"):
        return item
    kind: Kind = part.kind
    return Value(kind, objects=(frame.new_thing(node, Thing(kind, fields={ITEM: item}, node=node)),))


def _is_given(value: Value) -> bool:
    """Whether a value is where something given is."""
    return value.is_tensor and bool(value.places) and all(each.atom.tag == "place" for each in value.places)


def _is_elsewhere(value: Value) -> bool:
    """Whether a value is put somewhere else than on the CPU."""
    values = (value, *(value.parts or ()))
    return any(p.atom.tag == "names" or (p.atom.tag == "at" and p.atom != CPU) for v in values for p in v.places)
