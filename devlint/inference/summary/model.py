"""What a function's summary holds: its result, its constraints, and its effects on what it was given."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from devlint.inference.terms.conditions import ALWAYS, Condition
from devlint.inference.terms.conditions import Literal as Literal_
from devlint.inference.terms.places import Path, Places
from devlint.inference.terms.values import Identity, Kind, Value

if TYPE_CHECKING:
    from devlint.inference.objects.heap import Heap, Thing
    from devlint.inference.program.definitions import Class, Function

#: What kind of operation needs its operands together, or lets one of them leave on the wrong device.
How: TypeAlias = Literal[
    "operator", "function", "method", "inplace", "module", "index", "out", "host", "copy", "size", "paths",
]  # fmt: skip
#: What may differ in device: see `knowledge.Function.mixing`; "host" where the host reads it.
Mixing: TypeAlias = Literal["exact", "scalar", "expanded", "index", "host", "none", "copy"]


#: Ways in which a tensor leaves on the wrong device: nothing fails where it happens.
LEAVING: Final = frozenset({"paths", "size", "copy"})


class Operand(NamedTuple):
    """A value that takes part in an operation. `node` is its expression."""

    node: ast.AST
    kind: Kind
    places: Places
    proved: bool = True
    path: Path | None = None


@dataclass(eq=False, slots=True)
class Site:
    """The function in which an operation stands, and what it says of its arguments' devices.

    `asks`: the roots of the arguments whose device the function itself reads or moves things to. `moved`: the calls that
    moved a part of something given, by the path of the whole.
    """

    function: Function | None
    receiver: Class | None
    file: str
    tree: ast.Module
    asks: set[str] = field(default_factory=set)
    moved: dict[Path, list[ast.AST]] = field(default_factory=dict)
    tensors: set[Path] = field(default_factory=set)  # access paths that are used as only a tensor is used
    switches: set[Literal_] = field(default_factory=set)  # what decides nothing but whether something is moved
    devices: bool = False  # whether an argument is a tensor or a device

    def handles(self, other: Site) -> bool:
        """Whether the function can say where to make something: it is given a tensor or a device, or is of the same class."""
        owner = self.function.owner if self.function is not None else None
        same = owner is not None and other.function is not None and other.function.owner is owner
        return self.devices or same or bool(self.asks)


class Step(NamedTuple):
    """A call on the way from a root to the operation. `site`: where the call stands; `function`: what it calls."""

    node: ast.AST
    file: str
    name: str
    site: Site
    function: Function | None


class LeftBehind(NamedTuple):
    """`first`: whether it is the first operand that was left behind. `move`: the call that moved its sibling."""

    first: bool
    move: ast.AST


class Constraint(NamedTuple):
    """Two values that must be on one device. The first is the module, the indexed tensor, or what the host reads.

    `operation`: its name. `chain`: the calls from the root to it, outermost first. `left_behind`: one operand is a part of
    something of which another part was moved to where the other operand is.
    """

    how: How
    mixing: Mixing
    operation: str
    first: Operand
    second: Operand
    node: ast.AST
    site: Site
    condition: Condition = ALWAYS
    soft: bool = False
    chain: tuple[Step, ...] = ()
    left_behind: LeftBehind | None = None
    local: tuple[Operand, Operand] | None = None  # the operands as the function itself sees them
    closed: tuple[int, int] = (0, 0)  # how many calls out each operand is known; 0: in the function itself
    guessed: bool = False  # whether nothing proves that both are tensors, or that the first is a module
    caught: bool = False  # whether a handler takes the error, and the program goes on
    settled: bool = (
        False  # whether it was judged in the function itself: a caller only knows that nothing after it is reached
    )

    @property
    def is_likely(self) -> bool:
        """Whether the operation is only likely to be one that needs both together."""
        return self.soft or self.guessed


@dataclass(eq=False, slots=True)
class Summary:
    """One function, read once. `heap` is what holds where it returns; only things that were given or leave count."""

    function: Function | None
    site: Site
    result: Value
    heap: Heap
    constraints: list[Constraint]
    rebound: dict[str, Value] = field(default_factory=dict)  # global and nonlocal names that it binds
    given: dict[str, Value] = field(default_factory=dict)  # what its arguments are, as far as the function tells
    frame: Any = None
    effects: list[tuple[Identity, Thing]] | None = None  # see `effects_of` in `summary/effects.py`
