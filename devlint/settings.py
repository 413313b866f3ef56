"""The settings that the engine and rules see, resolved and validated. Reading them from files is `devlint.config`'s."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from devlint.model import UNREADABLE_FILE, Diagnostic, Safety, Severity


class MovingFunction(NamedTuple):
    """A function of the project that moves one argument to a device: positions of both, `to` None for the run device."""

    moves: int
    to: int | None = None


@dataclass(frozen=True, slots=True)
class Settings:
    """Resolved settings of one file.

    `torch_version`: the lowest torch the project supports; `torch_stated`: whether somebody said so, or it is assumed;
    `torch_newest`: the newest that the project admits, None without an upper bound.
    """

    select: tuple[str, ...] = ()  # code prefixes or names; empty: every rule that is not opt-in
    ignore: tuple[str, ...] = ()
    torch_version: tuple[int, int] = (2, 7)
    torch_stated: bool = True
    torch_newest: tuple[int, int] | None = None
    assume_accelerator: bool = True
    targets: tuple[str, ...] = ()  # what the project must run on: types of devices, or "any"
    inference: str = "old"  # which inference DEV101, 102, 103, 104, 109 and 301 follow
    functions: tuple[tuple[str, MovingFunction], ...] = ()  # by qualified name
    severities: tuple[tuple[str, Severity], ...] = ()  # by code, where somebody set them
    min_severity: Severity | None = None  # the lowest that is reported; None where nobody says so
    fix_changes: tuple[tuple[str, str], ...] = ()  # by code: `withhold`, `promote` (unsafe to safe), `demote`

    def selects(self, code: str, name: str, opt_in: bool) -> bool:
        """Whether a rule is on: the longest matching selector decides, `ignore` wins a tie."""

        def best(selectors: tuple[str, ...]) -> int:
            lengths = [len(s) for s in selectors if s == name or code.startswith(s)]
            if "ALL" in selectors:
                lengths.append(0)
            return max(lengths, default=-1)

        wanted = best(self.select) if self.select else (-1 if opt_in else 0)
        return wanted >= 0 and wanted > best(self.ignore)

    @property
    def reports_unreadable(self) -> bool:
        """Whether a file that cannot be read is a finding: unless that very rule is ignored."""
        return UNREADABLE_FILE.code not in self.ignore and UNREADABLE_FILE.name not in self.ignore

    def reports(self, diagnostic: Diagnostic) -> bool:
        """Whether a finding is grave enough; a file that cannot be read always is."""
        least = self.min_severity or Severity.INFO
        return diagnostic.code == UNREADABLE_FILE.code or diagnostic.severity.rank <= least.rank

    @property
    def counts_info(self) -> bool:
        """Whether findings of severity info count like others, which somebody has to ask for."""
        return self.min_severity is Severity.INFO

    @property
    def changes_diagnostics(self) -> bool:
        """Whether severities or fixes differ from what the rules say."""
        return bool(self.severities or self.fix_changes)

    def severity(self, code: str, own: Severity) -> Severity:
        """The severity of a finding whose own is `own`."""
        return dict(self.severities).get(code, own)

    def safety(self, code: str, own: Safety) -> Safety:
        """How far a fix of a rule is trusted. One that is withheld is shown and never applied."""
        change = dict(self.fix_changes).get(code)
        if change == "withhold":
            return Safety.HINT
        if change == "promote" and own is Safety.UNSAFE:
            return Safety.SAFE
        return Safety.UNSAFE if change == "demote" and own is Safety.SAFE else own
