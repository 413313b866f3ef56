"""Objects of data classes and named tuples: their fields hold tensors by annotation, or what the constructor is given.

    @dataclass
    class Batch:
        positions: Tensor
        lengths: Tensor

    def centered(batch: Batch, width: int):
        return batch.positions - torch.zeros(width)  # the positions are where the batch is

A method that binds a field, or any code that might, ends what is known of it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.idioms.unplaced import brings_to_host
from devlint.facts.text.records import fields, is_record, tensor_fields
from devlint.facts.text.references import is_self, is_self_attribute
from devlint.facts.values import UNKNOWN, Device, Value
from devlint.model import Origin

if TYPE_CHECKING:
    import ast

    from devlint.facts.interpreter.arguments import Arguments, CallArguments
    from devlint.facts.text.classes import ClassFacts
    from devlint.facts.text.scan import Scan

#: Methods that a record runs when it is made, which may bind its fields.
_MAKING = frozenset({"__init__", "__new__", "__post_init__", "__attrs_post_init__", "__getattribute__", "__setattr__"})


def on_device(machine: CallArguments, class_: ClassFacts, device: Device, origin: Origin) -> Value | None:
    """An object of a record of this file whose tensors are on one device; None for any other class."""
    if class_.abroad or not is_record(class_):
        return None
    held = tensor_fields(class_, machine.imports.names)
    if not held or not _MAKING.isdisjoint(class_.methods) or is_filled_on_host(machine.scan, class_):
        return None
    parts = {
        name: Value("tensors" if several else "tensor", device, None, because=(origin,))
        for name, several in held.items()
    }
    return Value("object", type_name=class_.name, elements=parts)


def made(class_: ClassFacts, arguments: Arguments) -> dict[str, Value]:
    """The tensors that the constructor of a record is given, by field."""
    if class_.abroad or not is_record(class_) or arguments.star or class_.local_bases:
        return {}
    if not _MAKING.isdisjoint(class_.methods):
        return {}
    names = [each.target.id for each in fields(class_) if hasattr(each.target, "id")]
    return {name: value for name, value in arguments.by_name(names).items() if value.is_tensor and name in names}


@lru_cache(32)
def is_filled_on_host(scan: Scan, class_: ClassFacts) -> bool:
    """Whether some code of the file makes such an object of what it brings to the CPU: `Result(logits.detach().cpu())`."""
    calls = (site.call for site in scan.calls.get(class_.name, ()))
    return any(brings_to_host(given) for call in calls for given in (*call.args, *(k.value for k in call.keywords)))


def binds_fields(scan: Scan, method: ast.AST) -> bool:
    """Whether a method binds attributes of its object, or hands the object, or a method of it, what may."""
    own = scan.functions.get(id(method))
    if own is None or any(map(is_self_attribute, own.stores)):
        return True
    return any(
        is_self_attribute(call.func) or any(is_self(given) for given in (*call.args, *(k.value for k in call.keywords)))
        for call in own.calls
    )


def device_of(value: Value) -> Device:
    """The one device of the tensors that an object holds; UNKNOWN where there are none, or several."""
    held = {part.device for part in value.parts if part.is_tensor} if isinstance(value.elements, dict) else set()
    return held.pop() if len(held) == 1 else UNKNOWN
