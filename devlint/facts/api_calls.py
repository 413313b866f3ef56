"""Which reads and calls of torch's names deserve an `ApiCall` event: what the rules about the torch interface judge."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devlint.facts.calls import Arguments
    from devlint.facts.machine import Machine


def note_api(machine: Machine, node: ast.Call | ast.Attribute, qualname: str, arguments: Arguments | None) -> None:
    """Emit an `ApiCall` for a name below `torch.` where a rule may have a question about it. `arguments` is None for a read."""
