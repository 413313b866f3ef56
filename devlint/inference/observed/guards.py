"""The conditions and the handlers of errors around a place."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from devlint.facts.events import NO_GUARDS, Guards
from devlint.inference.program.definitions import dotted
from devlint.inference.program.handlers import handled

#: Context managers that take the errors that they are given
#: [contextlib, `suppress`; pytest documentation, `raises`; unittest, `assertRaises`].
_TAKE_ERRORS = frozenset({"suppress", "raises", "assertRaises", "assertRaisesRegex"})
Visit = Callable[[ast.AST, Guards, str], None]


def walk(tree: ast.Module, visit: Visit) -> None:
    """Call `visit` with each node in the order of the file, the guards around it, and the function around it."""
    pending: list[tuple[ast.AST, Guards, str]] = [(tree, NO_GUARDS, "")]
    while pending:
        node, guards, function = pending.pop()
        visit(node, guards, function)
        pending.extend(reversed(list(_inside(node, guards, function))))


def _inside(node: ast.AST, guards: Guards, function: str) -> Iterator[tuple[ast.AST, Guards, str]]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        function = f"{function}.{node.name}" if function else node.name
        if not isinstance(node, ast.ClassDef):
            guards = NO_GUARDS  # it runs later
    for name, value in ast.iter_fields(node):
        inner = _guards_of(node, name, guards)
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, ast.AST):
                yield each, inner, function


def _guards_of(node: ast.AST, part: str, guards: Guards) -> Guards:
    """The guards of one part of a node."""
    if isinstance(node, (ast.If, ast.IfExp, ast.While)) and part in ("body", "orelse"):
        test = ast.unparse(node.test)
        if isinstance(node, ast.While) and part == "orelse":
            return guards
        return guards.both(Guards(tests=(test if part == "body" else f"not {test}",)))
    if isinstance(node, ast.BoolOp) and part == "values" and len(node.values) > 1:
        return guards.both(Guards(tests=tuple(ast.unparse(each) for each in node.values[:-1])))
    if isinstance(node, ast.Try) and part == "body":
        return guards.both(Guards(caught=frozenset(name for each in node.handlers for name in handled(each.type))))
    if isinstance(node, (ast.With, ast.AsyncWith)) and part == "body":
        caught = frozenset(name for item in node.items for name in _taken(item.context_expr))
        return guards.both(Guards(caught=caught)) if caught else guards
    return guards


def _taken(node: ast.expr) -> Iterator[str]:
    if isinstance(node, ast.Call) and (dotted(node.func) or "").rpartition(".")[2] in _TAKE_ERRORS:
        for each in node.args:
            yield from handled(each)
