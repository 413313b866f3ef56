"""The arguments that pytest gives a test: `@pytest.mark.parametrize("device", [torch.device("cpu"), torch.device("cuda")])`."""

from __future__ import annotations

import ast
from functools import lru_cache

from devlint.facts.text.references import last_name


def is_parametrize(node: ast.expr) -> bool:
    """Whether a decorator is pytest's `parametrize`."""
    return isinstance(node, ast.Call) and last_name(node.func) == "parametrize" and len(node.args) > 1


@lru_cache(maxsize=64)
def given(function: ast.FunctionDef | ast.AsyncFunctionDef) -> dict[str, list[ast.expr]]:
    """The values of each parameter that a test is given one by one, without their own marks: `pytest.param(x, marks=...)`."""
    found: dict[str, list[ast.expr]] = {}
    for decorator in function.decorator_list:
        if not isinstance(decorator, ast.Call) or not is_parametrize(decorator):
            continue
        given_names, values = decorator.args[:2]
        if not isinstance(given_names, ast.Constant) or not isinstance(given_names.value, str):
            continue
        if not isinstance(values, (ast.List, ast.Tuple)):
            continue
        names = [name.strip() for name in given_names.value.split(",")]
        for place, name in enumerate(names):
            parts = [part_of(each, place, len(names)) for each in values.elts]
            found[name] = [part for part in parts if part is not None]
    return found


def part_of(node: ast.expr, place: int, number: int) -> ast.expr | None:
    """What one row of values gives to one of several parameters; the whole row where there is but one."""
    if isinstance(node, ast.Call) and last_name(node.func) == "param":
        return node.args[place] if place < len(node.args) else None
    if number == 1:
        return node
    return node.elts[place] if isinstance(node, (ast.Tuple, ast.List)) and place < len(node.elts) else None
