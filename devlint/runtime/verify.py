"""`devlint verify SCRIPT -- ARGUMENTS`: run a program with and without each fix, and say which fixes hold.

This runs the program, several times, with whatever it does; it is never part of linting. The corrected source is
served under the name of the original, and devlint writes nothing of the user's; what the program itself writes, it
writes.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from devlint.errors import DevlintError, SourceError, UsageError
from devlint.model import Position, Span
from devlint.runtime.correction import FixCase, Variant, carried_back, choose, original_span, read_cases
from devlint.runtime.places import Places
from devlint.runtime.processes import Ended, Launcher
from devlint.runtime.verdict import (
    NOT_COMPARED,
    REAL_CARD,
    SAME_KERNELS,
    Caught,
    Claim,
    ClockRead,
    Copies,
    Judgement,
    Outcome,
    Run,
    Stop,
    Tolerance,
    Verdict,
    brought,
    combine,
    differ,
    differing_losses,
    exit_code,
    is_device_fault,
    judge,
)

DEVICES = "auto, cpu, cuda, mps, xpu, or simulated: sim, sim:2, sim:xpu, sim:cuda:3"
_REAL = ("cuda", "mps", "xpu")
_MOST_ROUNDS = 5

_VARIES = "losses differ from run to run under one seed, so they were not compared"
_LEFT = "the program left processes running; they were ended"
_ALSO = "another fix removes the same fault"
_OVERLAPS = "it changes the same text as another fix; apply that one, then verify again"

Finder = Callable[[str], list[FixCase]]
"""Finds the fixes of a text; the linter in normal use."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to verify. script: as the user wrote it; arguments: the program's own. timeout: seconds for each run."""

    script: str
    arguments: tuple[str, ...] = ()
    device: str = "auto"
    steps: int | None = None
    timeout: float = 300.0
    seed: int = 0


@dataclass(frozen=True, slots=True)
class JudgedFix:
    """A fix with its verdict, and where its finding starts and ends."""

    case: FixCase
    start: Position
    end: Position
    judgement: Judgement


@dataclass(slots=True)
class Report:
    """All that one verification found. runs: by label, in the order in which they were made."""

    script: str
    device: str = ""
    torch: str = ""
    runs: list[tuple[str, Run]] = field(default_factory=list)
    fixes: list[JudgedFix] = field(default_factory=list)
    hints: list[tuple[FixCase, Position]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    corrected: str = ""  # the text with all fixes

    @property
    def exit_code(self) -> int:
        """1 if any fix is refuted, 3 if there were fixes and none could be judged, else 0."""
        return exit_code(fix.judgement.verdict for fix in self.fixes)


class Runner:
    """Runs texts of one program and remembers what was run, so that equal texts run once.

    say: called with the label of each run before it starts.
    """

    def __init__(self, request: Request, launcher: Launcher, say: Callable[[str], None] = lambda label: None) -> None:
        self.request = request
        self.path = os.path.abspath(request.script)
        self.torch = ""
        self.notes: list[str] = []
        self.chosen: dict[str, str] = {}
        self._launcher = launcher
        self._say = say
        self._made: dict[tuple[str, str, bool], Run] = {}

    def run(self, variant: Variant, device: str, label: str, forgiving: bool = False, again: bool = False) -> Run:
        """One run of a variant on a device; see `launch.Job` for `forgiving`. `again`: even if it was run before.

        Raises UsageError when torch or the device is missing, DevlintError when devlint itself fails.
        """
        device = self.chosen.get(device, device)
        known = self._made.get((variant.text, device, forgiving))
        if known is not None and not again:
            return known
        self._say(label)
        request = self.request
        ended = self._launcher.run(
            script=request.script,
            path=self.path,
            text=variant.text,
            arguments=request.arguments,
            device=device,
            statements=len(variant.places.statements),
            steps=request.steps,
            timeout=request.timeout,
            seed=request.seed,
            forgiving=forgiving,
        )
        report = ended.report or {}
        if report.get("end") in ("no torch", "no device"):
            raise UsageError(f"verify needs torch and the device it is asked for: {report['message']}")
        if report.get("end") == "internal error":
            raise DevlintError(f"{label}: {report['message']}\n{ended.stderr}")
        self.chosen[device] = report.get("chosen", device)
        self.torch = report.get("torch", self.torch)
        for note in report.get("notes", ()):
            if note not in self.notes:
                self.notes.append(note)
        if ended.left_behind and _LEFT not in self.notes:
            self.notes.append(_LEFT)
        run = observed(ended, variant, self.path, self.request)
        self._made[variant.text, self.chosen[device], forgiving] = run
        return run


# ------------------------------------------------------------------------------------ from a child to a Run


def observed(ended: Ended, variant: Variant, path: str, request: Request) -> Run:
    """What a child reports, with places and lines of the original text."""
    report = ended.report or {}
    recorded = report.get("recorded") or {"events": [], "kernels": []}
    events = [event for event in recorded["events"] if event["file"] == path]
    counts = dict.fromkeys(variant.keys, 0)
    for key, count in zip(variant.keys, ended.counts, strict=False):
        counts[key] += count
    outcome, stop, detail, text = _outcome(ended, variant, path, request, counts)
    return Run(
        outcome=outcome,
        stop=stop,
        detail=detail,
        counts=counts,
        elsewhere=frozenset(key for key, count in zip(variant.keys, ended.elsewhere, strict=False) if count),
        caught=_caught(events, variant, stop, report),
        clocks=_clocks(events, variant),
        copies=_copies(events, variant),
        taken=_taken(events, variant),
        losses=tuple(float(value) for value in report.get("losses", ())),
        kernels=sum(row["count"] for row in recorded.get("kernels", ())),
        device=report.get("device", ""),
        steps=report.get("steps", 0),
        seconds=report.get("seconds", 0.0),
        text=text,
    )


def _outcome(
    ended: Ended, variant: Variant, path: str, request: Request, counts: dict[str, int]
) -> tuple[Outcome, Stop | None, str, str]:
    report = ended.report
    if report is None and ended.returncode is None:
        detail = f"time limit of {request.timeout:g} s, and the program could not be interrupted"
        return Outcome.LIMIT, None, detail, f"{Outcome.LIMIT.value}: {detail}"
    if report is None:
        stop = _crash(ended, variant, path, counts)
        return Outcome.OTHER_STOP, stop, "", f"{Outcome.OTHER_STOP.value} at {stop.where}: {stop.text}"
    end = report["end"]
    if end == "finished" or (end == "exit" and not report["code"]):
        how = f" by {report['how']}(0)" if end == "exit" else ""
        return Outcome.FINISHED, None, "", f"{Outcome.FINISHED.value}{how}{_steps(report)}"
    if end == "limit":
        detail = f"{request.steps} optimizer steps" if report["limit"] == "steps" else f"{request.timeout:g} s"
        if report.get("line"):
            detail += f", at line {variant.original_line(report['line'])}"
        return Outcome.LIMIT, None, detail, f"{Outcome.LIMIT.value}: {detail}"
    if end == "exit":
        text = f"{report['how']}({report.get('message', report['code'])})"
        stop = _stop(report, text, "", False, variant, path, counts)
        return Outcome.OTHER_STOP, stop, "", f"{Outcome.OTHER_STOP.value} at {stop.where}: {text}"
    if end == "cannot simulate":
        stop = _stop(report, report["message"], "", False, variant, path, counts)
        return (
            Outcome.CANNOT_SIMULATE,
            stop,
            f"{report['message']} ({stop.where})",
            f"{Outcome.CANNOT_SIMULATE.value}: {report['message']} ({stop.where})",
        )
    kind, message = report["type"], report["message"]
    device = bool(report.get("simulated")) or is_device_fault(kind, message)
    stop = _stop(report, f"{kind}: {_one_line(message)}", kind, device, variant, path, counts)
    outcome = Outcome.DEVICE_FAULT if device else Outcome.OTHER_STOP
    return outcome, stop, "", f"{outcome.value} at {stop.where}: {stop.text}"


def _steps(report: dict[str, Any]) -> str:
    steps = report.get("steps", 0)
    return f", {steps} optimizer step{'' if steps == 1 else 's'}" if steps else ""


def _one_line(message: str) -> str:
    """The first line of a message with content; a worker's error is quoted by its last."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    if len(lines) > 2 and lines[0].startswith("Caught "):
        return f"{lines[0]} {lines[-1]}"
    return lines[0] if lines else ""


def _stop(
    report: dict[str, Any],
    text: str,
    kind: str,
    device: bool,
    variant: Variant,
    path: str,
    counts: dict[str, int],
) -> Stop:
    line = report.get("line") or 0
    number = variant.places.on_line(line, report.get("column")) if line else None
    key = None if number is None else variant.keys[number]
    original = variant.original_line(line) if line else 0
    where = f"line {original}" if original else "an unknown line"
    inner = report.get("inner_file")
    if inner and inner != path:
        where = f"{_shown(inner)}:{report['inner_line']}" + (f", called from line {original}" if original else "")
    return Stop(
        text=text,
        kind=kind,
        key=key,
        line=original,
        where=where,
        device=device,
        count=counts.get(key, 1) if key is not None else 1,
        inside=tuple(report.get("inside", ())),
        written_by=variant.edited[number] if number is not None else frozenset(),
    )


def _crash(ended: Ended, variant: Variant, path: str, counts: dict[str, int]) -> Stop:
    """A child that died without a report: by a signal, most often in native code."""
    code = ended.returncode or 0
    if code < 0:
        try:
            name = signal.Signals(-code).name
        except ValueError:
            name = f"signal {-code}"
        text = f"the process died by {name}"
    else:
        text = f"the process ended with status {code} and no report"
    frames = re.findall(r'^\s*File "(.+)", line (\d+)', ended.crash, re.MULTILINE)
    line = next((int(at) for file, at in frames if file == path), 0)
    return _stop({"line": line}, text, "", False, variant, path, counts)


def _shown(file: str) -> str:
    """A path as the user would write it."""
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative


def _caught(
    events: list[dict[str, Any]], variant: Variant, stop: Stop | None, report: dict[str, Any]
) -> tuple[Caught, ...]:
    """The device faults of which the program did not die."""
    found = []
    for event in events:
        if event["kind"] != "fault":
            continue
        times = event["count"]
        if stop is not None and stop.device and event["what"] == report.get("message"):
            times -= 1
        if times > 0:
            key = variant.key_at_line(event["line"])
            text = _one_line(event["what"])
            found.append(Caught(f"{text} (caught by the program)", key, variant.original_line(event["line"]), times))
    return tuple(found)


def _clocks(events: list[dict[str, Any]], variant: Variant) -> dict[str, ClockRead]:
    reads: dict[str, ClockRead] = {}
    for event in events:
        key = variant.key_at_line(event["line"]) if event["kind"] == "clock" else None
        if key is not None:
            old = reads.get(key, ClockRead(variant.original_line(event["line"]), 0, 0))
            reads[key] = ClockRead(old.line, max(old.pending, event["pending"]), old.count + event["count"])
    return reads


def _copies(events: list[dict[str, Any]], variant: Variant) -> dict[str, Copies]:
    copies: dict[str, Copies] = {}
    for event in events:
        if event["kind"] != "transfer" or event["direction"] != "h2d":
            continue
        key = variant.key_at_line(event["line"])
        if key is not None:
            old = copies.get(key, Copies(variant.original_line(event["line"]), 0, 0, frozenset()))
            calls = old.calls | {event["what"]}
            copies[key] = Copies(old.line, old.count + event["count"], old.bytes + event["bytes"], calls)
    return copies


def _taken(events: list[dict[str, Any]], variant: Variant) -> dict[str, int]:
    taken: dict[str, int] = {}
    for event in events:
        if event["kind"] == "transfer" and event["direction"] in ("d2h", "d2d"):
            key = variant.key_at_line(event["line"])
            if key is not None:
                taken[key] = taken.get(key, 0) + event["count"]
    return taken


# ---------------------------------------------------------------------------------------------- verification


def verify(request: Request, text: str, cases: Sequence[FixCase], runner: Runner, find: Finder | None = None) -> Report:
    """Run the program with and without each fix and judge them.

    text: the decoded original. cases: the findings, hints among them. find: finds further fixes in corrected text, for
    those that do not go together with the first ones.
    """
    try:
        original = Places(text)
    except SyntaxError as error:
        raise SourceError(f"cannot parse: {error.msg}", error.lineno or 1, error.offset or 1) from error
    report = Report(request.script)
    fixes, waiting = choose([case for case in cases if not case.is_hint])
    if find is not None:
        fixes, waiting = _more_rounds(original, fixes, waiting, find)
    _check(original, fixes)
    report.corrected = Variant(original, fixes).text
    if fixes:
        bench = _Bench(request, original, fixes, runner, report)
        for index, case in enumerate(fixes):
            report.fixes.append(_judged(original, case, bench.judge(index)))
    for case in waiting:
        report.fixes.append(_judged(original, case, Judgement(Verdict.COULD_NOT_JUDGE, (_OVERLAPS,))))
    judged = {(fix.case.code, fix.start) for fix in report.fixes}  # a hint may become a fix in a later round
    hints = [(case, _position(original, case.span.start)) for case in cases if case.is_hint]
    report.hints = [(case, at) for case, at in hints if (case.code, at) not in judged]
    report.fixes.sort(key=lambda fix: (fix.case.span, fix.case.code))
    report.torch, report.notes = runner.torch, list(runner.notes)
    return report


def _check(original: Places, fixes: Sequence[FixCase]) -> None:
    """Raise DevlintError naming the fix whose text Python does not accept, or saying that they do not go together."""
    for chosen in [*([case] for case in fixes), list(fixes)]:
        try:
            compile(Variant(original, chosen).text, "corrected", "exec", dont_inherit=True)
        except SyntaxError as error:
            names = ", ".join(f"{case.code} at line {original.lines.line(case.span.start)}" for case in chosen)
            raise DevlintError(f"the fix of {names} breaks the syntax: {error.msg}") from error


def _more_rounds(
    original: Places, fixes: list[FixCase], waiting: list[FixCase], find: Finder
) -> tuple[list[FixCase], list[FixCase]]:
    """Take in the fixes that show, or fit, only when the first ones are applied; the rest are left waiting."""
    for _ in range(_MOST_ROUNDS):
        variant = Variant(original, fixes)
        found = [(case, carried_back(case, variant)) for case in find(variant.text) if not case.is_hint]
        waiting = [replace(case, span=original_span(case, variant)) for case, moved in found if moved is None]
        more, later = choose([*fixes, *(moved for _, moved in found if moved is not None)])
        waiting += later
        if len(more) == len(fixes) or not set(map(id, fixes)) <= set(map(id, more)):
            break
        fixes = more
    return fixes, waiting


class _Bench:
    """The runs of one verification, made when a judgement first needs them."""

    def __init__(
        self, request: Request, original: Places, fixes: Sequence[FixCase], runner: Runner, report: Report
    ) -> None:
        self._request = request
        self._fixes = fixes
        self._runner = runner
        self._report = report
        self._claims = [_claim(index, case, original) for index, case in enumerate(fixes)]
        self._variants = {
            "original": Variant(original, []),
            f"corrected ({_fixes(len(fixes))})": Variant(original, fixes),
        }
        for index, claim in enumerate(self._claims):
            self._variants[self._label(index)] = Variant(original, fixes, leave_out=claim.index)
            self._variants[self._alone(index)] = Variant(original, fixes, only=claim.index)
        self._corrected = list(self._variants)[1]
        self._listed: set[str] = set()
        self._repeats: dict[str, bool] = {}
        first = self._run("original", request.device)
        report.device = first.device
        self._device = runner.chosen.get(request.device, request.device)
        self._run(self._corrected, self._device)

    def _label(self, index: int) -> str:
        return f"corrected without {self._name(index)}"

    def _alone(self, index: int) -> str:
        return f"original with {self._name(index)} corrected"

    def _name(self, index: int) -> str:
        claim = self._claims[index]
        return f"{claim.code} at line {claim.line}" + self._twin(index)

    def _twin(self, index: int) -> str:
        """What tells apart two fixes of one rule on one line."""
        claim = self._claims[index]
        same = [c.index for c in self._claims if (c.code, c.line) == (claim.code, claim.line)]
        return f" ({same.index(index) + 1} of {len(same)})" if len(same) > 1 else ""

    def _run(self, label: str, device: str) -> Run:
        shown = f"{label}, on plain CPU" if device == "cpu" and self._request.device != "cpu" else label
        run = self._runner.run(self._variants[label], device, shown)
        if shown not in self._listed:
            self._listed.add(shown)
            self._report.runs.append((shown, run))
        return run

    def judge(self, index: int) -> Judgement:
        """The verdict on one fix: on the device, and on plain CPU where the claim or a difference asks for it."""
        claim = self._claims[index]
        if not claim.portability or self._device == "cpu":
            judgements = [self._on(self._device, index)]
            if self._simulated and self._differ_on("cpu"):
                # Where the program ran before, it must do the same; that the fault is not seen there says nothing.
                there = self._on("cpu", index, replace(claim, own=frozenset(), watch=frozenset()))
                judgements += [there] if there.verdict is Verdict.REFUTED else []
            return combine(judgements)
        on_card = self._on if self._differ_on(self._device) else self._from_the_original
        return combine([self._on("cpu", index), on_card(self._device, index)])

    @property
    def _simulated(self) -> bool:
        return self._device.startswith("sim")

    def _on(self, device: str, index: int, claim: Claim | None = None) -> Judgement:
        claim = claim or self._claims[index]
        original, corrected = self._run("original", device), self._run(self._corrected, device)
        without = self._run(self._label(index), device)
        judgement = judge(claim, without, corrected, original, self._tolerance(device, without, corrected))
        if judgement.verdict is Verdict.NOT_REPRODUCED and original.stop is not None:
            only = self._run(self._alone(index), device)
            alone = judge(claim, original, only, None, self._tolerance(device, original, only))
            if alone.verdict is Verdict.CONFIRMED:
                return replace(alone, evidence=(*alone.evidence, _ALSO), then=judgement.then)
        suspect = judgement.then
        if (
            judgement.verdict is Verdict.CONFIRMED
            and suspect is not None
            and suspect.device
            and device.startswith("sim")
        ):
            variant = self._variants[self._label(index)]
            forgiven = self._runner.run(variant, device, f"{self._label(index)}, mixed devices let through", True)
            if brought(suspect, claim, corrected, forgiven):
                return Judgement(
                    Verdict.REFUTED,
                    (f"the fix brings a fault at {suspect.where}, where none is without it: {suspect.text}",),
                    None,
                    judgement.device,
                )
        return judgement

    def _from_the_original(self, device: str, index: int) -> Judgement:
        """Where original and corrected program do the same, the original stands for the one without this fix."""
        original, corrected = self._run("original", device), self._run(self._corrected, device)
        return judge(self._claims[index], original, corrected, None, self._tolerance(device, original, corrected))

    def _differ_on(self, device: str) -> bool:
        """Whether the fixes together change what the program does there, so that each must be looked at by itself."""
        original, corrected = self._run("original", device), self._run(self._corrected, device)
        if differ(original, corrected, self._tolerance(device, original, corrected)):
            return True
        return device != "cpu" and not (original.complete and corrected.complete)

    def _tolerance(self, device: str, a: Run, b: Run) -> Tolerance:
        """How losses are compared. If two runs differ, the corrected one is repeated: it must agree with itself."""
        tolerance = REAL_CARD if device in _REAL else SAME_KERNELS
        if not differing_losses(a, b, tolerance):
            return tolerance
        if device not in self._repeats:
            once = self._run(self._corrected, device)
            label = f"{self._corrected}, repeated"
            twice = self._runner.run(self._variants[self._corrected], device, label, again=True)
            self._repeats[device] = not differing_losses(once, twice, tolerance)
            if not self._repeats[device] and _VARIES not in self._runner.notes:
                self._runner.notes.append(_VARIES)
        return tolerance if self._repeats[device] else NOT_COMPARED


def _claim(index: int, case: FixCase, original: Places) -> Claim:
    finding = original.at(case.span.start)
    own = {finding} if finding is not None else set()
    for edit in case.edits:
        own.update(original.touching(edit.start, edit.end))
    watch = {original.at(span.start) for span in case.related} - {None}
    beside = {str(n): tuple(None if b is None else str(b) for b in original.beside(n)) for n in own}
    return Claim(
        index=index,
        code=case.code,
        finding=None if finding is None else str(finding),
        line=original.lines.line(case.span.start),
        own=frozenset(map(str, own)),
        watch=frozenset(map(str, watch)),
        beside={key: (after, before) for key, (after, before) in beside.items()},
    )


def _judged(original: Places, case: FixCase, judgement: Judgement) -> JudgedFix:
    return JudgedFix(case, _position(original, case.span.start), _position(original, case.span.end), judgement)


def _position(places: Places, offset: int) -> Position:
    line = places.lines.line(offset)
    return Position(line, offset - places.lines.starts[line - 1] + 1)


def _fixes(count: int) -> str:
    return f"{count} fix" if count == 1 else f"{count} fixes"


# --------------------------------------------------------------------------------------------------- command


def find_with_linter(path: Path, select: tuple[str, ...], ignore: tuple[str, ...]) -> tuple[str, Finder]:
    """The decoded text of a script, and what finds fixes in it or in a corrected copy, by the project's configuration.

    Raises SourceError for a file that cannot be read or parsed, UsageError for a bad configuration or an unknown rule.
    """
    from devlint.config import Resolver
    from devlint.engine import Linter
    from devlint.rulebook import Rulebook, rules_of
    from devlint.source import Source, parse, read_source

    source = read_source(path)
    parse(source)
    config = Resolver().for_directory(str(path.resolve().parent))
    settings = Rulebook(select or None, None, ignore or None).settings(config, str(path.resolve()))
    linter = Linter(rules_of(config.plugins), settings)

    def find(text: str) -> list[FixCase]:
        copy: Source = replace(source, text=text)
        result = linter.check(copy)
        if result.crashes:
            raise DevlintError("\n".join(result.crashes))
        places = Places(text)
        return [
            FixCase.of(diagnostic, _related(diagnostic, str(source.path), places)) for diagnostic in result.diagnostics
        ]

    return source.text, find


def _related(diagnostic: Any, path: str, places: Places) -> tuple[Span, ...]:
    starts = places.lines.starts
    return tuple(
        Span(
            starts[related.start.row - 1] + related.start.column - 1,
            starts[related.end.row - 1] + related.end.column - 1,
        )
        for related in diagnostic.related
        if related.path == path
    )


def main(argv: list[str]) -> int:
    """Run the command; returns its exit code. Prints the report on stdout, errors and progress on stderr."""
    from devlint.runtime.report import as_json, as_text

    try:
        options = _parse(argv)
        request = Request(
            script=options.script,
            arguments=tuple(options.arguments),
            device=_device(options.device),
            steps=options.steps,
            timeout=options.timeout,
        )
        report = _verify(request, options)
    except SourceError as error:
        print(f"{options.script}:{error.row}:{error.column}: DEV900 {error}", file=sys.stderr)
        return 2
    except DevlintError as error:
        print(f"devlint verify: {error}", file=sys.stderr)
        return 2
    print(as_json(report) if options.json else as_text(report))
    return report.exit_code


def _verify(request: Request, options: argparse.Namespace) -> Report:
    path = Path(request.script)
    if not path.is_file():
        raise UsageError(f"{request.script} is not a file")

    def say(label: str) -> None:
        if sys.stderr.isatty():
            print(f"\r\x1b[Kdevlint verify: {label} ...", end="", file=sys.stderr, flush=True)

    try:
        with Launcher() as launcher:
            runner = Runner(request, launcher, say)
            if options.fixes:
                from devlint.source import read_source

                text = read_source(path).text
                return verify(request, text, read_cases(Path(options.fixes), text), runner)
            text, find = find_with_linter(path, _codes(options.select), _codes(options.ignore))
            return verify(request, text, find(text), runner, find)
    finally:
        if sys.stderr.isatty():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _codes(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(code.strip() for value in values for code in value.split(",") if code.strip())


def _device(text: str) -> str:
    """Check a device name. Raises UsageError that lists the known ones."""
    if text in ("auto", "cpu", *_REAL):
        return text
    from devlint.runtime.simulator import DeviceSpec

    try:
        return str(DeviceSpec.parse(text))
    except ValueError as error:
        raise UsageError(f"--device {text}: {error}; known devices: {DEVICES}") from error


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UsageError(message)


def _parse(argv: list[str]) -> argparse.Namespace:
    own, arguments = argv, []
    if "--" in argv:
        cut = argv.index("--")
        own, arguments = argv[:cut], argv[cut + 1 :]
    parser = _Parser(
        prog="devlint verify",
        description="Run a program with and without each fix, and say which fixes hold. This runs your program.",
        epilog="Exit code: 0 no fix is refuted, 1 one is, 2 wrong usage, 3 no fix could be judged.",
    )
    parser.add_argument("script", help="the program; what follows -- are its arguments")
    parser.add_argument("--device", default="auto", help=f"{DEVICES} (default: auto, a real one if there is one)")
    parser.add_argument("--steps", type=_positive, metavar="N", help="end each run after N optimizer steps")
    parser.add_argument(
        "--timeout", type=_seconds, default=300.0, metavar="S", help="seconds for each run (default: 300)"
    )
    parser.add_argument("--select", action="append", default=[], metavar="CODES", help="only these rules")
    parser.add_argument("--ignore", action="append", default=[], metavar="CODES", help="not these rules")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--unsafe-fixes", action="store_true", help=argparse.SUPPRESS)  # judged always
    parser.add_argument("--fixes", metavar="FILE", help=argparse.SUPPRESS)  # fixes by hand, see read_cases
    options = parser.parse_args(own)
    options.arguments = arguments
    return options


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError("must be more than 0")
    return number
