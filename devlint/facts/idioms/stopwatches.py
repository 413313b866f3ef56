"""Helpers that time what runs between two of their steps: context managers and classes that read a clock twice.

A `Stopwatch` says which two readings of a clock a helper subtracts. The interpreter takes a reading where the first step
of a helper runs and compares it where the second one does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from devlint.facts.interpreter.calls import CLOCKS
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.references import is_self_attribute

Qualify = Callable[[ast.expr], str | None]
#: Names of what waits for the device, functions of the project among them.
_WAITS = re.compile(r"sync|wait|barrier|block_until|(^|_)(item|elapsed_time|cpu)$", re.IGNORECASE)
_MANAGERS = frozenset({"contextlib.contextmanager", "contextlib.asynccontextmanager"})
_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Stopwatch(NamedTuple):
    """`elapsed`: the subtraction; `start` and `stop`: the readings, each with whether the helper waits before it."""

    clock: str
    elapsed: ast.BinOp
    start: ast.Call
    start_waits: bool
    stop: ast.Call
    stop_waits: bool


class Step(NamedTuple):
    """A stopwatch of a class that is started by one method and read by another, on the same object."""

    started_by: str
    read_by: str
    watch: Stopwatch


def of_generator(function: _Function, qualify: Qualify) -> Stopwatch | None:
    """The stopwatch of a context manager that is written as a generator, around its `yield`."""
    if not any(qualify(decorator) in _MANAGERS for decorator in function.decorator_list):
        return None
    before, after = halves(function.body)
    return between(before, after, qualify) if after else None


def of_class(class_: ClassFacts, qualify: Qualify) -> list[Step]:
    """The stopwatches of a class, by the two methods that they lie between."""
    found = []
    for started_by, first in class_.methods.items():
        if not any(is_self_attribute(target) for target, _ in assigned_readings(first.body, qualify)):
            continue
        for read_by, second in class_.methods.items():
            watch = between(first.body, second.body, qualify) if second is not first else None
            if watch is not None:
                found.append(Step(started_by, read_by, watch))
    return found


def between(before: list[ast.stmt], after: list[ast.stmt], qualify: Qualify) -> Stopwatch | None:
    """The first subtraction of a reading in `before` from one in `after`."""
    started = {ast.unparse(target): call for target, call in assigned_readings(before, qualify)}
    stopped = {ast.unparse(target): call for target, call in assigned_readings(after, qualify)}
    for node in nodes_of(after):
        if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Sub):
            continue
        start = started.get(ast.unparse(node.right)) if isinstance(node.right, (ast.Name, ast.Attribute)) else None
        stop = reading(node.left, qualify) or stopped.get(ast.unparse(node.left))
        if start is not None and stop is not None:
            clock = qualify(start.func) or ""
            return Stopwatch(clock, node, start, waits_before(before, start), stop, waits_before(after, stop))
    return None


def halves(body: list[ast.stmt]) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """The statements up to the one with the `yield`, and those that run after it; of a `try` its parts in their order."""
    for index, statement in enumerate(body):
        if isinstance(statement, ast.Try):
            inner, rest = halves(statement.body)
            if rest or any(isinstance(n, ast.Yield) for n in nodes_of(statement.body)):
                return [*body[:index], *inner], [*rest, *statement.orelse, *statement.finalbody, *body[index + 1 :]]
        elif isinstance(statement, (ast.With, ast.AsyncWith)):
            inner, rest = halves(statement.body)
            if rest or any(isinstance(n, ast.Yield) for n in nodes_of(statement.body)):
                return [*body[:index], *inner], [*rest, *body[index + 1 :]]
        elif any(isinstance(node, ast.Yield) for node in nodes_of([statement])):
            return body[:index], body[index + 1 :]
    return body, []


def assigned_readings(body: Iterable[ast.stmt], qualify: Qualify) -> Iterator[tuple[ast.expr, ast.Call]]:
    """What readings of a clock are assigned to."""
    for node in nodes_of(body):
        if isinstance(node, ast.Assign):
            call = reading(node.value, qualify)
            if call is not None:
                yield from ((target, call) for target in node.targets)


def reading(node: ast.expr, qualify: Qualify) -> ast.Call | None:
    return node if isinstance(node, ast.Call) and qualify(node.func) in CLOCKS else None


def waits_before(body: Iterable[ast.stmt], call: ast.Call) -> bool:
    """Whether something that waits for the device stands before a reading."""
    place = (call.lineno, call.col_offset)
    return any(
        isinstance(node, ast.Call)
        and _WAITS.search(str(getattr(node.func, "attr", None) or getattr(node.func, "id", ""))) is not None
        and (node.lineno, node.col_offset) < place
        for node in nodes_of(body)
    )


def nodes_of(body: Iterable[ast.stmt]) -> Iterator[ast.AST]:
    for statement in body:
        yield from ast.walk(statement)
