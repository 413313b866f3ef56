"""Where a place stands in a file's `ast`: the blocks around it, from the module's to the innermost, and what binds names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from devlint.source import Source

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_ENDS = (ast.Return, ast.Raise, ast.Continue, ast.Break)


class Level(NamedTuple):
    """One block around a place: its statements, the position of the one that holds the place, and whose block it is."""

    block: Sequence[ast.stmt]
    row: int
    owner: ast.AST


class Place(NamedTuple):
    """A place by its blocks, outermost first, and by the comprehensions and lambdas of its statement that hold it."""

    levels: tuple[Level, ...]
    inside: tuple[ast.AST, ...] = ()

    def at_end_of(self, block: Sequence[ast.stmt], owner: ast.AST) -> Place:
        """The end of a block of this place's statement."""
        return Place((*self.levels, Level(block, len(block), owner)))

    def outside(self, depth: int) -> Place:
        """The place of the statement that holds the block of this depth."""
        return Place(self.levels[:depth])


def place_at(module: ast.Module, source: Source, offset: int) -> Place | None:
    """The place of an offset in the text; None outside of statements."""
    levels: list[Level] = []
    owner: ast.AST = module
    while True:
        found = _holding(owner, source, offset)
        if found is None:
            break
        block, index = found
        levels.append(Level(block, index, owner))
        owner = block[index]
    if not levels:
        return None
    return Place(tuple(levels), tuple(_expressions_around(owner, source, offset)))


def place_of(module: ast.Module, statement: ast.stmt) -> Place | None:
    """The place of a statement of the file."""
    row, column = statement.lineno, statement.col_offset
    levels: list[Level] = []
    owner: ast.AST = module
    while owner is not statement:
        for below, block in blocks_of(owner):
            index = _index_of(block, row, column)
            if index is not None:
                levels.append(Level(block, index, below))
                owner = block[index]
                break
        else:
            return None
    return Place(tuple(levels))


def _index_of(block: Sequence[ast.stmt], row: int, column: int) -> int | None:
    for index, inner in enumerate(block):
        start = min([inner.lineno, *(d.lineno for d in getattr(inner, "decorator_list", ()))])
        if (start, 0 if start < inner.lineno else inner.col_offset) > (row, column):
            return None
        if (row, column) < (inner.end_lineno or inner.lineno, inner.end_col_offset or 0):
            return index
    return None


def _holding(owner: ast.AST, source: Source, offset: int) -> tuple[Sequence[ast.stmt], int] | None:
    for _, block in blocks_of(owner):
        for index, statement in enumerate(block):
            span = source.span(statement)
            if span.start <= offset < span.end:
                return block, index
    return None


def _expressions_around(statement: ast.AST, source: Source, offset: int) -> Iterator[ast.AST]:
    for node in ast.walk(statement):
        if isinstance(node, (*_COMPREHENSIONS, ast.Lambda)):
            span = source.span(node)
            if span.start <= offset < span.end:
                yield node


def blocks_of(owner: ast.AST) -> Iterator[tuple[ast.AST, list[ast.stmt]]]:
    """The blocks of a statement, each with what it belongs to: the statement, a handler or a case."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(owner, name, None)
        if isinstance(block, list) and block:
            yield owner, block
    for part in (*getattr(owner, "handlers", ()), *getattr(owner, "cases", ())):
        yield part, part.body


def ends(block: Sequence[ast.stmt]) -> bool:
    """Whether what follows a block is not reached from its end."""
    if not block:
        return False
    last = block[-1]
    if isinstance(last, ast.If):
        return bool(last.orelse) and ends(last.body) and ends(last.orelse)
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call):
        return ast.unparse(last.value.func) in ("exit", "quit", "sys.exit", "os._exit")
    return isinstance(last, _ENDS) or (isinstance(last, ast.With) and ends(last.body))


@lru_cache(maxsize=1 << 13)
def may_leave(statement: ast.stmt) -> bool:
    """Whether a statement may keep what follows it in its block from being reached."""
    return any(isinstance(node, (*_ENDS, ast.Yield, ast.YieldFrom)) for node in own_nodes(statement))


@lru_cache(maxsize=1 << 13)
def words(statement: ast.AST) -> frozenset[str]:
    """The names with which paths start that a statement may read or bind, whatever stands in it."""
    found: set[str] = set()
    for node in ast.walk(statement):
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.alias):
            found.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            found.update(node.names)
        elif (name := getattr(node, "name", None)) is not None and isinstance(name, str):
            found.add(name)
    return frozenset(found)


def own_nodes(root: ast.AST) -> Iterator[ast.AST]:
    """The nodes of a statement without the bodies of functions, classes and lambdas in it."""
    pending = [root]
    while pending:
        node = pending.pop()
        yield node
        if node is root or not isinstance(node, _SCOPES):
            pending.extend(ast.iter_child_nodes(node))


def bindings(block: Sequence[ast.AST], path: str) -> Iterator[ast.AST]:
    """The nodes in a block that give a path a value: targets, `def`, `import`, `as`, `del`. Functions in it are left out."""
    root = path.partition(".")[0]
    for statement in block:
        if root not in words(statement):
            continue
        if isinstance(statement, _SCOPES):
            if getattr(statement, "name", "") == path:
                yield statement
            continue
        for node in own_nodes(statement):
            if is_binding(node, path):
                yield node


@lru_cache(maxsize=1 << 14)
def binds(statement: ast.AST, path: str) -> int:
    """How often something in a statement gives a path a value; see `bindings`."""
    return sum(1 for _ in bindings([statement], path))


def is_binding(node: ast.AST, path: str) -> bool:
    """Whether a node gives a path, or what it is read from, a value."""
    if isinstance(node, ast.Name):
        return node.id == path.partition(".")[0] and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Attribute):
        if isinstance(node.ctx, ast.Load):
            return False
        written = ast.unparse(node)
        return path == written or path.startswith(written + ".")
    if isinstance(node, ast.alias):
        return (node.asname or node.name).partition(".")[0] == path
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
        return node.name == path
    if isinstance(node, (ast.MatchAs, ast.MatchStar)):
        return node.name == path
    return isinstance(node, (ast.Global, ast.Nonlocal)) and path in node.names


def evaluated(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of an expression, or of a simple statement, that run whenever it does."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        if isinstance(current, ast.IfExp):
            pending.append(current.test)
        elif isinstance(current, ast.BoolOp):
            pending.append(current.values[0])
        elif isinstance(current, _COMPREHENSIONS):
            pending.append(current.generators[0].iter)
        elif isinstance(current, ast.Compare) and len(current.ops) > 1:
            pending += [current.left, current.comparators[0]]
        elif not isinstance(current, _SCOPES):
            pending.extend(ast.iter_child_nodes(current))


@lru_cache(maxsize=1 << 12)
def run_by(statement: ast.stmt) -> tuple[ast.Attribute | ast.Call | ast.BinOp, ...]:
    """The attributes, calls and operators that a statement evaluates whenever it is reached."""
    parts = (part for head in header(statement) for part in evaluated(head))
    return tuple(part for part in parts if isinstance(part, (ast.Attribute, ast.Call, ast.BinOp)))


def header(statement: ast.stmt) -> list[ast.AST]:
    """What a statement evaluates whenever it is reached: all of a simple one, the head of a compound one."""
    if isinstance(statement, (ast.If, ast.While)):
        return [statement.test]
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return [statement.iter]
    if isinstance(statement, (ast.With, ast.AsyncWith)):
        return [item.context_expr for item in statement.items]
    if isinstance(statement, ast.Match):
        return [statement.subject]
    if isinstance(statement, (*_SCOPES, ast.Try)) or type(statement).__name__ == "TryStar":
        return []
    return [statement]
