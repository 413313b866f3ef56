"""Makes a program smaller while something about one of its statements stays true (delta debugging, Zeller 1999).

Statements go in halves, quarters and single ones. What holds statements gives way to its body. Then decorators,
annotations and keywords go one by one, and arguments become `...`. Every candidate is asked about as text. None lacks what
binds a name that it reads.
"""

from __future__ import annotations

import ast
import builtins
import copy
import time
from collections.abc import Callable, Iterator

#: Whether a text still shows it. `row`: where the statement that it is about starts.
Holds = Callable[[str, int], bool]
_Statements = list[ast.stmt]


class Shrinker:
    """Shrinks one program, for some seconds at most. `text` and `row` are what it came to.

    `kept`: statements that stay, by the rows that they start on; None where the statement itself may lose parts.
    """

    def __init__(self, tree: ast.Module, row: int, holds: Holds, seconds: float, kept: frozenset[int] | None = None):
        self._tree = copy.deepcopy(tree)
        self._holds = holds
        self._end = time.monotonic() + seconds
        self.is_done = False
        self._target = statement_at(self._tree, row)
        self._kept = {
            id(node) for node in ast.walk(self._tree) if isinstance(node, ast.stmt) and node.lineno in (kept or ())
        }
        self._kept.add(id(self._target))
        self._whole = {id(node) for node in ast.walk(self._target)} if kept is not None else set()
        self._unbound = _unbound(self._tree)

    @property
    def text(self) -> str:
        """The program as it is."""
        return ast.unparse(ast.fix_missing_locations(self._tree)) + "\n"

    @property
    def row(self) -> int:
        """Where the statement starts in `text`."""
        order = list(_preorder(self._tree))
        number = next(index for index, node in enumerate(order) if node is self._target)
        return list(_preorder(ast.parse(self.text)))[number].lineno

    def holds(self) -> bool:
        """Whether the program as it is shows it; False once the time is over."""
        if time.monotonic() > self._end or not _unbound(self._tree) <= self._unbound:
            return False
        return self._holds(self.text, self.row)

    def run(self) -> None:
        """Shrink until nothing more can go, or the time is over."""
        size = -1
        while size != len(self.text) and time.monotonic() < self._end:
            size = len(self.text)
            self._statements()
            self._holders()
            self._parts()
        self.is_done = size == len(self.text)

    def _statements(self) -> None:
        """Take statements away, the outermost first."""
        pending: list[ast.AST] = [self._tree]
        while pending:
            node = pending.pop(0)
            for block in _blocks(node):
                self._thin(block)
            pending += [child for block in _blocks(node) for child in block]
            pending += getattr(node, "handlers", [])

    def _thin(self, block: _Statements) -> None:
        size = max(1, len(block) // 2)
        while True:
            at = 0
            while at < len(block):
                group = block[at : at + size]
                if all(
                    self._may_go(node) or (isinstance(node, ast.Pass) and len(block) > 1) for node in group
                ) and self._try_without(block, at, size):
                    continue
                at += size
            if size == 1:
                return
            size = max(1, size // 2)

    def _may_go(self, node: ast.stmt) -> bool:
        return not isinstance(node, ast.Pass) and not any(id(inner) in self._kept for inner in ast.walk(node))

    def _try_without(self, block: _Statements, at: int, size: int) -> bool:
        before = list(block)
        block[at : at + size] = []
        if not block and block is not self._tree.body:
            block.append(ast.Pass())
        if self.holds():
            return True
        block[:] = before
        return False

    def _holders(self) -> None:
        """Put the body of a loop, a condition, a function or a class in its place."""
        pending: list[ast.AST] = [self._tree]
        while pending:
            node = pending.pop(0)
            for block in _blocks(node):
                at = 0
                while at < len(block):
                    holder = block[at]
                    body = getattr(holder, "body", None)
                    if id(holder) not in self._kept and isinstance(body, list) and body:
                        before = list(block)
                        block[at : at + 1] = body
                        if self.holds():
                            continue
                        block[:] = before
                    self._try_no_else(holder)
                    at += 1
                pending += block
            pending += getattr(node, "handlers", [])

    def _try_no_else(self, holder: ast.stmt) -> None:
        for name in ("orelse", "finalbody"):
            rest = getattr(holder, name, None)
            if rest and not any(id(inner) in self._kept for each in rest for inner in ast.walk(each)):
                setattr(holder, name, [])
                if not self.holds():
                    setattr(holder, name, rest)

    def _parts(self) -> None:
        """Take decorators, annotations, bases, arguments, keywords, imported names and items away, one by one."""
        for node in list(ast.walk(self._tree)):
            if id(node) in self._whole:
                continue
            for name in ("decorator_list", "bases", "keywords", "names", "items"):
                self._items(node, name)
            if isinstance(node, ast.Call):
                self._arguments(node)
            for name in ("returns", "annotation"):
                if getattr(node, name, None) is not None and not isinstance(node, ast.AnnAssign):
                    self._try_set(node, name, None)

    def _items(self, node: ast.AST, name: str) -> None:
        values = getattr(node, name, None)
        if not isinstance(values, list):
            return
        for value in list(values):
            smallest = 1 if name in ("names", "items") else 0
            if len(values) <= smallest or value not in values:
                continue
            before = list(values)
            values.remove(value)
            if not self.holds():
                values[:] = before

    def _arguments(self, node: ast.Call) -> None:
        """Put `...` in the place of arguments: a reader sees that something was there."""
        for at, value in enumerate(node.args):
            if not isinstance(value, ast.Constant | ast.Starred):
                node.args[at] = ast.Constant(...)
                if not self.holds():
                    node.args[at] = value

    def _try_set(self, node: ast.AST, name: str, value: object) -> None:
        before = getattr(node, name)
        setattr(node, name, value)
        if not self.holds():
            setattr(node, name, before)


def statement_at(tree: ast.Module, row: int) -> ast.stmt:
    """The innermost statement that covers a row. Raises LookupError where none does."""
    found = [node for node in _preorder(tree) if _first(node) <= row <= (node.end_lineno or node.lineno)]
    if not found:
        raise LookupError(row)
    return min(reversed(found), key=lambda node: (node.end_lineno or node.lineno) - _first(node))


def _first(node: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(each.lineno for each in decorators)])


def _unbound(tree: ast.Module) -> set[str]:
    """The names that a program reads and binds nowhere."""
    read: set[str] = set()
    bound = set(dir(builtins))
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.ExceptHandler):
            bound.add(node.name or "")
    return read - bound


def _preorder(node: ast.AST) -> Iterator[ast.stmt]:
    """The statements in the order of the text."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt):
            yield child
        yield from _preorder(child)


def _blocks(node: ast.AST) -> list[_Statements]:
    blocks = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
    return [block for block in blocks if isinstance(block, list) and block and isinstance(block[0], ast.stmt)]
