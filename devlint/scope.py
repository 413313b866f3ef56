"""Which findings of a file count: not those of a baseline, and only those that changed rows brought."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from devlint.identity import Key, keys
from devlint.model import UNREADABLE_FILE, Diagnostic

Rows = tuple[tuple[int, int], ...]  # first and last of each range


@dataclass(frozen=True, slots=True)
class Scope:
    """`known`: the findings that do not count; `changed`: the rows that do, None for all. A file that cannot be read
    always counts.

    `elsewhere`: the changed rows of other files by their real paths, None where all of one is new. A finding counts where one
    step of its chain is in such a row.
    """

    known: frozenset[Key] = frozenset()
    changed: Rows | None = None
    elsewhere: Mapping[str, Rows | None] = field(default_factory=dict)

    @property
    def is_everything(self) -> bool:
        return not self.known and self.changed is None

    def hidden(
        self, diagnostics: Sequence[Diagnostic], rows_of: Callable[[Diagnostic], Rows] | None = None
    ) -> set[Key]:
        """The findings, all of a file, that do not count. `rows_of`: where a finding stands in the file."""
        rows = rows_of if rows_of is not None else rows_in_text
        return {
            key
            for key, diagnostic in zip(keys(diagnostics), diagnostics, strict=True)
            if diagnostic.code != UNREADABLE_FILE.code and (key in self.known or not self._is_changed(diagnostic, rows))
        }

    def _is_changed(self, diagnostic: Diagnostic, rows: Callable[[Diagnostic], Rows]) -> bool:
        if self.changed is None or touches(rows(diagnostic), self.changed):
            return True
        for each in diagnostic.related:
            path = os.path.realpath(each.path) if each.path != diagnostic.path else ""
            if path in self.elsewhere:
                changed = self.elsewhere[path]
                if changed is None or touches(((each.start.row, each.end.row),), changed):
                    return True
        return False


@dataclass(frozen=True, slots=True)
class Hidden:
    """The findings that did not count before fixes, to be found again among those that are left.

    `totals`: how many findings of each rule and context there were. Of equal findings some of which are gone, the last
    are taken for the hidden ones, which keeps their number.
    """

    keys: frozenset[Key]
    totals: Mapping[tuple[str, str], int]

    @classmethod
    def of(cls, diagnostics: Sequence[Diagnostic], hidden: Iterable[Key]) -> Hidden:
        return cls(frozenset(hidden), Counter((each.code, each.context) for each in diagnostics))

    def among(self, diagnostics: Sequence[Diagnostic]) -> set[Key]:
        """The keys, among these findings, of those that are hidden."""
        totals = Counter((each.code, each.context) for each in diagnostics)
        hidden = Counter((key.code, key.context) for key in self.keys)

        def is_hidden(key: Key) -> bool:
            pair = key.code, key.context
            if totals[pair] == self.totals.get(pair):
                return key in self.keys
            return key.ordinal >= totals[pair] - hidden[pair]

        return {key for key in keys(diagnostics) if is_hidden(key)}


def rows_in_text(diagnostic: Diagnostic) -> Rows:
    """The rows of a finding and of what explains it in the same file."""
    return (
        (diagnostic.start.row, diagnostic.end.row),
        *((each.start.row, each.end.row) for each in diagnostic.related if each.path == diagnostic.path),
    )


def touches(rows: Rows, changed: Rows) -> bool:
    """Whether two sets of ranges have a row in common."""
    return any(first <= until and begun <= last for first, last in rows for begun, until in changed)


def without(diagnostics: Sequence[Diagnostic], hidden: set[Key]) -> list[Diagnostic]:
    """The findings that count."""
    return [each for each, key in zip(diagnostics, keys(diagnostics), strict=True) if key not in hidden]
