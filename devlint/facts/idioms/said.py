"""What `cast(nn.Linear, self.head)` says of a value: the type that the code gives it for those who read types."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.idioms import guesses
from devlint.facts.text.annotations import is_tensor_annotation
from devlint.facts.text.references import is_self_attribute
from devlint.facts.values import HOME, NOTHING, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine


def cast(machine: Machine, said: ast.expr, source: ast.expr, value: Value) -> Value:
    """The value, which is of the type that the call says; a part of a module, where that is what the type says."""
    if guesses.is_guess(value) and is_tensor_annotation(said, machine.imports.names):
        return guesses.surely(value)
    if value != NOTHING:
        return value
    owner = machine.owner
    if owner is None or not owner.is_module or machine.host or machine.in_init or not machine.assume:
        return value
    if not is_self_attribute(source) or not isinstance(said, (ast.Name, ast.Attribute)):
        return value
    qualname = machine.qualify(said) or ""
    known = knowledge.cls(qualname)
    because = (Origin(machine.span(source), f"`{machine.text(source)}` is a part of the module"),)
    if qualname.startswith("torch.nn.") and qualname.endswith(".Parameter"):
        return Value("parameter", HOME, None, because=because)
    if known is not None and known.family == "Module":
        return Value("module", HOME, type_name=known.qualname, because=because)
    return value
