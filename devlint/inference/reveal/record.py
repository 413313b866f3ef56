"""What is told while the inference reads a file, kept by the place in the code that it is about."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

from devlint.inference.summary.frame import Frame
from devlint.inference.summary.model import Constraint, Site
from devlint.inference.summary.watching import Dropped, Needless, Silence, Unread, Watch
from devlint.inference.terms.places import Alternative, Atom, Places
from devlint.inference.terms.values import Identity, Value
from devlint.inference.witness.model import Mismatch


class Place(NamedTuple):
    """A place in the code: a node of a file."""

    file: str
    node: ast.AST

    @property
    def row(self) -> int:
        return getattr(self.node, "lineno", 0)


class Seen(NamedTuple):
    """What an expression gave in one run. `places`: of a module, where its parameters are."""

    node: ast.expr
    value: Value
    places: Places
    site: Site


class Left(NamedTuple):
    """An operation that leaves no constraint."""

    operation: str
    operands: list[tuple[ast.AST, Value]]
    why: Needless
    site: Site


class Quiet(NamedTuple):
    """A constraint that is not reported at a root, for two of its places."""

    constraint: Constraint
    pair: tuple[Alternative, Alternative] | None
    root: Site | None
    why: Silence


class Lost(NamedTuple):
    """A constraint that a call does not hand on."""

    constraint: Constraint
    call: Place
    why: Dropped


@dataclass(slots=True)
class Operation:
    """All that was told of one operation, over all runs of its function."""

    node: ast.AST
    left: list[Left] = field(default_factory=list)
    constraints: list[Constraint] = field(default_factory=list)
    quiet: list[Quiet] = field(default_factory=list)
    lost: list[Lost] = field(default_factory=list)
    found: list[Mismatch] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)


class Record(Watch):
    """A watch over one file. `rows`: the 1-based rows that are asked for."""

    def __init__(self, path: str, rows: range) -> None:
        self.path = path
        self.rows = rows
        self.seen: dict[ast.expr, list[Seen]] = {}
        self.operations: dict[ast.AST, Operation] = {}
        self.born: dict[Atom, Place] = {}  # where something first was at a place that nobody knows
        self.unread_calls: dict[ast.AST, Unread] = {}
        self.changers: dict[Identity, list[Place]] = {}  # the calls that may have changed an object
        self.moved_away: dict[Atom, Place] = {}  # by where a module is then: the call that may have moved it
        self.handers: dict[ast.AST, dict[ast.AST, tuple[Place, str]]] = {}  # what each call hands to an operation

    def operation(self, node: ast.AST) -> Operation:
        return self.operations.setdefault(node, Operation(node))

    def saw(self, frame: Frame, node: ast.expr, value: Value) -> None:
        for each in value.places:
            if each.atom.tag == "unknown":
                self.born.setdefault(each.atom, Place(frame.path, node))
        if frame.path == self.path and node.lineno in self.rows:
            places = frame.home(value) if value.objects and value.kind in ("module", "instance") else value.places
            runs = self.seen.setdefault(node, [])
            runs[:] = [each for each in runs if each.site is not frame.site]  # a later round of a loop knows more
            runs.append(Seen(node, value, places, frame.site))

    def needless(
        self, frame: Frame, node: ast.AST, operation: str, operands: list[tuple[ast.AST, Value]], why: Needless
    ) -> None:
        self.operation(node).left.append(Left(operation, operands, why, frame.site))

    def needed(self, constraint: Constraint) -> None:
        self.operation(constraint.node).constraints.append(constraint)

    def unread(self, frame: Frame, node: ast.AST, why: Unread) -> None:
        self.unread_calls[node] = why
        self.operation(node).unread.append(why)

    def forgot(self, frame: Frame, objects: tuple[Identity, ...]) -> None:
        if frame.statement is None:
            return
        place = Place(frame.path, frame.statement)
        for each in objects:
            known = self.changers.setdefault(each, [])
            if place not in known:
                known.append(place)
            for at in frame.heap.home(each):
                self.moved_away.setdefault(at.atom, place)

    def dropped(self, constraint: Constraint, call: ast.AST, site: Site, why: Dropped) -> None:
        self.operation(constraint.node).lost.append(Lost(constraint, Place(site.file, call), why))

    def handed(self, constraint: Constraint, call: ast.AST, site: Site, status: str) -> None:
        self.handers.setdefault(constraint.node, {})[call] = (Place(site.file, call), status)

    def silent(
        self, constraint: Constraint, pair: tuple[Alternative, Alternative] | None, root: Site | None, why: Silence
    ) -> None:
        self.operation(constraint.node).quiet.append(Quiet(constraint, pair, root, why))

    def found(self, constraint: Constraint, mismatch: Mismatch) -> None:
        self.operation(constraint.node).found.append(mismatch)
