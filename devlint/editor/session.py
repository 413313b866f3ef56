"""What an editor may ask of a document, without any protocol: findings, fixes, what is known of a value."""

from __future__ import annotations

import difflib
import json
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from devlint.checkers import Confined
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
    its number in `notebook`. `problem`: why the settings that hold here were not used.
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


def hover(document: Document, row: int, column: int) -> str | None:
    """Markdown about what stands at a place (1-based): a rule's code in a comment, a finding, a value's device and why."""
    line = document.source.line_text(row)
    for match in _CODE.finditer(line):
        if match.start() < column <= match.end() and "#" in line[: match.start()]:
            return _rule(document, match.group())
    values = _values(document, row, column)
    findings = [d for d in document.diagnostics if d.start <= (row, column) < d.end]
    parts = [f"**{d.code} {d.name}**: {d.message}" for d in findings]
    return "\n\n".join([*parts, *values]) or None


def _rule(document: Document, code: str) -> str | None:
    import inspect
    import sys

    for rule in document.linter.rules:
        if rule.meta.code == code:
            text = inspect.getdoc(sys.modules[type(rule).__module__]) or rule.meta.summary
            return f"**{code} {rule.meta.name}**\n\n{text}"
    return None


def _values(document: Document, row: int, column: int) -> list[str]:
    """The innermost value at a place, with its trail."""
    from devlint.facts.reveal import reveal, row_of
    from devlint.facts.values import describe

    source = document.joined
    if source is None:
        return []
    offset = document.start + document.source.starts[row - 1] + column - 1
    try:
        linter = document.linter
        found = reveal(linter.parse(source), source, linter.settings, source.row(offset), linter.project)
    except (SourceError, RecursionError):
        return []
    here = [r for r in found if r.span.start <= offset < r.span.end]
    if not here:
        return []
    inner = min(here, key=lambda r: r.span.end - r.span.start)
    if inner.reason is not None:
        return [f"`{inner.text}`: device unknown: {inner.reason}"]
    lines = [f"`{inner.text}`: {inner.value.kind} on {describe(inner.value.device)}"]
    for origin in inner.value.because:
        if origin.path is None:
            lines.append(f"- {source.line(origin.span.start)}: {origin.text}")
        elif (where := row_of(origin, source)) is not None:
            lines.append(f"- {origin.path} line {where}: {origin.text}")
    return ["\n".join(lines)]
