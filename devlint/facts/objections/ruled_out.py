"""What a function cannot reach: a line behind the read of a name that is not bound yet, and the path of a helper that it has
ruled out itself.

    def align(points, target):
        if target.shape[0] == 0:
            return points, torch.zeros(3)

    def run(points, target):
        if target.shape[0] == 0:
            return None                     # so `align` never takes that path here
        aligned, shift = align(points, target)

Asked before a finding is reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.objections.flags import binds_otherwise, conditions, is_quoted, way_to
from devlint.facts.text.callers import Callers
from devlint.facts.text.defined import Function
from devlint.facts.text.nodes import BLOCKS, COMPREHENSIONS, LOOPS, PARTIAL, encloses, walk
from devlint.facts.text.parameters import root_name
from devlint.facts.text.references import last_name, stored_names
from devlint.facts.text.returned import own_nodes
from devlint.facts.text.signatures import Plain, given_at, is_kept_parameter

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Meet, Use

_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
#: What runs later than it is written, or binds names of its own.
_LATER = (ast.Lambda, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, *COMPREHENSIONS)
#: Methods that read the shape of a tensor.
_SHAPE = frozenset({"size", "dim", "numel", "nelement", "ndimension"})
#: What is given something and leaves it as it is; of `torch`, all but what is told `out=`.
_READERS = frozenset({"len", "print", "isinstance", "torch"})
#: Names that a condition may hold beside what it asks.
_ASKING = frozenset({"len", "torch"})


# -- names that are not bound yet -------------------------------------------------------------------------------------


def is_behind_failure(sites: CallSites, event: Meet | Use) -> bool:
    """Whether an event stands behind a line that always fails, as it reads a local name that is bound further down alone."""
    body = sites.body(event.function)
    behind = rows_behind_failures(body) if isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef)) else ()
    return any(first <= getattr(event.node, "lineno", 0) <= last for first, last in behind)


@lru_cache(256)
def rows_behind_failures(function: Plain) -> tuple[tuple[int, int], ...]:
    """The first and the last of the rows behind each simple statement, in no loop, that reads a local name which is bound
    further down alone; to the end of its block."""
    late = bound_late(function)
    found: list[tuple[int, int]] = []
    blocks: list[list[ast.stmt]] = [function.body] if late else []
    for block in blocks:  # which grows
        for statement in block:
            if isinstance(statement, _SIMPLE):
                if reads_late(statement, late):
                    found.append(((statement.end_lineno or 0) + 1, block[-1].end_lineno or 0))
            elif not isinstance(statement, (*LOOPS, *_LATER)):
                blocks += (getattr(statement, name) for name in BLOCKS[type(statement)])
    return tuple(found)


def reads_late(statement: ast.AST, late: Mapping[str, int]) -> bool:
    """Whether a simple statement reads one of some names above the row that binds it, each time that it runs."""
    # an annotation in a function is never evaluated [Python Language Reference, 7.2.2]
    parts = [statement.target, statement.value] if isinstance(statement, ast.AnnAssign) else [statement]
    nodes = [node for part in parts if part is not None for node in walk(part)]
    if any(isinstance(node, PARTIAL) for node in nodes):
        return False
    return any(isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.lineno < late.get(n.id, 0) for n in nodes)


@lru_cache(256)
def bound_late(function: Plain) -> Mapping[str, int]:
    """The local names of a function that it reads in a row above all that bind them, with the first of those rows."""
    read: dict[str, int] = {}
    bound: dict[str, int] = {}
    for node in walk(function):
        if isinstance(node, ast.Name):
            rows = read if isinstance(node.ctx, ast.Load) else bound
            rows[node.id] = min(rows.get(node.id, node.lineno), node.lineno)
    found = {name: row for name, row in bound.items() if read.get(name, row) < row}
    if not found:
        return {}
    nodes = list(own_nodes(function))
    inside = set().union(*(stored_names(node) for node in nodes if isinstance(node, COMPREHENSIONS)))
    own = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)} - inside
    own -= {node.arg for node in walk(function.args) if isinstance(node, ast.arg)}
    return {
        name: row
        for name, row in found.items()
        if name in own and not any(binds_otherwise(node, name) for node in walk(function))
    }


# -- paths of helpers -------------------------------------------------------------------------------------------------


def is_ruled_out(sites: CallSites, event: Meet) -> bool:
    """Whether what is met is made by helpers on paths that the function has ruled out before it calls them.

    Also where a function gives what it makes on one of its paths, which all that call it have ruled out.
    """
    places = [creation.place for creation in event.off.value.made]
    body = sites.body(event.function) if places else None
    if not isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    if event.how == "paths":
        function = sites.function(event.function)
        return function is not None and all(is_ruled_out_by_callers(sites, function, each) for each in places)
    if any(encloses(body, each) for each in places):
        return False
    return all(
        any(
            rules_out(body, helper, place) and is_ruled_out_by_callers(sites, helper, place)
            for helper in helpers_at(sites, place)
        )
        for place in places
    )


def is_ruled_out_by_callers(sites: CallSites, function: Function, place: ast.AST) -> bool:
    """Whether the project calls a function, does nothing else with it, and each caller keeps it from a place in it."""
    node = function.node
    if isinstance(node, ast.Lambda) or not on_parameters(node, place) or not sites.files.reads_all(node.name):
        return False
    for looked in sites.files.mentioning(node.name):
        if is_quoted(looked, node.name) or node.name in looked.loaded.scan.handed:
            return False
    callers = [site.caller.node if site.caller is not None else None for _, site in sites.calls(function)]
    return bool(callers) and all(
        isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and rules_out(each, function, place)
        for each in callers
    )


def helpers_at(sites: CallSites, place: ast.AST) -> Iterator[Function]:
    """The functions of the checked file in which a place is."""
    for helper in sites.functions_around(sites.span(place).start):
        if isinstance(helper.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield helper


def rules_out(function: Plain, helper: Function, place: ast.AST) -> bool:
    """Whether a function calls a helper, and each time only where it has asked what keeps the helper from a place, as
    `if not len(rows): return` does before `count(rows)`, of which a path is for no rows."""
    node = helper.node
    if isinstance(node, ast.Lambda):
        return False
    calls = [each for each in walk(function) if isinstance(each, ast.Call) and last_name(each.func) == node.name]
    asked = on_parameters(node, place) if calls else []
    return bool(asked) and all(any(is_asked(function, helper, call, *each) for each in asked) for call in calls)


def on_parameters(function: Plain, place: ast.AST) -> list[tuple[str, ast.expr, bool]]:
    """The conditions for a place in a function to run that ask for one parameter alone, which has its value there: the
    parameter, the condition, and whether it must hold."""
    found = []
    for test, wanted in conditions(function, place):
        names = {part.id for part in walk(test) if isinstance(part, ast.Name)} - _ASKING
        name = names.pop() if len(names) == 1 else ""
        if is_kept_parameter(function, name):
            found.append((name, test, wanted))
    return found


def is_asked(function: Plain, helper: Function, call: ast.Call, name: str, test: ast.expr, wanted: bool) -> bool:
    """Whether a condition of a helper, on a parameter, is known in a function to be otherwise where it calls that.

    Nothing may change what was asked for before the call, also not in another turn of a loop around the call alone.
    """
    argument = given_at(call, name, Callers.position(helper, name), None)
    if not isinstance(argument, ast.Name):
        return False
    text = re.sub(rf"(?<![\w.]){name}\b", argument.id, ast.unparse(test))
    asked = [each for each, held in conditions(function, call) if held is not wanted and ast.unparse(each) == text]
    way = way_to(function, call) if asked else []
    if not way or any(isinstance(outer, _LATER) for outer in way[1:]):
        return False  # what runs later, or binds names of its own
    if any(binds_otherwise(node, argument.id) for node in walk(function)):
        return False
    changed = list(changing(function, argument, call))
    for each in asked:
        loops = [outer for outer in way if isinstance(outer, LOOPS) and not encloses(outer, each)]
        last = max(outer.end_lineno or 0 for outer in (call, *loops))
        if not any(each.lineno <= row <= last for row in changed):
            return True
    return False


def changing(function: Plain, name: ast.Name, call: ast.Call) -> Iterator[int]:
    """The rows where a function binds a name anew, or may change what has it before a call: a method that does more than to
    read its shape, a function that is given it, an item that is stored or deleted."""
    for node in walk(function):
        if isinstance(node, ast.Name) and node.id == name.id and not isinstance(node.ctx, ast.Load):
            yield node.lineno
        elif isinstance(node, ast.Call) and node is not call:
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
            taken = any(isinstance(each, ast.Name) and each.id == name.id for each in given)
            own = root_name(node.func) == name.id and last_name(node.func) not in _SHAPE
            if own or (taken and root_name(node.func) not in _READERS):
                yield node.lineno
        elif isinstance(node, (ast.Subscript, ast.Attribute)) and not isinstance(node.ctx, ast.Load):
            if root_name(node.value) == name.id:
                yield node.lineno
