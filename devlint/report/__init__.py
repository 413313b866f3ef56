"""Reports of a run: the data that every format renders, and the table of formats, which are imported when used."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import NamedTuple, Protocol, cast

from devlint.model import Diagnostic, FileResult, Safety, Severity, Statistics
from devlint.terminal import Style


@dataclass(frozen=True, slots=True)
class FileReport:
    """One checked file. `text` is what the positions of the diagnostics refer to, kept when a format shows code.

    `applied`: the levels of fixes that `--fix`, with the options in force for this file, applies. `cells`: the texts of
    a notebook's code cells by number, instead of `text`. `counts_info`: what is info counts like any other problem.
    """

    result: FileResult
    text: str | None = None
    fixed: tuple[Diagnostic, ...] = ()
    applied: frozenset[Safety] = frozenset({Safety.SAFE})
    cells: Mapping[int, str] = field(default_factory=dict)
    counts_info: bool = False

    @property
    def problems(self) -> list[Diagnostic]:
        """The findings that fail a run."""
        return [each for each in self.result.diagnostics if not self.is_note(each)]

    def is_note(self, diagnostic: Diagnostic) -> bool:
        """Whether a finding is shown in short and fails nothing."""
        return diagnostic.severity is Severity.INFO and not self.counts_info

    def text_at(self, cell: int | None) -> str | None:
        """The text that positions with this cell number refer to; None when it was not kept."""
        return self.text if cell is None else self.cells.get(cell)

    def is_fixable(self, diagnostic: Diagnostic) -> bool:
        """Whether `--fix` would handle a diagnostic."""
        return diagnostic.fix is not None and diagnostic.fix.safety in self.applied


@dataclass(frozen=True, slots=True)
class Run:
    """All files of a run in order. `fix_only`: problems that were not fixed are left out. `errors`: printed before.

    `notes`: what a reader must know of what is not shown. `plugins`: whose rules the catalogue of a format lists.
    `quiet`: problems alone, without the lines that count them. `verbose`: with what the run itself counted. `titles`: what
    each rule flags, by code. `adopting`: the paths that were checked; empty for a run that limits its findings already.
    """

    files: Sequence[FileReport]
    fix_only: bool = False
    errors: int = 0
    notes: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    quiet: bool = False
    verbose: bool = False
    titles: Mapping[str, str] = field(default_factory=dict)
    adopting: tuple[str, ...] = ()

    def findings(self) -> Iterator[tuple[FileReport, Diagnostic]]:
        """All findings, with their files."""
        for file in self.files:
            for diagnostic in file.result.diagnostics:
                yield file, diagnostic

    def problems(self) -> Iterator[tuple[FileReport, Diagnostic]]:
        """The findings that fail the run."""
        return ((file, each) for file, each in self.findings() if not file.is_note(each))

    def asides(self) -> Iterator[tuple[FileReport, Diagnostic]]:
        """The findings that a report for people shows in short, and that fail nothing."""
        return ((file, each) for file, each in self.findings() if file.is_note(each))

    def fixed(self) -> list[Diagnostic]:
        return [diagnostic for file in self.files for diagnostic in file.fixed]

    def totals(self) -> Statistics:
        """The statistics of all files, summed."""
        total = Statistics()
        for file in self.files:
            for item in fields(Statistics):
                value = getattr(total, item.name) + getattr(file.result.statistics, item.name)
                setattr(total, item.name, value)
        return total


class Output(NamedTuple):
    """A report that was asked for: in `format`, to standard output when `path` is None."""

    format: str
    path: str | None = None


class Format(Protocol):
    """What a module of this package offers: the report as blocks of text, each to be followed by a line break."""

    def render(self, run: Run, style: Style) -> Iterable[str]: ...

    def render_statistics(self, run: Run, style: Style) -> Iterable[str]: ...


@dataclass(frozen=True, slots=True)
class FormatInfo:
    """A row of the table of formats.

    `needs_text`: shows code or turns offsets into rows. `for_people`: messages about the run may stand beside it.
    `commands`: is made of commands for the service that runs the job.
    """

    module: str
    needs_text: bool = False
    for_people: bool = True
    commands: bool = False


FORMATS: dict[str, FormatInfo] = {
    "full": FormatInfo("devlint.report.full", needs_text=True),
    "concise": FormatInfo("devlint.report.concise"),
    "grouped": FormatInfo("devlint.report.grouped"),
    "json": FormatInfo("devlint.report.json_", needs_text=True, for_people=False),
    "json-lines": FormatInfo("devlint.report.json_lines", needs_text=True, for_people=False),
    "github": FormatInfo("devlint.report.github", for_people=False, commands=True),
    "gitlab": FormatInfo("devlint.report.gitlab", for_people=False),
    "junit": FormatInfo("devlint.report.junit", for_people=False),
    "rdjson": FormatInfo("devlint.report.rdjson", needs_text=True, for_people=False),
    "sarif": FormatInfo("devlint.report.sarif", needs_text=True, for_people=False),
    "azure": FormatInfo("devlint.report.azure", for_people=False, commands=True),
    "pylint": FormatInfo("devlint.report.pylint", for_people=False),
}


def load_format(name: str) -> Format:
    """The module that renders the format called `name`, a key of `FORMATS`."""
    return cast(Format, importlib.import_module(FORMATS[name].module))


def count(number: int, noun: str) -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
