"""Judging many fixes by few runs: groups of them are left out, and each fix is told by the runs that it was missing in.

Every fix gets a code: a set of runs, all codes of one size, no two alike. Run number j is the corrected program without
the fixes whose code has j. Mixed devices are recorded and let through, so a run goes on to the end and shows the faults
of all that is missing. A fault, an early clock read or a copy that shows in exactly the runs of one code is that fix's
own: another single fix has another code; what needs two fixes missing shows in fewer runs, what needs one of two
missing in more. Whatever shows in any other set of runs decides nothing, and the fixes it may concern are left out one
at a time.

All of it holds only for runs that differ in nothing else, which `is_clean` checks. Free of torch.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations, islice
from typing import TypeVar

from devlint.runtime.measures import of_the_whole_run
from devlint.runtime.runs import Caught, Claim, Outcome, Run
from devlint.runtime.verdict import Tolerance, differing_losses

MOST_ROUNDS = 4
"""How often fixes that stop the program are set aside before grouping is given up."""

Code = frozenset[int]
T = TypeVar("T")


def assign(members: Sequence[int]) -> dict[int, Code]:
    """A code for each fix, with as few runs as there are enough codes for."""
    runs = 1
    while math.comb(runs, runs // 2) < len(members):
        runs += 1
    codes = map(frozenset, islice(combinations(range(runs), runs // 2), len(members)))
    return dict(zip(members, codes, strict=True))


def is_clean(run: Run, corrected: Run, members: Iterable[Claim], tolerance: Tolerance) -> bool:
    """Whether a run went the same way as the corrected program, but for the statements that fixes write."""
    if run.outcome is not corrected.outcome or run.outcome is not Outcome.FINISHED:
        return False
    if len(run.losses) != len(corrected.losses) or differing_losses(run, corrected, tolerance):
        return False
    if {(f.test, f.key) for f in run.failures if not f.device} != {
        (f.test, f.key) for f in corrected.failures if not f.device
    }:
        return False
    own = {key for claim in members for key in claim.own}
    same = (set(run.counts) & set(corrected.counts)) - own
    return all(run.counts[key] == corrected.counts[key] for key in same) and run.elsewhere - own == (
        corrected.elsewhere - own
    )


def stoppers(run: Run, members: Iterable[Claim]) -> set[int]:
    """The fixes without which a run stops, or a test fails, where it does."""
    places = {stop.key for stop in (run.stop, *run.failures) if stop is not None and stop.key is not None}
    return {claim.index for claim in members if places & (claim.own | claim.watch)}


def decode(
    members: Mapping[int, Claim], codes: Mapping[int, Code], runs: Sequence[Run], corrected: Run
) -> dict[int, Run]:
    """For each fix that the groups show clearly, the run without it: the corrected run with what is the fix's own."""
    by_code = {code: index for index, code in codes.items()}
    faults = _pattern({c.key: c for c in run.caught} for run in runs)
    early = _pattern({key: c for key, c in run.clocks.items() if c.pending > 0} for run in runs)
    before = {c.key for c in corrected.caught}
    late = {key for key, c in corrected.clocks.items() if c.pending > 0}
    unclear: set[int] = set()
    mine: dict[int, list[Caught]] = {index: [] for index in members}
    clocks: dict[int, set[str]] = {index: set() for index in members}
    for key, pattern in faults.items():
        if key in before:
            continue
        index = by_code.get(pattern)
        if index is None or key is None:
            unclear |= _concerned(key, pattern, members, codes)
        else:
            mine[index].append(next(c for c in runs[min(pattern)].caught if c.key == key))
    for key, pattern in early.items():
        if key in late:
            continue
        index = by_code.get(pattern)
        if index is None:
            unclear |= _concerned(key, pattern, members, codes)
        elif key is not None:
            clocks[index].add(key)
    found: dict[int, Run] = {}
    for index, claim in members.items():
        if index in unclear or of_the_whole_run(claim.code) or not _own_is_steady(claim, codes[index], runs, corrected):
            continue
        shown = runs[min(codes[index])]
        found[index] = replace(
            corrected,
            caught=(*corrected.caught, *mine[index]),
            clocks={**corrected.clocks, **{key: shown.clocks[key] for key in clocks[index]}},
            copies=_of(claim, shown.copies, corrected.copies),
            taken=_of(claim, shown.taken, corrected.taken),
            waits=_of(claim, shown.waits, corrected.waits),
            warned=_of(claim, shown.warned, corrected.warned),
            counts=_of(claim, shown.counts, corrected.counts),
        )
    return found


def _pattern(rows: Iterable[Collection[str | None]]) -> dict[str | None, Code]:
    """In which runs each key is."""
    seen: dict[str | None, set[int]] = {}
    for number, keys in enumerate(rows):
        for key in keys:
            seen.setdefault(key, set()).add(number)
    return {key: frozenset(numbers) for key, numbers in seen.items()}


def _concerned(key: str | None, pattern: Code, members: Mapping[int, Claim], codes: Mapping[int, Code]) -> set[int]:
    """The fixes that something unclear may be about: those of its place, else all that were missing whenever it was."""
    there = {index for index, claim in members.items() if key in claim.own | claim.watch}
    return there or {index for index in members if codes[index] >= pattern or codes[index] <= pattern}


def _own_is_steady(claim: Claim, code: Code, runs: Sequence[Run], corrected: Run) -> bool:
    """Whether copies at the fix's statements depend on this fix alone."""

    def here(run: Run) -> list[object]:
        return [
            (key, copies.count, copies.bytes)
            for key in sorted(claim.own)
            if (copies := run.copies.get(key)) is not None
        ]

    missing = [here(run) for number, run in enumerate(runs) if number in code]
    there = [here(run) for number, run in enumerate(runs) if number not in code]
    return all(each == missing[0] for each in missing) and all(each == here(corrected) for each in there)


def _of(claim: Claim, without: Mapping[str, T], corrected: Mapping[str, T]) -> dict[str, T]:
    """What the corrected run shows, but at the fix's own statements what the run without it does."""
    kept = {key: value for key, value in corrected.items() if key not in claim.own}
    return kept | {key: without[key] for key in claim.own if key in without}
