"""The cells that ran in a session, and what devlint says of them. Nothing here needs IPython."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from devlint.embedded.notebook import Notebook, read_notebook
from devlint.report.diff import unified_diff
from devlint.terminal import PLAIN

if TYPE_CHECKING:
    from devlint.explain.causes import Explanation
    from devlint.explain.sources import File
    from devlint.model import Diagnostic

NAME = "notebook"
_KEPT = 300  # cells that are remembered, the last ones


@dataclass(slots=True)
class Session:
    """The cells by the number of their execution, which is how tracebacks name them.

    A cell that runs again takes the place of what it was: it is known by its identity, or by its text where the front end
    gives none.
    """

    cells: dict[int, str] = field(default_factory=dict)
    _keys: dict[str, int] = field(default_factory=dict)

    def ran(self, number: int, text: str, identity: str | None) -> None:
        """Remember a cell that is about to run, or ran."""
        key = identity or text
        self.cells.pop(self._keys.pop(key, 0), None)
        self._keys[key] = number
        self.cells[number] = text
        while len(self.cells) > _KEPT:
            del self.cells[next(iter(self.cells))]

    def forget(self, number: int) -> None:
        """Forget a cell that was shown and did not run."""
        self.cells.pop(number, None)

    def notebook(self) -> Notebook:
        """The cells as a notebook in which each has the number of its execution. Raises SourceError."""
        return _notebook(self.cells)


@dataclass(frozen=True, slots=True)
class Answer:
    """What is shown under a cell. `diff`: the change that is offered, empty where there is none."""

    text: str
    diff: str = ""

    def bundle(self) -> dict[str, str]:
        """The answer for a front end: as text for terminals, as Markdown for notebooks, which colours a diff."""
        whole = f"{self.text}\n\n{self.diff}" if self.diff else self.text
        parts = [f"```text\n{self.text}\n```"]
        if self.diff:
            parts.append(f"```diff\n{self.diff}```")
        return {"text/plain": whole.rstrip("\n"), "text/markdown": "\n\n".join(parts)}


def explained(error_text: str, session: Session, root: Path) -> Answer | None:
    """What is said of an error, by its traceback as text; None where it is no device error. Raises SourceError."""
    from devlint.explain import causes, shown

    explanation = causes.explain(error_text, root, session.notebook())
    if explanation is None:
        return None
    return Answer("\n".join(shown.lines(explanation)), _diff_of(explanation))


def _diff_of(explanation: Explanation) -> str:
    """The fix of the likeliest cause that has one, else a move of what most likely stayed behind."""
    from devlint.explain.mended import mended
    from devlint.fix.apply import apply

    for cause in explanation.causes:
        if cause.finding is not None and cause.finding.fix is not None and cause.finding.fix.edits:
            file = cause.suspect.place.file
            return _diff(file, apply(file.source.text, [cause.finding.fix])[0])
    for cause in explanation.causes[:1]:
        after = mended(cause.suspect, explanation.error)
        return _diff(cause.suspect.place.file, after) if after is not None else ""
    return ""


def _diff(file: File, after: str) -> str:
    if file.notebook is None:
        changed = [(str(file.path), file.source.text.encode(), after.encode())]
    else:
        changed = file.notebook.changed_cells(after)
    return b"".join(unified_diff(old, new, name, PLAIN) for name, old, new in changed).decode("utf-8", "replace")


def checked(session: Session, wanted: set[int] | None, root: Path) -> Answer:
    """What the rules find in cells, in those with these numbers or in all. The others tell what their names stand for.

    Raises SourceError, and DevlintError for settings that cannot be read.
    """
    notebook = session.notebook()
    found = [each for each in _findings(notebook, root) if wanted is None or each.cell in wanted]
    lines: list[str] = []
    fixes: list[str] = []
    texts = {cell.number: cell.text for cell in notebook.cells}
    for each in found:
        row = texts.get(each.cell or 0, "").splitlines()[each.start.row - 1 : each.start.row]
        fix = f"\n    fix ({each.fix.safety.value}): {each.fix.title}" if each.fix is not None else ""
        lines.append(
            f"cell {each.cell}, line {each.start.row}: {each.code} {each.message}\n    {''.join(row).strip()}{fix}"
        )
    for number in sorted({each.cell for each in found if each.cell is not None}):
        fixes.append(_fixed(texts[number], [each for each in found if each.cell == number], number))
    if not lines:
        return Answer("devlint finds nothing.")
    return Answer("\n\n".join(lines), "".join(fixes))


def _findings(notebook: Notebook, root: Path) -> list[Diagnostic]:
    from devlint.checkers import Confined
    from devlint.config import Resolver
    from devlint.engine import Linter
    from devlint.rulebook import Rulebook, rules_of

    config = Resolver().for_directory(str(root.resolve()))
    linter = Linter(rules_of(config.plugins), Rulebook().settings(config, str(root / f"{NAME}.ipynb")))
    checked = Confined(linter, notebook.allows).check(notebook.source)
    return notebook.in_cells(checked, notebook.source.text).diagnostics


def _fixed(text: str, found: list[Diagnostic], number: int) -> str:
    """The safe fixes of a cell as a diff."""
    from devlint.fix.apply import apply
    from devlint.model import Safety

    fixes = [each.fix for each in found if each.fix is not None and each.fix.safety is Safety.SAFE]
    after = apply(text, fixes)[0]
    old, new = (f"{each}\n".encode() if not each.endswith("\n") else each.encode() for each in (text, after))
    return unified_diff(old, new, f"{NAME}:cell {number}", PLAIN).decode("utf-8", "replace")


def _notebook(cells: dict[int, str]) -> Notebook:
    """A notebook whose cell n is the one with execution number n: what did not run, or ran again, is left empty."""
    rows = [
        {"cell_type": "code", "execution_count": number, "source": cells[number]}
        if number in cells
        else {"cell_type": "markdown", "source": ""}
        for number in range(1, max(cells, default=0) + 1)
    ]
    return read_notebook(json.dumps({"cells": rows}).encode(), NAME)
