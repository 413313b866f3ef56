"""Factories of torch that `__init__` takes by name or as a parameter: `getattr(torch, window)(n)`, `window_fn(n)`.

A name counts where the code states it: as a constant, or as the default of the parameter that gives it. A text that ends in
`_window` stands for one of the windows, which are all made in the same way. What a module keeps of it is of interest.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.text.signatures import default_of

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

_WINDOWS = "_window"
_ANY_WINDOW = "torch.hann_window"


def named(machine: Machine, home: str, node: ast.expr) -> str | None:
    """The qualified name of the factory that `getattr(home, node)` gives in `__init__`; None where none is known."""
    if home != "torch" or not machine.in_init:
        return None
    if isinstance(node, ast.Name):
        node = default(machine, node) or node
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return factory(f"torch.{node.value}")
    return _ANY_WINDOW if ends_in_window(node) else None


def given(machine: Machine, node: ast.expr) -> str | None:
    """The factory that a parameter of `__init__` is by default, where nothing else is known of it: `window_fn(n)`."""
    said = default(machine, node) if machine.in_init and isinstance(node, ast.Name) else None
    qualname = machine.qualify(said) if isinstance(said, (ast.Name, ast.Attribute)) else None
    return factory(qualname) if qualname is not None else None


def factory(qualname: str) -> str | None:
    """A qualified name, if it is that of a function of torch that makes tensors of numbers alone."""
    record = knowledge.function(qualname) if qualname.startswith("torch.") else None
    return qualname if record is not None and record.device_from == "argument" else None


def default(machine: Machine, node: ast.Name) -> ast.expr | None:
    """The default of a parameter of the function under analysis."""
    return default_of(machine.function.node.args, node.id) if machine.function is not None else None


def ends_in_window(node: ast.expr) -> bool:
    """Whether a text is put together, and ends in `_window`: `f"{name}_window"`, `name + "_window"`."""
    last = node.values[-1] if isinstance(node, ast.JoinedStr) and node.values else None
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        last = node.right
    return isinstance(last, ast.Constant) and isinstance(last.value, str) and last.value.endswith(_WINDOWS)
