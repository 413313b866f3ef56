"""What can be told while functions are read and constraints are judged: who asks why nothing is reported is told here.

Nobody watches while files are checked. `reveal` does. A reason is told where the decision falls, by what decided.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from devlint.inference.terms.places import Alternative
from devlint.inference.terms.values import Identity, Value

if TYPE_CHECKING:
    from devlint.inference.summary.model import Constraint, Site

#: Why an operation leaves no constraint. nothing: nothing is known of where one of them is. same: both are at one place.
#: agree: no two of their places clash. choice: one choice put both there. unused: an accelerator is not used there. alone:
#: one tensor takes part. kind: nothing shows that these are tensors.
Needless: TypeAlias = Literal["nothing", "same", "agree", "choice", "unused", "alone", "kind"]
#: Why a call does not hand a constraint on. depth: too many calls. kept: too many constraints. closed: the values were known.
#: condition: its condition does not hold at this call. operand: what is handed over is no tensor or module. agree: what is
#: handed over is at one place.
Dropped: TypeAlias = Literal["depth", "kept", "closed", "condition", "operand", "agree"]
#: Why a constraint that is open or fails is not reported. Each word is a branch of `witness.judge`.
Silence: TypeAlias = Literal[
    "impossible", "no accelerator", "apart", "together", "compared", "no clash", "allowed", "on host", "fallback", "data",
    "host calls", "unsure loader", "not a root", "chosen", "not registered", "unproved", "outer", "before transfer",
    "constructor", "earlier", "own field", "moved outside",
]  # fmt: skip
#: Why a call was not read. callee: nobody knows what is called. running: it is being read. base: a base of the class is not
#: of the project. wrapped: a decorator may have replaced it.
Unread: TypeAlias = Literal["callee", "running", "wrapped"]


class Watch:
    """Who is told, and does nothing with it. `frame` is the run of a function in which it happens."""

    def saw(self, frame: Any, node: ast.expr, value: Value) -> None:
        """An expression gave a value."""

    def called(self, instance: Any) -> None:
        """A function of the project is called: its summary and what its arguments stand for."""

    def recalled(self, instance: Any) -> None:
        """A call that an earlier check read, in a file that is not watched."""

    def left(self, frame: Any, node: ast.expr) -> None:
        """The body of a `with` statement was left whose context this expression gave."""

    def needless(
        self, frame: Any, node: ast.AST, operation: str, operands: list[tuple[ast.AST, Value]], why: Needless
    ) -> None:
        """An operation leaves no constraint."""

    def needed(self, constraint: Constraint) -> None:
        """An operation leaves a constraint."""

    def unread(self, frame: Any, node: ast.AST, why: Unread) -> None:
        """A call was not read."""

    def forgot(self, frame: Any, objects: tuple[Identity, ...]) -> None:
        """A call of this statement that was not read may have changed these objects."""

    def dropped(self, constraint: Constraint, call: ast.AST, site: Site, why: Dropped) -> None:
        """A call hands a constraint of what it calls not on."""

    def handed(self, constraint: Constraint, call: ast.AST, site: Site, status: str) -> None:
        """What a call hands to the operation of a constraint: "host", "open" or "known"."""

    def silent(
        self, constraint: Constraint, pair: tuple[Alternative, Alternative] | None, root: Any, why: Silence
    ) -> None:
        """A constraint is not reported at a root, for two of its places."""

    def found(self, constraint: Constraint, mismatch: Any) -> None:
        """A constraint fails at a root."""
