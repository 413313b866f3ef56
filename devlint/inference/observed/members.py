"""Which methods and attributes an object has, by its kind and class. None where that cannot be told."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import Final

from devlint import knowledge
from devlint.inference.library.protocols import is_dtype
from devlint.inference.observed.collect import Sight
from devlint.inference.program.definitions import Class, File, Function
from devlint.inference.summary.frame import Frame

#: Python's own types [Python's library reference, "Built-in Types"].
_BUILTINS: Final[dict[str, tuple[type, ...]]] = {
    "list": (list, set, frozenset),
    "tuple": (tuple,),
    "tensors": (list, tuple),
    "dict": (dict,),
    "string": (str, bytes),
    "number": (int, float, complex),
    "bool": (bool,),
    "size": (tuple,),
    "iterator": (types.GeneratorType, map),
    "method": (types.MethodType,),
}
#: The family of torch's classes that a kind is. The words are those of `knowledge.Class.family`.
FAMILIES: Final = {
    "optimizer": "Optimizer", "scheduler": "LRScheduler", "loader": "DataLoader", "dataset": "Dataset",
    "sampler": "Sampler", "scaler": "GradScaler", "autocast": "autocast", "stream": "Stream", "event": "Event",
    "generator": "Generator", "distribution": "Distribution", "device": "device", "dtype": "dtype",
}  # fmt: skip
#: Moves to a device. No array, data frame, image, tokenizer or estimator has one of them
#: [numpy.ndarray, whose move is `to_device`; the sources in `knowledge.immovable`].
MOVES: Final = frozenset({"to", "cuda", "cpu", "xpu", "npu", "hpu", "mps", "ipu", "mtia"})


def kind_of(sight: Sight) -> str:
    """The kind, with the objects of torch told apart by what makes them, and objects of other libraries by their family."""
    name = sight.class_
    if sight.kind == "mover":
        return "function"
    if sight.kind == "library" and all(is_dtype(each.ref) for each in sight.value.parts or (sight.value,)):
        return "dtype"
    if isinstance(name, Class) and sight.kind == "instance":
        return next((kind for kind, family in FAMILIES.items() if family == name.family), sight.kind)
    if sight.kind not in ("unknown", "other", "steps") or not isinstance(name, str):
        return sight.kind
    family = knowledge.immovable(name)
    if family is not None:
        return family
    record = knowledge.function(name) if name.startswith("torch.") else None
    return record.result if record is not None and record.result in FAMILIES else sight.kind


def has(frame: Frame, sight: Sight, kind: str, name: str) -> bool | None:
    """Whether an object of this kind has a member of this name."""
    if name.startswith("__"):
        return None
    if isinstance(sight.class_, Class) and not isinstance(sight.value.ref, Class):
        is_own = sight.value.objects == (("path", ("self",)),)
        return _of_project(sight.class_, name, frame.function if is_own else None)
    if kind in _BUILTINS:
        return any(hasattr(each, name) for each in _BUILTINS[kind])
    if kind in FAMILIES:
        return _of_family(FAMILIES[kind], sight.class_, name)
    if kind == "module" and isinstance(sight.class_, str) and sight.class_.startswith("torch.nn."):
        return _of_family("Module", sight.class_, name)
    if kind == "tensor":
        return True if name in knowledge.methods("Tensor") | knowledge.attributes("Tensor") else None
    is_immovable = kind == "array" or (isinstance(sight.class_, str) and knowledge.immovable(sight.class_) is not None)
    return False if is_immovable and name in MOVES else None


def _of_family(family: str, class_: object, name: str) -> bool:
    if name in knowledge.methods(family) or name in knowledge.attributes(family):
        return True
    record = knowledge.cls(class_) if isinstance(class_, str) else None
    return record is not None and (name in record.methods or name in record.attributes)


def _of_project(class_: Class, name: str, method: Function | None) -> bool | None:
    """A class of the project: what it and its bases define and bind. None where that cannot be told.

    `method`: the method of the class whose own object it is.
    """
    if _defines(class_, name):
        return True
    if any(class_ in each.lineage and _defines(each, name) for each in class_.file.classes.values()):
        return None  # the object may be of such a class
    if not class_.is_read or any(class_.method(each) is not None for each in _MAKE_UP):
        return None
    for base in class_.lineage:
        if isinstance(base, Class):
            if (base.node.decorator_list and not base.is_data) or _binds(base, name):
                return None
        elif base.startswith("torch.") and (record := knowledge.cls(base)) is not None:
            if name in record.methods or name in record.attributes or name in knowledge.methods(record.family):
                return True
    return None if method is not None and _is_borrowed(class_, method, name) else False


#: Methods that give members which no statement shows [Python's language reference, "Customizing attribute access"].
_MAKE_UP: Final = ("__getattr__", "__getattribute__", "__setattr__")


def _defines(class_: Class, name: str) -> bool:
    return class_.method(name) is not None or class_.value(name) is not None or class_.setter(name) is not None


def _is_borrowed(class_: Class, method: Function, name: str) -> bool:
    """Whether a method reads other members too that nothing gives the class: then its object is another."""
    names = method.positional()[:1]
    read = {
        node.attr
        for node in method.file.nodes_of(method.node)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in names
        if not node.attr.startswith("__")
    }
    return not all(_is_given(class_, each) for each in read - {name, "device", "dtype"})


def _is_given(class_: Class, name: str) -> bool:
    """Whether something of the class or its bases gives it a member."""
    if _defines(class_, name) or any(isinstance(base, Class) and _binds(base, name) for base in class_.lineage):
        return True
    records = [knowledge.cls(base) for base in class_.lineage if isinstance(base, str)]
    return any(record is not None and (name in record.methods or name in record.attributes) for record in records)


def _binds(class_: Class, name: str) -> bool:
    """Whether some code of the file may bind the name on an object: `x.name = ...`, `setattr(x, ...)`, `x.__dict__`."""
    file = class_.file
    if file.bound is None:
        file.bound = frozenset(_bound(file))
    return name in file.bound or "*" in file.bound


def _bound(file: File) -> Iterator[str]:
    for nodes in file.nodes.values():
        for node in nodes:
            if isinstance(node, ast.Attribute):
                if node.attr == "__dict__":
                    yield "*"
                elif isinstance(node.ctx, ast.Store):
                    yield node.attr
            elif isinstance(node, ast.Name) and node.id in ("setattr", "vars"):
                yield "*"
