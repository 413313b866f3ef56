"""What a call gives to a function, and which calls a failing statement holds."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from devlint.explain.sources import Plain
from devlint.facts.text.references import is_static, last_name
from devlint.facts.text.signatures import positional_names

_OF_LIBRARIES = (
    "torch.", "F.", "np.", "nn.", "len", "print", "range", "enumerate", "zip", "list", "tuple", "int", "float",
)  # fmt: skip
#: How functions are called that run under another name than the one that calls them.
_INDIRECT = ("forward", "__", "_call", "wrapper", "decorate", "_wrapped", "inner")


def arguments_for(call: ast.Call, function: Plain, name: str) -> Iterator[ast.expr]:
    """What a call gives for a parameter of a function, as far as it shows."""
    for keyword in call.keywords:
        if keyword.arg == name:
            yield keyword.value
            return
    names = positional_names(function.args)
    bound = bool(names) and names[0] in ("self", "cls") and not is_static(function)
    if bound:
        names = names[1:]
    if name in names:
        position = names.index(name)
        for number, argument in enumerate(call.args):
            if isinstance(argument, ast.Starred):
                yield argument.value
                return
            if number == position:
                yield argument
                return
    elif function.args.vararg is not None and function.args.vararg.arg == name:
        yield from call.args[len(names) :]
        return
    for keyword in call.keywords:
        if keyword.arg is None:
            yield keyword.value


def operands(statement: ast.stmt) -> list[ast.expr]:
    """The expressions that a statement evaluates itself: of a loop or a condition those of its head."""
    if isinstance(statement, ast.Assign):
        targets = [t for t in statement.targets if isinstance(t, ast.Subscript)]
        return [statement.value, *targets]
    if isinstance(statement, ast.AugAssign):
        return [statement.value, statement.target]
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return [statement.iter]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [item.context_expr for item in statement.items]
    return [n for n in ast.iter_child_nodes(statement) if isinstance(n, ast.expr)]


def calls_of(statement: ast.stmt, name: str) -> list[ast.Call]:
    """The calls in a statement that may have run a function of this name."""
    calls = [n for each in operands(statement) for n in ast.walk(each) if isinstance(n, ast.Call)]
    exact = [call for call in calls if last_name(call.func) == name]
    if exact or not name.startswith(_INDIRECT):
        return exact
    return [c for c in calls if not _is_of_library(c)]


def _is_of_library(call: ast.Call) -> bool:
    return ast.unparse(call.func).startswith(_OF_LIBRARIES)


def has_parameter(function: Plain, name: str) -> bool:
    return name in parameter_names(function)


def parameter_names(function: Plain) -> list[str]:
    """The names of all parameters of a function."""
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return [a.arg for a in every if a is not None]
