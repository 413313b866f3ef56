"""Constraints at roots: which fail, and who says so.

A root is the module level, a function, or a method of an object after its constructor. What a root's arguments are is not
known there; what the code says of them is the evidence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from devlint.inference.library import protocols
from devlint.inference.program.definitions import Class, Function
from devlint.inference.summary.first_failure import fails_before, is_off, is_refused, supposed
from devlint.inference.summary.model import LEAVING, Constraint, LeftBehind, Operand, Site, Step
from devlint.inference.summary.watching import Silence, Watch
from devlint.inference.terms.conditions import DATA, SAME, Condition, both, compatible, needs_no_accelerator
from devlint.inference.terms.conflicts import clash
from devlint.inference.terms.places import ACCELERATORS, CPU, Alternative, Path, is_accelerator, is_unread
from devlint.inference.witness.model import ORDER, Mismatch
from devlint.model import Evidence

#: Origins that say by themselves that a tensor is on the CPU, whatever the rest of the program does.
_MADE = frozenset({"computed", "factory", "option", "host", "module", "moved", "named"})
#: Origins that a caller could have chosen otherwise, or that the code chose on purpose.
_CHOSEN = frozenset({"option", "named"})


class _Nobody(NamedTuple):
    """Nobody says that there is an accelerator, and why."""

    why: Silence


class Judge:
    """Judges the constraints of one root."""

    def __init__(
        self, aware: bool, handed: dict[int, set[str]], asking: frozenset[int], declared: bool = False,
        watch: Watch | None = None,
    ) -> None:  # fmt: skip
        """`asking`: the identities of the classes of which some method reads where something is. `watch`: who is told why
        a constraint is not reported."""
        self.watch = watch
        self.root: Site | None = None
        self.earlier: list[Constraint] = []  # the operations before the one that is judged
        self.aware = aware
        self.declared = declared
        self.asking = asking
        self.handed = handed

    def _handles_devices(self, site: Site) -> bool:
        """Whether a function reads where something is, or its class does, or it runs beside a module."""
        return (
            bool(site.asks)
            or _is_beside_module(site)
            or (site.receiver is not None and id(site.receiver) in self.asking)
        )

    def judge(self, constraints: list[Constraint], root: Site | None) -> Iterator[Mismatch]:
        """`root`: the function whose arguments are not known; None where nothing is given."""
        self.root = root
        self.earlier = []
        for each in constraints:
            found = self._strongest(each, root is not None) if not each.settled else None
            self.earlier.append(each)
            if found is None:
                continue
            if self.watch is not None:
                self.watch.found(each, found)
            yield found

    def _strongest(self, each: Constraint, is_root: bool) -> Mismatch | None:
        if not compatible(each.condition):
            return self._silent(each, None, "impossible")
        if needs_no_accelerator(each.condition):
            return self._silent(each, None, "no accelerator")
        best: Mismatch | None = None
        for x in each.first.places:
            for y in each.second.places:
                found = self._pair(each, x, y, is_root)
                if found is not None and (best is None or found.strength < best.strength):
                    best = found
        return best

    def _silent(self, each: Constraint, pair: tuple[Alternative, Alternative] | None, why: Silence) -> Mismatch | None:
        """Nothing is reported: tell who watches why."""
        if self.watch is not None:
            self.watch.silent(each, pair, self.root, why)
        return None

    def _pair(self, each: Constraint, x: Alternative, y: Alternative, is_root: bool) -> Mismatch | None:
        condition = self._together(each, x, y)
        if condition is None:
            return self._silent(each, (x, y), "apart")
        if x.also == y.atom or y.also == x.atom:
            return self._silent(each, (x, y), "together")
        if (("same", frozenset({x.atom, y.atom})), True) in condition:
            return self._silent(each, (x, y), "compared")
        kind = clash(x.atom, y.atom)
        sibling = _sibling(each, x, y) if kind is None else None
        if kind is None and sibling is None:
            return self._silent(each, (x, y), "no clash")
        first_is_off = is_off(x, y) if sibling is None else sibling.first
        off, off_at, other, other_at = (
            (each.first, x, each.second, y) if first_is_off else (each.second, y, each.first, x)
        )
        if not is_refused(each, off_at, first_is_off):
            return self._silent(each, (x, y), "allowed")
        if kind in ("given", "device") and (SAME, True) in condition:
            return self._silent(each, (x, y), "compared")
        if kind in ("given", "device") and other_at.atom.key in _on_host(condition):
            return self._silent(each, (x, y), "on host")
        if kind == "given" and _is_fallback(off, off_at):
            return self._silent(each, (x, y), "fallback")
        if kind == "given" and any(test[0] == "type" and test[2] == DATA and outcome for test, outcome in condition):
            return self._silent(each, (x, y), "data")
        evidence = self._evidence(each, kind, off_at, other, other_at, is_root)
        if isinstance(evidence, _Nobody):
            return self._silent(each, (x, y), evidence.why)
        if each.how not in LEAVING and fails_before(self.earlier, supposed(condition, x, y)):
            return self._silent(each, (x, y), "earlier")
        soft = off_at.soft or other_at.soft or each.is_likely
        return Mismatch(
            each.how, each.mixing, each.operation, off, off_at, other, other_at, each.node, each.site, evidence,
            soft, condition, each.chain, sibling.move if sibling is not None else None,
            each.local[1 if first_is_off else 0] if each.local is not None else None,
            *_handed(each, first_is_off),
        )  # fmt: skip

    def _together(self, each: Constraint, x: Alternative, y: Alternative) -> Condition | None:
        """The condition under which both alternatives meet; None where they cannot."""
        if each.how in LEAVING:
            return None if not compatible(x.condition) else x.condition
        joined, _ = both(x.condition, y.condition)
        joined, _ = both(joined, each.condition)
        whole = x.condition | y.condition | each.condition
        return joined if compatible(whole) and not needs_no_accelerator(whole) else None

    def _evidence(
        self, each: Constraint, kind: str | None, off: Alternative, other: Operand, other_at: Alternative, is_root: bool
    ) -> Evidence | _Nobody:
        if kind in ("named", "device") and _asks_others(each.condition | off.condition | other_at.condition):
            return "contract"
        if kind == "named":
            return "called" if each.chain else "named"
        if kind == "device":
            if not each.chain and self.handed.get(id(each.node)) == {"host"}:
                return _Nobody("host calls")
            if off.origin is not None and off.origin.why == "loader" and (each.is_likely or other_at.soft):
                return _Nobody("unsure loader")
            return "called" if each.chain else "device"
        if kind is None:
            return "intended"
        if not is_root:
            return _Nobody("not a root")
        found = self._of_given(each, off, other, other_at)
        return "declared" if found == "contract" and self.declared and self._is_public() else found

    def _is_public(self) -> bool:
        """Whether a user of the project may call the root: no name on the way to it starts with an underscore."""
        function = self.root.function if self.root is not None else None
        if function is None or function.outer is not None:
            return False
        names = [function.name, *([function.owner.name] if function.owner is not None else [])]
        return not any(name.startswith("_") and not name.endswith("__") for name in names)

    def _of_given(
        self, each: Constraint, off: Alternative, other: Operand, other_at: Alternative
    ) -> Evidence | _Nobody:
        """The CPU meets something that was given: who says that this may be on an accelerator."""
        if off.origin is None or off.origin.why not in _MADE:
            return _Nobody("chosen")
        if not off.origin.registered:
            return _Nobody("not registered")
        if not _is_proved(each, other, other_at):
            return _Nobody("unproved")
        if self.handed.get(id(each.node)) == {"host"}:
            return _Nobody("host calls")
        if other_at.atom.key[0].startswith("@"):
            return _Nobody("outer")
        path: Path = other_at.atom.key
        root = path[0]
        if each.how == "host" and root not in each.site.asks:
            return "contract"
        if _runs_on_host(each.site):
            return _Nobody("before transfer")
        if each.site.function is not None and each.site.function.name == "__init__" and not each.site.asks:
            return _Nobody("constructor")
        if off.origin.why in _CHOSEN or each.how == "paths":
            return "contract"
        if off.origin.why == "module" and not self.aware:
            return "contract"  # nothing here uses an accelerator
        if any(self._handles_devices(site) for site in (each.site, self.root) if site is not None):
            return "intended"
        return "intended" if self.aware and root.startswith("self") else "contract"


def _is_fallback(operand: Operand, at: Alternative) -> bool:
    """Whether a value is on the CPU only where there is no accelerator: its device was chosen."""
    return any(
        other.origin is at.origin
        or (other.origin is not None and at.origin is not None and other.origin.node is at.origin.node)
        for other in operand.places
        if is_accelerator(other.atom)
    )


def _handed(each: Constraint, first_is_off: bool) -> tuple[Step | None, Path | None]:
    """The call that hands the value to move to the function of the operation: it is moved there, and not inside."""
    depth = each.closed[0 if first_is_off else 1]
    if depth == 0 or each.how == "host" or each.local is None:
        return None, None
    off = each.local[0 if first_is_off else 1]
    path = off.places[0].atom.key if len(off.places) == 1 and off.places[0].atom.tag == "place" else ()
    if off.kind == "module" or len(path) != 1 or path[0].startswith(("self", "@", "%")):
        return None, None
    return each.chain[len(each.chain) - depth], path if depth == 1 else None


def _on_host(condition: Condition) -> set[Path]:
    """The access paths of which a condition says that they are on the host, or name it."""
    asked = [each for each in condition if each[0][0] in ("device", "names")]
    return {test[1] for test, outcome in asked if outcome == (test[2] not in ACCELERATORS)}


def _asks_others(condition: Condition) -> bool:
    """Whether a place is what it is because of where another value is, or what device another one names as the host."""
    return any(test[0] == "device" for test, _ in condition) or bool(_on_host(condition))


def _is_proved(each: Constraint, operand: Operand, at: Alternative) -> bool:
    """Whether what was given is surely a tensor, or a module, and not a number."""
    if at.soft and operand.kind == "unknown":
        return False
    if operand.kind == "module" or each.how == "module":
        return operand.kind != "unknown" or not each.is_likely or each.how == "module"
    if operand.kind == "unknown":
        return at.atom.key in each.site.tensors
    return operand.proved or at.atom.key in each.site.tensors


def _sibling(each: Constraint, x: Alternative, y: Alternative) -> LeftBehind | None:
    """The part that was left behind, where nothing more is known of where it is."""
    left = each.left_behind
    if left is None:
        return None
    part, there = (x, y) if left.first else (y, x)
    if (
        part.atom.tag not in ("place", "unknown")
        or part.atom == there.atom
        or there.atom == CPU
        or is_unread(there.atom)
    ):
        return None
    if each.mixing == "index" and not left.first:
        return None
    return left


def _runs_on_host(site: Site) -> bool:
    """Whether the protocol of a library says that the method runs before any transfer."""
    class_ = site.receiver
    name = site.function.name if site.function is not None else ""
    return class_ is not None and class_.family in protocols.HOST_FAMILIES and name in protocols.ON_HOST


def _is_beside_module(site: Site) -> bool:
    class_, function = site.receiver, site.function
    if class_ is None or function is None:
        return False
    if class_.family == "Optimizer":
        return function.name in protocols.BESIDE_PARAMETERS
    return class_.is_module and function.name in protocols.BESIDE_MODULE


__all__ = ["LEAVING", "ORDER", "Class", "Function", "Judge"]
