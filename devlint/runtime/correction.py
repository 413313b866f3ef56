"""The corrected texts that verify runs: all fixes, or all but some, each mapped back to the original text.

Offsets are code points of the decoded original. Free of torch and of the linter.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from devlint.errors import UsageError
from devlint.model import Diagnostic, Safety, Span, TextEdit
from devlint.runtime.places import Places


@dataclass(frozen=True, slots=True)
class FixCase:
    """One fix to be judged, known by its rule and the original span of its finding.

    `edits` belong to this fix alone; `shared` is what several fixes need (an import, a `device = ...`) and stays when
    one of them is left out. `related` are further spans where its fault may show. A fix without edits is a hint.
    `file` is the absolute path of the file that all of this is in; "" in a program of one file.
    """

    code: str
    name: str
    message: str
    span: Span
    title: str = ""
    safety: Safety = Safety.UNSAFE
    edits: tuple[TextEdit, ...] = ()
    shared: tuple[TextEdit, ...] = ()
    related: tuple[Span, ...] = ()
    file: str = ""

    @property
    def is_hint(self) -> bool:
        """Whether there is nothing to apply, and so nothing to judge."""
        return not self.edits

    @classmethod
    def of(cls, diagnostic: Diagnostic, related: tuple[Span, ...] = (), file: str = "") -> FixCase:
        """The case of a finding that the linter reports."""
        fix = diagnostic.fix
        return cls(
            code=diagnostic.code,
            name=diagnostic.name,
            message=diagnostic.message,
            span=diagnostic.span,
            title=fix.title if fix else "",
            safety=fix.safety if fix else Safety.HINT,
            edits=fix.edits if fix else (),
            shared=fix.shared if fix else (),
            related=related,
            file=file,
        )


class Piece(NamedTuple):
    """A stretch of a variant: kept from the original, or new text put at `old`.

    `owner` is the index of the fix that wrote it, -1 for what fixes share, None for kept text.
    """

    start: int
    end: int
    old: int
    owner: int | None


class _Owned(NamedTuple):
    edit: TextEdit
    owner: int


class Variant:
    """The text of one file with some fixes applied, and where each of its statements comes from.

    `chosen` are the indices of the `cases` to apply, all by default. What fixes share is always there.
    `keys[n]` names statement n across variants: the number of the original statement whose text it keeps, or for a
    statement that a fix wrote, the place where it was put in. `edited[n]` are the fixes that wrote part of it.
    """

    def __init__(self, original: Places, cases: Sequence[FixCase], chosen: Set[int] | None = None) -> None:
        self.original = original
        chosen = set(range(len(cases))) if chosen is None else chosen
        self.text, self.pieces = _assemble(original.lines.text, _owned_edits(cases, chosen))
        self.places = original if self.text == original.lines.text else Places(self.text)
        self.keys: list[str] = []
        self.edited: list[frozenset[int]] = []
        inserted: dict[int, int] = {}
        if self.places is original:
            self.keys = [str(number) for number in range(len(original.statements))]
            self.edited = [frozenset()] * len(self.keys)
            return
        for statement in self.places.statements:
            header = [p for p in self.pieces if p.start < statement.header_end and statement.start < p.end]
            self.edited.append(frozenset(p.owner for p in header if p.owner is not None))
            number = self._kept(statement.start, statement.header_end)
            if number is not None:
                self.keys.append(str(number))
                continue
            anchor = header[0].old if header else 0
            self.keys.append(f"+{anchor}.{inserted.get(anchor, 0)}")
            inserted[anchor] = inserted.get(anchor, 0) + 1

    def _kept(self, start: int, end: int) -> int | None:
        """The original statement of the first visible text that this range keeps."""
        for piece in self.pieces:
            if piece.owner is not None or piece.end <= start or piece.start >= end:
                continue
            low, high = max(piece.start, start), min(piece.end, end)
            for offset in range(low, high):
                if not self.text[offset].isspace():
                    return self.original.at(piece.old + offset - piece.start)
        return None

    def key_at_line(self, line: int, byte_column: int | None = None) -> str | None:
        """The key of the statement at a line of this variant."""
        number = self.places.on_line(line, byte_column)
        return None if number is None else self.keys[number]

    def original_line(self, line: int) -> int:
        """The line of the original that a line of this variant comes from, or where it was put in."""
        starts = self.places.lines.starts
        if not 1 <= line <= len(starts):
            return line
        start = starts[line - 1]
        end = starts[line] if line < len(starts) else len(self.text)
        anchor: int | None = None
        for piece in self.pieces:
            if piece.end <= start or piece.start >= end:
                continue
            if piece.owner is not None:
                anchor = piece.old if anchor is None else anchor
                continue
            low, high = max(piece.start, start), min(piece.end, end)
            visible = next((o for o in range(low, high) if not self.text[o].isspace()), None)
            if visible is not None:
                return self.original.lines.line(piece.old + visible - piece.start)
            anchor = piece.old + low - piece.start if anchor is None else anchor
        return self.original.lines.line(anchor) if anchor is not None else line

    def to_original(self, start: int, end: int) -> tuple[int, int] | None:
        """The original range of a range that lies in kept text; None when a fix wrote part of it."""
        for piece in self.pieces:
            if piece.owner is None and piece.start <= start and end <= piece.end:
                return piece.old + start - piece.start, piece.old + end - piece.start
        return None


class Edition:
    """All files of a program, by absolute path, with some fixes applied; statements are numbered through all of them.

    `left_out` are indices of `cases`. Keys name statements across editions as in `Variant`; those of all files but the
    first carry the file's number. `known` keeps variants of files for the next editions of the same program.
    """

    def __init__(
        self,
        originals: Mapping[str, Places],
        cases: Sequence[FixCase],
        left_out: Set[int] = frozenset(),
        known: dict[tuple[str, frozenset[int]], Variant] | None = None,
    ) -> None:
        self.files: dict[str, Variant] = {}
        self.first: dict[str, int] = {}
        self.keys: list[str] = []
        self._prefix: dict[str, str] = {}
        known = {} if known is None else known
        main = next(iter(originals), "")
        for number, (path, original) in enumerate(originals.items()):
            here = {index: case for index, case in enumerate(cases) if (case.file or main) == path}
            chosen = frozenset(set(here) - set(left_out))
            variant = known.get((path, chosen))
            if variant is None:
                # Indices are those of the whole program, so that the owners of pieces are, too.
                mine = [case if index in here else _elsewhere(case) for index, case in enumerate(cases)]
                variant = known[path, chosen] = Variant(original, mine, chosen)
            self.files[path] = variant
            self.first[path] = len(self.keys)
            self._prefix[path] = f"{number}/" if number else ""
            self.keys += [self._prefix[path] + key for key in variant.keys]

    @property
    def changed(self) -> dict[str, str]:
        """The texts that differ from the files."""
        return {path: v.text for path, v in self.files.items() if v.text != v.original.lines.text}

    @property
    def identity(self) -> tuple[tuple[str, str], ...]:
        """What tells editions of one program apart."""
        return tuple(sorted(self.changed.items()))

    def key_at_line(self, path: str | None, line: int, byte_column: int | None = None) -> str | None:
        """The key of the statement at a line of this edition; None when it is in none of the files."""
        variant = self.files.get(path or "")
        key = variant.key_at_line(line, byte_column) if variant is not None and line else None
        return None if key is None else self._prefix[path or ""] + key

    def key(self, path: str, key: str) -> str:
        """The key, in the whole program, of what has this key in one file."""
        return self._prefix[path] + key

    def written_by(self, key: str) -> frozenset[int]:
        """The fixes that wrote part of a statement of this edition."""
        prefix, slash, own = key.rpartition("/")
        for path, variant in self.files.items():
            if self._prefix[path] == prefix + slash and own in variant.keys:
                return variant.edited[variant.keys.index(own)]
        return frozenset()

    def original_line(self, path: str, line: int) -> int:
        """See `Variant.original_line`."""
        variant = self.files.get(path)
        return line if variant is None else variant.original_line(line)

    def where(self, path: str, line: int) -> str:
        """How a report names a line of an original: with the file, unless there is but one."""
        if len(self.files) == 1 and path in self.files:
            return f"line {line}"
        return f"{shown(path)}:{line}"


def shown(path: str) -> str:
    """A path as the user would write it."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _elsewhere(case: FixCase) -> FixCase:
    """A fix as a file sees it that it is not in."""
    return replace(case, edits=(), shared=())


def _owned_edits(cases: Sequence[FixCase], chosen: Set[int]) -> list[_Owned]:
    """The edits of a variant, in order; what fixes share once, also for fixes that are not chosen."""
    shared = dict.fromkeys(edit for case in cases for edit in case.shared)
    owned = [_Owned(edit, -1) for edit in shared]
    for index, case in enumerate(cases):
        if index in chosen:
            owned.extend(_Owned(edit, index) for edit in case.edits)
    # A stable sort: at one offset, what is shared (imports, definitions) comes before what uses it.
    return sorted(owned, key=lambda each: (each.edit.start, each.edit.end))


def _assemble(text: str, owned: Iterable[_Owned]) -> tuple[str, list[Piece]]:
    pieces: list[Piece] = []
    parts: list[str] = []
    done = length = 0
    for (start, end, new), owner in owned:
        if start > done:
            parts.append(text[done:start])
            pieces.append(Piece(length, length + start - done, done, None))
            length += start - done
        if new:
            parts.append(new)
            pieces.append(Piece(length, length + len(new), start, owner))
            length += len(new)
        done = max(done, end)
    parts.append(text[done:])
    pieces.append(Piece(length, length + len(text) - done, done, None))
    return "".join(parts), pieces


def overlap(first: FixCase, second: FixCase) -> bool:
    """Whether two fixes cannot be applied to one text: they change the same code points, or do the same.

    Two insertions at one offset are compatible when they are different whole lines.
    """
    if first.file != second.file:
        return False
    for a in first.edits:
        for b in second.edits:
            if a.start < b.end and b.start < a.end:
                return True
            if a == b:
                return True
            if a.start == a.end == b.start == b.end and not ("\n" in a.text and "\n" in b.text):
                return True
    return False


def choose(cases: Sequence[FixCase]) -> tuple[list[FixCase], list[FixCase]]:
    """The fixes that go together, chosen by span and code, and those that must wait for another round."""
    chosen: list[FixCase] = []
    waiting: list[FixCase] = []
    for case in sorted(cases, key=lambda c: (c.file, c.span, c.code)):
        (waiting if any(overlap(case, other) for other in chosen) else chosen).append(case)
    return chosen, waiting


def carried_back(case: FixCase, variant: Variant) -> FixCase | None:
    """A fix found in a variant, in terms of the original; None when it changes text that another fix wrote.

    A finding in such text is placed where that text was put in.
    """
    edits = [_edit_back(edit, variant) for edit in case.edits]
    shared = [_edit_back(edit, variant) for edit in case.shared]
    if None in edits or None in shared:
        return None
    return replace(
        case,
        span=original_span(case, variant),
        edits=tuple(edit for edit in edits if edit),
        shared=tuple(edit for edit in shared if edit),
        related=tuple(Span(*back) for each in case.related if (back := variant.to_original(*each))),
    )


def original_span(case: FixCase, variant: Variant) -> Span:
    """Where in the original a finding of a variant is, or where the text was put in that it is about."""
    exact = variant.to_original(*case.span)
    if exact is not None:
        return Span(*exact)
    at = next((p for p in variant.pieces if p.start <= case.span.start < p.end), variant.pieces[-1])
    start = at.old if at.owner is not None else at.old + case.span.start - at.start
    return Span(start, start)


def _edit_back(edit: TextEdit, variant: Variant) -> TextEdit | None:
    at = variant.to_original(edit.start, edit.end)
    return TextEdit(*at, edit.text) if at else None


def read_cases(path: Path, text: str) -> list[FixCase]:
    """Fixes written by hand, for tests: a JSON list of objects for `case_from_row`. Raises UsageError."""
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot read fixes: {error}") from error
    return [case_from_row(row, text, str(path)) for row in rows]


def case_from_row(row: Mapping[str, Any], text: str, where: str = "fixes") -> FixCase:
    """One fix written by hand.

    Keys: `code`; `at`, text whose first occurrence is the finding's span; `replace`, pairs of old and new text, the old
    one found from the finding on, else from the start of the file; `shared`, pairs of an anchor and the text put before
    it; `related`, texts whose spans are related; and optionally `name`, `message`, `title`, `safety`. Raises UsageError
    when a text is not found.
    """

    def find(needle: str, start: int = 0) -> int:
        found = text.find(needle, start)
        found = text.find(needle) if found < 0 else found
        if found < 0:
            raise UsageError(f"{where}: {row['code']}: the program does not contain {needle!r}")
        return found

    at = find(row["at"])
    return FixCase(
        code=row["code"],
        name=row.get("name", ""),
        message=row.get("message", ""),
        span=Span(at, at + len(row["at"])),
        title=row.get("title", ""),
        safety=Safety(row.get("safety", "unsafe")),
        edits=tuple(_smallest(find(old, at), old, new) for old, new in row.get("replace", ())),
        shared=tuple(TextEdit(find(anchor), find(anchor), new) for anchor, new in row.get("shared", ())),
        related=tuple(Span(find(each), find(each) + len(each)) for each in row.get("related", ())),
    )


def _smallest(start: int, old: str, new: str) -> TextEdit:
    """The edit without the text that old and new end and begin with."""
    end = 0
    while end < min(len(old), len(new)) and old[-1 - end] == new[-1 - end]:
        end += 1
    begin = 0
    while begin < min(len(old), len(new)) - end and old[begin] == new[begin]:
        begin += 1
    return TextEdit(start + begin, start + len(old) - end, new[begin : len(new) - end])
