"""From recorded events to findings: each with the code of the rule that reports the same thing without running.

Free of torch. A finding of kind ``error`` makes a program wrong on an accelerator (a device error, a read of memory
that a copy still fills); a ``warning`` makes a figure wrong or memory grow; a ``note`` says what waits and what moves.
"""

from __future__ import annotations

import linecache
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, TypeAlias

from devlint.runtime.blame import Blame, Owner, function_at, in_loop, moves_what_it_makes
from devlint.runtime.recorder import Event
from devlint.runtime.waiting import CONVERTED, PAGEABLE, STRIDED

Kind: TypeAlias = Literal["error", "warning", "note"]
KINDS: Final[tuple[Kind, ...]] = ("error", "warning", "note")

# The rules that a run can confirm, by code.
RULE_NAMES: Final = {
    "DEV101": "mixed-device-operands",
    "DEV102": "new-tensor-default-device",
    "DEV103": "module-input-device",
    "DEV104": "index-device-mismatch",
    "DEV106": "unregistered-tensor",
    "DEV109": "host-conversion",
    "DEV110": "generator-device",
    "DEV112": "lengths-on-device",
    "DEV201": "hardcoded-device",
    "DEV208": "load-without-map-location",
    "DEV301": "no-such-method",
    "DEV401": "unsynchronized-timing",
    "DEV402": "unsynchronized-event",
    "DEV501": "create-then-move",
    "DEV502": "sync-in-loop",
    "DEV503": "transfer-in-loop",
    "DEV504": "non-blocking-unpinned",
    "DEV505": "non-blocking-to-host",
    "DEV508": "graph-retained",
    "DEV509": "pinned-memory-misuse",
    "DEV601": "data-parallel-devices",
    "DEV602": "ddp-device-ids",
    "DEV605": "device-in-worker",
}

UNWRITTEN: Final = "RUN101"  # no rule finds it without running
RULE_NAMES[UNWRITTEN] = "read-of-unwritten-memory"

# What an error text is about, where it is not a mixture of operands.
_BY_TEXT: Final = (
    ("device type tensor to numpy", "DEV109"),
    ("indices should be", "DEV104"),
    ("type for generator", "DEV110"),
    ("RNG state must be", "DEV110"),
    ("'lengths' argument", "DEV112"),
    ("invalid device ordinal", "DEV201"),
    ("can be pinned", "DEV509"),
    ("Both events must be", "DEV402"),
    ("in forked subprocess", "DEV605"),
    ("CUDA error: initialization error", "DEV605"),
    ("must have its parameters and buffers on device", "DEV601"),
    ("device_ids and output_device arguments only work with", "DEV602"),
    ("Attempting to deserialize object on", "DEV208"),
    ("has no attribute '", "DEV301"),
)
# The memory of a copy that waits although it was asked not to.
_THROUGH_BUFFER: Final = {
    PAGEABLE: "from memory that is not pinned",
    STRIDED: "from pinned memory with gaps",
    CONVERTED: "from pinned memory of another type",
}
# Follows the text of a device error that did not end the program.
CAUGHT: Final = " (caught by the program"
_DIRECTIONS: Final = {"h2d": "host to device", "d2h": "device to host", "d2d": "device to device"}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a run showed, at one line of the user's program.

    code: of the static rule. message: one line with figures. details: further lines, without figures of time.
    file: as recorded, None when no user frame was on the stack. line: 1-based, 0 for none.
    count: how often; bytes: how many in all, 0 where nothing was copied.
    """

    code: str
    kind: Kind
    message: str
    file: str | None
    line: int
    count: int = 1
    bytes: int = 0
    details: tuple[str, ...] = field(default=())

    @classmethod
    def of_fields(cls, row: dict[str, Any]) -> Finding:
        """From what `asdict` made of one, also by way of JSON."""
        return cls(**{**row, "details": tuple(row["details"])})

    @property
    def rule(self) -> str:
        """The rule's name."""
        return RULE_NAMES[self.code]

    @property
    def where(self) -> str:
        """File, relative to the current folder where it lies under it, and line."""
        return f"{shown(self.file)}:{self.line}" if self.file else "no line of the program"

    @property
    def summary(self) -> str:
        """One line that stays the same from run to run: no figures but the line number."""
        function = function_at(self.file, self.line) if self.file else ""
        inside = f" in {function}" if function else ""
        return f"{self.code} {self.rule} {self.where}{inside}"

    def as_row(self) -> dict[str, Any]:
        """For JSON: the fields, with the rule's name and the summary."""
        return {**asdict(self), "details": list(self.details), "rule": self.rule, "summary": self.summary}


def shown(file: str | None) -> str:
    """A path as the user would write it."""
    if file is None:
        return "?"
    try:
        relative = os.path.relpath(file)
    except (ValueError, OSError):  # another drive, or the current folder is gone
        return file
    return file if relative.startswith("..") else relative


def size(count: float) -> str:
    """Bytes for people: ``1.5 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return ""


def times(count: int) -> str:
    """``once`` or ``40 times``."""
    return "once" if count == 1 else f"{count} times"


def code_of_error(message: str, blame: Blame | None) -> str:
    """The rule that a device error belongs to."""
    for text, code in _BY_TEXT:
        if text in message:
            return code
    return blame.code if blame is not None else "DEV101"


def device_error(message: str, blame: Blame | None, event: Event, *, caught: int = 0) -> Finding:
    """The finding of a device error; a warning when the program caught it each time (`caught` is how often)."""
    first = message.strip().splitlines()[0] if message.strip() else "device error"
    details: list[str] = []
    if blame is not None:
        for owner in blame.left:
            details.append(f"left behind: {_described(owner, event)}")
        details += [f"left behind: {text} (a value without a name)" for text in blame.unnamed]
        for owner in blame.met:
            details.append(f"together with: {_described(owner, event)}")
        details += [
            f"called from {shown(file)}:{line} in {name}" for file, line, name in blame.lines[1:4] if file[:1] != "<"
        ]
    return Finding(
        code=code_of_error(message, blame),
        kind="warning" if caught else "error",
        message=first + (f"{CAUGHT}, {times(caught)})" if caught else ""),
        file=event.file,
        line=event.line,
        count=event.count,
        details=tuple(details),
    )


def _described(owner: Owner, event: Event) -> str:
    text = f"`{owner.name}`, {owner.what}"
    if owner.made is not None:
        text += f", made at {shown(owner.file)}:{owner.made[0]} by {owner.made[1]}"
    elif (owner.file, owner.line) != (event.file, event.line):
        text += f", at {shown(owner.file)}:{owner.line} in {owner.function}"
    return text


def from_events(events: Iterable[Event]) -> list[Finding]:
    """The findings of all events but faults, which need `device_error`; errors first, then by weight."""
    found: list[Finding] = []
    for event in events:
        finding = _clock(event) or _race(event) or _unwritten(event) or _sync(event) or _transfer(event)
        if finding is not None:
            found.append(finding)
    return sort(found)


def sort(findings: Iterable[Finding]) -> list[Finding]:
    """Errors, warnings, notes; within them what happened most often first, then by place."""
    return sorted(findings, key=lambda f: (KINDS.index(f.kind), -f.count, f.file or "", f.line, f.code, f.message))


def _clock(event: Event) -> Finding | None:
    if event.kind != "clock" or not event.pending:
        return None
    kernels = f"{event.pending} kernel{'s' if event.pending != 1 else ''}"
    return Finding(
        "DEV401",
        "warning",
        f"{event.what} reads the clock {times(event.count)} with {_up_to(event)}{kernels} still queued",
        event.file,
        event.line,
        count=event.count,
        details=("synchronize the device before the clock is read: the measured time does not include queued work",),
    )


def _up_to(event: Event) -> str:
    return "up to " if event.count > 1 else ""


def _race(event: Event) -> Finding | None:
    if event.kind != "race":
        return None
    return Finding(
        "DEV505",
        "error",
        f"{event.what}: the host read memory {times(event.count)} that a non-blocking copy from {event.device} "
        "may not have filled yet",
        event.file,
        event.line,
        count=event.count,
    )


def _unwritten(event: Event) -> Finding | None:
    if event.kind != "unwritten":
        return None
    message = f"{event.what}, and never written"
    details = ("the read returns old memory content, which differs between runs and between GPUs",)
    return Finding(UNWRITTEN, "error", message, event.file, event.line, count=event.count, details=details)


def _sync(event: Event) -> Finding | None:
    if event.kind != "sync" or not _again_and_again(event):
        return None
    return Finding(
        "DEV502",
        "note",
        f"the host waited for {event.device or 'the device'} {times(event.count)}: {event.what}",
        event.file,
        event.line,
        count=event.count,
        bytes=event.bytes,
    )


def _again_and_again(event: Event) -> bool:
    """Whether it is a loop's business: it happened more than once, and not as separate first and last reads."""
    return event.count > 1 and event.what not in ("synchronize", "event.synchronize", "stream.synchronize")


def _transfer(event: Event) -> Finding | None:
    if event.kind != "transfer" or event.direction is None or event.file is None:
        return None
    across = f"{_DIRECTIONS[event.direction]} ({event.device})"
    amount = f"{size(event.bytes)} {times(event.count)} from {across}, {'waiting' if event.blocking else 'queued'}"
    place: dict[str, Any] = {
        "file": event.file,
        "line": event.line,
        "count": event.count,
        "bytes": event.bytes,
    }
    through = next((text for end, text in _THROUGH_BUFFER.items() if event.what.endswith(end)), None)
    if through is not None:
        return Finding("DEV504", "note", f"{amount}; {through}, so the host waits", **place)
    if event.direction == "h2d" and moves_what_it_makes(event.file, event.line):
        return Finding("DEV501", "note", f"{amount}: a tensor is created on the host and moved at once", **place)
    if event.again and in_loop(event.file, event.line):
        return Finding(
            "DEV503",
            "note",
            f"{amount}; {times(event.again)} the same unchanged data as in the previous copy",
            **place,
            details=("move the data once, before the loop",),
        )
    return None


def transfers_by_line(events: Iterable[Event]) -> list[str]:
    """One line for each place that moved data, with how often and how much, most bytes first."""
    moved: dict[tuple[str | None, int, str], list[int]] = {}
    for event in events:
        if event.kind == "transfer" and event.direction is not None:
            counts = moved.setdefault((event.file, event.line, event.direction), [0, 0])
            counts[0] += event.count
            counts[1] += event.bytes
    return [
        f"{f'{shown(file)}:{line}' if file else 'no line of the program'}: {_DIRECTIONS[direction]} {times(count)}, "
        f"{size(amount)}"
        for (file, line, direction), (count, amount) in sorted(moved.items(), key=lambda item: -item[1][1])
    ]


@dataclass(frozen=True, slots=True)
class Totals:
    """What a whole run asked of its device, user lines or not."""

    synchronizations: int
    transfers: int
    bytes_in: int
    bytes_out: int
    lines: int  # user lines with a synchronization or a transfer

    @classmethod
    def of(cls, events: Sequence[Event]) -> Totals:
        """Add up the events."""
        moved = [event for event in events if event.kind == "transfer"]
        waited = [event for event in events if event.kind == "sync"]
        return cls(
            synchronizations=sum(event.count for event in waited)
            + sum(event.count for event in moved if event.blocking),
            transfers=sum(event.count for event in moved),
            bytes_in=sum(event.bytes for event in moved if event.direction == "h2d"),
            bytes_out=sum(event.bytes for event in moved if event.direction == "d2h"),
            lines=len({(event.file, event.line) for event in (*moved, *waited) if event.file}),
        )


def source_line(finding: Finding) -> str:
    """The text of a finding's line, stripped; empty when the file cannot be read."""
    return linecache.getline(finding.file, finding.line).strip() if finding.file else ""
