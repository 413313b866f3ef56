"""Fixes the findings of one source in rounds until none of them is left to fix, and checks what every round did.

A round applies the fixes that fit together and lints the result. It must decode and parse, the fixed findings must be
gone, and no new one may be left that has no fix of its own; then it counts. When a round fails its fixes are tried one by
one, and those that fail alone are withdrawn and named. Safe fixes are made of findings that were there at first alone: what
comes up by a fix is reported, and another run fixes it, once somebody could read it. Where unsafe fixes are allowed it is
fixed as well, since a program that is converted for every device is done only then. All other text is untouched by
construction: only `TextEdit`s are written.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from devlint.errors import SourceError
from devlint.fix.apply import Moves, choose, splice
from devlint.fix.imports import without_unused
from devlint.model import UNREADABLE_FILE, Diagnostic, FileResult, Safety, Span, TextEdit
from devlint.source import Source

ROUNDS = 20


class Checker(Protocol):
    """A `Linter`, or what stands between it and the rounds to change what it says."""

    def check(self, source: Source) -> FileResult: ...


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
    linter: Checker, source: Source, allow: Collection[Safety] = (Safety.SAFE,), result: FileResult | None = None
) -> FixOutcome:
    """Apply the fixes of the allowed levels. `result`: the findings of `source`, when they are already known.

    Without unsafe fixes a finding that only comes up by a fix stays.
    """
    original = source
    outcome = FixOutcome(source.text, result if result is not None else linter.check(source))
    seen = {source.text}
    listed = _keys(outcome.result)
    withdrawn: dict[Key, str] = {}
    writable = _encodes_back(source)
    for _ in range(ROUNDS):
        found = [d for d in _of(listed, outcome.result) if _may_fix(d, allow) and (d.code, d.span) not in withdrawn]
        if not found:
            break
        if not writable:
            reason = f"the file cannot be written back unchanged as {source.encoding}"
            outcome.rejected += [Rejected(d, reason) for d in found]
            break
        _, batch = _choose(found)
        attempt = _try(linter, source, outcome.result, batch, allow, seen)
        failed = [(d, attempt.problem) for d in batch if attempt.problem]
        if attempt.problem and len(batch) > 1:
            alone = [(d, _try(linter, source, outcome.result, [d], allow, seen)) for d in batch]
            failed = [(d, tried.problem) for d, tried in alone if tried.problem]
            attempt = alone[0][1]
        for diagnostic, problem in failed:
            withdrawn[diagnostic.code, diagnostic.span] = problem
            outcome.rejected.append(Rejected(diagnostic, problem))
        if failed:
            continue
        applied = {(d.code, d.span) for d in attempt.fixed}
        listed = [key for key in listed if key not in applied]
        for edits in attempt.steps:
            moves = Moves(edits)
            withdrawn = {(code, moves.span(span)): why for (code, span), why in withdrawn.items()}
            listed = [(code, moves.span(span)) for code, span in listed]
        if Safety.UNSAFE in allow:
            listed = _keys(attempt.result)
        source = attempt.source
        seen.add(source.text)
        outcome.text, outcome.result = source.text, attempt.result
        outcome.fixed += attempt.fixed
    if outcome.fixed:
        _drop_imports(linter, original, source, outcome)
    return outcome


def _drop_imports(linter: Checker, original: Source, fixed: Source, outcome: FixOutcome) -> None:
    """Drop the imports that the fixes left unused, unless the result is not sound or has other findings."""
    text = without_unused(original, fixed)
    if text == fixed.text:
        return
    try:
        fresh = fixed.rewritten(text)
    except SourceError:
        return
    result = linter.check(fresh)
    if fresh.text == text and _codes(result) == _codes(outcome.result):
        outcome.text, outcome.result = text, result


def _codes(result: FileResult) -> list[str]:
    return sorted(d.code for d in (*result.diagnostics, *result.suppressed))


Key = tuple[str, Span]  # the code of a finding and its place


def _of(listed: Sequence[Key], result: FileResult) -> list[Diagnostic]:
    """The findings that are those of a list, each of which stands for one at most."""
    exact = set(listed)
    found = [d for d in result.diagnostics if (d.code, d.span) in exact]
    left = sorted(exact - {(d.code, d.span) for d in found})
    for diagnostic in result.diagnostics if left else ():
        same = next((key for key in left if _same(key, diagnostic)), None)
        if same is not None and (diagnostic.code, diagnostic.span) not in exact:
            left.remove(same)
            found.append(diagnostic)
    return found


class _Attempt(NamedTuple):
    """A source after some fixes, what the linter says about it, the edits of each step, the findings that were fixed,
    and what is wrong with it ("" if it is sound)."""

    source: Source
    result: FileResult
    steps: Sequence[Sequence[TextEdit]]
    fixed: Sequence[Diagnostic]
    problem: str


def _try(
    linter: Checker,
    source: Source,
    before: FileResult,
    batch: Sequence[Diagnostic],
    allow: Collection[Safety],
    seen: Collection[str],
) -> _Attempt:
    """Apply some fixes, and try those of the findings that come up by it, until none is left that was not there before.

    A fault may hide another one, as the first of two operands on the wrong device hides the second; so a finding that
    comes up is no objection when its own fix removes it, or when it was there and had given way to a fixed one. Where only
    safe fixes are allowed, the text before that is given back.
    """
    steps: list[tuple[Source, FileResult, Sequence[TextEdit], Sequence[Diagnostic]]] = []
    applied = {(d.code, d.span) for d in batch}
    stay = [*(key for key in _keys(before) if key not in applied), *before.gave_way]
    gone: list[Key] = []
    after, result = source, before

    def attempt(problem: str) -> _Attempt:
        made = steps if Safety.UNSAFE in allow else steps[:1]
        fixed = [diagnostic for step in made for diagnostic in step[3]]
        last = made[-1] if made else (source, before)
        return _Attempt(last[0], last[1], [step[2] for step in made], fixed, problem)

    while batch:
        edits, batch = _choose(batch)
        try:
            text = splice(after.text, edits)
            fresh = after.rewritten(text)
        except SourceError as error:
            return attempt(f"the fixed file {error}")
        if fresh.text != text:
            return attempt("the fixed file would be decoded differently")
        if fresh.text in seen or len(steps) == ROUNDS:
            return attempt("the fix undoes another fix")
        after, result = fresh, linter.check(fresh)
        steps.append((after, result, edits, batch))
        moves = Moves(edits)
        stay = [(code, moves.span(span)) for code, span in stay]
        gone = [(code, moves.span(span)) for code, span in (*gone, *((d.code, d.span) for d in batch))]
        crashes = [crash for crash in result.crashes if crash not in before.crashes]
        if len(result.crashes) > len(before.crashes):
            return attempt(f"devlint fails on the fixed file: {crashes[0]}")
        new = _unaccounted(result, stay)
        for diagnostic in new:
            if diagnostic.code == UNREADABLE_FILE.code:
                return attempt(f"the fixed file has an error: {diagnostic.message} on line {diagnostic.start.row}")
            if any(_same(key, diagnostic) for key in gone):
                return attempt("the fix does not remove the finding")
            if not _may_fix(diagnostic, allow):
                return attempt(f"the fix causes {diagnostic.code} on line {diagnostic.start.row}")
        batch = new
    return attempt("")


def _choose(found: Sequence[Diagnostic]) -> tuple[list[TextEdit], list[Diagnostic]]:
    """The edits of the fixes that fit together, and their findings. What one decision settles is settled at once."""
    decided = {i for i, d in enumerate(found) if d.decision}
    edits, chosen = choose([d.fix for d in found if d.fix is not None], decided)
    return edits, [found[index] for index in chosen]


def _unaccounted(result: FileResult, stay: Sequence[Key]) -> list[Diagnostic]:
    """The findings that are none of those expected to stay. The place of one that an edit cut is known only roughly."""
    exact = set(stay)
    matched = set(_keys(result)) & exact
    loose = [key for key in stay if key not in matched]
    new: list[Diagnostic] = []
    for diagnostic in result.diagnostics:
        if (diagnostic.code, diagnostic.span) in exact:
            continue
        key = next((key for key in loose if _same(key, diagnostic)), None)
        if key is None:
            new.append(diagnostic)
        else:
            loose.remove(key)
    return new


def _keys(result: FileResult) -> list[Key]:
    return [(d.code, d.span) for d in (*result.diagnostics, *result.suppressed)]


def _same(key: Key, diagnostic: Diagnostic) -> bool:
    """Whether a finding of the new text may be the old one at this place: the same rule, on overlapping text."""
    code, span = key
    other = diagnostic.span
    overlap = (span.start < other.end and other.start < span.end) or span.start == other.start
    return code == diagnostic.code and overlap


def _may_fix(diagnostic: Diagnostic, allow: Collection[Safety]) -> bool:
    fix = diagnostic.fix
    return fix is not None and bool(fix.edits) and fix.safety in allow


def _encodes_back(source: Source) -> bool:
    """Whether the file's bytes are what its text encodes to, as UTF-7 and ISO-2022 need not be."""
    try:
        return source.encode(source.text) == source.raw
    except SourceError:
        return False
