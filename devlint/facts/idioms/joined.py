"""What is joined with new tensors of the CPU, where the function brings the result to the CPU later.

    rows = torch.empty(1, 3)
    for line in endpoints(bundle):
        rows = torch.cat((rows, line))   # must be on one device
    x, y, z = rows.cpu().numpy().T       # and may be on another one than the CPU

Whoever brings the result to the CPU expects it on an accelerator, and it is where all that is joined is. Not what a loader
gives, or what is read from a file: that is in host memory, whatever is done to be safe.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.events import Operand
from devlint.facts.idioms.placed import goes_back
from devlint.facts.idioms.said_elsewhere import above, around, is_of_host, subject_of, tells, tests
from devlint.facts.text.annotations import knows_other_tensors
from devlint.facts.text.bindings import bindings
from devlint.facts.text.nodes import holds, walk
from devlint.facts.text.references import last_name
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signs import OF_HOST
from devlint.facts.values import HOME, Value

if TYPE_CHECKING:
    from devlint.facts.interpreter.arguments import CallArguments

#: Names of what gives data of the host.
_GIVES_HOST = re.compile(r"load|data|batch|read|open|parse|collate|label|target|sample", re.IGNORECASE)


def operands(machine: CallArguments, node: ast.expr, value: Value) -> Iterator[Operand]:
    """The parts of a list or tuple, joined with new tensors, of which only this is known."""
    function = machine.function
    own = machine.scan.functions.get(id(function.node)) if function is not None else None
    parts = node.elts if isinstance(node, (ast.List, ast.Tuple)) else []
    if own is None or function is None or not machine.assume or machine.host or machine.in_init:
        return
    if not isinstance(value.elements, tuple) or len(value.elements) != len(parts):
        return
    if knows_other_tensors(machine.imports.names) or function.name.rsplit(".", 1)[-1].startswith("test"):
        return
    blank = [part for part, given in zip(parts, value.elements, strict=True) if is_blank(given)]
    if not blank or any(is_from_host(own, part) for part in blank):
        return
    found = fetched(machine, own, node)
    if found is not None:
        origin = machine.origin(found, "it is joined with a tensor that is moved to the CPU here")
        yield from (machine.operand(part, Value("tensor", HOME, None, because=(origin,))) for part in blank)


def is_blank(value: Value) -> bool:
    """Whether nothing is known of a value, but perhaps that it is a tensor."""
    return value.kind in ("unknown", "tensor") and not value.device and not value.type_name and not value.made


def is_from_host(own: FunctionScan, node: ast.expr) -> bool:
    """Whether an expression, or what its names are bound to, gives by its names what is in host memory."""
    sources = [node]
    for source in sources:  # which grows
        if is_of_host(source):
            return True
        for part in walk(source):
            name = last_name(part) if isinstance(part, (ast.Name, ast.Attribute)) else ""
            if _GIVES_HOST.search(name) is not None or OF_HOST.search(name) is not None:
                return True
            if isinstance(part, ast.Name):
                sources += [each for each in bindings(own).get(part.id, ()) if each not in sources]
    return False


def fetched(machine: CallArguments, own: FunctionScan, node: ast.expr) -> ast.Call | None:
    """The call that brings to the CPU what the joined tensors are bound to, and nothing else is but new tensors."""
    bound = [a for a in own.assigns if isinstance(a, ast.Assign) and holds(a.value, node)]
    target = bound[0].targets[0] if len(bound) == 1 and len(bound[0].targets) == 1 else None
    if not isinstance(target, ast.Name):
        return None
    between = [e for e in bindings(own).get(target.id, ()) if e is not bound[0].value and e.lineno >= bound[0].lineno]
    for call in own.calls:
        if not isinstance(call.func, ast.Attribute) or not goes_back(call) or call.lineno < bound[0].lineno:
            continue
        subject = subject_of(call.func.value)
        if not isinstance(subject, ast.Name) or subject.id != target.id:
            continue
        if any(each.lineno <= call.lineno and not holds(each, call) for each in between):
            continue
        if not any(tells(machine, test, target.id) for test in tests(call, list(around(call, above(own.node))))):
            return call
    return None
