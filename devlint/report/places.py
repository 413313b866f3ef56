"""How reports name a place: `path:row:column` for people, a path relative to the repository for services.

In a notebook a place is `path:cell N:row:column`, row and column within the cell. Services that know only files get the
first line of the notebook, and the cell in the message.
"""

from __future__ import annotations

import os
from functools import lru_cache

from devlint.model import Diagnostic, Position, Related
from devlint.terminal import Style, printable


def place(what: Diagnostic | Related, style: Style, bold: bool = True) -> str:
    """`path:row:column`, the path as a link where the style has links."""
    path = printable(what.path)
    shown = style.link(style.bold(path) if bold else path, what.path)
    cell = "" if what.cell is None else f":cell {what.cell}"
    return f"{shown}{cell}:{what.start.row}:{what.start.column}"


def rows_in_file(diagnostic: Diagnostic) -> tuple[Position, Position]:
    """Start and end for a service that knows only files: those of the diagnostic, the first line for a notebook."""
    if diagnostic.cell is None:
        return diagnostic.start, diagnostic.end
    return Position(1, 1), Position(1, 1)


def message(diagnostic: Diagnostic) -> str:
    """The message on one line; in a notebook it begins with the place in the cell."""
    text = printable(" ".join(diagnostic.message.split()))
    if diagnostic.cell is None:
        return text
    return f"cell {diagnostic.cell}:{diagnostic.start.row}:{diagnostic.start.column}: {text}"


def repository_path(path: str) -> str:
    """A path relative to the repository that holds the file, links resolved, with slashes.

    Outside a repository it is relative to the current directory, and an absolute path where it is not below that.
    """
    real = os.path.realpath(path)
    root = _root(os.path.dirname(real))
    prefix = root.rstrip(os.sep) + os.sep
    return (real[len(prefix) :] if real.startswith(prefix) else real).replace(os.sep, "/")


@lru_cache(maxsize=4096)
def _root(directory: str) -> str:
    """The nearest directory upwards with `.git` in it, else the current directory."""
    while not os.path.exists(os.path.join(directory, ".git")):
        parent = os.path.dirname(directory)
        if parent == directory:
            return os.path.realpath(os.getcwd())
        directory = parent
    return directory


def related_places(diagnostic: Diagnostic) -> list[Related]:
    """The places that explain a finding, and those of the findings that it stands for."""
    stands_for = (Related(diagnostic.path, f.start, f.end, f"{f.code} {f.message}", f.cell) for f in diagnostic.folded)
    return [*diagnostic.related, *stands_for]
