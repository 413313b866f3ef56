"""Predicates that try a name of torch, or ask for its version, for what only some versions have.

    def has_old_cells():
        try:
            torch.nn.backends.thnn.backend.LSTMCell
            return True
        except AttributeError:
            return False

What stands where such a function says yes runs with those versions alone, also where a name keeps its answer. Asked
before a finding is reported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.text.nodes import walk
from devlint.facts.text.references import last_name

if TYPE_CHECKING:
    from devlint.facts.calling.callsites import CallSites
    from devlint.facts.events import ApiName

_ASKS_VERSION = re.compile(r"(?:^|_)(?:torch|pytorch)_(?:version|greater|at_least|ge|gt)(?:_|\Z)")
#: What is there with an accelerator alone, whatever the version.
_BACKENDS = ("torch.cuda.", "torch.xpu.", "torch.mps.", "torch.npu.", "torch.mtia.")


def is_tried_by_predicate(sites: CallSites, event: ApiName) -> bool:
    """Whether a name that torch lacks stands under a call of a function of the project that tries that very name."""
    return any(
        tries(body, event.qualname) for test in event.under.tests for name in called(test) for body in sites.named(name)
    )


def is_under_version(sites: CallSites, event: ApiName) -> bool:
    """Whether a name that is new stands under a call of a function of the project that asks for torch's version."""
    around = sites.body(event.function)
    names = {name for test in event.under.tests for name in (*called(test), *kept_answer(test, around))}
    backend = event.qualname.startswith(_BACKENDS)
    return any(asks_version(body, backend) for name in names for body in sites.named(name))


def kept_answer(test: str, around: ast.AST | None) -> Iterator[str]:
    """What a function calls for the name that a condition is: `new = has_new()`, `if new:`."""
    if around is None or not test.isidentifier():
        return
    for node in walk(around):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            if any(isinstance(target, ast.Name) and target.id == test for target in node.targets):
                yield ast.unparse(node.value.func)


def asks_version(function: ast.AST, backend: bool) -> bool:
    """Whether a function is true of new versions of torch alone: `torch.__version__ >= "2.6"`, `is_torch_version(">=", "2.6")`,
    also where it gives False for old ones first. `backend`: and asks whether there is an accelerator.
    """
    if backend and not any(isinstance(n, ast.Attribute) and n.attr == "is_available" for n in walk(function)):
        return False
    turned = {id(part) for test in turned_down(function) for part in walk(test)}
    for node in walk(function):
        if isinstance(node, ast.Compare) and any(map(is_version, walk(node))):
            wanted = (ast.Lt, ast.LtE) if id(node) in turned else (ast.Gt, ast.GtE)
            if isinstance(node.ops[0], wanted):
                return True
        elif isinstance(node, ast.Call) and _ASKS_VERSION.search(last_name(node.func)) is not None:
            first = node.args[0] if node.args else None
            is_below = isinstance(first, ast.Constant) and str(first.value).startswith("<")
            if is_below is (id(node) in turned):
                return True
    return False


def turned_down(function: ast.AST) -> Iterator[ast.expr]:
    """What a function must not find: `not test`, and the test of an `if` that gives False or raises."""
    for node in walk(function):
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            yield node.operand
        elif isinstance(node, ast.If):
            first = node.body[0]
            gives = first.value if isinstance(first, ast.Return) else None
            if isinstance(first, ast.Raise) or (isinstance(gives, ast.Constant) and not gives.value):
                yield node.test


def is_version(node: ast.AST) -> bool:
    """Whether an expression is `torch.__version__`."""
    return isinstance(node, ast.Attribute) and node.attr == "__version__" and last_name(node.value) == "torch"


def called(test: str) -> Iterator[str]:
    """What a condition calls without arguments, as it is written."""
    if test.startswith("not "):
        return
    try:
        node = ast.parse(test, mode="eval").body
    except SyntaxError:
        return
    parts = node.values if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And) else [node]
    for part in parts:
        if isinstance(part, ast.Call) and not part.args and not part.keywords:
            yield ast.unparse(part.func)


def tries(function: ast.AST, qualname: str) -> bool:
    """Whether a function reads a name of torch, or a part of it, in a `try` with handlers, or asks whether it is there."""
    for node in walk(function):
        if isinstance(node, ast.Try) and node.handlers:
            read = (n for statement in node.body for n in walk(statement) if isinstance(n, ast.Attribute))
            if any(ast.unparse(n) == qualname for n in read):
                return True
        if isinstance(node, ast.Call) and last_name(node.func) == "hasattr" and len(node.args) == 2:
            asked = node.args[1]
            name = asked.value if isinstance(asked, ast.Constant) else None
            if isinstance(name, str) and f"{ast.unparse(node.args[0])}.{name}" == qualname:
                return True
    return False
