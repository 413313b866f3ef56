"""Names that a fix reads and that nothing binds where it reads them: such a fix must not be written."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from functools import lru_cache

from devlint.fix import places
from devlint.fix.doubts import texts
from devlint.model import Fix, ImportNeed, RunDeviceNeed
from devlint.tree import Tree

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def unbound(fix: Fix, tree: Tree) -> str | None:
    """Why a fix must not be written at all: a name that the file binds elsewhere means nothing there.

    A name that the file binds nowhere may come from outside, as in a notebook.

    Raises LookupError for nodes that are not the file's.
    """
    written = list(texts(fix, tree))
    provided = {name for _, _, new in written for name in _names(new, ast.Store)} | set(_needed(fix))
    provided |= {each.arg for _, old, new in written if old is None for each in _keywords(new) if each.arg is not None}
    for offset, old, new in written:
        before = set(_names(old, ast.Load)) if old is not None else set()
        for name in sorted(set(_names(new, ast.Load)) - before - provided):
            if name in _bound(tree.ast) and not _is_visible(name, tree, offset):
                return f"nothing binds `{name}` there"
    return None


def _names(root: ast.AST, how: type[ast.expr_context]) -> Iterator[str]:
    for node in ast.walk(root):
        if isinstance(node, ast.Name) and isinstance(node.ctx, how):
            yield node.id
        elif isinstance(node, ast.arg) and how is ast.Store:
            yield node.arg


def _keywords(statement: ast.AST) -> Iterator[ast.keyword]:
    """The targets of a new statement `x = y`, which reads like an argument."""
    return (node for node in ast.walk(statement) if isinstance(node, ast.keyword))


def _needed(fix: Fix) -> Iterator[str]:
    """The names that the fix has bound elsewhere."""
    for need in fix.needs:
        if isinstance(need, RunDeviceNeed):
            yield need.name
        elif isinstance(need, ImportNeed):
            yield need.module.partition(".")[0]


@lru_cache(maxsize=1)
def _bound(module: ast.Module) -> frozenset[str]:
    """The names that some scope of a file binds."""
    return frozenset(_names(module, ast.Store))


def _is_visible(name: str, tree: Tree, offset: int) -> bool:
    """Whether a scope around an offset binds a name somewhere. A star import may bind any."""
    place = places.place_at(tree.ast, tree.source, offset)
    if place is None or hasattr(builtins, name):
        return True
    scopes = [level.owner for level in place.levels if isinstance(level.owner, (ast.Module, ast.ClassDef, *_FUNCTIONS))]
    around = [each for each in (*scopes, *place.inside) if not isinstance(each, ast.ClassDef) or each is scopes[-1]]
    return any(_binds(scope, name) for scope in around)


def _binds(scope: ast.AST, name: str) -> bool:
    """Whether a module, a class, a function, a lambda or a comprehension binds a name itself."""
    arguments = getattr(scope, "args", None)
    if isinstance(arguments, ast.arguments) and name in _names(arguments, ast.Store):
        return True
    if isinstance(scope, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return any(name in _names(each.target, ast.Store) for each in scope.generators)
    body = scope.body if isinstance(scope, (ast.Module, ast.ClassDef, *_FUNCTIONS)) else []
    return any(places.binds(each, name) or _is_star(each) for each in body)


def _is_star(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and any(each.name == "*" for each in statement.names)
