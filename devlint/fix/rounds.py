"""Fixes one source in rounds until nothing is left to fix, and checks what every round did.

A round applies the fixes that fit together and lints the result. It must decode and parse, the fixed findings must be
gone, and no new one may come; then it counts. When a round fails its fixes are tried one by one, and those that fail
alone are withdrawn and named. All other text is untouched by construction: only `TextEdit`s are written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from devlint.engine import Linter
from devlint.errors import SourceError
from devlint.fix.apply import choose, moved, splice
from devlint.model import UNREADABLE_FILE, Diagnostic, FileResult, Safety, Span, TextEdit
from devlint.source import Source, decode

ROUNDS = 20


@dataclass(frozen=True, slots=True)
class Rejected:
    """A fix that was not applied although its level was allowed, and why."""

    diagnostic: Diagnostic
    reason: str


@dataclass(slots=True)
class FixOutcome:
    """`text`: after all fixes. `fixed`: the findings that their fixes removed, placed in the text of their round.
    `result`: what the linter says about `text`. `rejected`: fixes that failed a check."""

    text: str
    result: FileResult
    fixed: list[Diagnostic] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)


def fix_source(
    linter: Linter, source: Source, allow: Collection[Safety] = (Safety.SAFE,), result: FileResult | None = None
) -> FixOutcome:
    """Apply the fixes of the allowed levels. `result`: the findings of `source`, when they are already known."""
    outcome = FixOutcome(source.text, result if result is not None else linter.check(source))
    seen = {source.text}
    withdrawn: dict[tuple[str, Span], str] = {}
    writable = _encodes_back(source)
    for _ in range(ROUNDS):
        found = [d for d in _fixable(outcome.result, allow) if (d.code, d.span) not in withdrawn]
        if not found:
            break
        if not writable:
            reason = f"the file cannot be written back unchanged as {source.encoding}"
            outcome.rejected += [Rejected(d, reason) for d in found]
            break
        _, chosen = choose([d.fix for d in found if d.fix is not None])
        batch = [found[index] for index in chosen]
        attempt = _try(linter, source, outcome.result, batch, seen)
        if attempt.problem and len(batch) > 1:
            alone = [(d, _try(linter, source, outcome.result, [d], seen)) for d in batch]
            failed = [(d, tried.problem) for d, tried in alone if tried.problem]
            batch, attempt = ([], attempt) if failed else ([alone[0][0]], alone[0][1])
        else:
            failed = [(d, attempt.problem) for d in batch if attempt.problem]
        for diagnostic, problem in failed:
            withdrawn[diagnostic.code, diagnostic.span] = problem
            outcome.rejected.append(Rejected(diagnostic, problem))
        if failed:
            continue
        withdrawn = {(code, moved(span, attempt.edits)): why for (code, span), why in withdrawn.items()}
        source = attempt.source
        seen.add(source.text)
        outcome.text, outcome.result = source.text, attempt.result
        outcome.fixed += batch
    return outcome


class _Attempt(NamedTuple):
    """A source after some fixes, what the linter says about it, the edits, and what is wrong with it ("" if sound)."""

    source: Source
    result: FileResult
    edits: Sequence[TextEdit]
    problem: str


def _try(
    linter: Linter, source: Source, before: FileResult, batch: Sequence[Diagnostic], seen: Collection[str]
) -> _Attempt:
    edits, _ = choose([d.fix for d in batch if d.fix is not None])
    text = splice(source.text, edits)
    try:
        after = decode(source.with_text(text).raw, source.path)
    except SourceError as error:
        return _Attempt(source, before, edits, f"the fixed file {error}")
    if after.text != text:
        return _Attempt(source, before, edits, "the fixed file would be decoded differently")
    if text in seen:
        return _Attempt(after, before, edits, "the fix undoes another one")
    result = linter.check(after)
    return _Attempt(after, result, edits, _problem(before, result, batch, edits))


def _problem(before: FileResult, after: FileResult, batch: Sequence[Diagnostic], edits: Sequence[TextEdit]) -> str:
    """What is wrong with the result of some fixes, "" when nothing is."""
    new_crashes = [crash for crash in after.crashes if crash not in before.crashes]
    if len(after.crashes) > len(before.crashes):
        return f"devlint fails on the fixed file: {new_crashes[0]}"
    applied = {(d.code, d.span) for d in batch}
    stay = [(d.code, moved(d.span, edits)) for d in _all(before) if (d.code, d.span) not in applied]
    exact = set(stay)
    unknown = [d for d in after.diagnostics if (d.code, d.span) not in exact]
    matched = {(d.code, d.span) for d in _all(after)} & exact
    loose = [key for key in stay if key not in matched]
    gone = [(code, moved(span, edits)) for code, span in applied]
    for diagnostic in unknown:
        key = next((key for key in loose if _same(key, diagnostic)), None)
        if key is not None:
            loose.remove(key)
        elif diagnostic.code == UNREADABLE_FILE.code:
            return f"the fixed file is not sound: {diagnostic.message} in row {diagnostic.start.row}"
        elif any(_same(key, diagnostic) for key in gone):
            return "the finding stays"
        else:
            return f"the fix brings {diagnostic.code} in row {diagnostic.start.row}"
    return ""


def _all(result: FileResult) -> list[Diagnostic]:
    return [*result.diagnostics, *result.suppressed]


def _same(key: tuple[str, Span], diagnostic: Diagnostic) -> bool:
    """Whether a finding of the new text may be the old one at this place: the same rule, on overlapping text."""
    code, span = key
    other = diagnostic.span
    overlap = (span.start < other.end and other.start < span.end) or span.start == other.start
    return code == diagnostic.code and overlap


def _fixable(result: FileResult, allow: Collection[Safety]) -> list[Diagnostic]:
    return [d for d in result.diagnostics if d.fix is not None and d.fix.edits and d.fix.safety in allow]


def _encodes_back(source: Source) -> bool:
    """Whether the file's bytes are what its text encodes to, as UTF-7 and ISO-2022 need not be."""
    try:
        return source.encode(source.text) == source.raw
    except SourceError:
        return False
