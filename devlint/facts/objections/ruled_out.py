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
from itertools import pairwise
from typing import TYPE_CHECKING

from devlint.facts.objections.flags import binds_otherwise, conditions, way_to
from devlint.facts.text.callers import Callers
from devlint.facts.text.defined import Function
from devlint.facts.text.nodes import encloses, walk
from devlint.facts.text.references import last_name, stored_names
from devlint.facts.text.returned import own_nodes
from devlint.facts.text.signatures import Plain, given_at, is_kept_parameter

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Meet, Use

_LOOPS = (ast.For, ast.AsyncFor, ast.While)
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
#: What may leave a part of itself out, or reads its names later.
_PARTIAL = (ast.IfExp, ast.BoolOp, ast.Lambda, *_COMPREHENSIONS)
#: Names that a condition may hold beside what it asks.
_ASKING = frozenset({"len", "torch"})


# -- names that are not bound yet -------------------------------------------------------------------------------------


def is_behind_failure(sites: CallSites, event: Meet | Use) -> bool:
    """Whether an event stands behind a line that always fails, as it reads a local name that is bound further down alone."""
    body = sites.body(event.function)
    late = bound_late(body) if isinstance(body, (ast.FunctionDef, ast.AsyncFunctionDef)) else {}
    if not late or body is None:
        return False
    for statement in before(body, event.node):
        nodes = list(walk(statement))
        if not any(isinstance(node, _PARTIAL) for node in nodes):
            read = (n for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
            if any(n.lineno < late.get(n.id, 0) for n in read):
                return True
    return False


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
    inside = set().union(*(stored_names(node) for node in nodes if isinstance(node, _COMPREHENSIONS)))
    own = {n.id for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)} - inside
    own -= {node.arg for node in walk(function.args) if isinstance(node, ast.arg)}
    return {
        name: row
        for name, row in found.items()
        if name in own and not any(binds_otherwise(node, name) for node in walk(function))
    }


def before(function: ast.AST, place: ast.AST) -> Iterator[ast.stmt]:
    """The simple statements that have run, each once at least, when a place in a function is reached; none of a loop."""
    for outer, inner in pairwise(way_to(function, place)):
        if isinstance(outer, _LOOPS):
            return
        for block in (getattr(outer, name, None) for name in ("body", "orelse", "finalbody")):
            if isinstance(block, list) and any(inner is part for part in block):
                for statement in block:
                    if statement is inner:
                        break
                    if isinstance(statement, _SIMPLE):
                        yield statement


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
    return all(any(rules_out(body, helper, each) for helper in helpers_at(sites, each)) for each in places)


def is_ruled_out_by_callers(sites: CallSites, function: Function, place: ast.AST) -> bool:
    """Whether the project calls a function, and each caller keeps it from a place in it."""
    if isinstance(function.node, ast.Lambda) or not on_parameters(function.node, place):
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
    """Whether a condition of a helper, on a parameter, is known in a function to be otherwise where it calls that."""
    argument = given_at(call, name, Callers.position(helper, name), None)
    if not isinstance(argument, ast.Name):
        return False
    text = re.sub(rf"(?<![\w.]){name}\b", argument.id, ast.unparse(test))
    asked = [each for each, held in conditions(function, call) if held is not wanted and ast.unparse(each) == text]
    nodes = (part for part in walk(function) if asked and isinstance(part, ast.Name) and part.id == argument.id)
    rows = [part.lineno for part in nodes if not isinstance(part.ctx, ast.Load)]
    return any(not any(each.lineno <= row <= call.lineno for row in rows) for each in asked)
