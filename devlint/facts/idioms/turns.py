"""Loops whose first turn is another one: `if first: out = x` or `if i == 0:`, where a placeholder is replaced.

The first turn is then interpreted by itself, so that the placeholder never seems to meet what later turns bring.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from devlint.facts.text.nodes import statements, text_of, walk
from devlint.facts.text.references import chain, last_name, stored_names
from devlint.facts.text.signs import moves
from devlint.facts.values import Value

_LESS = (ast.Lt, ast.LtE)
_MORE = (ast.Gt, ast.GtE)
_WORST = 1000  # a start that no loss or distance of a first turn exceeds
#: By the name of a variable, what the code outside of a loop binds it to; nothing where that is not all.
Started = Callable[[str], Sequence[ast.expr]]


class Turn(NamedTuple):
    """Which turn of a loop is interpreted: the first, or a later one, and the names that tell them apart."""

    first: bool
    flags: frozenset[str]  # local names that are True or False before the loop and change in it
    counter: str | None  # the name that counts the turns from 0


def renewed(body: Sequence[ast.stmt], started: Started) -> frozenset[str]:
    """The names that each turn of a loop binds to something that has nothing to do with what they were before, or moves.

    Those as well that are bound where a turn is the best so far, as the first one is. `started`: what the code outside of the
    loop binds a name to.
    """
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.If) and is_record(statement, started):
            found |= renewed(statement.body, started)
        if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            target = statement.targets[0]
            read = {part.id for part in walk(statement.value) if isinstance(part, ast.Name)}
            targets = target.elts if isinstance(target, ast.Tuple) else [target]
            found |= {each.id for each in targets if isinstance(each, ast.Name)} - read
            if isinstance(target, ast.Name) and is_moved(statement.value, target.id):
                found.add(target.id)
        elif isinstance(statement, (ast.For, ast.With)):
            found |= renewed(statement.body, started)
        if any(isinstance(part, (ast.Break, ast.Continue)) for part in statements(statement)):
            break
    return frozenset(found)


def is_moved(node: ast.expr, name: str) -> bool:
    """Whether an expression is what a name stands for, moved: `table.to(device)`."""
    parts = list(chain(node))
    return last_name(parts[-1]) == name and any(isinstance(part, ast.Call) and moves(part) for part in parts)


def added_to(body: Sequence[ast.stmt]) -> frozenset[str]:
    """The names to which each turn of a loop adds something: `total += loss`, also in a loop or a `with` inside it."""
    found: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
            found.add(statement.target.id)
        elif isinstance(statement, ast.Assign) and isinstance(statement.value, ast.BinOp):
            read = {part.id for part in walk(statement.value) if isinstance(part, ast.Name)}
            found |= read.intersection(target.id for target in statement.targets if isinstance(target, ast.Name))
        elif isinstance(statement, (ast.For, ast.With)):
            found |= added_to(statement.body)
    return frozenset(found)


def is_record(node: ast.If, started: Started) -> bool:
    """Whether a condition asks whether a value is better than the best one, which its body then replaces by it, and the first
    value surely is: `best = 1e10` before `if loss < best: best, kept = loss, weights`.
    """
    parts = node.test.values if isinstance(node.test, ast.BoolOp) and isinstance(node.test.op, ast.Or) else [node.test]
    for test in parts:
        if not isinstance(test, ast.Compare) or len(test.ops) != 1 or not isinstance(test.ops[0], (*_LESS, *_MORE)):
            continue
        less = isinstance(test.ops[0], _LESS)
        for new, best, is_less in ((test.left, test.comparators[0], less), (test.comparators[0], test.left, not less)):
            if isinstance(best, ast.Name) and any(replaces(each, best.id, new) for each in node.body):
                starts = started(best.id)
                return bool(starts) and all(is_beaten(start, is_less) for start in starts)
    return False


def is_beaten(start: ast.expr, by_less: bool) -> bool:
    """Whether what a best value starts with is worse than any: None, infinite, or of some thousands."""
    sign = by_less
    if isinstance(start, ast.UnaryOp) and isinstance(start.op, ast.USub):
        start, sign = start.operand, not by_less
    if isinstance(start, ast.Constant):
        number = start.value if type(start.value) in (int, float) else 0
        return start.value is None or (sign and isinstance(number, (int, float)) and number >= _WORST)
    if isinstance(start, ast.Call) and last_name(start.func) == "float" and len(start.args) == 1:
        text = text_of(start.args[0]) or ""
        return text.lstrip("+-").startswith("inf") and text.startswith("-") is not sign
    return last_name(start) in ("inf", "Inf", "infty", "maxsize") and sign


def replaces(statement: ast.stmt, name: str, value: ast.expr) -> bool:
    """Whether a statement binds a name to an expression."""
    return any(ast.dump(source) == ast.dump(value) for source in bound_to(statement, name))


def bound_to(statement: ast.AST, name: str) -> Iterator[ast.expr]:
    """What an assignment binds a name to: `best, kept = 1e10, None`."""
    if not isinstance(statement, ast.Assign):
        return
    for target in statement.targets:
        pairs = [(target, statement.value)]
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            pairs = list(zip(target.elts, statement.value.elts, strict=False))
        yield from (source for part, source in pairs if isinstance(part, ast.Name) and part.id == name)


def index_of(node: ast.For | ast.AsyncFor) -> str | None:
    """The name that counts a loop's turns from 0: `for i in range(n)`, `for i, x in enumerate(xs)`."""
    call, target = node.iter, node.target
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.keywords:
        return None
    if call.func.id == "enumerate" and len(call.args) == 1 and isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    elif call.func.id != "range" or not from_zero(call):
        return None
    return target.id if isinstance(target, ast.Name) else None


def from_zero(call: ast.Call) -> bool:
    start = call.args[0] if len(call.args) > 1 else None
    return start is None or (isinstance(start, ast.Constant) and start.value == 0)


def first_turn(body: Sequence[ast.stmt], env: Mapping[str, Value], index: str | None) -> Turn | None:
    """The first turn of a loop where one of its conditions asks for it; None where none does."""
    known = {name for name, value in env.items() if value.kind == "bool" and isinstance(value.constant, bool)}
    if index is None and not known:
        return None
    asked = {name for statement in body for name in asked_in(statement)}
    flags = (asked & known) - {index}
    if flags:
        flags &= {name for statement in body for name in stored_names(statement)}
    counted = index if index in asked else None
    return Turn(True, frozenset(flags), counted) if flags or counted is not None else None


@lru_cache(256)
def asked_in(statement: ast.stmt) -> frozenset[str]:
    """The names that conditions in a statement ask."""
    asked = (subject(node.test) for node in walk(statement) if isinstance(node, (ast.If, ast.IfExp)))
    return frozenset(name for name in asked if name is not None)


def subject(test: ast.expr) -> str | None:
    """The name that a condition asks: `first`, `not first`, `i == 0`, `i > 0`."""
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test = test.operand
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and is_zero(test.comparators[0]):
        test = test.left
    return test.id if isinstance(test, ast.Name) else None


def is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and node.value is not False


def decide(test: ast.expr, turn: Turn, env: Mapping[str, Value]) -> bool | None:
    """Whether a condition holds in this turn; None where that is not known."""
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        inner = decide(test.operand, turn, env)
        return None if inner is None else not inner
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and is_zero(test.comparators[0]):
        if not isinstance(test.left, ast.Name) or test.left.id != turn.counter:
            return None
        operator = test.ops[0]
        if isinstance(operator, ast.Eq):
            return turn.first
        return not turn.first if isinstance(operator, (ast.NotEq, ast.Gt)) else None
    if not isinstance(test, ast.Name):
        return None
    if test.id == turn.counter:
        return not turn.first
    value = env.get(test.id)
    if test.id in turn.flags and value is not None and isinstance(value.constant, bool):
        return value.constant
    return None
