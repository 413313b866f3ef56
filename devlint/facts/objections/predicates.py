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
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts.text.handlers import caught
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import asks_none, is_private, last_name

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


def is_for_lack_of_module(sites: CallSites, event: ApiName) -> bool:
    """Whether a name that torch lacks stands in a private function that is named only where a module of torch is not there,
    which every known torch has: `rfft = _old_rfft if new_fft is None else _new_rfft`, after `import torch.fft as new_fft` in
    a `try`."""
    function, own = sites.function(event.function), sites.files.look(sites.path)
    if own is None or function is None or not isinstance(function.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return False
    name, tree = function.node.name, own.loaded.tree
    if not is_private(name) or function.node not in tree.body or function.node.decorator_list:
        return False
    named = own.named(name)
    lacking = (
        {flag for flag in lacking_modules(tree) if sum(is_stored(n) for n in own.named(flag)) == 1} if named else ()
    )
    arms = [
        arm
        for node in walk(tree)
        if lacking and isinstance(node, (ast.If, ast.IfExp))
        for arm in arms_of(node, lacking)
    ]
    inside = {id(node) for arm in arms for node in walk(arm)}
    return bool(arms) and all(id(node) in inside for node in named)


def lacking_modules(tree: ast.Module) -> Iterator[str]:
    """The names that stand for modules of torch, which every known torch has, and for None where one cannot be imported."""
    for node in tree.body:
        first = node.body[0] if isinstance(node, ast.Try) and len(node.body) == 1 else None
        if not isinstance(node, ast.Try) or not isinstance(first, ast.Import) or node.orelse or node.finalbody:
            continue
        modules = {alias.asname for alias in first.names if alias.name.startswith("torch.") and is_in_all(alias.name)}
        if not caught(node) <= {"ImportError", "ModuleNotFoundError"} or len(first.names) != 1:
            continue
        for statement in (part for handler in node.handlers for part in handler.body):
            if (
                isinstance(statement, ast.Assign)
                and isinstance(statement.value, ast.Constant)
                and not statement.value.value
            ):
                yield from (t.id for t in statement.targets if isinstance(t, ast.Name) and t.id in modules)


def is_in_all(module: str) -> bool:
    """Whether every known torch has a module."""
    return all(knowledge.exists(module, version) for version in knowledge.VERSIONS)


def is_stored(node: ast.expr) -> bool:
    """Whether a name or attribute is bound where it stands."""
    return not isinstance(getattr(node, "ctx", None), ast.Load)


def arms_of(node: ast.If | ast.IfExp, lacking: Collection[str]) -> list[ast.AST]:
    """What runs where one of these names is None: the arm of a condition that asks for it."""
    test, is_none = node.test, False
    while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        test, is_none = test.operand, not is_none
    for name in lacking:
        if asks_none(test, name):
            is_none = not is_none
        elif not asks_none(test, name, ast.IsNot) and not (isinstance(test, ast.Name) and test.id == name):
            continue
        arm = node.body if is_none else node.orelse
        return [*arm] if isinstance(arm, list) else [arm]
    return []
