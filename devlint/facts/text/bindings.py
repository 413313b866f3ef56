"""What a file says of its names as a whole: what each is given, and where."""

from __future__ import annotations

import ast
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from devlint.facts.text.nodes import children, statements, walk
from devlint.facts.text.signatures import parameter_names

if TYPE_CHECKING:
    from devlint.facts.text.scan import FunctionScan, Scan


class Bindings(NamedTuple):
    """What a file says of its names: what its assignments give each, those that functions bind, those that are compared."""

    given: dict[str, list[ast.expr]]
    in_functions: set[str]
    compared: set[str]


def read_bindings(scan: Scan) -> Bindings:
    """The bindings of a file."""
    found = Bindings({}, set(), set())
    for node in statements(scan.tree) if scan.tree is not None else ():
        if isinstance(node, ast.Assign):
            for name in {target.id for target in node.targets if isinstance(target, ast.Name)}:
                found.given.setdefault(name, []).append(node.value)
    for compared in scan.compares:
        found.compared.update(part.id for part in walk(compared) if isinstance(part, ast.Name))
    for each in scan.functions.values():
        found.in_functions.update(each.bound, parameter_names(each.node))
    return found


@lru_cache(8)
def bindings(own: FunctionScan) -> dict[str, list[ast.expr]]:
    """What the assignments and loops of a function bind each name to, or to a part of."""
    found: dict[str, list[ast.expr]] = {}
    for each in own.assigns:
        targets = each.targets if isinstance(each, ast.Assign) else [each.target]
        names = {n.id for target in targets for n in walk(target) if isinstance(n, ast.Name)}
        for name in names:
            found.setdefault(name, []).append(each.value if isinstance(each, ast.Assign) else each.iter)
    return found


def module_names(tree: ast.AST) -> frozenset[str]:
    """The names that a module binds outside of its functions and classes, or that these declare global."""
    found: set[str] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found.add(node.name)
            found.update(name for inner in walk(node) if isinstance(inner, ast.Global) for name in inner.names)
            continue
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found.add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name is not None:
            found.add(node.name)
        elif isinstance(node, ast.MatchMapping) and node.rest is not None:
            found.add(node.rest)
        todo += children(node)
    return frozenset(found)


def is_visible(scan: Scan, names: frozenset[str], node: ast.Name) -> bool:
    """Whether a name is bound where it is read: by the module, whose names are given, or by a function around it."""
    if node.id in names:
        return True
    return any(
        f.node.lineno <= node.lineno <= (f.node.end_lineno or 0)
        and (node.id in f.bound or node.id in parameter_names(f.node))
        for f in scan.functions.values()
        if isinstance(f.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
    )
