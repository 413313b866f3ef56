"""What the methods of a plain object do with what its constructor keeps, and so what the constructor was given.

class Detections:
    def __init__(self, images, predictions):
        self.predictions = predictions

    def show(self):
        for prediction in self.predictions:
            prediction[:, -1].unique()             # `predictions` is a sequence of tensors
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.parameters import Evidence, loop_pairs
from devlint.facts.text.references import is_self_attribute
from devlint.facts.text.scan import FunctionScan

Method = ast.FunctionDef | ast.AsyncFunctionDef


def kept_sequences(
    init: FunctionScan, class_: ClassFacts, read: Callable[[str, Method], tuple[FunctionScan, Evidence] | None]
) -> set[str]:
    """The parameters that a constructor keeps and the elements of which a method uses as only tensors can be.

    `read`: the scan of a method of the class, and what it uses as tensors.
    """
    kept = kept_by(init)
    if not kept:
        return set()
    found: set[str] = set()
    for name, method in class_.methods.items():
        own = read(name, method) if name != "__init__" else None
        if own is None:
            continue
        scan, evidence = own
        for part, source in (pair for node in scan.loops for pair in loop_pairs(node)):
            if isinstance(source, ast.Attribute) and is_self_attribute(source) and source.attr in kept:
                if isinstance(part, ast.Name) and part.id in evidence.used_as_tensors:
                    found.add(kept[source.attr])
    return found


def kept_by(init: FunctionScan) -> dict[str, str]:
    """The attributes that a constructor binds to a parameter as it is, and to nothing else; the parameter by attribute."""
    bound: dict[str, list[ast.expr]] = {}
    for assign in init.assigns:
        if not isinstance(assign, ast.Assign):
            continue
        for target in assign.targets:
            if isinstance(target, ast.Attribute) and is_self_attribute(target):
                bound.setdefault(target.attr, []).append(assign.value)
    every = [(name, values[0]) for name, values in bound.items() if len(values) == 1]
    return {name: value.id for name, value in every if isinstance(value, ast.Name) and init.bound.get(value.id, 0) == 0}
