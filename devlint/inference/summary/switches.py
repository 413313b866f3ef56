"""Switches: conditions that decide nothing but whether something is moved to an accelerator.

`if args.cuda: x = x.cuda()` tells that the program uses an accelerator where `args.cuda` is true. Where it is false, nothing
that was given is on one.
"""

from __future__ import annotations

import ast

from devlint.inference.summary import moves
from devlint.inference.summary.frame import Frame
from devlint.inference.terms.conditions import Condition


def note(frame: Frame, node: ast.If, yes: Condition) -> None:
    """Remember the test of a statement whose branches only move things."""
    asked = [literal for literal in yes if literal[0][0] in ("truth", "equal")]
    if len(asked) == 1 and node.body and all(_is_move(each) for each in (*node.body, *node.orelse)):
        frame.site.switches.add(asked[0])


def _is_move(statement: ast.stmt) -> bool:
    """`x = x.cuda()` or `model.to(device)`."""
    value = statement.value if isinstance(statement, (ast.Assign, ast.Expr)) else None
    return isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and moves.is_move(value.func.attr)
