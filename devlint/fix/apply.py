"""Applies text fixes: all edits of a fix or none, no two fixes on touching text, each shared need once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Collection, Iterable, Sequence
from itertools import accumulate

from devlint.model import Span, TextEdit, TextFix


def apply(text: str, fixes: Sequence[TextFix]) -> tuple[str, list[int]]:
    """The text with as many of the fixes as fit together, and the indices of those, ascending.

    Earlier places win; a fix that touches one already chosen is left for another round. One without edits is skipped.
    """
    edits, chosen = choose(fixes)
    return splice(text, edits), chosen


def choose(fixes: Sequence[TextFix], first: Collection[int] = ()) -> tuple[list[TextEdit], list[int]]:
    """The edits to make, sorted, and the indices of the fixes they belong to. `first`: those that win over earlier places."""
    taken: list[TextEdit] = []
    shared: list[TextEdit] = []
    chosen: list[int] = []
    order = sorted(
        (i for i, fix in enumerate(fixes) if fix.edits), key=lambda i: (i not in first, min(fixes[i].edits), i)
    )
    for index in order:
        fix = fixes[index]
        needs = [edit for edit in fix.shared if edit not in shared]
        if any(_touches(taken, edit) for edit in (*fix.edits, *needs)):
            continue
        if any(_touches(shared, edit) for edit in fix.edits):
            continue
        for edit in fix.edits:
            insort(taken, edit)
        for edit in needs:
            insort(shared, edit)
        chosen.append(index)
    return in_order([*taken, *shared]), sorted(chosen)


def in_order(edits: Iterable[TextEdit]) -> list[TextEdit]:
    """Edits by place; of those at one place imports come first, since what follows may use them."""
    return sorted(edits, key=lambda e: (e.start, e.end, not e.text.lstrip().startswith(("import ", "from ")), e.text))


def splice(text: str, edits: Sequence[TextEdit]) -> str:
    """The text after sorted edits that do not overlap. Raises ValueError when they do."""
    pieces: list[str] = []
    at = 0
    for edit in edits:
        if edit.start < at or edit.end < edit.start or edit.end > len(text):
            raise ValueError(f"edit {edit} overlaps another one or lies outside the text")
        pieces += (text[at : edit.start], edit.text)
        at = edit.end
    pieces.append(text[at:])
    return "".join(pieces)


class Moves:
    """Where places of the old text stand after sorted edits that do not overlap."""

    def __init__(self, edits: Sequence[TextEdit]) -> None:
        self._edits = edits
        self._starts = [edit.start for edit in edits]
        grown = (len(edit.text) - (edit.end - edit.start) for edit in edits)
        self._shifts = list(accumulate(grown, initial=0))

    def span(self, span: Span) -> Span:
        """The range after the edits; a border inside an edit moves to that edit's border."""
        start = self._place(span.start, bisect_right(self._starts, span.start), False)
        end = self._place(span.end, bisect_left(self._starts, span.end), True)
        return Span(start, max(start, end))

    def _place(self, offset: int, before: int, is_end: bool) -> int:
        """`before`: how many edits count as before the offset."""
        if before and self._edits[before - 1].end > offset:
            edit = self._edits[before - 1]
            return edit.start + self._shifts[before - 1] + (len(edit.text) if is_end else 0)
        return offset + self._shifts[before]


def _touches(taken: Sequence[TextEdit], edit: TextEdit) -> bool:
    """Whether `edit` overlaps or touches one of the sorted edits, which do not overlap each other."""
    index = bisect_right(taken, edit)
    before = index and taken[index - 1].end >= edit.start
    return bool(before) or (index < len(taken) and taken[index].start <= edit.end)
