"""A mismatch: a constraint that fails, with its witness and its proof."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import Final

from devlint.inference.summary.model import How, Operand, Site, Step
from devlint.inference.terms.conditions import Condition
from devlint.inference.terms.places import Alternative, Path
from devlint.model import Evidence, Severity

#: From the strongest to the weakest.
ORDER: tuple[Evidence, ...] = ("named", "device", "called", "intended", "declared", "contract")

#: The severity of a finding, by its evidence and whether it is proved.
SEVERITIES: Final[dict[tuple[Evidence, bool], Severity]] = {
    ("named", True): Severity.ERROR,
    ("device", True): Severity.ERROR,
    ("called", True): Severity.ERROR,
    ("named", False): Severity.INFO,
    ("device", False): Severity.INFO,
    ("called", False): Severity.INFO,
    ("intended", True): Severity.INFO,
    ("intended", False): Severity.INFO,
    ("declared", True): Severity.WARNING,
    ("declared", False): Severity.INFO,
    ("contract", True): Severity.INFO,
    ("contract", False): Severity.INFO,
}


@dataclass(frozen=True, slots=True, eq=False)
class Mismatch:
    """Two values that are on different devices where torch needs them on one.

    `off` is the operand to move with its place, `other` the one that it meets. `node`: the operation. `chain`: the calls
    from the root to it. `local`: `other` as the function sees it. `handed`: the call that hands `off` over, where the
    operation gets it from its callers; `handed_path`: as what.
    """

    how: How
    mixing: str
    operation: str
    off: Operand
    off_at: Alternative
    other: Operand
    other_at: Alternative
    node: ast.AST
    site: Site
    evidence: Evidence
    soft: bool
    condition: Condition
    chain: tuple[Step, ...]
    left_behind: ast.AST | None = None
    local: Operand | None = None
    handed: Step | None = None
    handed_path: Path | None = None

    @property
    def place(self) -> tuple[ast.AST, Site]:
        """Where the finding stands: where its fix is."""
        origin = self.off_at.origin
        if self.handed is not None and (origin is None or origin.why not in ("factory", "option")):
            return self.handed.node, self.handed.site
        return self.node, self.site

    @property
    def severity(self) -> Severity:
        return SEVERITIES[self.evidence, not self.soft]

    @property
    def strength(self) -> tuple[int, int, bool]:
        """Smaller is stronger."""
        return self.severity.rank, ORDER.index(self.evidence), self.soft
