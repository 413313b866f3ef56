"""From a pasted traceback to the likely causes: the frames that are the user's, what the rules find there, and where the values
of the failing line come from.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from pathlib import Path

from devlint.checkers import Confined
from devlint.config import Resolver
from devlint.embedded.notebook import Notebook
from devlint.explain.calls import operands
from devlint.explain.chosen import (
    files_of,
    follow_device,
    follow_optimizer,
    note_defaults,
    note_loaders,
    note_wrappers,
)
from devlint.explain.errors import LAST, DeviceError, recognise
from devlint.explain.inferred import note_inferred
from devlint.explain.logs import cleaned, in_order, of_process
from devlint.explain.mended import Check, Next, next_stop
from devlint.explain.order import bare, by_calls, is_scattered
from devlint.explain.origins import Search
from devlint.explain.sources import File, Files
from devlint.explain.suspects import Step, Suspect, Trail
from devlint.explain.tracebacks import Frame, all_frames, frames, without_report
from devlint.facts.text.nodes import walk
from devlint.model import Diagnostic
from devlint.source import Source

SHOWN = 5  # causes that are named
_CHECKED = 6  # files that are checked for findings
#: The rules that the inference answers.
_MISMATCHES = frozenset({"DEV101", "DEV102", "DEV103", "DEV104", "DEV109"})
#: The families of errors whose device may be chosen by a number: an index that is too high, and a generator.
_NUMBERED = frozenset({"DEV604", "DEV110"})
_NEXT = re.compile(r"During handling of the above exception|The above exception was the direct cause")
_NEAR = 3  # rows around a failing line within which a finding of its kind explains it
_LEADS = 1.25  # the weight of a finding whose trail passes a failing line
_BESIDE = 0.8  # that of one near it
_AT = 0.6  # that of one at it: where the value comes from says more
_AGREED = 0.3  # the share of the search's own weight that is added to it
_NAMED = 1.2  # how much likelier a side is that the error names: the module, or its input
_OTHER = 0.5  # and the other one
_UNTOLD = 0.2  # the weight of the failing line itself, where nothing else is found
_FOUND = 1.3  # how much likelier a place is at which a rule finds something


@dataclass(frozen=True, slots=True)
class Cause:
    """One likely cause: the place, the finding of a rule that stands there, and where the value can be moved at the latest."""

    suspect: Suspect
    finding: Diagnostic | None
    latest: Step | None


@dataclass(frozen=True, slots=True)
class Explanation:
    """A device error, the innermost frame of the user, and the likely causes, the likeliest first."""

    error: DeviceError
    frame: Frame | None
    where: tuple[File, int] | None
    causes: tuple[Cause, ...]
    then: Next | None = None


class _Checker:
    """What the rules find in a file, by its configuration. Each text is read once."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], list[Diagnostic]] = {}

    def __call__(self, file: File, source: Source) -> list[Diagnostic]:
        key = (str(file.path), source.text)
        if key not in self._known:
            self._known[key] = _check(file, source)
        return self._known[key]


def explain(text: str, root: Path, live: Notebook | None = None) -> Explanation | None:
    """What a text with a traceback says, with the source below `root`; None when it has no device error that is known.

    `live`: the notebook whose cells the traceback means, where it is at hand.
    """
    whole = cleaned(text)
    text = in_order(without_report(whole))
    whole = in_order(whole)
    error = recognise(text)
    if error is None:
        text, error = whole, recognise(whole)
    if error is None:
        return None
    begin = max(0, error.start - LAST)
    near, start = text[begin:][: 2 * LAST], error.start - begin
    files = Files(root, live)
    shown = frames(of_process(near[: _end(near, start)], start))
    places = _located(files, shown)
    user = [frame for frame in shown if frame in places]
    log = of_process(near, start)
    if is_scattered(places or _located(files, all_frames(log)), log) or not shown:
        shown = bare(all_frames(log))
        places = _located(files, shown)
        user = by_calls(places)
    located = [places[frame] for frame in user]
    if not located:
        outer = [frame for frame in shown if not _is_librarys(frame)]
        return Explanation(error, outer[-1] if outer else None, None, ())
    search = Search(files, located)
    seek(search, error)
    check = _Checker()
    causes = with_findings(search, error, check)
    file, _, row = located[-1]
    then = next_stop(located, error, (causes[0].suspect, causes[0].finding), check) if causes else None
    return Explanation(error, user[-1], (file, row), tuple(causes[:SHOWN]), then)


def _located(files: Files, shown: Sequence[Frame]) -> dict[Frame, tuple[File, ast.stmt, int]]:
    """The file of each frame, its statement and row, without those of libraries and those whose source is not at hand.

    A file that the end of its path alone speaks for is believed when another frame is found as well.
    """
    found: dict[Frame, tuple[File, ast.stmt, int]] = {}
    doubtful: set[Frame] = set()
    for frame, inner in dict(zip_longest(shown, shown[1:])).items():  # a recursion has one frame often
        file = files.find(frame, inner)
        row = file.row_of(frame, inner) if file is not None else None
        statement = file.statement(row) if file is not None and row is not None else None
        if file is not None and row is not None and statement is not None:
            found[frame] = file, statement, row
            if not files.is_exact(frame) and not file.speaks_for(frame, row):
                doubtful.add(frame)
    return found if len(found) > 1 or not doubtful else {}


def _end(text: str, start: int) -> int:
    """Where the traceback of the error ends that starts at a place: at the next exception of a chain, which hides it."""
    after = _NEXT.search(text, start)
    return after.start() if after is not None else len(text)


def _is_librarys(frame: Frame) -> bool:
    return any(
        part in frame.path for part in ("site-packages", "dist-packages", "<frozen", "/lib/python3", "\\lib\\python3")
    )


def seek(search: Search, error: DeviceError) -> None:
    """Look for what may have caused an error, from the failing line back."""
    file, statement, row = search.frames[-1]
    at = search.context(len(search.frames) - 1)
    if error.family.sought == "wrapper" and note_wrappers(search, error.named.get("off", "cpu")):
        return
    if error.family.sought == "loader":
        note_loaders(search)
    if error.family.sought in ("line", "device", "loader"):
        search.note(file, _on(statement, row), error.remedy, Trail(1.0))
        for each in operands(statement):
            for node in walk(each):
                if error.family.sought == "device":
                    follow_device(search, node, at, numbers=not _NUMBERED.isdisjoint(error.family.codes))
        if "DEV110" in error.family.codes:
            note_defaults(search)
        if error.family.sought == "line":
            for each in operands(statement):
                search.value(each, at, Trail(0.5))
        return
    for each in operands(statement):
        search.value(each, at)
    follow_optimizer(search, statement)
    if not _MISMATCHES.isdisjoint(error.family.codes):
        note_inferred(search)
    if not search.found:
        text = "the origin of the operands of this line is unknown: print the `.device` of each, and move the wrong one"
        search.note(file, _on(statement, row), text, Trail(_UNTOLD))
    if error.is_modules is not None and any(s.of_module for s in search.found.values()):
        search.found = {
            k: s.weighed(_NAMED if s.of_module == error.is_modules else _OTHER) for k, s in search.found.items()
        }
    if error.places - {"cpu", "cuda"}:  # what is put on CUDA if there is one is on the CPU here
        search.found = {key: s if s.on_host else s.weighed(2) for key, s in search.found.items()}
    if not error.meets_host:  # one card and another: what puts values on cards is what to look at
        search.found = {key: s if not s.on_host else s.weighed(0.3) for key, s in search.found.items()}
        search.found = {key: s if s.on_host else s.weighed(3) for key, s in search.found.items()}


def _on(statement: ast.stmt, row: int) -> ast.AST:
    """The outermost expression of a statement that starts on a row, else the statement."""
    return next((n for n in walk(statement) if isinstance(n, ast.expr) and n.lineno == row), statement)


def with_findings(search: Search, error: DeviceError, check: Check) -> list[Cause]:
    """The causes in their order, with what the rules find: a finding whose trail passes a failing line comes first."""
    likely = sorted(search.found.values(), key=lambda suspect: (-suspect.weight, *suspect.key))[:SHOWN]
    files = list(dict.fromkeys([*files_of(search), *(suspect.place.file for suspect in likely)]))
    findings: dict[tuple[str, int], Diagnostic] = {}
    for file in files[:_CHECKED]:
        failing = [row for other, _, row in search.frames if other is file]
        for finding in check(file, file.source):
            if finding.code not in error.family.codes:
                continue
            key = (str(file.path), finding.start.row)
            findings.setdefault(key, finding)
            rows = _rows(finding)
            leads = not rows.isdisjoint(failing)
            if finding.start.row in failing:
                _blame_modules(search, file, rows)
            if leads or any(_comes_before(file, finding.start.row, row) for row in failing):
                known = search.found.get(key, Suspect(_place(file, finding), Trail(0.0), True))
                if finding.start.row in failing:
                    weight = max(known.weight, _AT)
                else:
                    weight = known.weight * _AGREED + (_LEADS if leads else _BESIDE)
                search.found[key] = replace(
                    known, place=_place(file, finding), trail=replace(known.trail, weight=weight)
                )
    scopes = {(file, file.function_of(statement)) for file, statement, _ in search.frames}
    failing_lines = {(str(file.path), row) for file, _, row in search.frames}
    causes = []
    for suspect in search.found.values():
        finding_here = findings.get(suspect.key)
        agreed = finding_here is not None and suspect.on_host and suspect.key not in failing_lines
        weighed = suspect.weighed(_FOUND) if agreed else suspect
        causes.append(Cause(weighed, finding_here, suspect.latest(scopes)))
    return sorted(causes, key=lambda cause: (-cause.suspect.weight, *cause.suspect.key))


def _comes_before(file: File, row: int, failing: int) -> bool:
    """Whether a row is just before a failing one, and not in another branch, of which only one is taken."""
    if not 0 < failing - row <= _NEAR:
        return False
    one, other = file.statement(row), file.statement(failing)
    if one is None or other is None:
        return True
    above = set(file.around(other))
    for outer in file.around(one):
        if isinstance(outer, ast.For | ast.AsyncFor | ast.While) and outer in above:
            return True  # the other branch was taken the time before
        if isinstance(outer, ast.If) and outer in above:
            return _in_else(outer, row) == _in_else(outer, failing)
    return True


def _in_else(outer: ast.If, row: int) -> bool:
    return bool(outer.orelse) and row >= outer.orelse[0].lineno


def _blame_modules(search: Search, file: File, rows: set[int]) -> None:
    """Say of a module that nothing moves, and whose result a finding on the failing line is about, that it is the cause."""
    for key, suspect in search.found.items():
        if suspect.of_module and suspect.place.file is file and suspect.place.row in rows:
            weight = max(suspect.weight, _LEADS)
            search.found[key] = replace(suspect, trail=replace(suspect.trail, weight=weight))


def _place(file: File, finding: Diagnostic) -> Step:
    return Step(file, finding.start.row, finding.start.column, finding.message)


def _check(file: File, source: Source) -> list[Diagnostic]:
    from devlint.engine import Linter
    from devlint.rulebook import Rulebook, rules_of

    config = Resolver().for_directory(str(file.path.resolve().parent))
    settings = Rulebook().settings(config, str(file.path))
    linter = Linter(rules_of(config.plugins), settings)
    checker = linter if file.notebook is None else Confined(linter, file.notebook.allows)
    return list(checker.check(source).diagnostics)


def _rows(diagnostic: Diagnostic) -> set[int]:
    """The rows of a finding and of the places that explain it."""
    rows = set(range(diagnostic.start.row, diagnostic.end.row + 1))
    for related in diagnostic.related:
        rows |= set(range(related.start.row, related.end.row + 1))
    return rows
