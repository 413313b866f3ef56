"""Adds to a program what counts its statements and looks at the values that some of them compute.

Line numbers and columns stay, so tracebacks are those of the text. Free of torch.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping
from typing import NamedTuple

from devlint.runtime.places import begin_of, bodies

COUNTS = "__devlint_counts__"
"""The name, among the builtins of a run, of the sequence that the counting statements write to."""
VALUE = "__devlint_value__"
"""The name, among the builtins of a run, of the function that looks at a value and hands it on: (number, value)."""


class Spot(NamedTuple):
    """Where an expression stands, as `ast` gives it."""

    line: int
    column: int
    end_line: int
    end_column: int

    @classmethod
    def of(cls, node: ast.expr) -> Spot:
        """The spot of a parsed expression."""
        return cls(node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)


def count_statements(
    tree: ast.Module,
    start: int = 0,
    looked: Collection[int] = (),
    spots: Mapping[Spot, int] | None = None,
    passed_over: Collection[int] = (),
) -> int:
    """Add before each statement one that counts it in `COUNTS`, from number `start` on; returns how many there are.

    looked: the numbers of the statements whose values are handed to `VALUE`. spots: expressions in them that are, too,
    with their numbers. passed_over: statements after whose AttributeError the program goes on. Docstrings and
    `from __future__` imports keep their place at the top and are not counted.
    """
    number = start
    blocks: list[tuple[list[ast.stmt], int]] = []
    for block in bodies(tree):
        blocks.append((block, number))
        number += len(block)
    owners = {id(getattr(node, "body", None)) for node in ast.walk(tree) if _has_docstring(node)}
    looker = _Looker(spots or {})
    for block, first in blocks:
        counted: list[ast.stmt] = []
        for position, statement in enumerate(block):
            docstring = position == 0 and id(block) in owners
            if not docstring and not (isinstance(statement, ast.ImportFrom) and statement.module == "__future__"):
                counted.append(_counter(first + position, statement))
            counted.append(statement)
        block[:] = counted
    for block, first in blocks:
        for position, statement in enumerate(_own(block)):
            if first + position in looked:
                looker.look_at(statement, first + position)
            if first + position in passed_over:
                block[block.index(statement)] = _passed_over(statement)
    return number - start


def value_of(statement: ast.stmt) -> ast.expr | None:
    """The expression whose value a statement computes: what it assigns, returns, tests or calls."""
    value: ast.expr | None = None
    if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Return | ast.Expr):
        value = statement.value
    elif isinstance(statement, ast.If | ast.While | ast.Assert):
        value = statement.test
    return None if isinstance(value, ast.Constant) else value


def bound_by(statement: ast.stmt) -> list[str]:
    """The names that the header of a loop or of a `with` binds."""
    targets: list[ast.expr] = []
    if isinstance(statement, ast.For | ast.AsyncFor):
        targets = [statement.target]
    elif isinstance(statement, ast.With | ast.AsyncWith):
        targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]


class _Looker(ast.NodeTransformer):
    """Hands values to `VALUE`."""

    def __init__(self, spots: Mapping[Spot, int]) -> None:
        self._spots = spots

    def look_at(self, statement: ast.stmt, number: int) -> None:
        value = value_of(statement)
        if self._spots:
            for name, field in ast.iter_fields(statement):
                if isinstance(field, ast.expr):
                    setattr(statement, name, self.visit(field))
            for item in getattr(statement, "items", ()):
                item.context_expr = self.visit(item.context_expr)
        if value is not None:
            name = "test" if hasattr(statement, "test") else "value"
            setattr(statement, name, _looked_at(number, getattr(statement, name)))
        names = bound_by(statement)
        if names:
            loads: list[ast.expr] = [ast.Name(name, ast.Load()) for name in names]
            look = ast.Expr(_looked_at(number, ast.Tuple(loads, ast.Load()) if len(loads) > 1 else loads[0]))
            body: list[ast.stmt] = getattr(statement, "body")  # noqa: B009
            body.insert(0, _placed(look, *begin_of(body[0])))

    def visit(self, node: ast.AST) -> ast.AST:
        spot = Spot.of(node) if isinstance(node, ast.expr) and hasattr(node, "lineno") else None
        if not isinstance(node, ast.Lambda | ast.GeneratorExp | ast.ListComp | ast.SetComp | ast.DictComp):
            node = self.generic_visit(node)
        number = self._spots.get(spot) if spot is not None else None
        return node if number is None or not isinstance(node, ast.expr) else _looked_at(number, node)


def _looked_at(number: int, value: ast.expr) -> ast.Call:
    call = ast.Call(ast.Name(VALUE, ast.Load()), [ast.Constant(number), value], [])
    line, column = getattr(value, "lineno", 1), getattr(value, "col_offset", 0)
    for node in (call, call.func, call.args[0]):
        node.lineno, node.col_offset = line, column
        node.end_lineno, node.end_col_offset = getattr(value, "end_lineno", line), getattr(value, "end_col_offset", 0)
    return call


def _passed_over(statement: ast.stmt) -> ast.stmt:
    handler = ast.ExceptHandler(ast.Name("AttributeError", ast.Load()), None, [ast.Pass()])
    around = ast.Try([statement], [handler], [], [])
    for node in (around, handler, handler.type, handler.body[0]):
        ast.copy_location(node, statement) if node is not None else None
    return around


def _own(block: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of the program in a block with counters."""
    return [statement for statement in block if not getattr(statement, "devlint", False)]


def _has_docstring(node: ast.AST) -> bool:
    return isinstance(node, (ast.Module, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and (
        ast.get_docstring(node, clean=False) is not None
    )


def _counter(number: int, statement: ast.stmt) -> ast.stmt:
    place = ast.Subscript(ast.Name(COUNTS, ast.Load()), ast.Constant(number), ast.Store())
    return _placed(ast.AugAssign(place, ast.Add(), ast.Constant(1)), *begin_of(statement))


def _placed(statement: ast.stmt, line: int, column: int) -> ast.stmt:
    """A statement of devlint's, at the place of one of the program's."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.expr, ast.stmt)):
            node.lineno = node.end_lineno = line
            node.col_offset = node.end_col_offset = column
    setattr(statement, "devlint", True)  # noqa: B010
    return statement
