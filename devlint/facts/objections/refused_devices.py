"""Functions that refuse to run where things are on other devices than they want.

    if not self.is_on_cpu():
        raise ValueError("move the model to the CPU first")
    latent = self.encoder(image).cpu()
    return self.bottleneck(latent)          # which is on the CPU, or this line is not reached

What a method of the class or a function of the project asks is read: it compares a device with the CPU.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import every, walk
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.values import is_assumed

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import Meet

_ASKS = frozenset({"is_cuda", "is_cpu"})


def is_refused(sites: CallSites, event: Meet) -> bool:
    """Whether the function raises, above an operation, where a predicate says that something is not on the CPU."""
    function = sites.body(event.function)
    if function is None or not is_assumed(event.other.value.device):
        return False
    calls = asked(function, getattr(event.node, "lineno", 0))
    return any(asks_for_cpu(body) for call in calls for body in bodies(sites, call, event.function))


def bodies(sites: CallSites, call: ast.Call, function: str) -> Iterator[ast.AST]:
    """What a call in a function runs, as far as it is known: a method of the same class, or a function of the project."""
    if is_self_attribute(call.func):
        class_ = sites.class_of(function)
        found = class_.method(last_name(call.func)) if class_ is not None else None
        if found is not None:
            yield found[1]
    elif isinstance(call.func, (ast.Name, ast.Attribute)):
        yield from sites.named(ast.unparse(call.func))


def asked(function: ast.AST, row: int) -> Iterator[ast.Call]:
    """The calls of a function, above a row, in conditions under which it raises."""
    for node in every(function):
        if not isinstance(node, (ast.If, ast.Assert)) or node.lineno >= row:
            continue
        if isinstance(node, ast.If) and not any(isinstance(n, ast.Raise) for part in node.body for n in walk(part)):
            continue
        yield from (call for call in walk(node.test) if isinstance(call, ast.Call))


def asks_for_cpu(function: ast.AST) -> bool:
    """Whether a function compares a device with the CPU."""
    nodes = list(every(function))
    if any(isinstance(n, ast.Attribute) and n.attr in _ASKS for n in nodes):
        return True
    compared = [n for n in nodes if isinstance(n, ast.Compare)]
    devices = any(isinstance(n, ast.Attribute) and n.attr == "device" for c in compared for n in walk(c))
    return devices and any(isinstance(n, ast.Constant) and n.value == "cpu" for n in nodes)
