"""Counts instead of problems, for `--statistics`: per rule; with `--verbose` also what the run read and parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from devlint.model import Diagnostic, Statistics
from devlint.report import FileReport, Run
from devlint.terminal import Style


@dataclass(frozen=True, slots=True)
class RuleCount:
    """How often a rule fired, and in how many of these `--fix` would help."""

    code: str
    name: str
    count: int
    fixable: int


def rule_counts(run: Run) -> list[RuleCount]:
    """The counts of all findings of a run."""
    return counted(run.findings())


def counted(findings: Iterable[tuple[FileReport, Diagnostic]]) -> list[RuleCount]:
    """The commonest rule first, then by code."""
    found: dict[str, RuleCount] = {}
    for file, diagnostic in findings:
        before = found.get(diagnostic.code) or RuleCount(diagnostic.code, diagnostic.name, 0, 0)
        found[diagnostic.code] = RuleCount(
            diagnostic.code, diagnostic.name, before.count + 1, before.fixable + file.is_fixable(diagnostic)
        )
    return sorted(found.values(), key=lambda row: (-row.count, row.code))


def sign(row: RuleCount) -> str:
    """`*` when every problem of the rule is fixable, `-` when some are."""
    return "*" if row.fixable == row.count else "-" if row.fixable else " "


def table(run: Run, style: Style) -> Iterator[str]:
    """The counts as text."""
    rows = rule_counts(run)
    width = max((len(str(row.count)) for row in rows), default=0)
    for row in rows:
        yield f"{row.count:>{width}}  {style.code(row.code)}  [{style.mark(sign(row))}] {row.name}"
    if not rows:
        yield style.good("No device problems found.")
    if run.verbose:
        yield from figures(run.totals())


def figures(total: Statistics) -> Iterator[str]:
    """What was read: files, lines, the share that libcst parsed, and how often an analysis gave up early."""
    share = 100 * total.lines_parsed_by_libcst / total.lines if total.lines else 0.0
    yield ""
    yield f"files                   {total.files:>10,}"
    yield f"  without a rule's word {total.gated:>10,}"
    yield f"lines                   {total.lines:>10,}"
    yield f"  parsed by libcst      {total.lines_parsed_by_libcst:>10,} ({share:.1f}%)"
    yield f"suspects                {total.suspects:>10,}"
    if total.tensors:
        yield f"tensor variables        {total.tensors:>10,}"
        yield f"  on a known device     {total.placed:>10,} ({100 * total.placed / total.tensors:.1f}%)"
    yield f"budget hits             {total.budget_hits:>10,}"
