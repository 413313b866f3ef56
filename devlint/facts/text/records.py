"""Records: data classes and named tuples, whose bodies say by annotations what their fields hold."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from devlint.facts.text.annotations import holds_tensors, is_tensor_annotation
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.references import last_name

_DECORATORS = frozenset({"dataclass", "define", "frozen", "attrs", "attrib", "s"})
_BASES = frozenset({"NamedTuple", "ModelOutput"})


def is_record(class_: ClassFacts) -> bool:
    """Whether a class is a data class or a named tuple, and no module, data set or the like."""
    if class_.family is not None or class_.on_host:
        return False
    marks = {last_name(mark.func if isinstance(mark, ast.Call) else mark) for mark in class_.node.decorator_list}
    bases = {base.rpartition(".")[2] for base in class_.bases}
    return not _DECORATORS.isdisjoint(marks) or not _BASES.isdisjoint(bases)


def fields(class_: ClassFacts) -> list[ast.AnnAssign]:
    """The fields that the body of a class itself annotates, in their order."""
    found = [each for each in class_.node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]
    return [
        each
        for each in found
        if not (isinstance(each.annotation, ast.Subscript) and last_name(each.annotation.value) == "ClassVar")
    ]


def tensor_fields(class_: ClassFacts, names: Mapping[str, str]) -> Mapping[str, bool]:
    """The fields of a record that are tensors by their annotation, its bases' too, with whether each holds several.

    `names`: what the imports of its file bind.
    """
    found: dict[str, bool] = {}
    for each in reversed([base for base in lineage(class_) if is_record(base) or base is class_]):
        for field in fields(each):
            name = field.target.id if isinstance(field.target, ast.Name) else ""
            found.pop(name, None)
            if is_tensor_annotation(field.annotation, names):
                found[name] = False
            elif holds_tensors(field.annotation, names):
                found[name] = True
    return found
