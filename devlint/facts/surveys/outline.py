"""The shape of a file: what encloses a node, which loop repeats it, what a region binds.

Loops and conditions do not reach over function boundaries: a nested `def` in a loop is made there, not run there.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import TypeVar

from devlint.facts.events import NO_GUARDS, Guards, Move, Scope
from devlint.facts.interpreter.flow import Flow
from devlint.facts.text.nodes import BLOCKS, COMPREHENSIONS, LOOPS, children, walk
from devlint.facts.text.signatures import named_parameters
from devlint.model import Origin, Span

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Loop = ast.For | ast.AsyncFor | ast.While
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
_SCOPES = (*_FUNCTIONS, ast.ClassDef)
_STORES = (ast.Store, ast.Del)
N = TypeVar("N", bound=ast.AST)


class Outline:
    """Look-ups on one file's tree. Positions, imports, calls and events come from `flow`, the interpreter after its run."""

    def __init__(self, tree: ast.Module, flow: Flow, test: bool = False) -> None:
        self.tree = tree
        self.flow = flow
        self.test = test  # the file is a test: it runs in one process, on one machine
        self._values: dict[ast.AST, dict[str, list[ast.expr | None]]] = {}
        self.binding: dict[ast.Name, list[ast.AST]] = {}  # the loops around names that bind them, see `dropped_copies`

    @cached_property
    def parent(self) -> dict[ast.AST, ast.AST]:
        """What is directly around each node: one walk over the tree, for the files in which a survey looks upwards."""
        parent: dict[ast.AST, ast.AST] = {}
        stack: list[ast.AST] = [self.tree]
        while stack:
            node = stack.pop()
            below = children(node)
            if below:
                parent.update(dict.fromkeys(below, node))
                stack += below
        return parent

    @cached_property
    def _statements(self) -> list[ast.AST]:
        """The statements of the file, with the handlers and cases around some: the last one first, outer ones before inner."""
        found: list[ast.AST] = []
        stack: list[ast.AST] = [self.tree]
        while stack:
            node = stack.pop()
            found.append(node)
            for name in BLOCKS[type(node)]:
                stack += getattr(node, name)
        return found

    @cached_property
    def functions(self) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
        return [node for node in self._statements if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]

    @cached_property
    def classes(self) -> list[ast.ClassDef]:
        return [node for node in self._statements if isinstance(node, ast.ClassDef)]

    @cached_property
    def dropped_calls(self) -> list[ast.Call]:
        """The calls that are statements by themselves, in the order of the text."""
        values = [node.value for node in self._statements if isinstance(node, ast.Expr)]
        found = [value for value in values if isinstance(value, ast.Call)]
        return sorted(found, key=lambda node: (node.lineno, node.col_offset))

    @cached_property
    def loop_names(self) -> set[str]:
        """The names that the targets of the `for` loops of the file hold."""
        loops = [node for node in self._statements if isinstance(node, ast.For)]
        return {part.id for loop in loops for part in walk(loop.target) if isinstance(part, ast.Name)}

    @cached_property
    def calls(self) -> list[ast.Call]:
        """The calls of the file in the order in which they start, an outer one first."""
        return sorted(self.flow.scan.every_call, key=lambda node: (node.lineno, node.col_offset))

    # -- upwards ------------------------------------------------------------------------------------------------------

    def above(self, node: ast.AST) -> Iterator[ast.AST]:
        """What encloses a node, from the inside out."""
        parents = self.parent
        parent = parents.get(node)
        while parent is not None:
            yield parent
            parent = parents.get(parent)

    def nearest(self, node: ast.AST, *types: type[N]) -> N | None:
        """The innermost enclosing node of these types."""
        return next((above for above in self.above(node) if isinstance(above, types)), None)

    def function(self, node: ast.AST) -> FunctionNode | None:
        """The function whose body runs the node; defaults and decorators belong to the outer one."""
        child = node
        for above in self.above(node):
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef)) and child in above.body:
                return above
            if isinstance(above, ast.Lambda) and child is above.body:
                return above
            child = above
        return None

    def scope(self, node: ast.AST) -> ast.AST:
        """The function around a node, or the module."""
        return self.function(node) or self.tree

    def name(self, node: ast.AST) -> str:
        """Qualified name of the function around a node, as events carry it; "" at module level."""
        function = self.function(node)
        if function is None:
            return ""
        names = [getattr(function, "name", "<lambda>")]
        for above in self.above(function):
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                names.append(above.name)
        return ".".join(reversed(names))

    def statement(self, node: ast.AST) -> ast.stmt | None:
        """The statement that a node is part of, or is."""
        if isinstance(node, ast.stmt):
            return node
        return next((above for above in self.above(node) if isinstance(above, ast.stmt)), None)

    def block(self, statement: ast.stmt) -> list[ast.stmt]:
        """The statements among which this one stands."""
        parent = self.parent.get(statement)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(parent, name, None)
            if isinstance(block, list) and statement in block:
                return block
        return [statement]

    def loop(self, node: ast.AST) -> Loop | None:
        """The innermost loop of the same function whose body holds the node."""
        child = node
        for above in self.above(node):
            if isinstance(above, _SCOPES):
                return None
            if isinstance(above, LOOPS) and (child in above.body or child is getattr(above, "test", None)):
                return above
            child = above
        return None

    def conditional(self, node: ast.AST, top: ast.AST) -> bool:
        """Whether a condition, a handler or a loop between `top` and a node decides if, or how often, it runs."""
        child = node
        for above in self.above(node):
            if above is top:
                return False
            if isinstance(above, (ast.If, ast.IfExp, ast.While)) and child is not above.test:
                return True
            if isinstance(above, ast.BoolOp) and child is not above.values[0]:
                return True
            if isinstance(above, (ast.ExceptHandler, ast.Match, ast.Lambda, *COMPREHENSIONS)):
                return True
            if isinstance(above, ast.Try) and child not in above.body and child not in above.finalbody:
                return True
            if isinstance(above, LOOPS) and child is not getattr(above, "iter", None):
                return True
            child = above
        return False

    def tests(self, node: ast.AST) -> list[str]:
        """The source of every condition that the node stands under, in its function."""
        found: list[str] = []
        child = node
        for above in self.above(node):
            if isinstance(above, _FUNCTIONS):
                break
            if isinstance(above, (ast.If, ast.IfExp, ast.While)) and child is not above.test:
                found.append(self.flow.text(above.test))
            elif isinstance(above, ast.BoolOp) and child is not above.values[0]:
                found.append(self.flow.text(above))
            child = above
        return found

    def head(self, node: ast.AST, *because: Origin) -> tuple[Span, ast.AST, tuple[Origin, ...], Guards, Scope, str]:
        """The fields that every event starts with, for one at `node`."""
        return self.flow.span(node), node, because, NO_GUARDS, {}, self.name(node)

    # -- names --------------------------------------------------------------------------------------------------------

    def qualname(self, node: ast.expr) -> str | None:
        """The qualified name that a dotted path names by the file's imports; None when its root is not imported."""
        parts: list[str] = []
        root = node
        while isinstance(root, ast.Attribute):
            parts.append(root.attr)
            root = root.value
        if not isinstance(root, ast.Name):
            return None
        target = self.flow.imports.names.get(root.id)
        if target is None:
            return None
        for function in (self.function(node), *self.above(node)):
            if isinstance(function, _FUNCTIONS) and root.id in parameters(function):
                return None
        return ".".join([target, *reversed(parts)])

    def module_function(self, name: str) -> ast.FunctionDef | ast.AsyncFunctionDef | None:
        """The function of the file that a bare name stands for."""
        return next(
            (f for f in self.functions if f.name == name and isinstance(self.parent.get(f), (ast.Module, ast.If))), None
        )

    def assignments(self, path: str, node: ast.AST) -> list[ast.expr | None]:
        """What is assigned to a path in the scope of `node`, else at module level; in the class for `self.x`.

        None stands for a binding whose value the code does not show: a loop target, an argument, a `with ... as`.
        """
        scopes: list[ast.AST] = [self.scope(node)]
        if path.startswith("self."):
            class_ = self.nearest(node, ast.ClassDef)
            scopes = [class_] if class_ is not None else []
        elif scopes[0] is not self.tree:
            scopes.append(self.tree)
        for scope in scopes:
            if isinstance(scope, _FUNCTIONS) and path in parameters(scope):
                return [None]
            found = self.values(scope).get(path)
            if found:
                return found
        return []

    @cached_property
    def attributes(self) -> dict[str, list[ast.Attribute]]:
        """The attributes that the file reads and binds, by name."""
        found: dict[str, list[ast.Attribute]] = {}
        for node in self.parent:
            if isinstance(node, ast.Attribute):
                found.setdefault(node.attr, []).append(node)
        return found

    @cached_property
    def handed(self) -> dict[str, list[ast.Call]]:
        """The calls of the file by the paths that they are given as arguments."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.calls:
            for argument in (*call.args, *(k.value for k in call.keywords)):
                found.setdefault(dotted(argument) or "", []).append(call)
        return found

    @cached_property
    def called(self) -> dict[str, list[ast.Call]]:
        """The calls of bare names, by name."""
        found: dict[str, list[ast.Call]] = {}
        for call in self.calls:
            if isinstance(call.func, ast.Name):
                found.setdefault(call.func.id, []).append(call)
        return found

    @cached_property
    def moved_paths(self) -> dict[str, list[ast.Attribute]]:
        """The places where `to` is read from a path: `graph.to(device)`."""
        found: dict[str, list[ast.Attribute]] = {}
        for node in self.attributes.get("to", ()):
            found.setdefault(dotted(node.value) or "", []).append(node)
        return found

    @cached_property
    def moves(self) -> dict[str, list[Move]]:
        """The moves of the file by the path of what is moved."""
        found: dict[str, list[Move]] = {}
        for event in self.flow.events.values():
            if isinstance(event, Move):
                found.setdefault(dotted(event.receiver.node) or "", []).append(event)
        return found

    def values(self, scope: ast.AST) -> dict[str, list[ast.expr | None]]:
        """What is assigned in a scope, by path; in all methods, for a class."""
        known = self._values.get(scope)
        if known is None:
            nodes = own_nodes(scope, through_functions=isinstance(scope, ast.ClassDef))
            known = self._values[scope] = values_of(nodes)
        return known


def parameters(function: FunctionNode) -> set[str]:
    spec = function.args
    return {a.arg for a in (*named_parameters(spec), *filter(None, (spec.vararg, spec.kwarg)))}


def own_nodes(scope: ast.AST, through_functions: bool = False) -> Iterator[ast.AST]:
    """The nodes of a scope in the order of the text, nested functions and classes left out."""
    stack = children(scope)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if through_functions or not isinstance(node, _SCOPES):
            stack += reversed(children(node))


def inside(statements: list[ast.stmt]) -> Iterator[ast.AST]:
    """The nodes of some statements, nested functions and classes left out."""
    for statement in statements:
        yield statement
        if not isinstance(statement, _SCOPES):
            yield from own_nodes(statement)


def dotted(node: ast.AST) -> str | None:
    """`self.model` for a name or a chain of attributes, None for anything else."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return None if base is None else f"{base}.{node.attr}"
    return None


def bound_by(node: ast.AST) -> Iterator[tuple[str, ast.expr | None]]:
    """The paths that one node binds, with their values; None for a value that is not shown."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            path = dotted(target)
            if path is not None:
                yield path, node.value
            elif isinstance(target, (ast.Tuple, ast.List)):
                values = node.value.elts if isinstance(node.value, (ast.Tuple, ast.List)) else []
                same = len(values) == len(target.elts)
                for index, element in enumerate(target.elts):
                    path = dotted(element)
                    if path is not None:
                        yield path, values[index] if same else None
    elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
        path = dotted(node.target)
        if node.value is not None and path is not None:
            yield path, node.value
    elif isinstance(node, (ast.AugAssign, ast.For, ast.AsyncFor, ast.comprehension, ast.withitem)):
        hidden = node.optional_vars if isinstance(node, ast.withitem) else node.target
        for child in ast.walk(hidden) if hidden is not None else ():
            path = dotted(child)
            if path is not None:
                yield path, None


def values_of(nodes: Iterable[ast.AST]) -> dict[str, list[ast.expr | None]]:
    """What some nodes bind, by path."""
    found: dict[str, list[ast.expr | None]] = {}
    for node in nodes:
        for path, value in bound_by(node):
            found.setdefault(path, []).append(value)
    return found


def stored(statements: list[ast.stmt]) -> set[str]:
    """The paths that some statements bind, rebind or delete, with the roots of what they store into."""
    found: set[str] = set()
    for node in inside(statements):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, _STORES):
            path = dotted(node)
            if path is not None:
                found.add(path)
        elif isinstance(node, ast.Subscript) and isinstance(node.ctx, _STORES):
            base: ast.expr = node.value
            while isinstance(base, ast.Subscript):
                base = base.value
            path = dotted(base)
            if path is not None:
                found.add(path)
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler)):
            found.add(node.name or "")
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= {(alias.asname or alias.name).split(".", 1)[0] for alias in node.names}
    return found


def touches(path: str, stored_paths: set[str]) -> bool:
    """Whether binding these paths may change what `path` holds: it itself, or something it is part of."""
    parts = path.split(".")
    return any(".".join(parts[: n + 1]) in stored_paths for n in range(len(parts)))


def names_in(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def root_of(node: ast.expr) -> ast.expr:
    """What a chain of calls, attributes and subscripts starts from: `x` of `x.a().b[0]`."""
    while True:
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            node = node.func.value
        else:
            return node


def method(node: ast.AST) -> str:
    """The name of the method that a call calls, "" for anything else."""
    return node.func.attr if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) else ""


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """An argument by keyword, else by position."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if position is None or position >= len(call.args):
        return None
    if any(isinstance(a, ast.Starred) for a in call.args[: position + 1]):
        return None
    return call.args[position]


def is_open(call: ast.Call) -> bool:
    """Whether `*args` or `**kwargs` may carry arguments that the code does not show."""
    return any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords)
