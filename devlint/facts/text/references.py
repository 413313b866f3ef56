"""How an expression refers to things: the name that it ends in, attributes of `self`, chains of calls, what a call gives."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from devlint.facts.text.nodes import walk


def is_property(node: ast.AST) -> bool:
    """Whether a function is read like an attribute."""
    return any(last_name(d) in ("property", "cached_property") for d in getattr(node, "decorator_list", ()))


def is_static(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether a method is a static one."""
    marks = getattr(node, "decorator_list", ())
    return any(isinstance(mark, ast.Name) and mark.id == "staticmethod" for mark in marks)


def is_private(name: str) -> bool:
    """Whether a name says that only its own file, class or project uses it: `_helper`, not `__call__`."""
    return name.startswith("_") and not name.startswith("__")


def bindings_of(node: ast.AST) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What an assignment binds to what, one by one: `self.a, self.b = [], {}`."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        yield node.target, node.value
    elif isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield from zip(target.elts, node.value.elts, strict=False)
            else:
                yield target, node.value


@lru_cache(512)
def own_bindings(method: ast.AST) -> Mapping[str, Sequence[ast.expr | None]]:
    """What a method binds the attributes of `self` to, by their names; None for what is no plain assignment: a loop, `with`.

    `+=` is none: what the attribute was bound to is changed, and stays where it is.
    """
    found: dict[str, list[ast.expr | None]] = {}
    plain: set[int] = set()
    others: list[ast.Attribute] = []
    for node in walk(method):
        if isinstance(node, ast.AugAssign) or (isinstance(node, ast.AnnAssign) and node.value is None):
            plain.add(id(node.target))
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            for target, value in bindings_of(node):
                if isinstance(target, ast.Attribute) and is_self_attribute(target):
                    found.setdefault(target.attr, []).append(value)
                    plain.add(id(target))
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self_attribute(node):
            others.append(node)
    for each in others:
        if id(each) not in plain:
            found.setdefault(each.attr, []).append(None)
    return found


def stored_names(node: ast.AST) -> set[str]:
    """The plain names that a node binds."""
    return {n.id for n in walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


def is_self(node: ast.expr) -> bool:
    """Whether an expression is `self`."""
    return isinstance(node, ast.Name) and node.id == "self"


def is_self_attribute(node: ast.AST) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def is_name(node: ast.AST, name: str) -> bool:
    """Whether a node is a name and nothing more."""
    return isinstance(node, ast.Name) and node.id == name


def is_own_attribute(node: ast.AST, name: str) -> bool:
    """Whether an expression is `self.name`."""
    return is_self_attribute(node) and getattr(node, "attr", "") == name


def given(call: ast.Call, parameter: str, position: int) -> list[ast.expr]:
    """What a call passes for a parameter, as far as it shows."""
    found = [k.value for k in call.keywords if k.arg == parameter]
    if not found and 0 <= position < len(call.args):
        found = [call.args[position]]
    return found


def chain(node: ast.expr) -> Iterator[ast.expr]:
    """A chain of calls, attributes and subscripts from its end to its start; the elements of a tuple, too."""
    while True:
        yield node
        if isinstance(node, ast.Call):
            node = node.func
        elif isinstance(node, (ast.Attribute, ast.Subscript, ast.Await)):
            node = node.value
        else:
            return


def aliases(tree: ast.AST) -> dict[str, set[str]]:
    """The plain names that are given an attribute, by that attribute's name: `model` of `model = self.model_`."""
    found: dict[str, set[str]] = {}
    for node in walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Attribute):
            found.setdefault(node.value.attr, set()).update(t.id for t in node.targets if isinstance(t, ast.Name))
    return found


def with_aliases(tree: ast.AST, names: set[str]) -> set[str]:
    """Names, and the plain names that are given what has one of them."""
    known = aliases(tree) if names else {}
    return names.union(*(known.get(name, ()) for name in names))


def last_name(node: ast.expr) -> str:
    """The name that an expression reads as in the end: `net` of `self.net`; empty for what is no name."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def asks_none(test: ast.expr, name: str, by: type[ast.cmpop] = ast.Is) -> bool:
    """Whether a condition is `name is None`, or the opposite with `IsNot`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], by):
        return False
    other = test.comparators[0]
    return isinstance(test.left, ast.Name) and test.left.id == name and is_nothing(other)


def is_nothing(node: ast.expr) -> bool:
    """Whether an expression is `None`."""
    return isinstance(node, ast.Constant) and node.value is None
