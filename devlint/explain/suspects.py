"""`Suspect`: one place in the user's source that may be the cause of a device error, and how likely it is."""

from __future__ import annotations

import ast
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final, Literal

from devlint.explain.sources import File, Plain


@dataclass(frozen=True, slots=True)
class Step:
    """One place, such as one that a value passes on its way to the failing line. Row and column are 1-based.

    `name`: what is bound there, or the argument that is given. `function`: the function that the place is in.
    """

    file: File
    row: int
    column: int
    text: str
    kind: Literal["bound", "given", "other"] = "other"
    name: str = ""
    function: Plain | None = None


def step(file: File, node: ast.AST, text: str) -> Step:
    """A place on the way."""
    return Step(file, int(getattr(node, "lineno", 0)), int(getattr(node, "col_offset", 0)) + 1, text)


def bound(file: File, node: ast.AST, name: str) -> Step:
    """The place at which a name is bound."""
    here = step(file, node, f"`{name}` is assigned here")
    return replace(here, kind="bound", name=name, function=file.function_of(node))


def given(file: File, call: ast.Call, name: str) -> Step:
    """The place at which a call gives an argument."""
    here = step(file, call, f"`{name}` is passed here")
    return replace(here, kind="given", name=name, function=file.function_of(call))


@dataclass(frozen=True, slots=True)
class Trail:
    """The way from the failing line back to a place, and how much of its weight is left: 1 for what surely was there."""

    weight: float = 1.0
    steps: tuple[Step, ...] = ()

    def fainter(self, share: float) -> Trail:
        """The same way, less likely."""
        return Trail(self.weight * share, self.steps)

    def behind(self) -> Trail:
        """The same way, for what comes before all of it: nothing of it is a place where that can be moved."""
        return Trail(self.weight, tuple(replace(each, kind="other") for each in self.steps))

    def via(self, place: Step) -> Trail:
        """The way with one more place."""
        return Trail(self.weight, (*self.steps, place))


DIRECT: Final = Trail()


@dataclass(frozen=True, slots=True)
class Suspect:
    """A place, what is there, and the way from the failing line to it.

    `on_host`: whether it puts a value on the CPU; otherwise it puts one on a card. `of_module`: whether it is about a module
    that a call runs, not about what the call is given.
    """

    place: Step
    trail: Trail
    on_host: bool
    of_module: bool = False

    @property
    def weight(self) -> float:
        return self.trail.weight

    def latest(self, scopes: Collection[tuple[File, Plain | None]]) -> Step | None:
        """The place nearest to the failing line where the value can still be moved, another one than where it comes from.

        `scopes`: the functions that the frames are in. What a function that was called on the way binds comes before them.
        """
        here = (self.place.file, self.place.row)
        other = [each for each in self.trail.steps if each.kind != "other" and (each.file, each.row) != here]
        near = (each for each in other if (each.file, each.function) in scopes)
        return next(near, other[0] if other else None)

    @property
    def key(self) -> tuple[str, int]:
        return str(self.place.file.path), self.place.row

    def weighed(self, share: float) -> Suspect:
        """The same, likelier or less likely."""
        return replace(self, trail=self.trail.fainter(share))


@dataclass(frozen=True, slots=True)
class Context:
    """Where an expression is evaluated: in which function, at which frame of the traceback, and by which call.

    `level` is the index of the frame, -1 in a function that no frame shows.
    """

    file: File
    function: Plain | None
    level: int = -1
    call: tuple[Context, ast.Call] | None = None
