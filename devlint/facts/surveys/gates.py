"""Conditions about an accelerator that decide more than they need to: the program ends without it, or a tensor is moved
only where another one is on that one type."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.facts.events import Followed, Required, TypeTest
from devlint.facts.interpreter.flow import ends_the_run
from devlint.facts.surveys.outline import Outline
from devlint.facts.values import ACCELERATORS

_AVAILABLE = {f"torch.{type}.is_available": type for type in ACCELERATORS} | {"torch.backends.mps.is_available": "mps"}
_TYPES = tuple(f"torch.{type}." for type in sorted(ACCELERATORS))
_LOGS = ("print", "log", "warn", "info", "error", "warning", "critical", "exception", "write")


def required(o: Outline) -> Iterator[Required]:
    """`assert torch.cuda.is_available()`, and `if not torch.cuda.is_available(): sys.exit(1)`."""
    for call in o.calls:
        type = _AVAILABLE.get(o.qualname(call.func) or "")
        if type is None or call.args or call.keywords:
            continue
        parent = o.parent.get(call)
        if isinstance(parent, ast.Assert) and parent.test is call:
            yield Required(*o.head(parent), type, False)
        elif isinstance(parent, ast.UnaryOp) and isinstance(parent.op, ast.Not):
            block = o.parent.get(parent)
            if isinstance(block, ast.If) and block.test is parent and not block.orelse and _only_ends(block.body):
                yield Required(*o.head(parent), type, True)


def _only_ends(body: list[ast.stmt]) -> bool:
    """Whether a block says something at most, and ends the program."""
    *told, last = body
    ends = isinstance(last, ast.Raise) or (
        isinstance(last, ast.Expr) and isinstance(last.value, ast.Call) and ends_the_run(last.value.func)
    )
    return ends and all(
        isinstance(s, ast.Expr)
        and isinstance(s.value, ast.Call)
        and getattr(s.value.func, "attr", getattr(s.value.func, "id", "")) in _LOGS
        for s in told
    )


def followed(o: Outline) -> Iterator[Followed]:
    """`if x.is_cuda: y = y.cuda()`, and `y.cuda() if x.is_cuda else y`."""
    for call in o.calls:
        method = call.func
        if not isinstance(method, ast.Attribute) or method.attr not in ACCELERATORS or call.args or call.keywords:
            continue
        parent = o.parent.get(call)
        if isinstance(parent, ast.IfExp) and parent.body is call:
            leader = _leader(parent.test, method.attr)
            if leader is not None and ast.dump(parent.orelse) == ast.dump(method.value):
                yield Followed(*o.head(parent), method.attr, leader, (), (o.flow.span(method.value),))
        elif isinstance(parent, ast.Assign) and isinstance(block := o.parent.get(parent), ast.If):
            leader = _leader(block.test, method.attr)
            if leader is None or block.orelse or block.body[0] is not parent:
                continue
            moved = [_moves_itself(statement, method.attr) for statement in block.body]
            if all(node is not None and ast.dump(node) != ast.dump(leader) for node in moved):
                targets = tuple(o.flow.text(node) for node in moved if node is not None)
                yield Followed(*o.head(block.test), method.attr, leader, targets, ())


def _leader(test: ast.expr, type: str) -> ast.expr | None:
    """The tensor whose `is_cuda` is asked."""
    if isinstance(test, ast.Attribute) and test.attr == f"is_{type}":
        return test.value
    return None


def _moves_itself(statement: ast.stmt, type: str) -> ast.expr | None:
    """What `y = y.cuda()` moves, a name or an attribute."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target, call = statement.targets[0], statement.value
    if (
        not isinstance(target, (ast.Name, ast.Attribute))
        or not isinstance(call, ast.Call)
        or call.args
        or call.keywords
    ):
        return None
    method = call.func
    if not isinstance(method, ast.Attribute) or method.attr != type:
        return None
    return method.value if ast.unparse(method.value) == ast.unparse(target) else None


def type_tests(o: Outline) -> Iterator[TypeTest]:
    """`x.type() == "torch.cuda.HalfTensor"`."""
    for call in o.calls:
        method, test = call.func, o.parent.get(call)
        if not isinstance(method, ast.Attribute) or method.attr != "type" or call.args or call.keywords:
            continue
        if not isinstance(test, ast.Compare) or test.left is not call or len(test.ops) != 1:
            continue
        (operator,), (other,) = test.ops, test.comparators
        name = other.value if isinstance(other, ast.Constant) else None
        if isinstance(operator, (ast.Eq, ast.NotEq)) and isinstance(name, str) and name.startswith(_TYPES):
            yield TypeTest(*o.head(test), o.flow.span(method.value), name, isinstance(operator, ast.Eq))
