"""What `--verbose` says of one file: where rules are silent on purpose, and why a fix that is offered is not applied."""

from __future__ import annotations

from collections.abc import Iterator

from devlint.model import Diagnostic, Safety
from devlint.report import FileReport
from devlint.report.places import place
from devlint.terminal import Style, printable


def lines(report: FileReport, style: Style) -> Iterator[str]:
    """One line each, by place: `path:line:column: DEV202 left alone: the file imports triton (line 3)`."""
    said = [(each, f"left alone: {each.message}") for each in report.result.left_alone]
    said += [(each, why) for each in report.result.diagnostics if (why := _not_applied(report, each))]
    for diagnostic, text in sorted(said, key=lambda item: (item[0].cell or 0, item[0].span, item[0].code)):
        yield f"{place(diagnostic, style)}: {style.code(diagnostic.code)} {printable(' '.join(text.split()))}"


def _not_applied(report: FileReport, diagnostic: Diagnostic) -> str:
    """Why `--fix` leaves a finding that has a fix; "" for one that it handles, or that has none.

    A fix that was withdrawn has been named by a warning of its own.
    """
    fix = diagnostic.fix
    if fix is None or report.is_fixable(diagnostic):
        return ""
    if fix.safety is Safety.UNSAFE:
        doubt = f" ({fix.why})" if fix.why else ""
        return f"not fixed: the fix is unsafe{doubt}; `--unsafe-fixes` applies it"
    return (
        f"not fixed: the rule only suggests a change: {fix.why}"
        if fix.why
        else "not fixed: the rule only suggests a change"
    )
