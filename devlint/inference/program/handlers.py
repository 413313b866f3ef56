"""The errors that the handlers of a `try` take."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.inference.program.definitions import dotted

#: In place of the name of an error that has none.
NAMELESS = "?"


def handled(node: ast.expr | None) -> Iterator[str]:
    """The names of the errors that a handler of this type takes."""
    if node is None:
        yield "BaseException"
    for each in node.elts if isinstance(node, ast.Tuple) else [node] if node is not None else []:
        yield (dotted(each) or NAMELESS).rpartition(".")[2]
