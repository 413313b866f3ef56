"""Second names of buffers: moving a module replaces its buffers by new tensors, and the old ones stay behind.

Parameters keep their identity when a module moves between the CPU and CUDA; buffers never do
[torch/nn/modules/module.py, `_apply`].
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.events import STALE
from devlint.facts.frozen import replace
from devlint.facts.values import CPU, Value
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine
    from devlint.facts.text.classes import ClassFacts


def taken(machine: Machine, node: ast.Attribute, value: Value, owner: Value) -> Value:
    """`model.mean` read from outside: a buffer remembers the module that it was taken from."""
    if value.kind != "buffer" or owner.ident is None:
        return value
    origin = Origin(machine.span(node), f"`{machine.text(node)}` is read here, before the module moves")
    return replace(value, ident=owner.ident, because=(origin,))


def leave_behind(machine: Machine, path: str, module: Value) -> None:
    """A module moved: every buffer that was taken from it before is no longer its buffer."""
    if module.ident is None:
        return
    for other, known in machine.state.env.items():
        if known.kind != "buffer" or known.ident != module.ident or known.device == module.device:
            continue
        if other.startswith(path + ".") or not known.because:
            continue
        move = Origin(module.because[0].span, f"`{path}` moves here, and its buffers become new tensors")
        machine.state.env[other] = replace(
            known, kind="tensor", type_name=STALE, ident=None, made=(), because=(known.because[0], move)
        )


def second_name(
    machine: Machine, owner: ClassFacts, name: str, value: Value, target: ast.expr, source: ast.expr | None
) -> Value | None:
    """`self.alias = self.buffer` in `__init__`: a plain attribute, which stays behind. None for anything else."""
    if value.kind != "buffer" or name in owner.buffers or not isinstance(source, ast.Attribute):
        return None
    if not isinstance(source.value, ast.Name) or source.value.id != "self" or source.attr == name:
        return None
    origin = Origin(
        machine.span(source),
        f"`self.{name}` is a second name of the buffer; when the module moves, only the buffer does",
    )
    return Value("tensor", CPU, value.zero_dim, type_name=STALE, because=(origin,))
