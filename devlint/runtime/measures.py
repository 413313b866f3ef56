"""What a fix changes besides exceptions and losses: quantities that two runs which differ by one fix have or have not.

Each measure looks at one quantity and says whether it went away with the fix (confirmed), stays (refuted), or was not
seen (None). A rule is judged by the measures that its own fault shows in; what a fix must not bring, whatever its rule,
is in `worsened`. Free of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from devlint.runtime.runs import Claim, ClockRead, Copies, Noticed, Run, Verdict

Seen = tuple[Verdict, str]
Measure = Callable[[Claim, Run, Run], "Seen | None"]

MOST_GRAPHS = 2
"""Graphs of earlier backward passes that a loop keeps without collecting them: the last loss, and one more."""


def measured(claim: Claim, without: Run, with_fix: Run) -> Seen | None:
    """What the measures of the claim's rule say; None where its quantity was not seen."""
    for measure in _measures_of(claim.code):
        seen = measure(claim, without, with_fix)
        if seen is not None:
            return seen
    return None


def of_the_whole_run(code: str) -> bool:
    """Whether a rule is judged by a quantity that belongs to a run and to no statement of it."""
    return any(measure in _WHOLE for measure in _measures_of(code))


def worsened(claim: Claim, without: Run, with_fix: Run) -> list[str]:
    """What no fix may bring: reads of unfinished copies, lost parameters, collected graphs, an idle accelerator.

    Nor may one for other devices take away what a clock waited for. (One that saves a copy may: the copy was the wait.)
    """
    found = [
        f"with the fix, {_at(race)}: the host reads a copy before it is complete"
        for key, race in with_fix.races.items()
        if key not in without.races and without.ran(key)
    ]
    if claim.portability and without.kernels:
        found += [
            f"with the fix, the clock is read at {_at(clock)} with {_kernels(clock.pending)} queued; without it, none is queued"
            for clock in _no_longer_waited_for(without, with_fix)
        ]
    if without.complete and with_fix.complete:
        if with_fix.training.in_no_optimizer > without.training.in_no_optimizer:
            found.append(f"with the fix, {_untrained(with_fix)}; without the fix, {_untrained(without)}")
        if with_fix.graphs > max(without.graphs, MOST_GRAPHS):
            found.append(
                f"{with_fix.graphs} graphs of earlier backward passes are kept with the fix, {without.graphs} without it"
            )
        if without.kernels and not with_fix.kernels:
            found.append(
                f"the fix takes all work from the accelerator, which ran {_kernels(without.kernels)} without the fix"
            )
    return found


def changes_as_a_whole(original: Run, corrected: Run) -> bool:
    """Whether two runs differ in a quantity that belongs to no statement, so that it cannot tell whose doing it is."""
    return (
        bool(original.kernels) != bool(corrected.kernels)
        or original.training != corrected.training
        or (max(original.graphs, MOST_GRAPHS) != max(corrected.graphs, MOST_GRAPHS))
        or bool(_no_longer_waited_for(original, corrected))
    )


def _no_longer_waited_for(without: Run, with_fix: Run) -> list[ClockRead]:
    """Clocks that are read with work queued, and were not."""
    known = without.clocks
    return [
        clock for key, clock in with_fix.clocks.items() if clock.pending and key in known and not known[key].pending
    ]


def starts_to_train(without: Run, with_fix: Run) -> bool:
    """Whether the fix brings parameters to an optimizer that got gradients and were in none."""
    return with_fix.training.with_gradient > 0 and with_fix.training.in_no_optimizer < without.training.in_no_optimizer


def takes_up_work(without: Run, with_fix: Run) -> bool:
    """Whether the accelerator has work with the fix and none without it."""
    return without.complete and not without.kernels and with_fix.kernels > 0


# ---------------------------------------------------------------------------------------------------- the measures


def _clocks(claim: Claim, without: Run, with_fix: Run) -> Seen | None:
    """Kernels that are still queued when a clock is read."""
    early = {k: c for k, c in without.clocks.items() if c.pending > 0}
    still = {k: c for k, c in with_fix.clocks.items() if c.pending > 0}
    for key in (claim.finding, *sorted(claim.own)):
        if key in still and (key in early or key in without.clocks):
            read = still[key]
            return (
                Verdict.REFUTED,
                f"{_at(read)}: with the fix, the clock is still read with {_kernels(read.pending)} queued",
            )
    gone = [c for k, c in early.items() if k not in still and (k in with_fix.clocks or with_fix.counts.get(k, 0))]
    if not gone:
        return None
    if claim.code.startswith("DEV4"):
        unread = [
            c for k, c in early.items() if k in claim.own and with_fix.counts.get(k, 0) and k not in with_fix.clocks
        ]
        if unread:
            return Verdict.REFUTED, f"{_at(unread[0])}: with the fix, the clock is no longer read"
        anew = [c for k, c in with_fix.clocks.items() if k in claim.written and k.rpartition("/")[2].startswith("+")]
        if anew:
            return Verdict.REFUTED, f"{claim.at}: the fix adds a read of the clock, so it measures another time"
    other_work = _other_work(without, with_fix) if claim.code.startswith("DEV4") else ""
    if other_work:
        return Verdict.REFUTED, f"{claim.at}: {other_work}"
    read = min(gone, key=lambda c: (c.line != claim.line, c.line))
    said = f"{_at(read)}: without the fix, the clock is read with {_kernels(read.pending)} still queued"
    after = next((c for k, c in with_fix.clocks.items() if early.get(k) == read), None)
    times = ""
    if after is not None and after.milliseconds is not None and read.milliseconds is not None:
        times = f"; time since the last read: {read.milliseconds:.3g} ms without the fix, {after.milliseconds:.3g} ms with it"
    return Verdict.CONFIRMED, f"{said}; with the fix, none is queued{times}"


def _other_work(without: Run, with_fix: Run) -> str:
    """How the work between two clock reads differs, by its kernels: what is timed must stay the same work."""
    for pair, counts in without.timed.items():
        there = with_fix.timed.get(pair)
        if there is not None:
            for before, after in zip(counts, there, strict=False):
                if before != after:
                    return f"the fix changes the measured work: {_kernels(before)} become {after}"
    return ""


def _copies(claim: Claim, without: Run, with_fix: Run) -> Seen | None:
    """Copies from the host to a card at the fix's statements."""

    def total(run: Run) -> Copies:
        at = [run.copies[k] for k in claim.own | claim.written if k in run.copies]
        calls = frozenset(call for c in at for call in c.calls)
        return Copies(claim.line, sum(c.count for c in at), sum(c.bytes for c in at), calls)

    old, new = total(without), total(with_fix)
    if not old.count or (claim.finding is not None and with_fix.counts.get(claim.finding, 1) == 0):
        return None
    waits = [sum(run.waits.get(key, 0) for key in claim.own) for run in (without, with_fix)]
    change = (
        f"{claim.at}: {_copied(old)} to the card and {_waits(waits[0])} without the fix, "
        f"{_copied(new)} and {_waits(waits[1])} with it"
    )
    if (new.count, new.bytes) < (old.count, old.bytes) and new.bytes <= old.bytes:
        return Verdict.CONFIRMED, change
    if new.calls == old.calls:
        return Verdict.REFUTED, change
    return Verdict.NOT_REPRODUCED, f"{change}: {', '.join(sorted(new.calls))} makes its own copy"


def _races(claim: Claim, without: Run, with_fix: Run) -> Seen | None:
    """Memory that the host reads while a copy into it may be under way."""
    anew = [race for key, race in with_fix.races.items() if key in claim.written and key not in without.races]
    if anew and without.races:
        return Verdict.REFUTED, f"{claim.at}: in what the fix writes, too, {', '.join(sorted(anew[0].texts))}"
    gone = [race for key, race in without.races.items() if key not in with_fix.races and with_fix.ran(key)]
    if gone:
        race = gone[0]
        what = f"without the fix, {_at(race)}: {', '.join(sorted(race.texts))}, {_times(race.count)}"
        return Verdict.CONFIRMED, f"{what}; with the fix, the copy is complete"
    stays = [race for key, race in without.races.items() if key in with_fix.races and key in claim.own | claim.watch]
    if stays:
        race = stays[0]
        return Verdict.REFUTED, f"{_at(race)}: with the fix, too, {', '.join(sorted(race.texts))}"
    return None


def _warnings(claim: Claim, without: Run, with_fix: Run) -> Seen | None:
    """Warnings of libraries at the fix's statements, and at those that it writes."""
    places = claim.own | claim.written

    def texts(run: Run) -> dict[str, Noticed]:
        return {text: run.warned[key] for key in places if key in run.warned for text in run.warned[key].texts}

    before, after = texts(without), texts(with_fix)
    if not before or not any(with_fix.ran(key) for key in claim.own):
        return None
    gone = [text for text in before if text not in after]
    if not gone:
        text, there = next(iter(after.items()))
        return Verdict.REFUTED, f"{_at(there)}: the warning stays with the fix: {text}"
    text = min(gone)
    return Verdict.CONFIRMED, f"without the fix, {_at(before[text])} warns: {text}; with the fix, there is no warning"


def _graphs(claim: Claim, without: Run, with_fix: Run) -> Seen | None:
    """Graphs of backward passes that are done with and still alive."""
    if without.graphs <= MOST_GRAPHS:
        return None
    change = f"{without.graphs} graphs of earlier backward passes are kept without the fix, {with_fix.graphs} with it"
    return Verdict.CONFIRMED if with_fix.graphs < without.graphs else Verdict.REFUTED, f"{claim.at}: {change}"


def _training(claim: Claim, without: Run, with_fix: Run) -> Seen | None:
    """Parameters that get gradients and that no optimizer has."""
    if not without.training.in_no_optimizer:
        return None
    change = f"{_untrained(without)} without the fix, {with_fix.training.in_no_optimizer} with it"
    return Verdict.CONFIRMED if starts_to_train(without, with_fix) else Verdict.REFUTED, f"{claim.at}: {change}"


def _idle(claim: Claim, without: Run, with_fix: Run) -> Seen | None:
    """An accelerator that the program gives nothing to do."""
    if not takes_up_work(without, with_fix):
        return None
    return (
        Verdict.CONFIRMED,
        f"{claim.at}: the program gives the accelerator no work without the fix, {_kernels(with_fix.kernels)} with it",
    )


_WHOLE: tuple[Measure, ...] = (_graphs, _training, _idle, _races)
_BY_RULE: dict[str, tuple[Measure, ...]] = {
    "DEV107": (_training,),
    "DEV108": (_training,),
    "DEV111": (_training,),
    "DEV204": (_warnings,),
    "DEV206": (_clocks, _idle),
    "DEV209": (_warnings,),
    "DEV211": (_clocks, _idle),
    "DEV306": (_warnings,),
    "DEV4": (_clocks,),
    "DEV501": (_copies,),
    "DEV503": (_copies,),
    "DEV505": (_races,),
    "DEV508": (_graphs,),
}
"""The measures that the fault of a rule, or of a family of rules, shows in; the others stop with an exception."""


def _measures_of(code: str) -> Iterator[Measure]:
    yield from _BY_RULE.get(code) or _BY_RULE.get(code[:4], ())


# ------------------------------------------------------------------------------------------------------- in words


def _at(seen: ClockRead | Noticed) -> str:
    return seen.where or f"line {seen.line}"


def _kernels(count: int) -> str:
    return "1 kernel" if count == 1 else f"{count} kernels"


def _untrained(run: Run) -> str:
    training = run.training
    return f"{training.in_no_optimizer} of {training.with_gradient} parameters with a gradient are in no optimizer"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _waits(count: int) -> str:
    return f"{count} {'synchronization' if count == 1 else 'synchronizations'}"


def _copied(copies: Copies) -> str:
    return f"{copies.count} {'copy' if copies.count == 1 else 'copies'} of {copies.bytes} bytes"
