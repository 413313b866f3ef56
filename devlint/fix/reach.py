"""Whether a fix writes a name that the torch of the file lacks.

Every fix passes here. Compared are the texts that it replaces and those that it writes: a name that the code has already is
no matter.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from devlint.fix.doubts import parsed, texts
from devlint.knowledge import Version, format_version
from devlint.model import AlsoNeed, Fix, ReplaceBlock, RunDeviceNeed
from devlint.torch_range import names_of, needs, torch_range
from devlint.tree import Tree


def too_new(fix: Fix, tree: Tree, newest: Version | None) -> str | None:
    """Why a fix must not be written in this file; None where its torch has all that the fix needs.

    `newest`: the newest torch that the project admits. Raises LookupError for nodes that are not the file's.
    """
    known = torch_range(tree.source.text, newest)
    if known.newest is None:
        return None
    names = _names(tree.ast)
    for old, new in _written(fix, tree):
        before = {name for _, name in needs(old, names)} if old is not None else set()
        for since, name in needs(new, names):
            if not known.has(since) and name not in before:
                last, first = format_version(known.newest), format_version(since)
                return f"this runs on torch {last} at most, and `{name}` is new in {first}"
    return None


def _written(fix: Fix, tree: Tree) -> Iterator[tuple[ast.AST | None, ast.AST]]:
    """The code that a fix writes, each with the code that it replaces."""
    yield from ((old, new) for _, old, new in texts(fix, tree))
    codes = [need.choice for need in fix.needs if isinstance(need, RunDeviceNeed)]
    codes += [need.text for need in fix.needs if isinstance(need, AlsoNeed)]
    codes += [tree.code(each) for edit in fix.edits if isinstance(edit, ReplaceBlock) for each in edit.new]
    yield from ((None, node) for node in map(parsed, codes) if node is not None)


@lru_cache(maxsize=1)
def _names(module: ast.Module) -> dict[str, str]:
    return {**names_of(module), "torch": "torch"}
