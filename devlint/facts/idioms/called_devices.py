"""`x.device()`, `x.is_cuda()`: what says where a tensor is is no method, and a module has no `device` at all.

Sparse tensors of torch_sparse and arrays of jax have a method of that name, and so may a class of the project.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.text.annotations import knows_other_tensors
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_property, last_name
from devlint.facts.values import ONE_TENSOR, OUTPUT

if TYPE_CHECKING:
    from devlint.facts.events import Operand
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.text.classes import ClassFacts

#: The family names that events carry: what is called is a `torch.device`, or there is no such attribute.
NO_FUNCTION = "attribute"
#: Attributes of tensors that say whether they are on a kind of device [torch/_C/__init__.pyi].
FLAGS = frozenset({"is_cuda", "is_cpu", "is_xpu", "is_mps", "is_mtia", "is_meta"})
LACKING = "Module"
#: How the `type_name` begins of a module that is an argument.
GIVEN = "argument "


def family(machine: Machine, operand: Operand, sets: bool) -> str | None:
    """What is wrong with `x.device()`, by the family name of its event; None where it may be right.

    `sets`: the class of the file that `x` is of gets an attribute of that name in some way.
    """
    value, text = operand.value, machine.source.text
    if value.kind in ONE_TENSOR:
        is_sure = (
            value.type_name in (None, OUTPUT)
            and "SparseTensor" not in text
            and not knows_other_tensors(machine.imports.names)
        )
        return NO_FUNCTION if is_sure else None
    if value.kind != "module" or (machine.scan.tree is not None and defines(machine.scan.tree)):
        return None
    class_ = machine.classes.get(value.type_name) if value.type_name is not None else None
    if class_ is not None:
        return of_class(class_, sets)
    name = value.type_name or ""
    known = knowledge.cls(name)
    of_torch = known is not None and known.family == "Module" and "device" not in known.attributes | known.methods
    return LACKING if of_torch or name.startswith(GIVEN) else None


def of_class(class_: ClassFacts, sets: bool) -> str | None:
    """The same for a module of a class of the file."""
    found, kept = class_.method("device"), class_.attribute("device")
    if found is not None:
        return NO_FUNCTION if is_property(found[1]) else None
    if kept is not None and kept.kind == "device":
        return NO_FUNCTION
    return LACKING if class_.bases == ("torch.nn.Module",) and kept is None and not sets else None


@lru_cache(maxsize=4)
def defines(tree: ast.AST) -> bool:
    """Whether a file has a class with a method `device()` that a module may have: it has a base, or is one to mix in."""
    classes = (c for c in walk(tree) if isinstance(c, ast.ClassDef) and (c.bases or "mixin" in c.name.lower()))
    functions = (m for c in classes for m in c.body if isinstance(m, (ast.FunctionDef, ast.AsyncFunctionDef)))
    return any(m.name == "device" and is_called_alone(m) for m in functions)


def is_called_alone(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method takes no arguments, and is neither a property nor what sets one."""
    spec = method.args
    return len(spec.args) - len(spec.defaults) <= 1 and not is_property(method) and not is_setter(method)


def is_setter(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(last_name(d) == "setter" for d in method.decorator_list)
