"""Expressions for devices: how the code around an operation can write where another value is."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from devlint.inference.summary.model import Site
from devlint.inference.summary.parameters import path_of
from devlint.inference.terms.places import Origin


def written(origin: Origin | None, site: Site) -> str | None:
    """The device that a move or a factory names, where the function of the operation can write it too."""
    if origin is None or origin.file != site.file or not isinstance(origin.node, ast.Call):
        return None
    given = _device_argument(origin.node)
    path = path_of(given) if given is not None else None
    if given is None or path is None or any(entry.startswith("[") for entry in path):
        return None
    scope = _scope_of(site)
    if len(path) > 1 and path[0] == "self":
        return ast.unparse(given) if _in_class(origin.node, site) else None
    if scope is None:
        return ast.unparse(given) if _bindings(_module_of(site), path[0]) <= 1 else None
    inside = _holds(scope, origin.node)
    if inside:
        return ast.unparse(given) if _bindings(scope, path[0]) <= 1 else None
    is_global = _bindings(scope, path[0]) == 0 and _bindings(_module_of(site), path[0]) == 1
    return ast.unparse(given) if is_global and _is_at_module_level(origin.node, site) else None


def _device_argument(call: ast.Call) -> ast.expr | None:
    for keyword in call.keywords:
        if keyword.arg == "device":
            return keyword.value
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("to", "to_empty") and call.args:
        return call.args[0]
    return None


def _scope_of(site: Site) -> ast.AST | None:
    return site.function.node if site.function is not None else None


def _module_of(site: Site) -> ast.AST:
    return site.tree


def _holds(scope: ast.AST, node: ast.AST) -> bool:
    """Whether a node stands inside a function."""
    first, last = getattr(scope, "lineno", 0), getattr(scope, "end_lineno", 0) or 0
    return first <= getattr(node, "lineno", 0) <= last


def _in_class(node: ast.AST, site: Site) -> bool:
    owner = site.function.owner if site.function is not None else None
    return owner is not None and _holds(owner.node, node)


def _is_at_module_level(node: ast.AST, site: Site) -> bool:
    return not any(_holds(each, node) for each in _functions(_module_of(site)))


@lru_cache(maxsize=64)
def _functions(module: ast.AST) -> list[ast.AST]:
    return [each for each in ast.walk(module) if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef))]


def _bindings(scope: ast.AST, name: str) -> int:
    """How often a scope binds a name; an argument counts."""
    return _bound(scope)[name]


@lru_cache(maxsize=256)
def _bound(scope: ast.AST) -> Counter[str]:
    """How often a scope binds each name."""
    count: Counter[str] = Counter()
    arguments = getattr(scope, "args", None)
    if isinstance(arguments, ast.arguments):
        count.update(each.arg for each in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))
    for node in _own_nodes(scope):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                count[node.id] += 1
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            count[node.name] += 1
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            count.update({alias.asname or alias.name.partition(".")[0] for alias in node.names})
    return count


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a scope, without the bodies of functions inside it."""
    pending: list[ast.AST] = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            pending.extend(ast.iter_child_nodes(node))


def loop_that_binds(name: ast.Name, site: Site) -> ast.stmt | None:
    """The first statement of the innermost loop whose target binds a name that is read inside it and bound nowhere else."""
    scope = _scope_of(site) or _module_of(site)
    best: ast.For | ast.AsyncFor | None = None
    for node in _loops(scope).get(name.id, ()):
        if _holds(node, name) and node.body[0].lineno <= name.lineno:
            best = node if best is None or node.lineno > best.lineno else best
    if best is None or any(_stores(each, name.id) for each in best.body):
        return None
    return best.body[0]


@lru_cache(maxsize=256)
def _loops(scope: ast.AST) -> dict[str, list[ast.For | ast.AsyncFor]]:
    """The loops of a scope by the names that their targets bind."""
    found: dict[str, list[ast.For | ast.AsyncFor]] = {}
    for node in _own_nodes(scope):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            for name in {each.id for each in ast.walk(node.target) if isinstance(each, ast.Name)}:
                found.setdefault(name, []).append(node)
    return found


def _stores(node: ast.AST, name: str) -> bool:
    return any(
        isinstance(each, ast.Name) and each.id == name and not isinstance(each.ctx, ast.Load) for each in ast.walk(node)
    )
