"""Devices that functions are given, where every call of the project, or the default, says that they are the CPU.

Asked before a finding is reported. A `device` that is a parameter may be an accelerator; where each call hands over
`"cpu"`, by a constant, a variable that holds one, or a parameter of its own of which the same is true, it never is.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.events import Meet, Use
from devlint.facts.idioms.devices import parse_device
from devlint.facts.objections.flags import is_quoted
from devlint.facts.text.callers import Callers
from devlint.facts.text.defined import Function
from devlint.facts.text.nodes import BLOCKS, children, walk
from devlint.facts.text.references import given, last_name
from devlint.facts.text.scan import Site
from devlint.facts.text.signatures import default_of, given_at, is_kept_parameter
from devlint.facts.values import CPU, HOME, Symbol

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.calling.neighbours import Looked

DEPTH = 3  # functions and variables that hand a device on to the next
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def is_given_cpu(sites: CallSites, event: Meet | Use) -> bool:
    """Whether what an event takes for an accelerator is where a parameter says, and every call says that it is the CPU."""
    device = event.other.value.device if isinstance(event, Meet) else event.operand.value.device
    named = [place for place in device if isinstance(place, Symbol)]
    return bool(named) and device <= CPU.union(named) and all(is_cpu_symbol(sites, symbol) for symbol in named)


def is_cpu_symbol(sites: CallSites, symbol: Symbol) -> bool:
    home = sites.files.look(sites.path)
    is_variable = symbol.name.isidentifier() and symbol not in HOME
    function = sites.function_at(symbol.scope) if is_variable else None
    return home is not None and function is not None and is_cpu_parameter(sites, home, function, symbol.name, 0)


def is_cpu_parameter(sites: CallSites, home: Looked, function: Function, name: str, depth: int) -> bool:
    """Whether a function is called, and gets the CPU for a parameter by every call."""
    node = function.node
    if depth > DEPTH or isinstance(node, ast.Lambda) or node.decorator_list or not is_kept_parameter(node, name):
        return False
    if node.name.startswith("__") or node.name == "forward" or not sites.files.reads_all(node.name):
        return False
    default, position = default_of(node.args, name), Callers.position(function, name)
    found = False
    for looked, site in calls(sites, home, function):
        if site is None:
            return False
        if is_recursive(site, function) and not given(site.call, name, position):
            continue
        argument = given_at(site.call, name, position, default)
        around, file = (home, None) if argument is default else (looked, site)
        if argument is None or not is_cpu(sites, around, file, argument, depth + 1):
            return False
        found = True
    return found


def calls(sites: CallSites, home: Looked, function: Function) -> Iterator[tuple[Looked, Site | None]]:
    """The calls of a function in the project; None for a use that is not known to be one, or to be no other's."""
    name = function.name.rsplit(".", 1)[-1]
    for looked in sites.files.mentioning(name):
        if is_quoted(looked, name) or name in looked.loaded.scan.handed:
            yield looked, None
    if function.is_method:
        yield from sites.every_call(function)
    else:
        yield from sites.callers.sites(home, function)


def is_recursive(site: Site, function: Function) -> bool:
    return site.caller is not None and site.caller.node is function.node


def is_cpu(sites: CallSites, looked: Looked, site: Site | None, node: ast.expr, depth: int) -> bool:
    """Whether an expression is the CPU as a device: where a call stands, or at the module level without one."""
    if depth > DEPTH:
        return False
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str) and parse_device(node.value) == CPU
    if isinstance(node, ast.Call) and last_name(node.func) == "device" and len(node.args) == 1 and not node.keywords:
        return is_cpu(sites, looked, site, node.args[0], depth)
    if not isinstance(node, ast.Name):
        return False
    caller = site.caller if site is not None else None
    around = caller.node if caller is not None else None
    if isinstance(around, (ast.FunctionDef, ast.AsyncFunctionDef)):
        if any(isinstance(n, _SCOPES) and n is not around and holds(n, site) for n in walk(around)):
            return False  # a nested function's own names are not told apart
        if is_kept_parameter(around, node.id):
            assert caller is not None
            owner = looked.flow.classes.get(caller.owner.name) if caller.owner is not None else None
            name = f"{owner.name}.{around.name}" if owner is not None else around.name
            return is_cpu_parameter(sites, looked, Function(around, name, owner), node.id, depth)
        bound = list(bindings(around, node.id))
        if bound:
            return all(value is not None and is_cpu(sites, looked, site, value, depth + 1) for value in bound)
    if node.id in looked.loaded.scan.rebound:
        return False
    bound = list(bindings(looked.loaded.tree, node.id))
    if bound:
        return all(value is not None and is_cpu(sites, looked, None, value, depth + 1) for value in bound)
    target = looked.loaded.imports.names.get(node.id)
    found = sites.files.reach.find(looked.path, target) if target is not None else None
    value = found.value if found is not None and found.kind == "value" else None
    return value is not None and value.kind in ("device", "string") and value.device == CPU


def holds(outer: ast.AST, site: Site | None) -> bool:
    return site is not None and any(n is site.call for n in walk(outer))


def bindings(scope: ast.AST, name: str) -> Iterator[ast.expr | None]:
    """What a function or module gives a name itself; None for what is not an assignment of one value."""
    pending = [child for field in BLOCKS[type(scope)] for child in getattr(scope, field)]
    spec = getattr(scope, "args", None)
    if isinstance(spec, ast.arguments):
        every = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs, spec.vararg, spec.kwarg)
        if any(a is not None and a.arg == name for a in every):
            yield None
    while pending:
        node = pending.pop()
        if isinstance(node, _SCOPES):
            continue
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(isinstance(t, ast.Name) and t.id == name for t in targets):
                yield node.value
                continue
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            yield None
        pending += children(node)
