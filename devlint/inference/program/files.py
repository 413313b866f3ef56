"""One file: its imports, functions, classes and the names of its module level."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from devlint.inference.program.classes import Class
    from devlint.inference.program.project import Project

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(eq=False, slots=True)
class Function:
    """A function or a lambda of the project.

    `owner`: the class that defines it. `outer`: what runs the function around it, for a nested one; it holds its names.
    """

    file: File
    node: FunctionNode | ast.Lambda
    owner: Class | None = None
    outer: Any = None

    @property
    def name(self) -> str:
        return self.node.name if not isinstance(self.node, ast.Lambda) else "<lambda>"

    def decorators(self) -> Iterator[str]:
        """The qualified names of the decorators."""
        if not isinstance(self.node, ast.Lambda):
            for decorator in self.node.decorator_list:
                target = decorator.func if isinstance(decorator, ast.Call) else decorator
                yield self.file.qualified(target) or dotted(target) or "?"

    def all_parameters(self) -> list[ast.arg]:
        arguments = self.node.args
        return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]

    def positional(self) -> list[str]:
        arguments = self.node.args
        return [each.arg for each in (*arguments.posonlyargs, *arguments.args)]

    def defaults(self) -> dict[str, ast.expr]:
        """The default of each parameter that has one."""
        arguments = self.node.args
        names = self.positional()
        found = dict(zip(names[len(names) - len(arguments.defaults) :], arguments.defaults, strict=False))
        for each, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
            if default is not None:
                found[each.arg] = default
        return found


@dataclass(eq=False, slots=True)
class File:
    """A parsed file. `name` is how it is imported, "" where that is not known."""

    path: str
    tree: ast.Module
    project: Project | None = None
    imports: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    rebound: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)
    sets_default_device: bool = False  # somewhere, for all that it runs later

    def qualified(self, node: ast.AST) -> str | None:
        """The qualified name that an expression has through an import; None for any other."""
        if isinstance(node, ast.Name):
            return self.imports.get(node.id)
        if isinstance(node, ast.Attribute):
            base = self.qualified(node.value)
            return f"{base}.{node.attr}" if base is not None else None
        return None


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` of a chain of attributes."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        base = dotted(node.value)
        return f"{base}.{node.attr}" if base is not None else None
    return None


def read_file(path: str, tree: ast.Module, project: Project | None) -> File:
    """The definitions of a parsed file. No statement is run."""
    file = File(path, tree, project)
    for node in _statements(tree.body):
        _define(file, node)
    for inner in ast.walk(tree):
        if isinstance(inner, ast.Global):
            file.rebound.update(inner.names)
        elif isinstance(inner, (ast.Import, ast.ImportFrom)):
            _import(file, inner)
        elif isinstance(inner, ast.Call) and _sets_default_device(file, inner):
            file.sets_default_device = True
    return file


def _sets_default_device(file: File, call: ast.Call) -> bool:
    """Whether a call sets the default device of torch. A default type of the CPU leaves the device as it is."""
    name = dotted(call.func) or ""
    last = name.rpartition(".")[2]
    if last == "set_default_device":
        return True
    if last != "set_default_tensor_type":
        return False
    given = call.args[0] if call.args else None
    text = given.value if isinstance(given, ast.Constant) else dotted(given) if given is not None else None
    return not (isinstance(text, str) and text.endswith("Tensor") and "cuda" not in text)


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of the module level, those in `if`, `try` and `with` included."""
    for node in body:
        yield node
        for block in ("body", "orelse", "finalbody"):
            if isinstance(node, (ast.If, ast.Try, ast.With)):
                yield from _statements(getattr(node, block, []))
        if isinstance(node, ast.Try):
            for handler in node.handlers:
                yield from _statements(handler.body)


def _define(file: File, node: ast.stmt) -> None:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        file.functions.setdefault(node.name, Function(file, node))
    elif isinstance(node, ast.ClassDef):
        from devlint.inference.program.classes import Class

        file.classes.setdefault(node.name, Class(file, node))


def _import(file: File, node: ast.Import | ast.ImportFrom) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            name = alias.asname or alias.name.partition(".")[0]
            file.imports.setdefault(name, alias.name if alias.asname else name)
        return
    base = "." * node.level + (node.module or "")
    for alias in node.names:
        if alias.name == "*":
            file.stars.append(base)
        else:
            joined = base + alias.name if base.endswith(".") else f"{base}.{alias.name}"
            file.imports.setdefault(alias.asname or alias.name, joined)
