"""Which fixes change what a program computes: the original and corrected copies are run side by side and compared.

Where the original and the program with all fixes do the same, none of the fixes changes anything, and that costs no run
that is not made anyway. Where they differ, the original is run once more, to see what varies by itself, and then fixes
are left out one at a time until the difference is gone. Free of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from devlint.runtime.compare import Difference, Manner, differences, in_words, unsteady
from devlint.runtime.measures import starts_to_train
from devlint.runtime.runs import Claim, Run

REAL_VALUES = 1e-2
"""How far numbers of a real card may be apart: other kernels, in another order."""

_TURNS_ON_THE_DEVICE = ("DEV207",)
"""Rules whose fixes change a decision there on purpose: a comparison of devices that was never true."""


_ENDS_ON_PURPOSE = ("DEV215",)
"""Rules whose fixes take a check away that ends the program elsewhere: `assert torch.cuda.is_available()`."""


class RunProgram(Protocol):
    """Runs the program without some fixes. again: once more, with all clocks set `apart` from those of other runs."""

    def __call__(
        self, left_out: frozenset[int], device: str, forgiving: bool = False, again: bool = False, apart: bool = True
    ) -> Run: ...


@dataclass(slots=True)
class Compared:
    """What one comparison of original and corrected program showed.

    guilty: the fixes that change what is computed, and how. varying: what was not compared. unexplained: a difference
    that no single fix makes. limited: whether only the first steps could be compared.
    """

    original: Run
    corrected: Run
    guilty: dict[int, str] = field(default_factory=dict)
    varying: frozenset[str] = frozenset()
    unexplained: str = ""
    limited: bool = False

    def varies(self, claim: Claim) -> bool:
        """Whether the own statements of a fix vary from run to run."""
        return any(name.startswith("value:") and _statement(name) in claim.own for name in self.varying)

    def reaches(self, claim: Claim) -> bool:
        """Whether a run came to what a fix is about; else it changes nothing."""
        runs = (self.original, self.corrected)
        return any(run.ran(key) for run in runs for key in claim.own | claim.written)

    def covers(self, claim: Claim) -> bool:
        """Whether the original computed all that was looked at in a fix's own statements, and the corrected program did."""
        if self.limited:
            return False
        mine, its = self.original.values, self.corrected.values
        here = [name for name in its if name.partition("@")[0] in claim.own and its[name].rows]
        if here and all(name in mine and mine[name].rows for name in here):
            return True
        gone = [key for key in claim.own if key not in self.corrected.counts]
        return bool(gone) and all(_went_past(self.original, key) for key in gone)

    def words(self) -> str:
        """What was not compared, in one line."""
        lines = self.original.lines
        return ", ".join(in_words(self.varying, lambda key: lines.get(key, "a line")))


class Comparison:
    """Compares the original with corrected programs, once for each device."""

    def __init__(
        self, claims: Sequence[Claim], run: RunProgram, everything: frozenset[int], is_real: Callable[[str], bool]
    ):
        self._claims = claims
        self._run = run
        self._everything = everything
        self._is_real = is_real
        self._made: dict[tuple[str, bool], Compared] = {}
        self._alone: dict[tuple[int, str, bool], Compared] = {}

    def on(self, device: str, forgiving: bool = False) -> Compared:
        """What the comparison on a device shows. forgiving: mixed devices are let through in the original."""
        if (device, forgiving) not in self._made:
            self._made[device, forgiving] = self._compare(device, forgiving)
        return self._made[device, forgiving]

    def alone(self, index: int, device: str, forgiving: bool) -> Compared:
        """What a comparison with the program without one fix shows, where the original does not come to that fix."""
        if (index, device, forgiving) not in self._alone:
            without = self._run(frozenset({index}), device, forgiving)
            corrected = self._corrected_run(device, forgiving)
            found = Compared(without, corrected, limited=starts_to_train(without, corrected))
            manner = self._manner(device, without, corrected)
            if found.reaches(self._claims[index]) and self._differences(without, corrected, manner, device):
                found.varying = self._varying(without, frozenset({index}), device, forgiving, manner)
                left = self._differences(without, corrected, replace(manner, skip=found.varying), device)
                left = [
                    each for each in left if not each.name.startswith("dropped:") or each.name == f"dropped:{index}"
                ]
                found.guilty = {index: left[0].text} if left else {}
            stop = corrected.stop
            if stop is not None and not stop.device and stop.key is not None and _went_past(without, stop.key):
                found.guilty = {index: f"it stops at {stop.where}, which ran without the fix: {stop.text}"}
            self._alone[index, device, forgiving] = found
        return self._alone[index, device, forgiving]

    def _corrected_run(self, device: str, forgiving: bool) -> Run:
        """The program with all fixes; mixed devices are let through in it, too, where it does not come to its end."""
        corrected = self._run(frozenset(), device)
        return corrected if corrected.complete or not forgiving else self._run(frozenset(), device, True)

    def _compare(self, device: str, forgiving: bool) -> Compared:
        original = self._run(self._everything, device, forgiving)
        corrected = self._corrected_run(device, forgiving)
        found = Compared(original, corrected)
        manner = self._manner(device, original, corrected)
        found.limited = starts_to_train(original, corrected)
        if not self._differences(original, corrected, manner, device):
            return found
        found.varying = self._varying(original, self._everything, device, forgiving, manner)
        self._find_guilty(found, device, forgiving, replace(manner, skip=found.varying))
        return found

    def _varying(
        self, once: Run, left_out: frozenset[int], device: str, forgiving: bool, manner: Manner
    ) -> frozenset[str]:
        """What one program does otherwise when it runs again; clocks that are set apart must not end it early."""
        manner = replace(manner, places=False)
        again = self._run(left_out, device, forgiving, again=True)
        found = unsteady(once, again, manner)
        if (again.outcome, again.stop and again.stop.key) == (once.outcome, once.stop and once.stop.key):
            return found
        return found | unsteady(once, self._run(left_out, device, forgiving, again=True, apart=False), manner)

    def _manner(self, device: str, original: Run, corrected: Run) -> Manner:
        until = 1 if starts_to_train(original, corrected) else None
        if device == "cpu":
            return Manner(until_step=until)
        relative = REAL_VALUES if self._is_real(device) else 1e-5
        if self._is_real(device) and until is None:
            until = 1  # from then on small differences grow
        return Manner(relative=relative, places=True, outputs=False, counts=False, until_step=until)

    def _find_guilty(self, found: Compared, device: str, forgiving: bool, manner: Manner) -> None:
        left_out: frozenset[int] = frozenset()
        current = found.corrected
        while True:
            seen = self._differences(found.original, current, manner, device)
            if not seen:
                return
            names = {each.name for each in seen}
            for index in self._suspects(seen, left_out, found):
                one_less = self._run(left_out | {index}, device, forgiving)
                made = [each for each in differences(one_less, current, manner) if each.name in names]
                made += [each for each in seen if each.name == f"dropped:{index}"]
                if made:
                    found.guilty[index] = made[0].text
                    left_out, current = left_out | {index}, one_less
                    break
            else:
                found.unexplained = seen[0].text
                return

    def _suspects(self, seen: Sequence[Difference], left_out: frozenset[int], found: Compared) -> list[int]:
        """The fixes that are still there and that a run came to, those first at whose statements the program differs."""
        keys = {each.key for each in seen if each.key is not None}
        dropped = {each.name for each in seen}
        left = [claim for claim in self._claims if claim.index not in left_out and found.reaches(claim)]
        order = sorted(
            left, key=lambda claim: (f"dropped:{claim.index}" not in dropped, not keys & (claim.own | claim.written))
        )
        return [claim.index for claim in order]

    def _differences(self, original: Run, corrected: Run, manner: Manner, device: str) -> list[Difference]:
        found = differences(original, corrected, manner)
        if device != "cpu":
            meant = {
                key for claim in self._claims if claim.code in _TURNS_ON_THE_DEVICE for key in claim.own | claim.watch
            }
            found = [each for each in found if each.key not in meant]
            found = self._without_meant_places(found)
        return [*found, *(each for each in self._dropped(original, corrected) if each.name not in manner.skip)]

    def _without_meant_places(self, found: list[Difference]) -> list[Difference]:
        """To bring values to a card is what fixes are for; to take them off one, only if they do so where they stand."""
        own = {key for claim in self._claims for key in claim.own | claim.written}
        meant = any(each.place and each.key in own for each in found)
        return [each for each in found if not each.place or (not meant and each.place.startswith("off"))]

    def _dropped(self, original: Run, corrected: Run) -> Iterator[Difference]:
        """Statements that ran and that a fix takes away without a statement in their place."""
        if not (original.complete or original.stop is not None):
            return
        for claim in self._claims:
            for key in sorted(claim.own):
                if key in corrected.counts or not _completed(original, key) or claim.written - claim.own:
                    continue
                if claim.code in _ENDS_ON_PURPOSE and key == claim.finding:
                    continue  # where it came to its end it did nothing
                where = original.lines.get(key, claim.at)
                yield Difference(f"dropped:{claim.index}", key, f"the fix removes {where}, which ran before")


def _went_past(run: Run, key: str) -> bool:
    """Whether a run came to a statement and did not end there."""
    return run.counts.get(key, 0) > 0 and (run.stop is None or run.stop.key != key)


def _completed(run: Run, key: str) -> bool:
    """Whether a simple statement came to its end at least once."""
    seen = run.values.get(key)
    if seen is None or not seen.simple:
        return False
    return run.counts.get(key, 0) - run.cut.get(key, 0) - (run.stop is not None and run.stop.key == key) > 0


def _statement(name: str) -> str:
    return name.partition(":")[2].partition("@")[0]
