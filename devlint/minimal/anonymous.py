"""Puts other names and strings into a program while something about it stays true.

A name that the program binds itself becomes one that says only what kind it is: `function1`, `Class1`, `name1`,
`attribute1`, `package1`. A string becomes `text1`. The same name becomes the same one everywhere. What cannot be renamed
without changing what is asked stays as it is: `forward`, `"cuda"`.
"""

from __future__ import annotations

import ast
import builtins
import copy
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from devlint.knowledge.foreign import is_known_package

_KEPT = frozenset({"self", "cls", "_", *dir(builtins)})


@dataclass(slots=True)
class Names:
    """What becomes of names and strings. `attributes` holds methods too."""

    names: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    strings: dict[str, str] = field(default_factory=dict)
    packages: dict[str, str] = field(default_factory=dict)

    def without(self, table: str, key: str) -> Names:
        """The same with one thing left as it is."""
        made = copy.deepcopy(self)
        del getattr(made, table)[key]
        return made

    def entries(self) -> list[tuple[str, str]]:
        """Each table and key."""
        return [(table, key) for table in self.__slots__ for key in getattr(self, table)]


def anonymous(text: str, holds: Callable[[str], bool]) -> str:
    """A text with as many other names and strings as keep true what is asked of it."""
    tree = ast.parse(text)
    wanted = _wanted(tree)
    if holds(done := _renamed(tree, wanted)):
        return done
    kept = Names()
    best = text
    for table, key in wanted.entries():  # one by one: what breaks it stays as it is
        getattr(kept, table)[key] = getattr(wanted, table)[key]
        done = _renamed(tree, kept)
        if holds(done):
            best = done
        else:
            kept = kept.without(table, key)
    return best


def _wanted(tree: ast.Module) -> Names:
    found = Names()

    def add(table: dict[str, str], key: str, kind: str) -> None:
        is_own = not (key.startswith("__") and key.endswith("__")) and key not in _KEPT
        if is_own and key not in table:
            number = 1 + sum(value.rstrip("0123456789") == kind for value in table.values())
            table[key] = f"{kind}{number}"

    methods = {id(inner) for node in ast.walk(tree) if isinstance(node, ast.ClassDef) for inner in node.body}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            is_method = id(node) in methods
            add(found.attributes if is_method else found.names, node.name, "method" if is_method else "function")
        elif isinstance(node, ast.ClassDef):
            add(found.names, node.name, "Class")
        elif isinstance(node, ast.arg):
            add(found.names, node.arg, "argument")
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            add(found.names, node.id, "name")
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            add(found.attributes, node.attr, "attribute")
        elif isinstance(node, ast.ExceptHandler) and node.name:
            add(found.names, node.name, "name")
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            add(found.strings, node.value, "text")
        elif isinstance(node, ast.Import | ast.ImportFrom):
            for package, name in _imported(node):
                add(found.packages, package, "package")
                if name:
                    add(found.names, name, "name")
    return found


def _imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    """The parts of the modules that nobody outside knows, and the names that are imported from them."""
    modules = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
    for module in modules:
        root = module.partition(".")[0]
        if (isinstance(node, ast.Import) or not node.level) and (
            root in sys.stdlib_module_names or is_known_package(root)
        ):
            continue
        for part in filter(None, module.split(".")):
            yield part, ""
        if isinstance(node, ast.ImportFrom):
            for alias in node.names:
                yield from ((part, alias.asname or alias.name) for part in module.split(".")[:1])


def _renamed(tree: ast.Module, names: Names) -> str:
    return ast.unparse(_Renamer(names).visit(copy.deepcopy(tree))) + "\n"


class _Renamer(ast.NodeTransformer):
    def __init__(self, names: Names) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._names.names.get(node.id, self._names.packages.get(node.id, node.id))
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._names.names.get(node.arg, node.arg)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        node.attr = self._names.attributes.get(node.attr, node.attr)
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str):
            node.value = self._names.strings.get(node.value, node.value)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        node.name = self._names.names.get(node.name, node.name)
        for inner in node.body:
            if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef):
                inner.name = self._names.attributes.get(inner.name, inner.name)
        return self.generic_visit(node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._names.names.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        node.name = self._names.names.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        own = isinstance(node.func, ast.Name) and node.func.id in self._names.names
        own = own or (isinstance(node.func, ast.Attribute) and node.func.attr in self._names.attributes)
        for keyword in node.keywords if own else ():
            if keyword.arg is not None:
                keyword.arg = self._names.names.get(keyword.arg, keyword.arg)
        return self.generic_visit(node)

    def visit_Global(self, node: ast.Global) -> ast.Global:
        node.names = [self._names.names.get(name, name) for name in node.names]
        return node

    def visit_Nonlocal(self, node: ast.Nonlocal) -> ast.Nonlocal:
        node.names = [self._names.names.get(name, name) for name in node.names]
        return node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        node.name = node.name and self._names.names.get(node.name, node.name)
        return self.generic_visit(node)

    def visit_Import(self, node: ast.Import) -> ast.Import:
        for alias in node.names:
            alias.name = self._module(alias.name)
            alias.asname = alias.asname and self._names.names.get(alias.asname, alias.asname)
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        node.module = node.module and self._module(node.module)
        for alias in node.names:
            if alias.asname is None:
                alias.name = self._names.names.get(alias.name, alias.name)
            else:
                alias.asname = self._names.names.get(alias.asname, alias.asname)
        return node

    def _module(self, name: str) -> str:
        return ".".join(self._names.packages.get(part, part) for part in name.split("."))
