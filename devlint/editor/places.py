"""Where the values of an open text are: for hovers, with the reasons as links, and for hints behind names.

The facts are those of `devlint reveal`.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from devlint.errors import SourceError
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.editor.session import Document
    from devlint.facts.reveal import Revealed
    from devlint.facts.values import Device


class Hint(NamedTuple):
    """A place to show behind a name that is bound there: at a row and column (1-based), and why it is known (Markdown)."""

    row: int
    column: int
    place: str
    why: str


def values_at(document: Document, row: int, column: int) -> list[str]:
    """Markdown about the innermost value at a place (1-based), with its trail; nothing where no value stands."""
    offset = document.start + document.source.starts[row - 1] + column - 1
    here = [each for each in revealed(document) if each.span.start <= offset < each.span.end]
    return [_told(document, min(here, key=lambda each: each.span.end - each.span.start))] if here else []


def hints(document: Document, first: int, last: int) -> list[Hint]:
    """The places of the names that some rows (1-based, both included) bind, as far as they are sure."""
    found = []
    for each in revealed(document):
        offset = each.span.end - document.start
        if not 0 < offset <= len(document.source.text):
            continue  # another cell of the notebook
        position = document.source.position(offset)
        place = _place(each)
        if first <= position.row <= last and place is not None:
            found.append(Hint(position.row, position.column, place, _told(document, each)))
    return found


def revealed(document: Document) -> list[Revealed]:
    """What is known of every value of a text, found once; nothing for a text that cannot be analysed."""
    if document.revealed is None:
        document.revealed = _reveal(document)
    return document.revealed


def _reveal(document: Document) -> list[Revealed]:
    from devlint.facts.reveal import reveal

    source, linter = document.joined, document.linter
    if source is None:
        return []
    rows = range(1, source.rows + 1)
    try:
        return reveal(linter.parse(source), source, linter.settings, rows, linter.project)
    except (SourceError, RecursionError):
        return []


def _place(found: Revealed) -> str | None:
    """Where the value is that a name or attribute is bound to, in the short words of a hint.

    None for a use, for a value that only names a place, and where the place is unknown or an assumption.
    """
    from devlint.facts.values import HOME, SOMEWHERE, TENSOR_KINDS

    value = found.value
    is_placed = value.kind in TENSOR_KINDS or value.kind in _HOLDERS
    is_sure = value.device and SOMEWHERE not in value.device and value.device.isdisjoint(HOME)
    return _short(value.device) if found.is_bound and is_placed and is_sure else None


_HOLDERS = frozenset({"module", "list", "tuple", "dict", "packed", "storage", "distribution", "generator"})


def _short(device: Device) -> str:
    return " or ".join(sorted(map(str, device)))


def _told(document: Document, found: Revealed) -> str:
    """What is known of a value and why, or why not."""
    from devlint.facts.values import describe

    text = " ".join(found.text.split())
    if found.reason is not None:
        return f"`{text}`: device unknown: {found.reason}"
    steps = (step for origin in found.value.because if (step := _step(document, origin)) is not None)
    return "\n".join([f"`{text}`: {found.value.kind} on {describe(found.value.device)}", *steps])


def _step(document: Document, origin: Origin) -> str | None:
    """One reason, with a link to where it stands; None for a file that cannot be read any more."""
    from devlint.facts.reveal import row_of

    source = document.joined
    if source is None:
        return None
    if origin.path is None:
        where = source.line(origin.span.start)
        row = source.row(origin.span.start) if document.notebook is None else None
        return f"- {link(where, document.path, row)}: {origin.text}"
    other = row_of(origin, source)
    return f"- {link(f'{origin.path} line {other}', origin.path, other)}: {origin.text}" if other is not None else None


def link(text: str, path: str, row: int | None) -> str:
    """Markdown that leads to a row of a file; the text alone for a cell of a notebook, and where there is no such file."""
    absolute = os.path.abspath(path)
    return f"[{text}]({Path(absolute).as_uri()}#L{row})" if row is not None and os.path.isfile(absolute) else text
