"""Whether a program computes the same thing on the card and on the CPU, and lets the two results meet.

Then both places are meant, and one device for all would compare the CPU with itself. Two values are such twins where the
same function, or a copy of the same module, got the same input, once moved to the card and once not. A module is a copy
by `copy.deepcopy`, or by `load_state_dict` of the other's `state_dict`. Each function, and the module, is read by itself,
from above.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from devlint.api import Facts

from ._shared import parsed

_Function = ast.FunctionDef | ast.AsyncFunctionDef
#: Methods that give the same values back.
_SAME = frozenset(
    {"cuda", "cpu", "to", "detach", "clone", "contiguous", "float", "double", "numpy", "eval", "train", "data",
     "requires_grad_", "item", "tolist"}
)  # fmt: skip
_MEET = frozenset(
    {"allclose", "equal", "isclose", "assert_close", "assert_allclose", "assert_array_equal", "assert_almost_equal",
     "assert_array_almost_equal", "assertEqual", "assertTrue", "array_equal"}
)  # fmt: skip


class _Made(NamedTuple):
    """What an expression is made of. `is_over`: it was on the card; `is_back`: and came back. `root`: the name that it is
    by itself, "" for more. `steps`: which function got which input on the way, and whether on the card."""

    is_over: bool = False
    is_back: bool = False
    root: str = ""
    steps: frozenset[tuple[str, str, bool]] = frozenset()


def compared(facts: Facts) -> Iterator[int]:
    """The rows in which a result of the card meets that of the CPU, the first of each function."""
    tree = parsed(facts.text) if "cuda" in facts.text else None
    if tree is None:
        return
    scopes = [tree.body, *(node.body for node in ast.walk(tree) if isinstance(node, _Function))]
    try:
        rows = [_Scope().row(body) for body in scopes]
    except RecursionError:  # an expression that is nested very deeply
        return
    yield from (row for row in rows if row is not None)


class _Scope:
    """The names of one function, or of the module, as its statements bind them one after the other."""

    def __init__(self) -> None:
        self.names: dict[str, _Made] = {}
        self.copies: dict[str, str] = {}  # the root of a copy, and that of what it is a copy of
        self.ran: set[tuple[str, str, bool]] = set()  # the steps of modules, with the place of the module itself

    def row(self, body: Iterable[ast.stmt]) -> int | None:
        for statement in _in_order(body):
            for node in _own(statement):
                if self._meets(node) or self._runs_again(node):
                    return getattr(node, "lineno", None)
            self._follow(statement)
        return None

    # Names

    def _follow(self, statement: ast.stmt) -> None:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                self._bind(target, statement.value)
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            self._bind(statement.target, statement.value)
        elif isinstance(statement, ast.For):
            self._renew(statement.target)
        elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
            self._follow_call(statement.value)

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        made, bare = self._made(value), _bare(value)
        if isinstance(target, ast.Tuple | ast.List):
            for each in target.elts:
                self.names[ast.unparse(each)] = made._replace(root=_root_of(each))
            return
        copied = _copied(bare)
        if copied is not None:
            made = _Made(_is_moved(value), root=_root_of(target))
            self.copies[made.root] = self._first(self._of_path(copied).root)
        elif isinstance(bare, ast.Call):
            made = made._replace(root=_root_of(target))
        self.names[ast.unparse(target)] = made

    def _renew(self, target: ast.expr) -> None:
        """A loop binds its names anew."""
        for node in ast.walk(target):
            if isinstance(node, ast.Name):
                self.names[node.id] = _Made(root=_root_of(node))

    def _follow_call(self, call: ast.Call) -> None:
        """`net.cuda()` and `net.load_state_dict(other.state_dict())` as statements."""
        if not isinstance(call.func, ast.Attribute):
            return
        path = ast.unparse(_bare(call.func.value))
        if _is_moved(call):
            self.names[path] = self._of_path(path)._replace(is_over=True)
        elif call.func.attr == "load_state_dict" and call.args:
            given = call.args[0]
            is_state = isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute)
            if is_state and isinstance(given, ast.Call) and isinstance(given.func, ast.Attribute):
                if given.func.attr == "state_dict":
                    other = self._of_path(ast.unparse(given.func.value)).root
                    self.copies[self._of_path(path).root] = self._first(other)

    def _first(self, root: str) -> str:
        """What a root is a copy of, or the root itself."""
        return self.copies.get(root, root)

    def _of_path(self, path: str) -> _Made:
        return self.names.get(path, _Made(root=path))

    # Values

    def _made(self, node: ast.AST) -> _Made:
        if isinstance(node, ast.Name | ast.Attribute) and ast.unparse(node) in self.names:
            return self.names[ast.unparse(node)]
        if isinstance(node, ast.Attribute) and node.attr in _SAME:
            return self._made(node.value)
        if isinstance(node, ast.Name | ast.Attribute):
            return _Made(root=ast.unparse(node))
        if isinstance(node, ast.Call):
            return self._made_by_call(node)
        return self._joined(ast.iter_child_nodes(node))

    def _made_by_call(self, call: ast.Call) -> _Made:
        if isinstance(call.func, ast.Attribute) and call.func.attr in _SAME:
            inner = self._made(call.func.value)
            is_over = inner.is_over or _is_moved(call)
            return inner._replace(is_over=is_over, is_back=is_over and (inner.is_back or _is_fetched(call)))
        given = [self._made(each) for each in (*call.args, *(each.value for each in call.keywords))]
        own = self._made(call.func)
        if isinstance(call.func, ast.Attribute):
            given.append(self._made(call.func.value)._replace(root=""))
        whole = self._joined_made(given)
        is_over = own.is_over or (whole.is_over and not whole.is_back)
        function = own.root or ast.unparse(_bare(call.func))
        steps = {(self._first(function), self._first(each.root), is_over) for each in given if each.root}
        is_back = not is_over and whole.is_back
        return _Made(is_over or whole.is_over, is_back, "", whole.steps | steps)

    def _joined(self, nodes: Iterable[ast.AST]) -> _Made:
        return self._joined_made(self._made(node) for node in nodes)

    def _joined_made(self, parts: Iterable[_Made]) -> _Made:
        found = list(parts)
        steps = frozenset(step for each in found for step in each.steps)
        over = [each for each in found if each.is_over]
        return _Made(bool(over), bool(over) and all(each.is_back for each in over), "", steps)

    # Meetings

    def _meets(self, node: ast.AST) -> bool:
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub):
            return self._are_twins([node.left, node.right])
        if isinstance(node, ast.Compare):
            return self._are_twins([node.left, *node.comparators])
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
            return (name in _MEET and self._are_twins(node.args)) or self._is_beside_its_copy(node)
        return False

    def _are_twins(self, parts: list[ast.expr]) -> bool:
        made = [self._made(part) for part in parts]
        return any(one.is_back and not other.is_over and _took_both(one, other) for one in made for other in made)

    def _runs_again(self, node: ast.AST) -> bool:
        """Whether a call runs a module on the card with an input that the same module had on the CPU."""
        if not isinstance(node, ast.Call):
            return False
        own = self._made(node.func)
        if not own.root or (isinstance(node.func, ast.Attribute) and node.func.attr in _SAME):
            return False
        given = [self._made(each) for each in node.args]
        is_over = own.is_over and any(each.is_over for each in given)
        steps = {(own.root, self._first(each.root), is_over) for each in given if each.root}
        self.ran |= steps
        return is_over and any((function, root, False) in self.ran for function, root, _ in steps)

    def _is_beside_its_copy(self, call: ast.Call) -> bool:
        """Whether a call gets a module, which is on the CPU, and its copy on the card."""
        made = [self._of_path(ast.unparse(each)) for each in call.args if isinstance(each, ast.Name | ast.Attribute)]
        here = {each.root for each in made if not each.is_over}
        return any(each.is_over and self.copies.get(each.root) in here for each in made)


def _took_both(card: _Made, host: _Made) -> bool:
    """Whether a function got the same input on the card for one, and on the CPU for the other."""
    return any(is_over and (function, root, False) in host.steps for function, root, is_over in card.steps)


def _root_of(target: ast.expr) -> str:
    """What a binding makes, by its name and its place: another binding of the name makes something else."""
    return f"{ast.unparse(target)}@{target.lineno}:{target.col_offset}"


def _in_order(body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a block and of those in it, without functions and classes."""
    for statement in body:
        if isinstance(statement, _Function | ast.ClassDef):
            continue
        yield statement
        for name in ("body", "orelse", "finalbody"):
            yield from _in_order(getattr(statement, name, []))
        for part in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            yield from _in_order(part.body)


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of a statement itself."""
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.expr | ast.withitem):
            yield from ast.walk(child)


def _bare(node: ast.expr) -> ast.expr:
    """An expression without the methods around it that give the same back: `net` of `net.eval().cuda()`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _SAME:
        node = node.func.value
    return node


def _copied(node: ast.expr) -> str | None:
    """What `copy.deepcopy(...)` copies."""
    if not isinstance(node, ast.Call) or not node.args:
        return None
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
    return ast.unparse(_bare(node.args[0])) if name == "deepcopy" else None


def _is_moved(node: ast.AST) -> bool:
    """Whether a chain of methods moves to the card: `.cuda()`, `.to("cuda")`, `.to(torch.device("cuda"))`."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if node.func.attr == "cuda":
            return True
        if node.func.attr == "to" and any(map(_is_card, (*node.args, *(each.value for each in node.keywords)))):
            return True
        node = node.func.value
    return False


def _is_fetched(call: ast.Call) -> bool:
    """Whether a method brings a tensor back to the CPU."""
    if not isinstance(call.func, ast.Attribute):
        return False
    to_host = call.func.attr == "to" and bool(call.args) and ast.unparse(call.args[0]) == "'cpu'"
    return to_host or call.func.attr in ("cpu", "numpy", "item", "tolist")


def _is_card(node: ast.expr) -> bool:
    if isinstance(node, ast.Call) and node.args:
        return ast.unparse(node.func) in ("torch.device", "device") and _is_card(node.args[0])
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.partition(":")[0] == "cuda"
