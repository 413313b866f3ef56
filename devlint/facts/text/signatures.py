"""The parameters of a function: their defaults, and what a call has to give."""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import TypeAlias

from devlint.facts.text.nodes import walk
from devlint.facts.text.references import given

Plain: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def positional_names(arguments: ast.arguments) -> list[str]:
    """The names of the parameters that a call may give by position."""
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args)]


def named_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """All parameters but `*args` and `**kwargs`, in the order in which they are written."""
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]


def parameter_names(function: ast.AST) -> list[str]:
    """The names of `named_parameters`; none for what is no function."""
    spec = getattr(function, "args", None)
    return [a.arg for a in named_parameters(spec)] if isinstance(spec, ast.arguments) else []


def parameter_of(arguments: ast.arguments, name: str) -> ast.arg | None:
    """The parameter of a name, `*args` and `**kwargs` left out; None where there is none."""
    return next((a for a in named_parameters(arguments) if a.arg == name), None)


def default_of(arguments: ast.arguments, name: str) -> ast.expr | None:
    """The default of a parameter; None where it has none."""
    plain = [*arguments.posonlyargs, *arguments.args]
    by_place = zip(plain[len(plain) - len(arguments.defaults) :], arguments.defaults, strict=True)
    by_name = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    return next((default for a, default in (*by_place, *by_name) if a.arg == name), None)


def lacks_arguments(node: Plain, call: ast.Call, first: int, named: Collection[str] = ()) -> bool:
    """Whether a call gives a function too little: it raises a TypeError. `first`: parameters that are there before, `self`.

    `named`: further names that are given, by a partial function. A decorator or star-arguments may give the rest.
    """
    spec = node.args
    plain = positional_names(spec)
    needed = plain[: len(plain) - len(spec.defaults)][first + len(call.args) :]
    needed += [a.arg for a, default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if default is None]
    if not needed or {*named, *(k.arg for k in call.keywords)}.issuperset(needed):
        return False
    if any(not (isinstance(mark, ast.Name) and mark.id == "staticmethod") for mark in node.decorator_list):
        return False
    return not (any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords))


def calls_parameter(function: ast.AST) -> bool:
    """Whether a function calls something that it is given, which may do anything: `self.shadow = convert(self.shadow)`."""
    names = set(parameter_names(function))
    return any(isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id in names for n in walk(function))


def given_at(call: ast.Call, name: str, position: int, default: ast.expr | None) -> ast.expr | None:
    """What a call gives for a parameter, or its default; None where that does not show."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    passed = given(call, name, position)
    return passed[0] if passed else default


def is_kept_parameter(function: Plain, name: str) -> bool:
    """Whether a name is a parameter of a function that nothing in it binds anew."""
    if parameter_of(function.args, name) is None:
        return False
    names = (n for n in walk(function) if isinstance(n, (ast.Name, ast.arg)))
    bound = [n for n in names if isinstance(n, ast.arg) or not isinstance(n.ctx, ast.Load)]
    return sum((n.arg if isinstance(n, ast.arg) else n.id) == name for n in bound) == 1
