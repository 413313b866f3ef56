"""What stands between the engine and those who ask it: the same findings, some of them with less to be done about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from devlint.fix.rounds import Checker
from devlint.identity import keys
from devlint.model import UNUSED_SUPPRESSION, Diagnostic, FileResult, Safety, TextFix
from devlint.scope import Hidden
from devlint.source import Source


@dataclass(frozen=True, slots=True)
class Unsuppressed:
    """Reports what comments silence as well; the comments themselves are not judged."""

    linter: Checker

    def check(self, source: Source) -> FileResult:
        result = self.linter.check(source)
        found = [d for d in (*result.diagnostics, *result.suppressed) if d.code != UNUSED_SUPPRESSION.code]
        return replace(result, diagnostics=sorted(found, key=lambda d: (d.span, d.code)), suppressed=[])


@dataclass(frozen=True, slots=True)
class Confined:
    """Turns a fix that `allows` refuses, given the text and the fix, into a hint."""

    linter: Checker
    allows: Callable[[str, TextFix], bool]

    def check(self, source: Source) -> FileResult:
        result = self.linter.check(source)

        def confined(diagnostic: Diagnostic) -> Diagnostic:
            fix = diagnostic.fix
            if fix is None or not fix.edits or self.allows(source.text, fix):
                return diagnostic
            return replace(diagnostic, fix=TextFix(fix.title, Safety.HINT, why="it reaches beyond its cell or block"))

        return replace(
            result,
            diagnostics=[confined(each) for each in result.diagnostics],
            suppressed=[confined(each) for each in result.suppressed],
        )


@dataclass(frozen=True, slots=True)
class Scoped:
    """Takes the fixes from findings that are hidden by a scope, so that they stay as they are."""

    linter: Checker
    hidden: Hidden

    def check(self, source: Source) -> FileResult:
        result = self.linter.check(source)
        marked = zip(result.diagnostics, keys(result.diagnostics), strict=True)
        hidden = self.hidden.among(result.diagnostics)
        return replace(
            result,
            diagnostics=[replace(each, fix=None) if key in hidden else each for each, key in marked],
        )
