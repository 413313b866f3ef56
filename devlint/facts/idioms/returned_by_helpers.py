"""Functions whose paths return what helpers of their own give, each in the same call of something else or by itself.

    def match(self, scores):
        if scores.shape[0] == 0:
            return Match(self._without_rows(scores))  # makes a tensor on the CPU
        return Match(self._with_rows(scores))         # computes one where `scores` is

A helper is private, and called in such returns alone: nobody else wants what it gives, or moves it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.defined import Function
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.values import Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.machine import Machine


def helpers(machine: Machine, function: Function) -> Iterator[ast.AST]:
    """The helpers whose results a function returns, and which nothing else calls."""
    called = [call for call in map(helper_call, returned(function)) if call is not None]
    for name in {last_name(call.func) for call in called}:
        found = function.owner.method(name) if function.owner is not None else None
        sites = [site.call for site in machine.scan.calls.get(name, ())]
        own = {id(call) for call in called}
        if found is not None and all(id(call) in own for call in sites) and name not in machine.scan.handed:
            yield found[1]


def returned(function: Function) -> list[ast.expr]:
    own = [node.value for node in walk(function.node) if isinstance(node, ast.Return)]
    return [value for value in own if value is not None]


def helper_call(node: ast.expr | None) -> ast.Call | None:
    """The call of a private helper that an expression is, or whose result alone it hands on."""
    if not isinstance(node, ast.Call):
        return None
    if is_self_attribute(node.func):
        return node if last_name(node.func).startswith("_") else None
    inner = node.args[0] if len(node.args) == 1 and not node.keywords else None
    return helper_call(inner) if isinstance(node.func, ast.Name) and isinstance(inner, ast.Call) else None


def note(machine: Machine, node: ast.expr | None) -> None:
    """Note what a helper gives where a return hands it on: `return Match(self._with_rows(scores))`."""
    machine.handed_on.pop(len(machine.returns), None)
    inner = helper_call(node)
    if inner is not None and inner is not node and machine.owner is not None:
        assert isinstance(node, ast.Call)
        machine.handed_on[len(machine.returns)] = machine.text(node.func), machine.evaluate(inner)


def handed_on(machine: Machine) -> list[Value]:
    """What the paths of a function hand on, where all of them hand it to the same thing."""
    found = [machine.handed_on.get(index) for index in range(len(machine.returns))]
    known = [each for each in found if each is not None]
    if len(known) < 2 or len(known) < len(found) or len({name for name, _ in known}) > 1:
        return []
    return [value for _, value in known]
