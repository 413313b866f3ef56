"""What keeps a file on the card beside its uses, by syntax alone: switches that are on, checkpoints on a computed card.

A switch is `use_gpu=True` of a call, a parameter, a dictionary, an option or a name that conditions read.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from devlint.api import Facts

from ._run_device import denies_accelerator, says_accelerator
from ._shared import parsed


@lru_cache(maxsize=4)
def switches(text: str) -> tuple[ast.Constant, ...]:
    """The constants `True` that turn the card on, outside of conditions that ask for a card."""
    return tuple(
        value
        for node in unasked(text)
        for value in _switched(node, text)
        if isinstance(value, ast.Constant) and value.value is True
    )


@lru_cache(maxsize=4)
def computed_maps(text: str) -> tuple[ast.expr, ...]:
    """The values of `map_location` that compute a card, `f"cuda:{gpu}"`, outside of conditions that ask for a card."""
    return tuple(
        node.value
        for node in unasked(text)
        if isinstance(node, ast.keyword) and node.arg == "map_location" and is_computed_card(node.value)
    )


def is_computed_card(node: ast.expr) -> bool:
    """Whether an expression names a card whose index it computes: `f"cuda:{gpu}"`, `torch.device("cuda", gpu)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "device" and node.args:
        if len(node.args) == 2:
            return _starts(node.args[0], "cuda") and not isinstance(node.args[1], ast.Constant)
        return is_computed_card(node.args[0])
    if isinstance(node, ast.JoinedStr):
        return len(node.values) > 1 and _starts(node.values[0], "cuda:")
    if isinstance(node, ast.BinOp):
        return _starts(node.left, "cuda:")
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "format":
        return _starts(node.func.value, "cuda:")
    return False


def _starts(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith(text)


def unasked(text: str) -> Iterator[ast.AST]:
    """The nodes of a file outside of conditions that ask for a card."""
    root = parsed(text)
    pending: list[ast.AST] = [root] if root is not None else []
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If | ast.IfExp) and says_accelerator(ast.unparse(node.test)):
            continue
        yield node
        pending.extend(ast.iter_child_nodes(node))


def _switched(node: ast.AST, text: str) -> Iterator[ast.expr]:
    """The values that a node gives to what is named for the card."""
    if isinstance(node, ast.Call):
        yield from (each.value for each in node.keywords if is_switch(each.arg or ""))
        if isinstance(node.func, ast.Attribute) and node.func.attr == "add_argument" and node.args:
            option = node.args[-1]
            if isinstance(option, ast.Constant) and isinstance(option.value, str) and is_switch(option.value):
                yield from (each.value for each in node.keywords if each.arg == "default")
    elif isinstance(node, ast.arguments):
        yield from (value for name, value in defaults(node) if is_switch(name))
    elif isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and is_switch(key.value):
                yield value
    elif isinstance(node, ast.Assign) and len(node.targets) == 1:
        target = node.targets[0]
        last = target.attr if isinstance(target, ast.Attribute) else target.id if isinstance(target, ast.Name) else ""
        if is_switch(last) and ast.unparse(target) in tested(text):
            yield node.value


class Switch(NamedTuple):
    """A name that the module binds once, to whether there is a card, and the statement that does."""

    name: str
    statement: ast.stmt


def own_switch(asks: str, facts: Facts) -> Switch | None:
    """The switch of the file that its conditions read: `CUDA = torch.cuda.is_available()`. `asks`: the function of torch."""
    tree = parsed(facts.text)
    nodes = list(ast.walk(tree)) if tree is not None else []
    bound = Counter(node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load))
    for statement in tree.body if tree is not None else ():
        target = statement.targets[0] if isinstance(statement, ast.Assign) else getattr(statement, "target", None)
        value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
        if not isinstance(target, ast.Name) or not isinstance(value, ast.Call) or value.args:
            continue
        first, dot, rest = ast.unparse(value.func).partition(".")
        if f"{facts.imports.get(first, first)}{dot}{rest}" == asks and bound[target.id] == 1:
            if target.id in tested(facts.text) and len(getattr(statement, "targets", [target])) == 1:
                return Switch(target.id, statement)
    return None


def is_switch(name: str) -> bool:
    """Whether a name is that of a switch which turns the card on."""
    return says_accelerator(name) and not denies_accelerator(name)


def defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    """The parameters that have a default, with it."""
    placed = [*arguments.posonlyargs, *arguments.args]
    for argument, value in zip(reversed(placed), reversed(arguments.defaults), strict=False):
        yield argument.arg, value
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if default is not None:
            yield argument.arg, default


@lru_cache(maxsize=4)
def tested(text: str) -> frozenset[str]:
    """The names and attributes that conditions of the file read."""
    tree = parsed(text)
    found: set[str] = set()
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Compare | ast.BoolOp):
            parts: list[ast.AST] = [node]
        elif isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
            parts = [node.test]
        elif isinstance(node, ast.Match):
            parts = [node.subject]
        else:
            continue
        for part in parts:
            found |= {ast.unparse(n) for n in ast.walk(part) if isinstance(n, ast.Name | ast.Attribute)}
    return frozenset(found)
