"""The walks over `ast` nodes, beside those of `ast`."""

from __future__ import annotations

import ast
import inspect

from devlint.facts.interpreter import flow
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.scan import scan

TREE = ast.parse(inspect.getsource(flow))
NESTED = ast.parse("""
def outer(x):
    try:
        with lock:
            for i in x:
                if i: y = lambda: i
                else: pass
    except ValueError as error:
        raise
    finally:
        while x: x = x[1:]
    match x:
        case [a]: return a
    class Inner:
        size = 3
""")


def test_walk_gives_what_ast_gives_without_contexts_and_operators() -> None:
    left_out = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop)
    assert list(walk(TREE)) == [node for node in ast.walk(TREE) if not isinstance(node, left_out)]


def test_statements_come_in_the_order_of_walk_at_any_depth() -> None:
    for tree in (TREE, NESTED):
        held = (ast.mod, ast.stmt, ast.ExceptHandler, ast.match_case)
        assert list(statements(tree)) == [node for node in ast.walk(tree) if isinstance(node, held)]


def test_an_attribute_that_is_only_called_is_not_among_the_uncalled() -> None:
    found = scan(ast.parse("size = a.size()\na.shape.numel()\na.kept = 1"))
    assert found.uncalled == {"shape", "kept"}
    assert found.handed == {"a", "shape", "kept"}


def test_calls_of_a_function_include_those_of_nested_ones() -> None:
    tree = ast.parse("def outer():\n    first()\n    def inner():\n        second()\nthird()")
    names = {ast.unparse(call) for call in scan(tree).calls_in(tree.body[0])}
    assert names == {"first()", "second()"}
    assert not scan(tree).calls_in(None)
