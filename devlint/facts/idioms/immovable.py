"""Objects without a device method that are no objects of torch: what other libraries make, and what the host reads of a tensor.

`AutoTokenizer.from_pretrained(name).to(device)`, `transforms.Compose([...]).to(device)`, `loss.item().cpu()`.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine

_NUMBERS = frozenset({"len", "int", "float"})


def made_by(machine: Machine, node: ast.Call, qualname: str, value: Value) -> Value:
    """What a call of another library gives: an object of a class without a device method, where nothing else is known of it.

    With `trust_remote_code` the class is one that nobody knows here.
    """
    if value.kind != "unknown" or value.type_name is not None or knowledge.immovable(qualname) is None:
        return value
    if any(keyword.arg in ("trust_remote_code", None) for keyword in node.keywords):
        return value
    return Value("object", type_name=qualname, because=(machine.origin(node, "created here"),))


def family(node: ast.expr, value: Value) -> str | None:
    """The family of such an object; None for any other value. `node`: the expression."""
    if value.kind in ("object", "function") and value.type_name is not None:
        return knowledge.immovable(value.type_name)
    called = node.func if isinstance(node, ast.Call) else None
    read = isinstance(called, ast.Attribute) and called.attr == "item" and not isinstance(called.value, ast.Constant)
    if value.kind == "number" and (read or (isinstance(called, ast.Name) and called.id in _NUMBERS)):
        return "number"
    return None
