"""Why a fix is less than its rule says: it reads `.device` of what is not surely a tensor where it stands, fetches what
is not surely one, or moves what may be no tensor or module at all.

This is the one place that every fix passes. Compared are the texts that the fix replaces and those that it writes: a read
that the code has already changes nothing.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache

from devlint.fix import places
from devlint.fix.surely import Kind, Surely
from devlint.model import Edit, Fix, InsertStatement
from devlint.tree import Tree

_WHAT: dict[Kind, str] = {
    "tensor": "a tensor", "module": "a module with parameters", "device": "a `torch.device`", "generator": "a generator",
}  # fmt: skip


def doubt(fix: Fix, tree: Tree) -> str | None:
    """Why a fix is not safe; None where everything that it reads is surely what it must be.

    Raises LookupError for nodes that are not the file's.
    """
    for offset, nodes in _written(fix, tree):
        at = places.place_at(tree.ast, tree.source, offset)
        for kind, value in nodes:
            if at is None or not _is_sure(kind, value, at, tree):
                return f"`{ast.unparse(value)}` is not surely {_WHAT[kind]} there"
    return None


def misplaced(fix: Fix, tree: Tree) -> str | None:
    """Why a fix must not be written at all: it calls `.to` on what is made or used like an optimizer or a scheduler.

    Raises LookupError for nodes that are not the file's.
    """
    for offset, old, new in texts(fix, tree):
        before = {ast.unparse(each) for each in _moved(old)} if old is not None else set()
        for receiver in _moved(new):
            at = places.place_at(tree.ast, tree.source, offset)
            if ast.unparse(receiver) not in before and at is not None and _surely(tree.ast).is_stepped(receiver, at):
                return f"`{ast.unparse(receiver)}` may be an optimizer or a scheduler, which has no `to`"
    return None


def _moved(root: ast.AST) -> Iterator[ast.expr]:
    """What `.to` is called on."""
    for node in ast.walk(root):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            yield node.func.value


def _is_sure(kind: Kind, value: ast.expr, at: places.Place, tree: Tree) -> bool:
    surely = _surely(tree.ast)
    if kind == "module":
        return surely.has_parameters(value, at)
    if kind == "tensor":
        return surely.has_device(value, at) or (not surely.names.has_stand_ins and surely.holds(kind, value, at))
    return surely.holds(kind, value, at)


@lru_cache(maxsize=1)
def _surely(module: ast.Module) -> Surely:
    return Surely(module)


def _written(fix: Fix, tree: Tree) -> Iterator[tuple[int, list[tuple[Kind, ast.expr]]]]:
    """What the edits of a fix read and the code does not yet, with the offset of each edit."""
    for offset, old, new in texts(fix, tree):
        yield offset, _added(old, new)


def texts(fix: Fix, tree: Tree) -> Iterator[tuple[int, ast.AST | None, ast.AST]]:
    """The code that each edit of a fix replaces, that which it writes, and where."""
    for edit in fix.edits:
        if isinstance(edit, Edit) and edit.new is not None:
            old, new = parsed(tree.code(edit.old)), parsed(tree.code(edit.new))
            offset = tree.span(edit.old).start
        elif isinstance(edit, InsertStatement):
            old, new, offset = None, parsed(tree.code(edit.new)), edit.at.start
        else:
            continue
        if new is not None:
            yield offset, old, new


@lru_cache(maxsize=64)
def parsed(code: str) -> ast.AST | None:
    """A piece of code as `ast`: an expression, an argument, or statements."""
    for text in (f"({code.strip()})", f"None({code.strip()})", code.strip()):
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
    return None


def _added(old: ast.AST | None, new: ast.AST) -> list[tuple[Kind, ast.expr]]:
    before = Counter((kind, ast.unparse(value)) for kind, value in _reads(old)) if old is not None else Counter()
    found: list[tuple[Kind, ast.expr]] = []
    for kind, value in _reads(new):
        key = (kind, ast.unparse(value))
        if before[key]:
            before[key] -= 1
        else:
            found.append((kind, value))
    return found


def _reads(root: ast.AST) -> Iterator[tuple[Kind, ast.expr]]:
    """What must be of a kind for the code to run.

    That is `x` of `x.device` and of `x.cpu()`, `m` of `next(m.parameters()).device`, `d` of `d.type`.
    """
    for node in ast.walk(root):
        if not isinstance(node, ast.Attribute) or not isinstance(node.ctx, ast.Load):
            continue
        if node.attr in ("cpu", "detach") and not _is_made_so(node.value):
            yield "tensor", node.value
        if node.attr == "device":
            module = _module_of(node.value)
            yield ("tensor", node.value) if module is None else ("module", module)
        elif node.attr == "type" and not _is_called(node, root):
            yield "device", node.value


def _is_made_so(node: ast.expr) -> bool:
    """Whether an expression is itself such a copy: `x.detach()` of `x.detach().cpu()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("cpu", "detach")


def _is_called(node: ast.Attribute, root: ast.AST) -> bool:
    return any(isinstance(call, ast.Call) and call.func is node for call in ast.walk(root))


def _module_of(node: ast.expr) -> ast.expr | None:
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "next" and len(node.args) == 1:
        inner = node.args[0]
        if isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr == "parameters":
            return inner.func.value
    return None
