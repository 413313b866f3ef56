"""Which torch a file can run on: what its project admits, narrowed by the names that it uses itself.

A name that torch has lost tells the newest torch of the file, one that torch got tells the lowest. A fix writes no name
that the newest one lacks, unless the file uses what came no earlier.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from devlint import knowledge
from devlint.knowledge import Version, older

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class TorchRange(NamedTuple):
    """`begun`: the first torch with all that the file uses; `newest`: the last one it can run on. None: nothing tells."""

    begun: Version | None = None
    newest: Version | None = None

    def has(self, since: Version | None) -> bool:
        """Whether a name that came with a version is there wherever the file runs, as far as its newest torch tells."""
        if since is None or self.newest is None or since <= self.newest:
            return True
        return self.begun is not None and since <= self.begun


def begin_of(qualname: str) -> Version | None:
    """The first torch with a name; None where it is not known or older than all that is known."""
    if qualname in older.BEGUN:
        return older.BEGUN[qualname]
    life = knowledge.lifetime(qualname)
    return life[0] if life is not None else None


def _end_of(qualname: str) -> Version | None:
    """The last torch with a name; None where it is still there or not known."""
    if qualname in older.ENDED:
        return older.ENDED[qualname]
    life = knowledge.lifetime(qualname)
    removed = life[1] if life is not None else None
    return None if removed is None or not removed[1] else (removed[0], removed[1] - 1)


def needs(root: ast.AST, names: dict[str, str]) -> Iterator[tuple[Version, str]]:
    """What a piece of code needs of torch, with the version that has it first. `names`: qualified names by local ones."""
    yield from _named(root, names)
    for node in ast.walk(root):
        if isinstance(node, ast.Attribute) and not qualname_of(node, names).startswith("torch"):
            since = older.TENSOR_BEGUN.get(node.attr)
            if since is not None:
                yield since, f".{node.attr}"
        elif isinstance(node, ast.Call):
            yield from _of_arguments(node)


def _named(root: ast.AST, names: dict[str, str]) -> Iterator[tuple[Version, str]]:
    """The names of torch's own in a piece of code."""
    for node in ast.walk(root):
        qualname = qualname_of(node, names)
        since = begin_of(qualname) if qualname.startswith("torch.") else None
        if since is not None:
            yield since, qualname


def _of_arguments(call: ast.Call) -> Iterator[tuple[Version, str]]:
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    for keyword in call.keywords:
        if keyword.arg is None:
            continue
        since = older.ARGUMENT_BEGUN.get((function, keyword.arg)) or older.ARGUMENT_BEGUN.get(("", keyword.arg))
        if since is not None:
            yield since, f"{keyword.arg}="
        elif keyword.arg == "map_location" and not isinstance(keyword.value, ast.Lambda | ast.Dict):
            yield older.TEXT_FOR_MAP, "map_location="


def qualname_of(node: ast.AST, names: dict[str, str]) -> str:
    """The full name of an expression that starts at an import; empty for any other."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    root = names.get(node.id, "") if isinstance(node, ast.Name) else ""
    return ".".join((root, *reversed(parts))) if root else ""


def names_of(tree: ast.Module) -> dict[str, str]:
    """The qualified names that the imports of a file bind, wherever they stand."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                whole = alias.name if alias.asname else alias.name.partition(".")[0]
                found[alias.asname or whole] = whole
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


@lru_cache(maxsize=4)
def torch_range(text: str, newest: Version | None) -> TorchRange:
    """The torch that a file can run on. `newest`: the newest that its project admits."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return TorchRange(None, newest)
    names = names_of(tree)
    begun = max((since for since, _ in _used(tree, names)), default=None)
    ended = list(_ends(tree, names))
    if ended and min(ended) <= older.SCALAR_INDEX and _asks_volatile(tree):
        ended.append(older.VOLATILE)
    return TorchRange(begun, min([*ended, *([newest] if newest is not None else [])], default=None))


def _used(tree: ast.Module, names: dict[str, str]) -> Iterator[tuple[Version, str]]:
    """What the file uses whatever happens: nothing in a `try`, and nothing under a condition, which may ask for it."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Try | ast.If | ast.IfExp):
            continue
        if isinstance(node, ast.expr):
            yield from _named(node, names)
            continue
        pending.extend(ast.iter_child_nodes(node))


def _ends(tree: ast.Module, names: dict[str, str]) -> Iterator[Version]:
    """The last torch of each use of what torch has lost."""
    iterators = _iterators(tree)
    scalars = _scalars(tree)
    for node in _unguarded(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            receiver = node.func.value
            of_iterator = ast.unparse(receiver) in iterators or _is_iter(receiver)
            if node.func.attr == "next" and not node.args and not node.keywords and of_iterator:
                yield older.ITERATOR_NEXT
        elif isinstance(node, ast.Subscript) and _is_zero(node.slice) and isinstance(node.value, ast.Attribute):
            if node.value.attr == "data" and ast.unparse(node.value.value) in scalars:
                yield older.SCALAR_INDEX
        elif isinstance(node, ast.Attribute | ast.Name):
            end = _end_of(qualname_of(node, names))
            if end is not None:
                yield end
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            named = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            yield from filter(None, map(_end_of, named))


def _unguarded(tree: ast.Module) -> Iterator[ast.AST]:
    """The nodes outside `try` and outside conditions that ask for a version or an attribute."""
    pending: list[ast.AST] = [tree]
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.Try) and any(map(_may_catch, node.handlers)):
            pending.extend([*node.orelse, *node.finalbody])
        elif isinstance(node, ast.If | ast.IfExp) and _asks(node.test):
            continue
        else:
            pending.extend(ast.iter_child_nodes(node))


def _may_catch(handler: ast.ExceptHandler) -> bool:
    """Whether a handler may catch the error of a missing name."""
    said = ast.unparse(handler.type) if handler.type is not None else "Exception"
    return any(each in said for each in ("Exception", "AttributeError", "ImportError", "TypeError", "IndexError"))


def _asks(test: ast.expr) -> bool:
    said = ast.unparse(test)
    return "version" in said or "hasattr" in said


def _is_zero(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value == 0 and not isinstance(node.value, bool)


def _is_iter(node: ast.AST) -> bool:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "iter"
        and len(node.args) == 1
    )


def _iterators(tree: ast.Module) -> set[str]:
    """What is only ever bound to `iter(...)`; nothing in a file that has a `next` method of its own."""
    if any(isinstance(node, _FUNCTIONS) and node.name == "next" for node in ast.walk(tree)):
        return set()
    found: set[str] = set()
    others: set[str] = set()
    for target, value in _bindings(tree):
        (found if value is not None and _is_iter(value) else others).add(ast.unparse(target))
    return found - others


def _bindings(tree: ast.Module) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    """What is bound by assignments, with the value of each; None where that is not known."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from _pairs(target, node.value)
        elif isinstance(node, ast.AnnAssign) and node.value is not None:
            yield node.target, node.value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[ast.expr, ast.expr | None]]:
    if not isinstance(target, ast.Tuple | ast.List):
        yield target, value
        return
    same = isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts)
    for position, each in enumerate(target.elts):
        yield each, value.elts[position] if same else None  # type: ignore[attr-defined]


def _scalars(tree: ast.Module) -> set[str]:
    """What the file calls `backward()` on without a gradient, and binds to the result of a call.

    A tensor with one element in one dimension has such a `backward` as well: nothing then but a version is misjudged.
    """
    backward = {
        ast.unparse(node.func.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "backward"
        if not node.args
    }
    bound = {ast.unparse(target) for target, value in _bindings(tree) if isinstance(value, ast.Call)}
    return backward & bound


def _asks_volatile(tree: ast.Module) -> bool:
    return any(isinstance(node, ast.keyword) and node.arg == "volatile" for node in ast.walk(tree))
