"""What an editor may ask of a document, without any protocol: findings, fixes, what is known of a value."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from devlint.checkers import Confined
from devlint.editor.places import Known, link, values_at
from devlint.embedded.notebook import Notebook, read_notebook
from devlint.engine import Linter, unreadable
from devlint.errors import DevlintError, SourceError
from devlint.fix.apply import apply
from devlint.fix.rounds import fix_source
from devlint.model import Diagnostic, Safety, TextEdit, TextFix
from devlint.source import Source, of_text

_CODE = re.compile(r"[A-Z]{1,3}[0-9]{3}\b")


@dataclass(slots=True)
class Document:
    """One open text and what was found in it: a file, or a cell of a notebook.

    `joined`: the Python that is analysed, where the text starts at offset `start`; for a file the text itself. `cell` is
    its number in `notebook`. `problem`: why the settings that hold here were not used. `revealed`: what is known of its
    values, once somebody asked (`devlint.editor.places`).
    """

    path: str
    source: Source
    linter: Linter
    diagnostics: list[Diagnostic]
    problem: str | None = None
    joined: Source | None = None
    start: int = 0
    cell: int | None = None
    notebook: Notebook | None = field(default=None, repr=False)
    revealed: list[Known] | None = field(default=None, repr=False)


@dataclass(slots=True)
class Options:
    """What the editor may ask of the server itself; what devlint checks is set in the project's files.

    `inlay_hints`: whether places are shown behind names. `findings_in_hover`: whether a hover tells the findings at its
    place; an editor that adds them itself says no.
    """

    inlay_hints: bool = False
    findings_in_hover: bool = True

    def take(self, given: object) -> Iterator[str]:
        """Set what an editor gives, by itself or under `devlint`; the texts of what is wrong in it.

        Keys that are not known are those of the editor.
        """
        table = given.get("devlint", given) if isinstance(given, dict) else None
        if not isinstance(table, dict):
            return
        for key, name in (("inlayHints", "inlay_hints"), ("findingsInHover", "findings_in_hover")):
            wanted = table.get(key)
            if isinstance(wanted, bool):
                setattr(self, name, wanted)
            elif wanted is not None:
                yield f"the option `{key}` takes true or false, not {json.dumps(wanted)}"


def open_document(path: str, text: str) -> Document:
    """Check a text under the settings that hold for its path. Never raises for the text, nor for bad settings."""
    linter, problem, excluded = _linter(path)
    try:
        source = of_text(text, path)
    except SourceError as error:
        source = Source(path, b"", text)
        return Document(path, source, linter, [unreadable(path, error, source)], problem)
    found = [] if excluded else list(linter.check(source).diagnostics)
    return Document(path, source, linter, found, problem, source)


def unchecked_document(path: str, text: str) -> Document | None:
    """A text of which only values are asked, while it is being checked; None when it cannot be read."""
    linter, problem, _ = _linter(path)
    try:
        source = of_text(text, path)
    except SourceError:
        return None
    return Document(path, source, linter, [], problem, source)


def open_notebook(path: str, texts: Sequence[str]) -> list[Document]:
    """Check the code cells of a notebook as one program; a document for each cell, counted from 1."""
    linter, problem, excluded = _linter(path)
    cells = [{"cell_type": "code", "source": text} for text in texts]
    notebook = read_notebook(json.dumps({"cells": cells}).encode(), path)
    joined = notebook.source
    checked = Confined(linter, notebook.allows).check(joined)
    found = notebook.in_cells(checked, joined.text).diagnostics
    return [
        Document(
            path,
            Source(path, b"", text),
            linter,
            [each for each in found if each.cell == number and not excluded],
            problem,
            joined,
            notebook.starts(joined.text)[number - 1],
            number,
            notebook,
        )
        for number, text in enumerate(texts, start=1)
    ]


def _linter(path: str) -> tuple[Linter, str | None, bool]:
    """The linter for a file, what is wrong with the settings, if anything, and whether they leave the file out."""
    from devlint.config import Resolver
    from devlint.discover import Finder
    from devlint.rulebook import Rulebook, rules_of

    try:
        finder = Finder(Resolver())
        config = finder.config_for(path)
        linter = Linter(rules_of(config.plugins), Rulebook().settings(config, path))
        return linter, None, finder.is_excluded(path)
    except DevlintError as error:
        config = Resolver(isolated=True).for_directory(os.path.dirname(os.path.abspath(path)))
        return Linter(rules_of(()), Rulebook().settings(config, path)), str(error), False


def fixed_text(document: Document, fix: TextFix) -> str:
    """The whole text after one fix."""
    return apply(document.source.text, [fix])[0]


def fix_all(document: Document) -> str:
    """The whole text after all safe fixes, each checked."""
    safe = {Safety.SAFE}
    if document.notebook is None or document.cell is None:
        return fix_source(document.linter, document.source, safe).text
    checker = Confined(document.linter, document.notebook.allows)
    after = fix_source(checker, document.notebook.source, safe).text
    return document.notebook.texts(after)[document.cell]


def changes(before: str, after: str) -> Iterator[TextEdit]:
    """The edits, by whole rows, that make one text the other."""
    ours, theirs = before.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for row in ours:
        starts.append(starts[-1] + len(row))
    for tag, first, last, start, end in difflib.SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if tag != "equal":
            yield TextEdit(starts[first], starts[last], "".join(theirs[start:end]))


def suppression(document: Document, diagnostic: Diagnostic) -> tuple[int, str]:
    """Where a comment that silences a finding goes (an offset), and its text."""
    row = diagnostic.end.row
    line = document.source.line_text(row)
    end = document.source.starts[row - 1] + len(line.rstrip("\r\n"))
    return end, f"  # devlint: ignore[{diagnostic.code}]"


def hover(document: Document, row: int, column: int, with_findings: bool = True) -> str | None:
    """Markdown about what stands at a place (1-based): a rule's code in a comment, findings, a value's device and why."""
    line = document.source.line_text(row)
    for match in _CODE.finditer(line):
        if match.start() < column <= match.end() and "#" in line[: match.start()]:
            return _rule(document, match.group())
    values = values_at(document, row, column)
    findings = [d for d in document.diagnostics if with_findings and d.start <= (row, column) < d.end]
    return "\n\n".join([*(_finding(document, found) for found in findings), *values]) or None


def _finding(document: Document, found: Diagnostic) -> str:
    """A finding and its second places, each with a link to where it stands."""
    lines = [f"**{found.code} {found.name}**: {found.message}"]
    for place in found.related:
        row = place.start.row if place.cell is None else None
        where = f"line {place.start.row}" if place.cell is None else f"line {place.start.row} of cell {place.cell}"
        lines.append(f"- {link(where, place.path, row)}: {place.message}")
    return "\n".join(lines)


def _rule(document: Document, code: str) -> str | None:
    import inspect
    import sys

    for rule in document.linter.rules:
        if rule.meta.code == code:
            text = inspect.getdoc(sys.modules[type(rule).__module__]) or rule.meta.summary
            return f"**{code} {rule.meta.name}**\n\n{text}"
    return None
