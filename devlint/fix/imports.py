"""Drops the imports that fixes left without a use: `from torch.cuda.amp import autocast` once nothing calls it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.errors import SourceError
from devlint.facts import Facts
from devlint.fix.apply import splice
from devlint.fix.edits import resolve
from devlint.model import Edit, Fix, Safety, TextEdit
from devlint.settings import Settings
from devlint.source import Source, parse
from devlint.tree import Tree


def without_unused(before: Source, after: Source) -> str:
    """The text of `after` without the module-level imports whose names `before` used and `after` does not.

    An import with a comment in its rows stays, and so does everything in an `__init__.py`, whose imports are for others.
    """
    if before.path.replace("\\", "/").endswith("__init__.py"):
        return after.text
    try:
        old, new = parse(before), parse(after)
    except SourceError:
        return after.text
    unused = set(_used(old)) - set(_used(new))
    if not unused:
        return after.text
    tree = Tree(after, new)
    edits: list[TextEdit] = []
    for statement in new.body:
        if isinstance(statement, ast.Import | ast.ImportFrom) and any(_name(a) in unused for a in statement.names):
            edits += _edits(statement, unused, tree)
    return splice(after.text, sorted(edits))


def _edits(statement: ast.Import | ast.ImportFrom, unused: set[str], tree: Tree) -> tuple[TextEdit, ...]:
    import libcst as cst

    source = tree.source
    span = source.span(statement)
    rows = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
    if any("#" in source.line_text(row) for row in rows):
        return ()
    gone = [index for index, alias in enumerate(statement.names) if _name(alias) in unused]
    node = tree.statement_at(span)
    if not isinstance(node, cst.Import | cst.ImportFrom) or isinstance(node.names, cst.ImportStar):
        return ()
    if len(gone) == len(statement.names):
        whole: tuple[Edit, ...] = (Edit(node, None),)
    elif len(gone) == 1:
        whole = (Edit(node.names[gone[0]], None),)
    else:
        return ()
    fix = resolve(Fix("Drop the import", Safety.SAFE, whole), tree, Facts(source.path, source.text), Settings())
    return fix.edits


def _name(alias: ast.alias) -> str:
    """The name that an import binds; "" for `import a.b`, whose `a` other imports may bind as well, and for `*`."""
    return alias.asname or ("" if "." in alias.name or alias.name == "*" else alias.name)


def _used(module: ast.Module) -> Iterator[str]:
    """The names that the code reads, and the words of its strings, where `__all__` and annotations may name them."""
    for node in ast.walk(module):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) < 200:
            yield from _names_in(node.value)


def _names_in(text: str) -> Iterator[str]:
    """The names that a string holds as an expression, and none of a sentence."""
    try:
        parsed = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in ast.walk(parsed):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
