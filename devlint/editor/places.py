"""Where the values of an open text are: for hovers, with the reasons as links, and for hints behind names.

The facts are those of `devlint reveal`, from the inference that the settings choose.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from devlint.errors import SourceError
from devlint.model import Origin, Span

if TYPE_CHECKING:
    from devlint.editor.session import Document
    from devlint.facts.reveal import Revealed
    from devlint.facts.values import Device
    from devlint.inference.reveal.asked import Shown


class Known(NamedTuple):
    """One value of a text: what is known of it and why (Markdown), and its place for a hint, where a name is bound to it."""

    span: Span
    told: str
    place: str | None


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
    return [min(here, key=lambda each: each.span.end - each.span.start).told] if here else []


def hints(document: Document, first: int, last: int) -> list[Hint]:
    """The places of the names that some rows (1-based, both included) bind, as far as they are sure."""
    found = []
    for each in revealed(document):
        offset = each.span.end - document.start
        if not 0 < offset <= len(document.source.text):
            continue  # another cell of the notebook
        position = document.source.position(offset)
        if first <= position.row <= last and each.place is not None:
            found.append(Hint(position.row, position.column, each.place, each.told))
    return found


def revealed(document: Document) -> list[Known]:
    """What is known of every value of a text, found once; nothing for a text that cannot be analysed."""
    if document.revealed is None:
        try:
            is_new = document.linter.settings.inference == "new"
            document.revealed = _inferred(document) if is_new else _reveal(document)
        except (SourceError, RecursionError):
            document.revealed = []
    return document.revealed


def _reveal(document: Document) -> list[Known]:
    """What the analysis in `devlint/facts` knows."""
    from devlint.facts.reveal import reveal

    source, linter = document.joined, document.linter
    if source is None:
        return []
    rows = range(1, source.rows + 1)
    found = reveal(linter.parse(source), source, linter.settings, rows, linter.project)
    return [Known(each.span, _told(document, each), _place(each)) for each in found]


def _inferred(document: Document) -> list[Known]:
    """What the new inference knows."""
    from devlint.inference.reveal.asked import ask

    source, linter = document.joined, document.linter
    if source is None:
        return []
    tree = linter.parse(source)
    around = linter.neighbours(os.path.abspath(source.path))
    answer = ask(tree, source, linter.load_tree, linter.settings.targets, range(1, source.rows + 1), around)
    bound = {source.span(node) for node in ast.walk(tree) if isinstance(getattr(node, "ctx", None), ast.Store)}
    return [
        Known(each.span, _told_of(document, each), _named(each) if each.span in bound else None)
        for each in answer.values
    ]


def _told_of(document: Document, found: Shown) -> str:
    """What the new inference knows of a value and why."""
    lines = [f"`{' '.join(found.text.split())}`: {found.what}"]
    for each in found.because:
        row = each.row if document.notebook is None else None
        is_here = document.joined is not None and os.path.abspath(document.joined.path) == os.path.abspath(each.path)
        if is_here and document.joined is not None:
            where = document.joined.line(document.joined.starts[each.row - 1])
            lines.append(f"- {link(where, document.path, row)}: {each.text}")
        else:
            lines.append(f"- {link(f'{each.path} line {each.row}', each.path, each.row)}: {each.text}")
    return "\n".join(lines)


def _named(found: Shown) -> str | None:
    """The places of a value for a hint, where the code names all of them."""
    from devlint.inference.terms.places import ACCELERATORS

    names = ["cpu" if each == "the CPU" else each for each in found.devices or ()]
    is_named = all(each.partition(":")[0] in ACCELERATORS or each in ("cpu", "meta") for each in names)
    return " or ".join(sorted(names)) if names and is_named else None


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
