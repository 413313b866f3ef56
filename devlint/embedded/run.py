"""Checks, and fixes when asked, the Python of one notebook or Markdown file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace

from devlint.checkers import Confined
from devlint.embedded import NOTEBOOK
from devlint.embedded.markdown import blocks, masked
from devlint.embedded.notebook import Notebook, read_notebook
from devlint.errors import SourceError
from devlint.fix.rounds import Checker
from devlint.identity import Key
from devlint.model import UNREADABLE_FILE, Diagnostic, FileResult, Related, Statistics
from devlint.reading import LARGEST_NOTEBOOK, LARGEST_SOURCE, read_regular
from devlint.report import FileReport
from devlint.scope import Rows
from devlint.source import Source
from devlint.worker import Outcome, Task, checker_of, withdrawn, work, write

_BOM = b"\xef\xbb\xbf"
_WORDS = ("torch", "devlint", "noqa")  # without any of them there is nothing to say of Python that can be read


def run(task: Task, checker: Checker, raw: bytes) -> Outcome:
    """The outcome of a task about a notebook or a Markdown file with this content. Raises SourceError."""
    if task.name.endswith(NOTEBOOK):
        outcome = _notebook(task, checker, read_notebook(raw, task.name))
    elif any(word.encode() in raw for word in _WORDS):
        outcome = _markdown(task, checker, raw)
    else:
        outcome = Outcome(FileReport(_nothing(task), applied=task.applied))
    write(task, outcome)
    return outcome


def _in_cells(task: Task, notebook: Notebook, result: FileResult, text: str) -> FileResult:
    """A result about the joined text with places in the cells; without the cells that do not parse where that is set."""
    found = notebook.in_cells(result, text)
    if not task.settings.reports_unreadable:
        found.diagnostics = [each for each in found.diagnostics if each.code != UNREADABLE_FILE.code]
    return found


def _nothing(task: Task) -> FileResult:
    return FileResult(task.name, statistics=Statistics(files=1, gated=1))


def read(path: str) -> bytes:
    """The bytes of a file. Raises SourceError when it cannot be read."""
    try:
        return read_regular(path, LARGEST_NOTEBOOK if path.endswith(NOTEBOOK) else LARGEST_SOURCE)
    except OSError as error:
        raise SourceError(f"cannot be read: {error.strerror or error}") from error


def _notebook(task: Task, checker: Checker, notebook: Notebook) -> Outcome:
    joined = notebook.source
    if not any(word in joined.text for word in _WORDS):
        result = _in_cells(task, notebook, _nothing(task), joined.text)
        cells = notebook.texts(joined.text) if task.keep_text and result.diagnostics else {}
        return Outcome(FileReport(result, applied=task.applied, cells=cells))
    if notebook.installs_its_own and task.settings.torch_stated:
        # the newest that its own requirements admit, whatever the project around it supports
        task = replace(task, settings=replace(task.settings, torch_stated=False))
        checker = checker_of(task)
    done, hidden = work(task, Confined(checker, notebook.allows), joined, _rows_of(notebook))
    result = _in_cells(task, notebook, done.result, done.text)
    report = FileReport(
        result,
        None,
        tuple(done.fixed),
        task.applied,
        notebook.texts(done.text) if task.keep_text and result.diagnostics else {},
    )
    warnings = [withdrawn(task, notebook.in_cell(each.diagnostic, joined), each.reason) for each in done.rejected]
    outcome = Outcome(report, list(result.crashes), warnings, hidden=hidden)
    if done.text != joined.text:
        outcome.before, outcome.after = notebook.raw, notebook.write(done.text)
        outcome.cells = notebook.changed_cells(done.text)
    return outcome


def _rows_of(notebook: Notebook) -> Callable[[Diagnostic], Rows]:
    def rows(diagnostic: Diagnostic) -> Rows:
        return file_rows(notebook, notebook.in_cell(diagnostic, notebook.source))

    return rows


def file_rows(notebook: Notebook, diagnostic: Diagnostic) -> Rows:
    """The rows of the file that hold a finding, placed in its cell, and what explains it."""
    places: list[Diagnostic | Related] = [
        diagnostic,
        *(each for each in diagnostic.related if each.path == diagnostic.path),
    ]
    return tuple(notebook.rows_of(each.cell, each.start.row, each.end.row) for each in places if each.cell is not None)


def _markdown(task: Task, checker: Checker, raw: bytes) -> Outcome:
    bom = raw.startswith(_BOM)
    try:
        text = (raw[len(_BOM) :] if bom else raw).decode("utf-8")
    except UnicodeDecodeError as error:
        before = Source(task.name, b"", error.object[: error.start].decode("utf-8", "replace"))
        raise SourceError("is not valid UTF-8", *before.position(len(before.text))) from error
    original = text
    result = FileResult(task.name)
    outcome = Outcome(FileReport(result))
    fixed: list[Diagnostic] = []
    hidden: set[Key] = set()
    for number in range(len(blocks(text))):
        found = blocks(text)  # anew: those before this one may have grown
        block = found[number]
        whole = masked(text, block, found[:number])
        if whole is None:
            continue
        source = Source(task.name, whole.encode("utf-8", "surrogatepass"), whole)
        confined = Confined(checker, lambda after, fix, b=block, w=whole: b.allows(w, after, fix))  # type: ignore[misc]
        done, left_out = work(task, confined, source)
        tail = len(text) - block.end
        end = len(done.text) - tail
        text = text[: block.start] + block.restored(done.text[block.start : end]) + text[block.end :]
        for ours, theirs in (
            (result.diagnostics, done.result.diagnostics),
            (result.suppressed, done.result.suppressed),
            (result.left_alone, done.result.left_alone),
        ):
            inside = (each for each in theirs if block.start <= each.span.start and each.span.end <= end)
            ours += [_of_block(each, number) for each in inside]
        _add(result.statistics, done.result.statistics)
        result.crashes += done.result.crashes
        result.others += [line for line in done.result.others if line not in result.others]
        outcome.warnings += [withdrawn(task, each.diagnostic, each.reason) for each in done.rejected]
        fixed += done.fixed
        hidden |= left_out or set()
    result.statistics.files = 1
    result.statistics.lines = original.count("\n") + 1
    kept = text if task.keep_text and result.diagnostics else None
    outcome.report = FileReport(result, kept, tuple(fixed), task.applied)
    outcome.errors = list(result.crashes)
    outcome.hidden = hidden if task.scope is not None else None
    if text != original:
        outcome.before, outcome.after = raw, (_BOM if bom else b"") + text.encode("utf-8")
    return outcome


def _of_block(diagnostic: Diagnostic, number: int) -> Diagnostic:
    """A finding that is no decision together with those of other blocks."""
    decision = f"{number} {diagnostic.decision}" if diagnostic.decision else ""
    way = (-number - 1, *diagnostic.way) if diagnostic.portability is not None else ()
    return replace(diagnostic, decision=decision, way=way)


def _add(total: Statistics, more: Statistics) -> None:
    for item in fields(Statistics):
        setattr(total, item.name, getattr(total, item.name) + getattr(more, item.name))
