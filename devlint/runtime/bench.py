"""The runs of one verification, and the judgements that they give.

How many runs n fixes cost. The original and the corrected program always run. A fix whose statements the corrected
program never executes is judged by that run: without the fix nothing would change. The others are left out one at a
time, or, when there are many and the card is simulated, in groups (`groups`): mixed devices are then recorded and let
through, so that one run shows what every fix of the group is there for, and about log2(n) runs tell the fixes apart.
A fix that the groups do not show clearly is left out alone.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from devlint.errors import DevlintError, UsageError
from devlint.model import Position
from devlint.runtime.alignment import Alignment, Watched
from devlint.runtime.comparison import Compared, Comparison
from devlint.runtime.correction import Edition, FixCase, Variant, shown
from devlint.runtime.groups import MOST_ROUNDS, assign, decode, is_clean, stoppers
from devlint.runtime.launch import Job
from devlint.runtime.observed import Limits, observed
from devlint.runtime.places import Places, lost_call
from devlint.runtime.processes import Launcher
from devlint.runtime.runs import Claim, Judgement, Run, Verdict
from devlint.runtime.serving import File
from devlint.runtime.verdict import (
    NOT_COMPARED,
    REAL_CARD,
    SAME_KERNELS,
    Tolerance,
    brought,
    combine,
    differ,
    differing_losses,
    exit_code,
    falls_short,
    judge,
    same_end,
)

REAL = ("cuda", "mps", "xpu")
FEWEST_IN_GROUPS = 8

_VARIES = "the losses differ between runs with the same seed, so they were not compared"
_LEFT = "the program left processes running; devlint ended them"
_NOT_STEADY = "gives different values in each run, so its values were not compared"
_LEAVES = "the program writes files, and each run finds the files of the earlier runs"
_ALSO = "another fix removes the same fault"
#: A card that is kept busy, and the rules whose faults a fast card may hide.
BUSY, _HIDDEN = "cuda@busy", ("DEV401", "DEV402", "DEV403", "DEV505")
_ELSEWHERE = {"DEV2": ("sim:xpu:1", "sim:cuda:2@1"), "DEV3": ("sim:cuda:2@1",), "DEV6": ("sim:cuda:2@1", "sim:xpu:1")}


@dataclass(frozen=True, slots=True)
class Request:
    """What to verify: a script as the user wrote it with its arguments, or a command.

    timeout: seconds for each run. memory: bytes for each process of it. ordered: keep timelines.
    """

    script: str
    arguments: tuple[str, ...] = ()
    device: str = "auto"
    steps: int | None = None
    timeout: float = 300.0
    seed: int = 0
    command: tuple[str, ...] = ()
    memory: int | None = None
    ordered: bool = False


@dataclass(frozen=True, slots=True)
class JudgedFix:
    """A fix with its verdict, and where its finding starts and ends."""

    case: FixCase
    start: Position
    end: Position
    judgement: Judgement


@dataclass(slots=True)
class Report:
    """All that one verification found. script: the script or the command. runs: by label, in the order in which they
    were made. originals, corrected: the texts of files with fixes, by path, without and with all fixes. falls_short: why
    the corrected program does not run as far as the original was meant to, "" when it does. writes: whether confirmed
    fixes are to be written, and written: how many were, by path; then the corrected program is what is written."""

    script: str
    device: str = ""
    torch: str = ""
    runs: list[tuple[str, Run]] = field(default_factory=list)
    fixes: list[JudgedFix] = field(default_factory=list)
    hints: list[tuple[FixCase, Position]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    originals: dict[str, str] = field(default_factory=dict)
    corrections: dict[str, str] = field(default_factory=dict)
    falls_short: str = ""
    writes: bool = False
    written: dict[str, int] = field(default_factory=dict)

    @property
    def corrected(self) -> str:
        """The text with all fixes, of the only file or of the first that has fixes."""
        return next(iter(self.corrections.values()), "")

    def file(self, case: FixCase) -> str:
        """How the user would write the path of the file that a fix is in."""
        return shown(case.file) if case.file else self.script

    @property
    def exit_code(self) -> int:
        """1 if any fix is refuted, 3 if there were fixes and none could be judged, 1 if the corrected program does not run
        as far as the original was meant to, else 0. A fix that is refuted is not written, so then it counts for nothing."""
        if self.writes:
            judged = {fix.judgement.verdict for fix in self.fixes} - {Verdict.COULD_NOT_JUDGE, Verdict.NOT_REACHED}
            return 0 if not self.falls_short else 1 if judged or not self.fixes else 3
        code = exit_code(fix.judgement.verdict for fix in self.fixes)
        return code or int(bool(self.falls_short))


class Runner:
    """Runs editions of one program and remembers what was run, so that equal ones run once.

    say: called with the label of each run before it starts. A device may be followed by the number of the card that is
    current when the program starts, such as `sim:cuda:2@1`, or by `@busy`: the card is kept busy.
    """

    def __init__(self, request: Request, launcher: Launcher, say: Callable[[str], None] = lambda label: None) -> None:
        self.request = request
        self.torch = ""
        self.notes: list[str] = []
        self.chosen: dict[str, str] = {}
        self._launcher = launcher
        self._say = say
        self._made: dict[tuple[object, str, bool], tuple[Run, Watched]] = {}

    def run(
        self,
        edition: Edition,
        device: str,
        label: str,
        forgiving: bool = False,
        again: bool = False,
        watched: Watched | None = None,
        apart: bool = True,
    ) -> Run:
        """One run of an edition on a device; see `launch.Job` for `forgiving`. `again`: even if it was run before, with
        all clocks set apart, unless `apart` says otherwise. watched: the values to look at.

        Raises UsageError when torch or the device is missing, DevlintError when devlint itself fails.
        """
        device = self.chosen.get(device, device)
        watched = watched or Watched()
        known = self._made.get((edition.identity, device, forgiving))
        if known is not None and not again and watched.within(known[1]):
            return known[0]
        self._say(label)
        request = self.request
        path = os.path.abspath(request.script) if not request.command else ""
        changed = edition.changed
        name, _, with_ = device.partition("@")
        busy, current = with_ == "busy", "" if with_ == "busy" else with_
        ended = self._launcher.run(
            Job(
                script="" if request.command else request.script,
                path=path,
                arguments=request.arguments,
                command=request.command,
                files={
                    each: File(
                        variant.text if each == path else changed.get(each),
                        edition.first[each],
                        len(variant.keys),
                        watched.looked.get(each, ()),
                        watched.spots.get(each, ()),
                        watched.discarded.get(each, ()) if forgiving else (),
                    )
                    for each, variant in edition.files.items()
                },
                statements=len(edition.keys),
                device=name,
                current=int(current or 0),
                busy=busy,
                steps=request.steps,
                timeout=request.timeout,
                memory=request.memory,
                seed=request.seed,
                forgiving=forgiving,
                ordered=request.ordered or name in REAL or name == "auto",
                apart=again and apart,
            )
        )
        reports = [seen.report for seen in (ended.main, *ended.others) if seen.report is not None]
        for report in reports:
            if report.get("end") in ("no torch", "no device"):
                raise UsageError(f"verify needs torch and the requested device: {report['message']}")
            if report.get("end") == "internal error":
                raise DevlintError(f"{label}: {report['message']}\n{ended.stderr}")
            self.chosen.setdefault(device, report.get("chosen", device) + (f"@{with_}" if with_ else ""))
            self.torch = report.get("torch", self.torch)
            self._note(*report.get("notes", ()))
        if ended.left_behind:
            self._note(_LEFT)
        written = sorted({name for report in reports for name in report.get("files", ())})
        if written:
            some = ", ".join(written[:5]) + (f" and {len(written) - 5} more" if len(written) > 5 else "")
            self._note(f"{_LEAVES}: {some}")
        limits = Limits(request.command, request.steps, request.timeout, request.memory)
        run = observed(ended, edition, limits, forgiving, watched)
        if current:
            run = replace(run, device=f"{run.device}, card {current} current")
        if busy:
            run = replace(run, device=f"{run.device}, kept busy")
        if not again:
            self._made[edition.identity, self.chosen.get(device, device), forgiving] = run, watched
        return run

    def _note(self, *notes: str) -> None:
        self.notes += [note for note in notes if note not in self.notes]

    def note(self, text: str) -> None:
        """Add a remark to the report."""
        self._note(text)


class Bench:
    """The runs of one verification, made when a judgement first needs them."""

    def __init__(
        self,
        request: Request,
        originals: Mapping[str, Places],
        fixes: Sequence[FixCase],
        runner: Runner,
        report: Report,
    ) -> None:
        self._request = request
        self._originals = originals
        self._fixes = fixes
        self._runner = runner
        self._report = report
        self._variants: dict[tuple[str, frozenset[int]], Variant] = {}
        self._everything = frozenset(range(len(fixes)))
        self._whole = self._edition(frozenset())
        self._written = [
            frozenset(key for key in self._whole.keys if index in self._whole.written_by(key))
            for index in range(len(fixes))
        ]
        self._claims = [
            replace(_claim(index, case, originals, self._whole), written=self._written[index])
            for index, case in enumerate(fixes)
        ]
        self._alignment = Alignment(originals, fixes)
        self._looks: dict[frozenset[int], tuple[Edition, Watched]] = {}
        self._comparison = Comparison(self._claims, self._run_to_compare, self._everything, _is_real)
        self._corrected = f"corrected ({_fixes(len(fixes))})"
        self._listed: set[str] = set()
        self._repeats: dict[str, bool] = {}
        self._from_groups: dict[str, dict[int, Run]] = {}
        self._device = request.device
        first = self._run("original", self._everything, request.device)
        report.device = first.device
        self._device = runner.chosen.get(request.device, request.device)
        second = self._run(self._corrected, frozenset(), self._device)
        self._ends_before = same_end(first, second) and not any(
            run.ran(key) for run in (first, second) for claim in self._claims for key in claim.own | claim.watch
        )

    def _edition(self, left_out: frozenset[int]) -> Edition:
        cases = self._fixes
        if left_out == self._everything:  # the original: without what fixes share, too
            cases = []
            left_out = frozenset()
        return Edition(self._originals, cases, left_out, self._variants if cases else {})

    def _looked_at(self, left_out: frozenset[int]) -> tuple[Edition, Watched]:
        """The program without some fixes, and what is looked at in it."""
        if left_out not in self._looks:
            edition = self._edition(left_out)
            self._looks[left_out] = edition, self._alignment.of(edition)
        return self._looks[left_out]

    def _label(self, index: int) -> str:
        return f"corrected without {self._name(index)}"

    def _alone(self, index: int) -> str:
        return f"original with {self._name(index)} corrected"

    def _name(self, index: int) -> str:
        claim = self._claims[index]
        return f"{claim.code} at {claim.at}" + self._twin(index)

    def _twin(self, index: int) -> str:
        """What tells apart two fixes of one rule on one line."""
        claim = self._claims[index]
        same = [c.index for c in self._claims if (c.code, c.at) == (claim.code, claim.at)]
        return f" ({same.index(index) + 1} of {len(same)})" if len(same) > 1 else ""

    def _run(self, label: str, left_out: frozenset[int], device: str, forgiving: bool = False) -> Run:
        if device == "cpu" and self._request.device != "cpu":
            label = f"{label}, on plain CPU"
        elif device == BUSY:
            label = f"{label}, the GPU kept busy"
        elif device != self._device:
            label = f"{label}, on {device}"
        edition, watched = self._looked_at(left_out)
        run = self._runner.run(edition, device, label, forgiving, watched=watched)
        if label not in self._listed:
            self._listed.add(label)
            self._report.runs.append((label, run))
        return run

    def _run_to_compare(
        self, left_out: frozenset[int], device: str, forgiving: bool = False, again: bool = False, apart: bool = True
    ) -> Run:
        """A run of the comparison; one that is made anyway has its usual name."""
        names = ", ".join(self._name(index) for index in sorted(left_out))
        label = f"corrected without {names}" if left_out else self._corrected
        label = "original" if left_out == self._everything else label
        label += ", mixed devices allowed" if forgiving else ""
        if not again:
            return self._run(label, left_out, device, forgiving)
        edition, watched = self._looked_at(left_out)
        label += ", repeated"
        return self._runner.run(edition, device, label, forgiving, again=True, watched=watched, apart=apart)

    def _original(self, device: str) -> Run:
        return self._run("original", self._everything, device)

    def _with_all(self, device: str) -> Run:
        return self._run(self._corrected, frozenset(), device)

    def _without(self, device: str, index: int) -> Run:
        """The corrected program without one fix; not run when that is known already."""
        corrected = self._with_all(device)
        own = self._claims[index].own
        if all(key in corrected.counts for key in own) and not any(
            corrected.ran(key) for key in own | self._written[index]
        ):
            return corrected
        known = self._groups(device).get(index)
        return known if known is not None else self._run(self._label(index), frozenset({index}), device)

    def _groups(self, device: str) -> dict[int, Run]:
        """What leaving out each of several fixes would show, as far as leaving them out in groups shows it."""
        if device not in self._from_groups:
            self._from_groups[device] = {}
            if device.startswith("sim"):
                self._from_groups[device] = self._in_groups(device)
        return self._from_groups[device]

    def _in_groups(self, device: str) -> dict[int, Run]:
        corrected = self._with_all(device)
        members = {
            claim.index: claim
            for claim in self._claims
            if any(corrected.ran(key) for key in claim.own | self._written[claim.index])
        }
        tolerance = self._tolerance(device, corrected, corrected)
        for _ in range(MOST_ROUNDS):
            if len(members) < FEWEST_IN_GROUPS or not corrected.complete:
                return {}
            label = f"corrected without {len(members)} fixes, mixed devices allowed"
            run = self._run(label, frozenset(members), device, True)
            if is_clean(run, corrected, members.values(), tolerance):
                break
            stopping = stoppers(run, members.values())
            if not stopping:
                return {}
            members = {index: claim for index, claim in members.items() if index not in stopping}
        else:
            return {}
        codes = assign(list(members))
        runs = []
        width = max(map(max, codes.values())) + 1
        for number in range(width):
            left_out = frozenset(index for index, code in codes.items() if number in code)
            label = f"corrected without group {number + 1} of {width}, mixed devices allowed"
            runs.append(self._run(label, left_out, device, True))
            if not is_clean(runs[-1], corrected, members.values(), tolerance):
                return {}
        found = decode(members, codes, runs, corrected)
        if found:
            self._runner.note(
                f"{len(found)} fixes were judged by {width + 1} runs. Each run left out a group of fixes, "
                "and recorded mixed devices instead of stopping"
            )
        return found

    def judge(self, index: int) -> Judgement:
        """The verdict on one fix: on the device, and where the claim or a difference asks for it, on others.

        Those are plain CPU, and for a fix that has not shown its worth there, two simulated cards of which the second
        is current, or a card of another kind, or a real card that is kept busy.
        """
        if self._ends_before:  # as with a missing module: no run comes further
            return judge(self._claims[index], self._original(self._device), self._with_all(self._device))
        judgement = self._on_usual_devices(index)
        if judgement.verdict in (Verdict.COULD_NOT_JUDGE, Verdict.NOT_REACHED, Verdict.NOT_REPRODUCED):
            judgement = self._past_missed_faults(index) or judgement
        if judgement.verdict is not Verdict.REFUTED:
            judgement = self._compared(index, judgement)
        if judgement.verdict is Verdict.NOT_REPRODUCED and "@" not in self._device:
            for device in self._elsewhere(self._claims[index].code):
                if device == self._device or not self._with_all(device).complete:
                    continue
                other = self._on(device, index)
                if other.verdict is Verdict.CONFIRMED:
                    return other
        return judgement

    def _past_missed_faults(self, index: int) -> Judgement | None:
        """The judgement with mixed devices let through, where the corrected program stops at a fault that no fix is for."""
        corrected = self._with_all(self._device)
        if not self._simulated or corrected.stop is None or not corrected.stop.device:
            return None
        further = self._run(f"{self._corrected}, mixed devices allowed", frozenset(), self._device, True)
        if not further.complete and further.stop == corrected.stop:
            return None
        label = f"{self._label(index)}, mixed devices allowed"
        without = self._run(label, frozenset({index}), self._device, True)
        judgement = judge(self._claims[index], without, further, None, self._tolerance(self._device, without, further))
        if judgement.verdict not in (Verdict.CONFIRMED, Verdict.REFUTED):
            return None
        for fault in further.caught:
            where = fault.where or f"line {fault.line}"
            self._runner.note(
                f"{where}: no fix addresses this fault; it was ignored to judge the other fixes: {fault.text}"
            )
        return replace(judgement, then=corrected.stop)

    @property
    def falls_short(self) -> str:
        """Why the corrected program does not run as far as the original was meant to; "" when it does."""
        corrected = self._with_all(self._device)
        if not falls_short(corrected, ()):
            return ""
        original = self._original(self._device)
        return falls_short(corrected, [original, *([] if self._ends_before else [self._original("cpu")])])

    @property
    def changes(self) -> str:
        """How the fixes change together what the program computes; "" when they do not."""
        if self._ends_before:
            return ""
        seen = [compared for _, compared in self._comparisons()]
        return next(
            (each for compared in seen for each in (*compared.guilty.values(), compared.unexplained) if each), ""
        )

    @property
    def texts(self) -> dict[str, str]:
        """The texts of the files that the fixes change, by path."""
        return self._whole.changed

    def _compared(self, index: int, judgement: Judgement) -> Judgement:
        """The same judgement, unless the fix changes what the program computes on plain CPU or on the device."""
        claim = self._claims[index]
        seen = self._comparisons()
        if not any(compared.covers(claim) for _, compared in seen):
            seen += self._alone_with(index)
        for device, compared in seen:
            if index in compared.guilty:
                why = f"the fix changes the results of the program: {compared.guilty[index]}"
                return Judgement(Verdict.REFUTED, (why,), None, compared.corrected.device)
            where = "plain CPU" if device == "cpu" else compared.corrected.device
            if compared.unexplained:
                self._runner.note(
                    f"together, the fixes change the results of the program on {where}: {compared.unexplained}"
                )
            if compared.varying:
                self._runner.note(
                    f"not compared on {where}, because the values differ between runs: {compared.words()}"
                )
        if judgement.verdict is Verdict.CONFIRMED and any(compared.varies(claim) for _, compared in seen):
            return replace(judgement, evidence=(*judgement.evidence, f"{claim.at} {_NOT_STEADY}"))
        return judgement

    def _comparisons(self) -> list[tuple[str, Compared]]:
        """Original and corrected program side by side, on plain CPU and on the device.

        Where the original stops at a fault that can be let through, it is, so that it shows what it would compute.
        """
        found = [("cpu", self._comparison.on("cpu", self._stops_early("cpu")))]
        if self._device != "cpu":
            found.append((self._device, self._comparison.on(self._device, self._stops_early(self._device))))
        return found

    def _alone_with(self, index: int) -> list[tuple[str, Compared]]:
        """The program with all fixes beside the one without this fix, on plain CPU, else on the card."""
        found = [("cpu", self._comparison.alone(index, "cpu", False))]
        if self._simulated and not found[0][1].covers(self._claims[index]):
            found.append((self._device, self._comparison.alone(index, self._device, True)))
        return found

    def _stops_early(self, device: str) -> bool:
        stop = self._original(device).stop
        if stop is None or not stop.device:
            return False
        return device.startswith("sim") or (device == "cpu" and stop.key in self._alignment.discarded)

    def _elsewhere(self, code: str) -> Sequence[str]:
        """Further devices on which a fix of a rule may show its worth."""
        if self._simulated:
            return _ELSEWHERE.get(code[:4], ())
        return (BUSY,) if self._device == "cuda" and code in _HIDDEN else ()

    def _on_usual_devices(self, index: int) -> Judgement:
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
        original, corrected = self._original(device), self._with_all(device)
        without = self._without(device, index)
        judgement = judge(claim, without, corrected, original, self._tolerance(device, without, corrected))
        if judgement.verdict is Verdict.NOT_REPRODUCED and original.stop is not None:
            only = self._run(self._alone(index), self._everything - {index}, device)
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
            forgiven = self._runner.run(
                self._edition(frozenset({index})), device, f"{self._label(index)}, mixed devices allowed", True
            )
            if brought(suspect, claim, corrected, forgiven):
                return Judgement(
                    Verdict.REFUTED,
                    (f"the fix causes a fault at {suspect.where}, which has none without the fix: {suspect.text}",),
                    None,
                    judgement.device,
                )
        return judgement

    def _from_the_original(self, device: str, index: int) -> Judgement:
        """Where original and corrected program do the same, the original stands for the one without this fix."""
        original, corrected = self._original(device), self._with_all(device)
        return judge(self._claims[index], original, corrected, None, self._tolerance(device, original, corrected))

    def _differ_on(self, device: str) -> bool:
        """Whether the fixes together change what the program does there, so that each must be looked at by itself."""
        original, corrected = self._original(device), self._with_all(device)
        if differ(original, corrected, self._tolerance(device, original, corrected)):
            return True
        return device != "cpu" and not (original.complete and corrected.complete)

    def _tolerance(self, device: str, a: Run, b: Run) -> Tolerance:
        """How losses are compared. If two runs differ, the corrected one is repeated: it must agree with itself."""
        tolerance = REAL_CARD if device.partition("@")[0] in REAL else SAME_KERNELS
        if not differing_losses(a, b, tolerance):
            return tolerance
        if device not in self._repeats:
            once = self._with_all(device)
            label = f"{self._corrected}, repeated"
            twice = self._runner.run(self._whole, device, label, again=True)
            self._repeats[device] = not differing_losses(once, twice, tolerance)
            if not self._repeats[device]:
                self._runner.note(_VARIES)
        return tolerance if self._repeats[device] else NOT_COMPARED


def _claim(index: int, case: FixCase, originals: Mapping[str, Places], whole: Edition) -> Claim:
    path = case.file or next(iter(originals))
    original = originals[path]
    finding = original.at(case.span.start)
    own = {finding} if finding is not None else set()
    for edit in case.edits:
        own.update(original.touching(edit.start, edit.end))
    watch = {number for span in case.related if (number := original.at(span.start)) is not None}

    def key(number: int) -> str:
        return whole.key(path, str(number))

    def beside(number: int) -> tuple[str | None, str | None]:
        after, before = original.beside(number, own)
        return (None if after is None else key(after)), (None if before is None else key(before))

    line = original.lines.line(case.span.start)
    return Claim(
        index=index,
        code=case.code,
        finding=None if finding is None else key(finding),
        line=line,
        own=frozenset(map(key, own)),
        watch=frozenset(map(key, watch)),
        beside={key(number): beside(number) for number in own},
        where=whole.where(path, line),
        loses=_loses(case, original, finding),
    )


def _loses(case: FixCase, original: Places, finding: int | None) -> str:
    """The function that the statement of a finding calls around it and that the fix no longer calls there."""
    if finding is None:
        return ""
    statement = original.statements[finding]
    text = original.lines.text[statement.start : statement.end]
    corrected, begin = text, statement.start
    for edit in sorted(case.edits, reverse=True):
        if begin <= edit.start and edit.end <= statement.end:
            corrected = corrected[: edit.start - begin] + edit.text + corrected[edit.end - begin :]
    return lost_call(text, case.span.start - begin, corrected)


def _is_real(device: str) -> bool:
    return device.partition("@")[0] in REAL


def _fixes(count: int) -> str:
    return f"{count} fix" if count == 1 else f"{count} fixes"
