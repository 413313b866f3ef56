"""Moves that `__init__` makes only where an optional device is given.

`if device is not None: self.table = self.table.to(device)`. Where the argument is left out, the plain tensor stays where
it was made, and does not move with the module later.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import statements
from devlint.facts.text.parameters import reads_like_device
from devlint.facts.text.references import is_own_attribute
from devlint.facts.text.signatures import default_of


def is_optional_move(init: ast.AST | None, statement: ast.stmt | None, name: str) -> bool:
    """Whether a statement moves `self.name` by an argument that may be left out, and stands under a test of it alone."""
    if not isinstance(init, (ast.FunctionDef, ast.AsyncFunctionDef)) or not isinstance(statement, ast.Assign):
        return False
    call = statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute) or call.func.attr not in OFF_HOST:
        return False
    where = [*call.args, *(k.value for k in call.keywords if k.arg == "device")]
    if not is_own_attribute(call.func.value, name) or not where:
        return False
    option = where[0].attr if isinstance(where[0], ast.Attribute) else getattr(where[0], "id", "")
    default = default_of(init.args, option)
    if not reads_like_device(option) or not isinstance(default, ast.Constant) or default.value is not None:
        return False
    around = [n for n in statements(init) if isinstance(n, ast.If) and statement in n.body and not n.orelse]
    return any(asks_for(part, option) for test in around for part in parts(test.test))


def parts(test: ast.expr) -> Iterator[ast.expr]:
    """The conditions that all have to hold: `a` and `b` of `a and b`."""
    if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
        for value in test.values:
            yield from parts(value)
    else:
        yield test


def asks_for(test: ast.expr, option: str) -> bool:
    """Whether a condition holds where an argument is given: `device is not None`, `device`, `self.device is not None`."""
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], (ast.IsNot, ast.NotEq)):
        right = test.comparators[0]
        return isinstance(right, ast.Constant) and right.value is None and asks_for(test.left, option)
    return (isinstance(test, ast.Name) and test.id == option) or is_own_attribute(test, option)
