"""What constants decide: conditions on flags, and the parts of a function that run for the constants that a call gives.

def forward(self, x, text, test=False):
    if not test:
        x = self.align(x, text)   # never under `model(x, text, test=True)`
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping
from typing import TypeAlias

from devlint.facts.text.nodes import BLOCKS, children
from devlint.facts.text.references import last_name
from devlint.facts.text.signatures import (
    Plain,
    default_of,
    given_at,
    is_kept_parameter,
    parameter_names,
    positional_names,
)

#: What a flag may be; no set at all for what is not known.
Flag: TypeAlias = "frozenset[bool | None] | None"
#: The constants that parameters stand for.
Constants: TypeAlias = Mapping[str, "bool | None"]
#: Statements behind which nothing of their block runs.
LEAVES = (ast.Return, ast.Raise, ast.Continue, ast.Break)


def truth(test: ast.expr, known: Callable[[ast.expr], Flag]) -> bool | None:
    """Whether a condition on flags is true, whatever else there is; None where that is not known."""
    if isinstance(test, ast.BoolOp):
        found = [truth(value, known) for value in test.values]
        short = isinstance(test.op, ast.Or)  # one such value decides
        if short in found:
            return short
        return None if None in found else not short
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = truth(test.operand, known)
        return None if inner is None else not inner
    answers: set[bool] = set()
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.comparators[0], ast.Constant):
        constant, op = test.comparators[0].value, test.ops[0]
        values = known(test.left)
        if values is None or not isinstance(constant, (bool, type(None))):
            return None
        if isinstance(op, (ast.Is, ast.Eq)):
            answers = {value is constant for value in values}
        elif isinstance(op, (ast.IsNot, ast.NotEq)):
            answers = {value is not constant for value in values}
    elif isinstance(test, (ast.Name, ast.Attribute)):
        answers = set(map(bool, known(test) or ()))
    return answers.pop() if len(answers) == 1 else None


def given_constants(function: Plain, call: ast.Call, outer: Constants) -> dict[str, bool | None]:
    """The parameters of a method that nothing in it binds anew, and that a call leaves or makes True, False or None.

    `outer`: the constants of the function around the call.
    """
    found: dict[str, bool | None] = {}
    if any(last_name(decorator) == "staticmethod" for decorator in function.decorator_list):
        return found
    positions = {name: place for place, name in enumerate(positional_names(function.args)[1:])}
    for name in parameter_names(function)[1:]:
        value = given_at(call, name, positions.get(name, -1), default_of(function.args, name))
        if isinstance(value, ast.Constant) and (value.value is None or isinstance(value.value, bool)):
            said = value.value
        elif isinstance(value, ast.Name) and value.id in outer:
            said = outer[value.id]
        else:
            continue
        if is_kept_parameter(function, name):
            found[name] = said
    return found


def live(function: ast.AST, constants: Constants) -> Iterator[ast.AST]:
    """What `walk` gives of a function, without what conditions on constants of its parameters rule out."""

    def known(node: ast.expr) -> Flag:
        return frozenset({constants[node.id]}) if isinstance(node, ast.Name) and node.id in constants else None

    pending = [function]
    for each in pending:  # which grows
        yield each
        parts = children(each)
        blocks = [getattr(each, name) for name in BLOCKS.get(type(each), ())]
        out = [part for block in blocks for part in unreached(block, known)]
        if isinstance(each, (ast.If, ast.IfExp)):
            decided = truth(each.test, known)
            arm = None if decided is None else each.orelse if decided else each.body
            out += arm if isinstance(arm, list) else [arm] if arm is not None else []
        pending += [part for part in parts if part not in out] if out else parts


def unreached(block: list[ast.AST], known: Callable[[ast.expr], Flag]) -> list[ast.AST]:
    """The statements of a block after a condition that is decided, and whose arm leaves the block: `if test: return x`."""
    for place, statement in enumerate(block):
        decided = truth(statement.test, known) if isinstance(statement, ast.If) else None
        if isinstance(statement, ast.If) and decided is not None:
            arm = statement.body if decided else statement.orelse
            if arm and isinstance(arm[-1], LEAVES):
                return block[place + 1 :]
    return []
