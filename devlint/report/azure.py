"""Issues in the log of an Azure pipeline (logging commands).

Source: learn.microsoft.com, "Logging commands", `task.logissue`: it knows errors and warnings only.
"""

from __future__ import annotations

from collections.abc import Iterator

from devlint.model import Severity
from devlint.report import Run
from devlint.report.places import message, repository_path, rows_in_file
from devlint.report.statistics import table as render_statistics
from devlint.terminal import Style, printable

__all__ = ["render", "render_statistics"]

_ESCAPES = (("%", "%AZP25"), (";", "%3B"), ("\r", "%0D"), ("\n", "%0A"), ("]", "%5D"))


def render(run: Run, style: Style) -> Iterator[str]:
    for _, diagnostic in run.findings():
        start, _ = rows_in_file(diagnostic)
        kind = "error" if diagnostic.severity is Severity.ERROR else "warning"
        yield (
            f"##vso[task.logissue type={kind};sourcepath={_escape(printable(repository_path(diagnostic.path)))};"
            f"linenumber={start.row};columnnumber={start.column};code={diagnostic.code};]"
            f"{message(diagnostic).replace('%', '%AZP25')}"
        )


def _escape(text: str) -> str:
    for char, escaped in _ESCAPES:
        text = text.replace(char, escaped)
    return text
