"""Where a program stops next once the first cause is mended: the cause is mended in the text, and the rules read it again.

What they find there and did not find before, or behind the failing line, on the way that the frames show, stops the program
next. No file is changed.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from devlint.explain.errors import DeviceError
from devlint.explain.sources import File
from devlint.explain.suspects import Suspect
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name
from devlint.fix.apply import in_order, splice
from devlint.model import Diagnostic
from devlint.source import Source

#: What the rules find in a text of a file.
Check = Callable[[File, Source], list[Diagnostic]]

#: What stops a program on a machine with the accelerator, and on one without it.
_MIXED = frozenset(
    {"DEV101", "DEV102", "DEV103", "DEV104", "DEV106", "DEV107", "DEV109", "DEV110", "DEV112", "DEV301", "DEV605"}
)
_OF_PLACES = frozenset({"DEV101", "DEV102", "DEV103", "DEV104", "DEV106"})
_MISSING = frozenset({"DEV201", "DEV202", "DEV203", "DEV205", "DEV206", "DEV208"})
#: A device of the type that an error names is written where nothing else tells one.
_TYPES = ("cuda", "mps", "xpu", "npu", "hpu", "xla")


@dataclass(frozen=True, slots=True)
class Next:
    """A finding at which the program stops next, and the row at which it does."""

    file: File
    row: int
    finding: Diagnostic


@dataclass(frozen=True, slots=True)
class _Text:
    """A text with a cause mended: where a row was inserted, 0 for nowhere."""

    text: str
    inserted: int = 0

    def before(self, row: int) -> int:
        """The row of the original text."""
        return row - 1 if self.inserted and row >= self.inserted else row


def next_stop(
    frames: list[tuple[File, ast.stmt, int]],
    error: DeviceError,
    first: tuple[Suspect, Diagnostic | None],
    check: Check,
) -> Next | None:
    """Where the program stops next once the first cause is mended; None where nothing tells."""
    suspect, finding = first
    codes = _MISSING if error.is_missing else _MIXED
    if any(_sets_default(file) for file, _, _ in frames):
        codes -= _OF_PLACES  # what is made without a device is not on the CPU there
    changed = _mended(suspect, finding, error)
    for file, statement, failing in reversed(frames):
        text = changed if file is suspect.place.file else None
        for row, found in sorted(_stops(file, text, codes, check), key=lambda stop: (stop[0], stop[1].span)):
            known = file.statement(row)
            if known is None or file.function_of(known) is not file.function_of(statement):
                continue
            if row > failing or _is_beside(found, finding, row == failing):
                return Next(file, row, found)
            if text is not None and suspect.place.row < row and not _was_found(found, row, file, check):
                return Next(file, row, found)
    return None


def _is_beside(found: Diagnostic, first: Diagnostic | None, on_failing_row: bool) -> bool:
    """Whether a finding on the failing row stands behind the one that is mended: `np.mean(a), np.mean(b)`."""
    return on_failing_row and first is not None and found.code == first.code and found.span.start >= first.span.end


def _sets_default(file: File) -> bool:
    """Whether a file sets a default device, or a default type of tensors."""
    return any(isinstance(n, ast.Call) and last_name(n.func).startswith("set_default_") for n in walk(file.tree))


def _stops(file: File, mended: _Text | None, codes: frozenset[str], check: Check) -> Iterator[tuple[int, Diagnostic]]:
    """What rules find that stops a program, by the row in the original text at which it does."""
    text = mended if mended is not None else _Text(file.source.text)
    source = file.source if mended is None else _source(file, text.text)
    for found in check(file, source):
        if found.code in codes:
            rows = [found.start.row, *(related.start.row for related in found.related if related.path == found.path)]
            yield text.before(max(rows)), found


def _was_found(found: Diagnostic, row: int, file: File, check: Check) -> bool:
    """Whether the text as it is has the same finding at a row: the program passed it, so it is none."""
    stops = _stops(file, None, frozenset({found.code}), check)
    return any(row == other for other, _ in stops)


def _source(file: File, text: str) -> Source:
    return file.source.with_text(text)


def mended(suspect: Suspect, error: DeviceError) -> str | None:
    """The text of a file in which what stayed behind is moved right after it is bound; None where nothing tells how."""
    changed = _mended(suspect, None, error)
    return changed.text if changed is not None else None


def _mended(suspect: Suspect, finding: Diagnostic | None, error: DeviceError) -> _Text | None:
    """The text of a file with a cause mended: by the fix of its finding, or by a move where what stayed behind is bound."""
    file = suspect.place.file
    text = file.source.text
    if "DEV605" in error.family.codes:
        return _without_moves(file, suspect.place.row)
    if finding is not None and finding.fix is not None and (finding.fix.edits or finding.fix.shared):
        text = splice(text, in_order((*finding.fix.edits, *finding.fix.shared)))
        return _Text(text) if text.count("\n") == file.source.text.count("\n") else None
    statement = file.statement(suspect.place.row)
    device = next((name for name in _TYPES if name in error.places), None)
    if statement is None or device is None or not suspect.on_host:
        return None
    return _with_move(file, statement, suspect.place.name, device)


def _without_moves(file: File, row: int) -> _Text | None:
    """The text without the moves that a statement makes: `return x.cuda()` returns `x`."""
    statement = file.statement(row)
    text = file.source.text
    moves = [] if statement is None else [n for n in walk(statement) if isinstance(n, ast.Call) and _is_move(n)]
    for call in sorted(moves, key=lambda call: (call.end_lineno or 0, call.end_col_offset or 0), reverse=True):
        assert isinstance(call.func, ast.Attribute)
        kept = call.func.value
        start = file.source.offset(kept.end_lineno or row, kept.end_col_offset or 0)
        text = text[:start] + text[file.source.offset(call.end_lineno or row, call.end_col_offset or 0) :]
    return _Text(text) if moves and text.count("\n") == file.source.text.count("\n") else None


def _is_move(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in OFF_HOST


def _with_move(file: File, statement: ast.stmt, name: str, device: str) -> _Text | None:
    """The text with one more row: a move of what a statement binds, as the first thing after it."""
    block = statement.body[0] if isinstance(statement, (ast.For, ast.AsyncFor)) else None
    if block is None and isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
        name = ast.unparse(target) if isinstance(target, (ast.Name, ast.Attribute)) else name
    row = block.lineno if block is not None else (statement.end_lineno or statement.lineno) + 1
    indent = block.col_offset if block is not None else statement.col_offset
    if not name or not isinstance(statement, (ast.Assign, ast.For, ast.AsyncFor)):
        return None
    if block is not None and block.lineno == statement.lineno:
        return None
    lines = file.source.text.splitlines(keepends=True)
    lines.insert(row - 1, f'{" " * indent}{name} = {name}.to("{device}")\n')
    return _Text("".join(lines), row)
