"""Checks fixtures: what a linter finds in a file against the file's markers, and what its fixes make of the file.

A case `fixtures/DEV101/loop.py` fails when a finding has no marker, a marker has no finding, a marker is malformed or
names a code that no rule has, or the file has no marker at all. Where a finding has a safe fix, `loop.fixed.py` must
stand beside it: equal to what the safe fixes make of the stripped case (with `# fixes: unsafe` on the case's first
line: the safe and unsafe ones), without a finding that it does not mark itself, and unchanged when fixed again.
"""

from __future__ import annotations

import difflib
from dataclasses import replace
from pathlib import Path
from typing import Final

from devlint.engine import Linter
from devlint.errors import DevlintError, SourceError
from devlint.fix.rounds import ROUNDS, FixOutcome, fix_source
from devlint.model import ENGINE_RULES, Diagnostic, FileResult, Safety
from devlint.source import Source, decode
from devlint.testing.markers import Expected, Fixture, Marker, read_fixture
from devlint.testing.probes import check_probes

FIXED_SUFFIX: Final = ".fixed.py"
_ENGINE_CODES: Final = frozenset(meta.code for meta in ENGINE_RULES)


def case_files(folder: Path) -> list[Path]:
    """The cases below a folder, sorted; the `.fixed.py` files beside them are no cases."""
    return sorted(path for path in folder.rglob("*.py") if not path.name.endswith(FIXED_SUFFIX))


def count_markers(folder: Path, code: str) -> tuple[int, int]:
    """How many `quiet` and how many `expect` markers for `code` the cases below a folder hold."""
    quiet = expect = 0
    for path in case_files(folder):
        for marker in read_fixture(path.read_bytes(), str(path)).markers:
            if marker.expected is not None and marker.expected.code == code:
                quiet += marker.word == "quiet"
                expect += marker.word == "expect"
    return quiet, expect


def check_fixture(path: Path, linter: Linter) -> list[str]:
    """Every way in which a case and the linter disagree, each as `file:line: text`; empty when the case passes.

    Raises OSError when the file cannot be read.
    """
    fixture = read_fixture(path.read_bytes(), path.as_posix())
    failures = list(fixture.problems)
    if not fixture.markers:
        failures.append(f"{fixture.path}:1: no marker in this file; say what is expected or why it is quiet")
    failures += _unknown_codes(fixture, linter)
    failures += _idle_codes(fixture, linter)
    source = _decode(fixture)
    result = _check(fixture, source, linter)
    failures += _compare(fixture, result)
    if source is None:
        return failures
    failures += check_probes(fixture, source, linter.settings)
    failures += _check_fixes(path, fixture, source, result, linter)
    return failures


def _decode(fixture: Fixture) -> Source | None:
    """The stripped source; None when it cannot be decoded or parsed."""
    try:
        return decode(fixture.raw, fixture.path)
    except SourceError:
        return None


def _check(fixture: Fixture, source: Source | None, linter: Linter) -> FileResult:
    """Lint the stripped source. Bytes that cannot be decoded give DEV900, as the command line reports it."""
    if source is not None:
        return linter.check(source)
    return linter.check_bytes(fixture.raw, fixture.path)


def _unknown_codes(fixture: Fixture, linter: Linter) -> list[str]:
    known = {rule.meta.code for rule in linter.rules} | _ENGINE_CODES
    return [
        f"{fixture.path}:{marker.written}: no rule has the code {marker.expected.code}"
        for marker in fixture.markers
        if marker.expected is not None and marker.expected.code not in known
    ]


def _idle_codes(fixture: Fixture, linter: Linter) -> list[str]:
    """The rules that are expected to report something and cannot, because the settings have the old inference."""
    expected = {marker.expected.code for marker in fixture.of("expect") if marker.expected is not None}
    needing = {rule.meta.code for rule in linter.rules if rule.meta.needs_inference}
    if linter.settings.inference == "new":
        return []
    return [
        f'{fixture.path}:1: {code} reports nothing without `Settings(inference="new")`'
        for code in sorted(expected & needing)
    ]


def _compare(fixture: Fixture, result: FileResult) -> list[str]:
    """Match findings and markers one to one, and report what is left of either."""
    failures = [f"{fixture.path}: {crash}" for crash in result.crashes]
    left = list(result.diagnostics)
    for marker in fixture.of("expect", "todo-quiet"):
        mismatch = _take(marker, left)
        if mismatch is None:
            continue
        if marker.word == "todo-quiet":
            failures.append(f"{_at(fixture, marker)}: {_code(marker)} no longer fires: turn the marker into `quiet`")
        else:
            failures.append(f"{_at(fixture, marker)}: {mismatch}")
    for marker in fixture.of("quiet", "todo-expect"):
        fired = [d for d in left if d.start.row == marker.row and d.code == _code(marker)]
        if not fired:
            continue
        if marker.word == "todo-expect":
            left.remove(fired[0])
            failures.append(f"{_at(fixture, marker)}: {_code(marker)} fires now: turn the marker into `expect`")
    for diagnostic in left:
        row = fixture.written(diagnostic.start.row)
        columns = f"{diagnostic.start.column}:{diagnostic.end.column}"
        failures.append(f"{fixture.path}:{row}: unmarked {diagnostic.code}[{columns}] {diagnostic.message}")
    return failures


def _at(fixture: Fixture, marker: Marker) -> str:
    return f"{fixture.path}:{marker.written}"


def _code(marker: Marker) -> str:
    return marker.expected.code if marker.expected is not None else ""


def _take(marker: Marker, left: list[Diagnostic]) -> str | None:
    """Take the finding that a marker means out of `left`. Returns what is wrong when there is none."""
    expected = marker.expected
    if expected is None:
        return None
    here = [d for d in left if d.start.row == marker.row and d.code == expected.code]
    if not here:
        return f"expected {expected.code} here, found none"
    for diagnostic in here:
        if _difference(expected, diagnostic) is None:
            left.remove(diagnostic)
            return None
    left.remove(here[0])
    return _difference(expected, here[0])


def _difference(expected: Expected, diagnostic: Diagnostic) -> str | None:
    columns = (diagnostic.start.column, diagnostic.end.column)
    if expected.columns is not None and expected.columns != columns:
        wanted = f"{expected.columns[0]}:{expected.columns[1]}"
        return f"{expected.code} at columns {columns[0]}:{columns[1]}, expected {wanted}"
    if expected.part is not None and expected.part not in diagnostic.message:
        return f'{expected.code} says "{diagnostic.message}", expected a part "{expected.part}"'
    level = diagnostic.fix.safety.value if diagnostic.fix is not None else "none"
    if expected.level is not None and expected.level != level:
        return f"{expected.code} has a fix of level {level}, expected {expected.level}"
    return None


def _settled(linter: Linter, source: Source, allow: set[Safety]) -> FixOutcome:
    """What fixing gives once it is repeated until nothing changes: what comes up by a fix is left to the next run."""
    outcome = fix_source(linter, source, allow)
    for _ in range(ROUNDS):
        again = fix_source(linter, source.rewritten(outcome.text), allow)
        if again.text == outcome.text:
            break
        outcome = replace(again, rejected=[*outcome.rejected, *again.rejected])
    return outcome


def _check_fixes(path: Path, fixture: Fixture, source: Source, result: FileResult, linter: Linter) -> list[str]:
    """Compare what the fixes make of the case with the `.fixed.py` beside it."""
    allow = {Safety.SAFE, Safety.UNSAFE} if fixture.unsafe else {Safety.SAFE}
    beside = path.with_name(path.name.removesuffix(".py") + FIXED_SUFFIX)
    fixable = [d for d in result.diagnostics if d.fix is not None and d.fix.safety in allow]
    if not fixable:
        return [f"{beside.as_posix()}: nothing in {path.name} is fixed; remove this file"] if beside.exists() else []
    try:
        outcome = _settled(linter, source, allow)
    except DevlintError as error:
        return [f"{fixture.path}: fixing failed: {error}"]
    failures = [
        f"{fixture.path}: the fix of {r.diagnostic.code} `{r.diagnostic.message}` is withdrawn: {r.reason}"
        for r in outcome.rejected
    ]
    raw = source.encode(outcome.text)
    if not beside.exists():
        return [*failures, f"{beside.as_posix()} is missing; the fixes give:\n{outcome.text}"]
    wanted = read_fixture(beside.read_bytes(), beside.as_posix())
    failures += wanted.problems + _unknown_codes(wanted, linter)
    if wanted.raw != raw:
        diff = difflib.unified_diff(
            wanted.raw.decode("utf-8", "replace").splitlines(),
            raw.decode("utf-8", "replace").splitlines(),
            beside.name,
            "what the fixes give",
            lineterm="",
        )
        return [*failures, f"{beside.as_posix()}: differs from what the fixes give:\n" + "\n".join(diff)]
    fixed = _decode(wanted)
    if fixed is None:
        return [*failures, f"{beside.as_posix()}: does not decode"]
    failures += _compare(wanted, linter.check(fixed))
    again = fix_source(linter, fixed, allow)
    if again.text != fixed.text:
        failures.append(f"{beside.as_posix()}: changes when it is fixed again")
    return failures
