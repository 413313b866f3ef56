"""What runs of a program showed, what a fix claims, and what is said of it: the data that verdicts rest on.

Places are statements, named by the same key in every run (`correction.Variant.keys`); lines are those of the original.
Free of torch.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Outcome(str, enum.Enum):
    """How a run ended."""

    FINISHED = "finished"
    DEVICE_FAULT = "stopped by a device fault"
    OTHER_STOP = "stopped for another reason"
    CANNOT_SIMULATE = "cannot be simulated"
    LIMIT = "limit reached"


class Verdict(str, enum.Enum):
    """What is known of a fix after the runs.

    confirmed       without the fix the fault appears (an error, or the quantity that the rule is about), with it not;
                    a later stop for another reason is reported and does not undo it
    not reproduced  the place ran, and no fault appeared either way
    not reached     the runs never came there
    refuted         the fault stays, or the fix brings a new one or changes what the program computes
    could not judge the runs ended before anything could be said
    """

    CONFIRMED = "confirmed"
    NOT_REPRODUCED = "not reproduced"
    NOT_REACHED = "not reached"
    REFUTED = "refuted"
    COULD_NOT_JUDGE = "could not judge"


@dataclass(frozen=True, slots=True)
class Stop:
    """What ended a run early.

    text: one line, such as `RuntimeError: ...`, `sys.exit(2)` or `SIGSEGV`. kind: the exception's type, or "".
    key: the statement of the program, None when it was in no statement of it. count: how often that statement had
    begun. where: `line 12`, or file and line in a program of several files or of a module that it imports. inside:
    functions of libraries on the stack below it, outermost first. written_by: the fixes that wrote part of the
    statement. test: the test that failed by it, "" when it ended the program.
    """

    text: str
    kind: str
    key: str | None
    line: int
    where: str
    device: bool
    count: int = 1
    inside: tuple[str, ...] = ()
    written_by: frozenset[int] = frozenset()
    test: str = ""


@dataclass(frozen=True, slots=True)
class Caught:
    """A device fault that the program caught itself, as the recorder saw it."""

    text: str
    key: str | None
    line: int
    count: int = 1
    where: str = ""


@dataclass(frozen=True, slots=True)
class ClockRead:
    """Clock reads at one statement: the most unfinished work found queued at any of them.

    milliseconds: since the clock read before, on average; None on a simulated card, where it says nothing.
    """

    line: int
    pending: int
    count: int
    where: str = ""
    milliseconds: float | None = None


@dataclass(frozen=True, slots=True)
class Copies:
    """Copies from the host to a card at one statement: how many, their bytes, and the calls that made them."""

    line: int
    count: int
    bytes: int
    calls: frozenset[str]
    where: str = ""


@dataclass(frozen=True, slots=True)
class Noticed:
    """Warnings at one statement, or reads of unfinished copies: how often, and the text of each kind."""

    line: int
    count: int
    texts: frozenset[str]
    where: str = ""


@dataclass(frozen=True, slots=True)
class Training:
    """Parameters that got a gradient in the first backward passes, and how many of them no optimizer has that stepped.

    Both 0 where no optimizer made a step.
    """

    with_gradient: int = 0
    in_no_optimizer: int = 0


class Row(NamedTuple):
    """One value of a statement: the number of the value, its digest (see `values`), and how many optimizer steps and
    random draws came before it."""

    number: int
    digest: Sequence[Any]
    steps: int
    draws: int


@dataclass(frozen=True, slots=True)
class Computed:
    """What a statement, or an expression in one, computed: how many values, and those that were kept.

    simple: whether it is no header of a compound statement.
    """

    made: int
    rows: tuple[Row, ...] = ()
    where: str = ""
    simple: bool = True


class Moment(NamedTuple):
    """One entry of a timeline: seconds since the start, the number of the process, and what happened where.

    kind, direction, blocking, pending, device: as in `recorder.Event`.
    """

    seconds: float
    process: int
    kind: str
    what: str
    key: str | None
    where: str
    bytes: int
    direction: str
    blocking: bool
    pending: int
    device: str


@dataclass(frozen=True, slots=True)
class Run:
    """What one run showed.

    counts: how often each statement ran, in the process where it ran most; totals: in all of them together; `elsewhere`:
    statements that ran in forked processes. failures: what tests failed by, and `passed`: those that did not.
    waits: how often the host waited for a card at each statement. timeline: what happened, in order, when that was
    asked for.
    values: by statement, and by the expressions in it that are looked at; lines: how a report names each statement.
    gradients: of the first backward passes, how many leaves each reached, and the sum of the magnitudes of what it left
    in them. draws: random draws on a real card, each with operator, shape, type and device. out, status: standard output
    and exit status. printed: what each thread wrote to standard output. files: what was written, by relative path, as a
    checksum and, of small texts, the text; None where that is not known. cut: how often a statement that is looked at
    began and did not come to its value.
    timed: kernels between a clock read and the one before it, by their statements.
    kernels: how many the device was given, 0 where that is not known. graphs: the most graphs of earlier backward passes
    that were alive when the next one began.
    """

    outcome: Outcome
    stop: Stop | None = None
    detail: str = ""  # which limit, or what cannot be simulated
    counts: Mapping[str, int] = field(default_factory=dict)
    totals: Mapping[str, int] = field(default_factory=dict)
    elsewhere: frozenset[str] = frozenset()
    caught: tuple[Caught, ...] = ()
    failures: tuple[Stop, ...] = ()
    passed: frozenset[str] = frozenset()
    clocks: Mapping[str, ClockRead] = field(default_factory=dict)
    copies: Mapping[str, Copies] = field(default_factory=dict)
    taken: Mapping[str, int] = field(default_factory=dict)  # copies from a card, to the host or to another card
    waits: Mapping[str, int] = field(default_factory=dict)
    warned: Mapping[str, Noticed] = field(default_factory=dict)
    races: Mapping[str, Noticed] = field(default_factory=dict)
    graphs: int = 0
    training: Training = Training()
    losses: tuple[float, ...] = ()
    kernels: int = 0
    device: str = ""
    steps: int = 0
    seconds: float = 0.0
    text: str = ""  # the outcome in one line
    timeline: tuple[Moment, ...] = ()
    values: Mapping[str, Computed] = field(default_factory=dict)
    lines: Mapping[str, str] = field(default_factory=dict)
    gradients: tuple[tuple[int, float], ...] = ()
    draws: tuple[tuple[Any, ...], ...] = ()
    out: str = ""
    printed: tuple[str, ...] = ()
    status: int | None = 0
    files: Mapping[str, tuple[str, str]] | None = None
    timed: Mapping[tuple[str | None, str | None], tuple[int, ...]] = field(default_factory=dict)
    cut: Mapping[str, int] = field(default_factory=dict)

    def ran(self, key: str) -> bool:
        """Whether the statement ran, in any process."""
        return self.counts.get(key, 0) > 0 or key in self.elsewhere

    @property
    def complete(self) -> bool:
        """Whether the run went as far as it was allowed to."""
        return self.outcome in (Outcome.FINISHED, Outcome.LIMIT)


@dataclass(frozen=True, slots=True)
class Claim:
    """What a fix says, as far as verdicts need it.

    finding: the statement of the finding. own: it and the statements that the fix writes in. written: statements of the
    corrected program that it wrote part of. watch: statements where its fault may show. beside: for statements that the
    fix takes away, what stands after and before in their block. loses: the function whose call around the finding the fix
    takes away.
    """

    index: int
    code: str
    finding: str | None
    line: int
    own: frozenset[str]
    watch: frozenset[str] = frozenset()
    beside: Mapping[str, tuple[str | None, str | None]] = field(default_factory=dict)
    where: str = ""  # with the file, in a program of several
    written: frozenset[str] = frozenset()
    loses: str = ""

    @property
    def at(self) -> str:
        """The place of the finding in words."""
        return self.where or f"line {self.line}"

    @property
    def own_stop(self) -> bool:
        """Whether its fault is any exception of its statements: a call that is wrong everywhere, or an end on purpose."""
        return self.code.startswith("DEV3") or self.code == "DEV215"

    @property
    def portability(self) -> bool:
        """Whether its fault shows on a machine without the accelerator: there a device's index is -1, too (DEV305), memory
        cannot be pinned (DEV509), and the device is no id of a card (DEV602)."""
        return self.code.startswith("DEV2") or self.code in ("DEV305", "DEV509", "DEV602")


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict with its evidence, one sentence each, and the stop of the corrected program if it has one."""

    verdict: Verdict
    evidence: tuple[str, ...] = ()
    then: Stop | None = None
    device: str = ""
