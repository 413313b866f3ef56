"""What rules and reports talk about: spans, findings, fixes, rule metadata. Data only, no logic, no libcst.

Offsets are code points in the decoded text of a file; rows and columns are 1-based, columns in code points.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

from devlint.project_files import Search

if TYPE_CHECKING:
    import libcst as cst


class Span(NamedTuple):
    """A half-open range of the decoded text, in code points."""

    start: int
    end: int


class Origin(NamedTuple):
    """One place that explains a fact: `text` completes the frame ("created on the CPU here")."""

    span: Span
    text: str
    path: str | None = None  # None: the file under analysis


class Safety(str, enum.Enum):
    """How far a fix may be trusted. Safe: on any machine where the program worked it computes the same afterwards."""

    SAFE = "safe"
    UNSAFE = "unsafe"
    HINT = "hint"


class Severity(str, enum.Enum):
    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """0 for the gravest."""
        return list(Severity).index(self)


Certainty = Literal["certain", "assume"]  # of a finding: whether it rests on what `assume-accelerator` assumes
#: Who says that there is an accelerator: both devices are named; the code's own device; a call of the project; the function
#: itself, which handles devices; the settings; or nobody but the function's contract.
Evidence = Literal["named", "device", "called", "intended", "declared", "contract"]
Proof = Literal["proved", "soft"]  # soft: through a call that cannot be read
Level = Literal["certain", "assume", "certain / assume"]  # what the findings of a rule can be
FixWhen = Literal["always", "sometimes", "hint", "never"]


class Portability(NamedTuple):
    """That a finding is about other machines alone: the code is right on the machine that it was written for.

    `stops`: a machine without the accelerator gets no further than this place. See `devlint.folding`.
    """

    stops: bool = False


@dataclass(frozen=True, slots=True)
class RuleMeta:
    """What is known about a rule without running it. `words`: without one of them in the file it cannot fire.

    `portability`: of the rule's findings, where they do not say otherwise.
    `gives_way`: the codes of rules that say more of the same expression; where one of them reports it, this one does not.
    `preview`: a new rule, whose findings may change with any version; it is opt-in, as `mark` says too.
    `needs_inference`: all events of the rule come from the new inference. `Rule` sets it; a rule does not.
    """

    code: str
    name: str
    summary: str
    since: str
    level: Level
    severity: Severity
    fix: FixWhen
    words: tuple[str, ...]
    opt_in: bool = False
    portability: Portability | None = None
    gives_way: tuple[str, ...] = ()
    preview: bool = False
    needs_inference: bool = False

    @property
    def mark(self) -> str:
        """How tables call a rule that is off by default; empty for one that is on."""
        if self.preview:
            return ", preview"
        return ", off by default" if self.opt_in else ""


@dataclass(frozen=True, slots=True)
class Edit:
    """Put `new` where `old` stands; `new=None` removes `old` (an argument with its comma, a statement with its line).

    `old` must come from a `Site`. Only the differing middle of the two texts is written.
    """

    old: cst.CSTNode
    new: cst.CSTNode | None


@dataclass(frozen=True, slots=True)
class InsertStatement:
    """Put the statement `new` on a line of its own before or after the statement that covers `at`."""

    at: Span
    new: cst.BaseStatement | cst.BaseSmallStatement
    after: bool = False


@dataclass(frozen=True, slots=True)
class ReplaceBlock:
    """Put the simple statements `new` where the compound statement stands whose header covers `at`, with all of its
    blocks; without any it is removed. Comments inside it make the fix a hint."""

    at: Span
    new: tuple[cst.BaseSmallStatement, ...] = ()


@dataclass(frozen=True, slots=True)
class ImportNeed:
    """The fix needs `import module` at the top of the file; added once per file."""

    module: str


@dataclass(frozen=True, slots=True)
class RunDeviceNeed:
    """The fix uses the name `name` for the device of the run; `name = choice` is added once per file, after the imports.

    `choice`: an expression that names torch in full (`torch.device(...)`), or as the file itself spells it. `after`: a
    statement of the module that binds a name which the choice reads. `inside`: the `if __name__ == "__main__"` or the
    function that alone needs the device, which is then chosen at its start. All fixes that need the device there give the
    same.
    """

    name: str = "device"
    choice: str = 'torch.device("cuda" if torch.cuda.is_available() else "cpu")'
    after: Span | None = None
    inside: Span | None = None


@dataclass(frozen=True, slots=True)
class AlsoNeed:
    """The decision of the fix settles another place of the file: `text` is put over `span`, once per file.

    `text` is an expression; it names torch as the file spells it. A place that an edit of the fix touches is left alone.
    """

    span: Span
    text: str


Need = ImportNeed | RunDeviceNeed | AlsoNeed


@dataclass(frozen=True, slots=True)
class Fix:
    """A remedy as a rule states it: a title in the imperative, how safe, and the edits on CST nodes."""

    title: str
    safety: Safety
    edits: tuple[Edit | InsertStatement | ReplaceBlock, ...] = ()  # empty for a hint
    needs: tuple[Need, ...] = ()
    why: str = ""  # of a hint: why it is no more than that, as `--verbose` says it


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule says: the fact as a message, where, the remedy, and the places that explain it.

    `severity`: where it differs from that of the rule. `portability`: None for what is wrong on every machine. `decision`:
    what is to be decided, the same text for all findings of a file that one choice settles; "" where a finding stands for
    itself. See `devlint.folding`.
    """

    span: Span
    message: str
    fix: Fix | None = None
    because: tuple[Origin, ...] = ()
    severity: Severity | None = None
    portability: Portability | None = None
    decision: str = ""


class LeftAlone(NamedTuple):
    """Why a rule is silent on purpose where it would report: a statement such as "the file loads a CUDA kernel".

    `at`: the place in the file that says so; its line is added to the reason.
    """

    reason: str
    at: Span | None = None


class TextEdit(NamedTuple):
    """Replace text[start:end] by `text`; offsets in code points of the decoded original."""

    start: int
    end: int
    text: str

    def touches(self, other: TextEdit) -> bool:
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True, slots=True)
class TextFix:
    """A fix made concrete: `edits` belong to this finding, `shared` are needs that several fixes have in common.

    `why`: why a hint is no more than that, or why a fix that its rule calls safe is unsafe.
    """

    title: str
    safety: Safety
    edits: tuple[TextEdit, ...] = ()
    shared: tuple[TextEdit, ...] = ()
    why: str = ""


class Position(NamedTuple):
    """1-based row and column, the column in code points."""

    row: int
    column: int


@dataclass(frozen=True, slots=True)
class Related:
    """A second place of a diagnostic, with its text. `cell`: see `Diagnostic`."""

    path: str
    start: Position
    end: Position
    message: str
    cell: int | None = None


class Folded(NamedTuple):
    """A finding that another one stands for."""

    code: str
    message: str
    start: Position
    end: Position
    cell: int | None = None


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """A finding as it is reported: with rule, file, positions and the concrete fix.

    `cell`: in a notebook the number of the cell, counted from 1 over all cells; positions and offsets are then those of
    the cell. `context`: enclosing definitions and a checksum of the statement, which stay when rows shift. `certainty`:
    "assume" where the finding rests on the assumption that arguments, parameters and buffers may be on an accelerator; it
    is a warning then, even if the rule's findings are errors. `portability`, `decision`: as in `Finding`; `way`: where its
    statement stands among those that run before it, see `devlint.folding`. `folded`: the findings that this one stands for
    in a report.
    """

    path: str
    code: str
    name: str
    severity: Severity
    message: str
    span: Span
    start: Position
    end: Position
    fix: TextFix | None = None
    related: tuple[Related, ...] = ()
    cell: int | None = None
    context: str = ""
    certainty: Certainty = "certain"
    evidence: Evidence | None = None
    proof: Proof | None = None
    portability: Portability | None = None
    decision: str = ""
    way: tuple[int, ...] = ()
    folded: tuple[Folded, ...] = ()


@dataclass(slots=True)
class Statistics:
    """Counts of one file's analysis, summed over files for `--statistics`."""

    files: int = 0
    gated: int = 0  # files that the lexical gate let go with their syntax checked alone
    lines: int = 0
    lines_parsed_by_libcst: int = 0
    suspects: int = 0
    budget_hits: int = 0
    tensors: int = 0  # variables that hold a tensor where they are last seen
    placed: int = 0  # those of them whose device is known, by name or as that of something


@dataclass(slots=True)
class FileResult:
    """What the engine says about one file. `crashes` are internal errors (exit code 2), already formatted.

    `others`: the other files that the findings follow from, as they were: `FileState.line` with the path from the file's
    directory. There are many of them in a project, and few different ones. `searched`: the names that were looked for
    in the files of the project. `reached`: the files, from the file's directory, in which calls of this file make something
    fail: those findings stand there. `left_alone`: where rules are silent on purpose, with the reason for a message; only when
    the linter explains. `gave_way`: what is not said because another finding says more of the same expression, by code and
    place.
    """

    path: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    suppressed: list[Diagnostic] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    statistics: Statistics = field(default_factory=Statistics)
    others: list[str] = field(default_factory=list)
    searched: Search | None = None
    reached: list[str] = field(default_factory=list)
    left_alone: list[Diagnostic] = field(default_factory=list)
    gave_way: list[tuple[str, Span]] = field(default_factory=list)


# The engine's own findings; rules in packages have codes from their own modules.
UNREADABLE_FILE = RuleMeta(
    code="DEV900",
    name="unreadable-file",
    summary="file cannot be read, decoded or parsed",
    since="0.1.0",
    level="certain",
    severity=Severity.ERROR,
    fix="never",
    words=(),
)
UNUSED_SUPPRESSION = RuleMeta(
    code="DEV901",
    name="unused-suppression",
    summary="a comment suppresses a rule that reports nothing there",
    since="0.1.0",
    level="certain",
    severity=Severity.WARNING,
    fix="always",
    words=(),
)
UNKNOWN_CODE = RuleMeta(
    code="DEV902",
    name="unknown-code",
    summary="a comment names an unknown rule, or is misspelled",
    since="0.1.0",
    level="certain",
    severity=Severity.WARNING,
    fix="hint",
    words=(),
)
ENGINE_RULES = (UNREADABLE_FILE, UNUSED_SUPPRESSION, UNKNOWN_CODE)
