"""What names the modules of an unpacked wheel bind, found by reading the files.

A name of a module is bound by a definition, an assignment, an import or a submodule file. Branches are all taken,
except that `if TYPE_CHECKING:` is not: what it binds does not exist at run time. Nothing is executed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True, slots=True)
class Binding:
    """One way in which a module binds a name.

    kind is "function", "class", "value" (node is the value), "module" (target is its dotted name) or "import" (target
    is the dotted name of the module, attr the name in it).
    """

    kind: str
    node: ast.AST | None = None
    target: str = ""
    attr: str = ""


@dataclass(slots=True)
class Module:
    """The bindings of one file; several for a name that is overloaded or bound in branches."""

    name: str
    tree: ast.Module
    is_package: bool
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    exported: frozenset[str] | None = None
    exported_complete: bool = False
    is_stub: bool = False
    has_getattr: bool = False
    deleted: set[str] = field(default_factory=set)

    def add(self, name: str, binding: Binding) -> None:
        self.bindings.setdefault(name, []).append(binding)


def dotted(node: ast.AST) -> str | None:
    """`a.b.c` of a chain of attributes on a name, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    parts.append(node.id)
    return ".".join(reversed(parts))


def _is_type_variable(node: ast.AST | None) -> bool:
    """`T = TypeVar("T")` in a stub declares nothing that exists at run time."""
    called = dotted(node.func) if isinstance(node, ast.Call) else None
    return called is not None and called.rpartition(".")[2] in ("TypeVar", "ParamSpec")


def _is_type_checking(test: ast.AST) -> bool:
    name = dotted(test)
    return name is not None and name.rpartition(".")[2] == "TYPE_CHECKING"


class _Reader:
    """Fills a Module from its statements."""

    def __init__(self, module: Module, is_stub: bool) -> None:
        self.module = module
        self.is_stub = is_stub
        self.package = module.name if module.is_package else module.name.rpartition(".")[0]
        self.exports: set[str] = set()
        self.saw_exports = False
        self.complete = True

    def read(self) -> None:
        self.block(self.module.tree.body)
        if self.saw_exports:
            self.module.exported = frozenset(self.exports)
            self.module.exported_complete = self.complete

    def block(self, body: list[ast.stmt]) -> None:
        for statement in body:
            self.statement(statement)

    def statement(self, s: ast.stmt) -> None:
        if isinstance(s, FunctionNode):
            self.module.add(s.name, Binding("function", s))
            if s.name == "__getattr__":
                self.module.has_getattr = True
            self.globals_of(s)
        elif isinstance(s, ast.ClassDef):
            self.module.add(s.name, Binding("class", s))
        elif isinstance(s, ast.Assign):
            for target in s.targets:
                self.assign(target, s.value)
        elif isinstance(s, ast.AnnAssign):
            if s.value is not None or self.is_stub:
                self.assign(s.target, s.value)
        elif isinstance(s, ast.AugAssign):
            if isinstance(s.target, ast.Name) and s.target.id == "__all__":
                self.export(s.value)
        elif isinstance(s, ast.Import):
            for alias in s.names:
                if alias.asname:
                    self.module.add(alias.asname, Binding("module", s, alias.name))
                else:
                    top = alias.name.partition(".")[0]
                    self.module.add(top, Binding("module", s, top))
        elif isinstance(s, ast.ImportFrom):
            self.import_from(s)
        elif isinstance(s, ast.If):
            if not _is_type_checking(s.test) or self.is_stub:
                self.block(s.body)
            self.block(s.orelse)
        elif isinstance(s, ast.For):
            self.assign(s.target, None)
            self.block(s.body)
            self.block(s.orelse)
        elif isinstance(s, ast.While):
            self.block(s.body)
            self.block(s.orelse)
        elif isinstance(s, ast.With):
            for item in s.items:
                if item.optional_vars is not None:
                    self.assign(item.optional_vars, None)
            self.block(s.body)
        elif isinstance(s, ast.Try):
            for part in (s.body, s.orelse, s.finalbody):
                self.block(part)
            for handler in s.handlers:
                self.block(handler.body)
        elif isinstance(s, ast.Delete):
            self.module.deleted.update(t.id for t in s.targets if isinstance(t, ast.Name))
        elif isinstance(s, ast.Expr) and isinstance(s.value, ast.Call):
            called = dotted(s.value.func)
            if called in ("__all__.extend", "__all__.append") and s.value.args:
                argument = s.value.args[0]
                self.export(ast.List([argument], ast.Load()) if called.endswith("append") else argument)

    def globals_of(self, function: FunctionNode) -> None:
        named = set()
        for node in ast.walk(function):
            if isinstance(node, ast.Global):
                named.update(node.names)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Subscript):
                        self.assign(target, None)
        for name in named:
            if name not in self.module.bindings:
                self.module.add(name, Binding("value"))

    def assign(self, target: ast.AST, value: ast.AST | None) -> None:
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Call):
            # `globals()[name] = value` binds names that reading cannot tell.
            self.module.has_getattr = self.module.has_getattr or dotted(target.value.func) == "globals"
        if isinstance(target, ast.Name):
            if target.id == "__all__":
                self.exports.clear()
                if value is not None:
                    self.export(value)
                return
            self.module.add(target.id, Binding("value", value))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for element in target.elts:
                self.assign(element, None)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, None)

    def export(self, value: ast.AST) -> None:
        self.saw_exports = True
        if isinstance(value, (ast.List, ast.Tuple, ast.Set)):
            for element in value.elts:
                if isinstance(element, ast.Constant) and isinstance(element.value, str):
                    self.exports.add(element.value)
                else:
                    self.complete = False
        elif isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
            self.export(value.left)
            self.export(value.right)
        else:
            self.complete = False

    def import_from(self, s: ast.ImportFrom) -> None:
        source = s.module or ""
        if s.level:
            base = self.package.split(".")
            base = base[: len(base) - (s.level - 1)]
            source = ".".join([*base, *([s.module] if s.module else [])])
        for alias in s.names:
            if alias.name == "*":
                self.module.stars.append(source)
            else:
                self.module.add(alias.asname or alias.name, Binding("import", s, source, alias.name))


@dataclass(frozen=True, slots=True)
class Definition:
    """Where a public name is really defined: module and name there, and the nodes that define it."""

    module: str
    name: str
    kind: str
    nodes: tuple[ast.AST, ...]

    @property
    def qualname(self) -> str:
        return f"{self.module}.{self.name}"


#: Names of the compiled module that no stub lists [torch/csrc/Module.cpp until 2.11, then `torch.__getattr__`].
_UNSTUBBED = frozenset({"set_vital"})


def _compared(function: ast.FunctionDef, name: str) -> set[str]:
    """The strings that a function compares a name with: `if name == "set_vital"`."""
    compares = [n for n in ast.walk(function) if isinstance(n, ast.Compare) and isinstance(n.ops[0], ast.Eq)]
    said = [n.comparators[0] for n in compares if isinstance(n.left, ast.Name) and n.left.id == name]
    return {c.value for c in said if isinstance(c, ast.Constant) and isinstance(c.value, str)}


class Wheel:
    """An unpacked wheel: a folder that holds `torch/` and `torchgen/`.

    Raises FileNotFoundError when there is no `torch/__init__.py` in it.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        if not (root / "torch" / "__init__.py").is_file():
            raise FileNotFoundError(f"{root}: no torch/__init__.py; give the folder into which the wheel was unpacked")
        self.version = self._read_version()
        self._modules: dict[str, Module | None] = {}
        self._stubs: dict[str, Module | None] = {}
        self._names: dict[str, frozenset[str]] = {}
        self._stars: dict[str, frozenset[str]] = {}
        self._folders: dict[str, list[str]] = {}
        self._compiled: dict[str, frozenset[str]] = {}
        self._resolved: dict[tuple[str, str], Definition | None] = {}

    def _read_version(self) -> tuple[int, int]:
        for info in sorted(self.root.glob("torch-*.dist-info")):
            major, minor = info.name.split("-")[1].split(".")[:2]
            return int(major), int(minor)
        text = (self.root / "torch" / "version.py").read_text(encoding="utf-8")
        for line in text.splitlines():
            if line.startswith("__version__"):
                major, minor = line.split("'")[1].split(".")[:2]
                return int(major), int(minor)
        raise FileNotFoundError(f"{self.root}: neither dist-info nor torch/version.py names a version")

    def _parse(self, name: str, suffix: str) -> Module | None:
        path = self.root.joinpath(*name.split("."))
        for file, is_package in ((path / f"__init__{suffix}", True), (path.with_name(path.name + suffix), False)):
            if file.is_file():
                try:
                    tree = ast.parse(file.read_text(encoding="utf-8"))
                except SyntaxError as error:
                    raise SyntaxError(f"{file}: {error}") from error
                module = Module(name, tree, is_package, is_stub=suffix == ".pyi")
                _Reader(module, suffix == ".pyi").read()
                return module
        return None

    def module(self, name: str) -> Module | None:
        """The module as it runs; a stub stands in for one that is compiled."""
        if name not in self._modules:
            self._modules[name] = self._parse(name, ".py") or self.stub(name)
        return self._modules[name]

    def stub(self, name: str) -> Module | None:
        if name not in self._stubs:
            self._stubs[name] = self._parse(name, ".pyi")
        return self._stubs[name]

    def public_modules(self) -> list[str]:
        """Dotted names of all modules without an underscore in their path, packages first."""
        found = ["torch"]
        for file in sorted((self.root / "torch").rglob("*.py")):
            parts = file.relative_to(self.root).with_suffix("").parts
            if parts[-1] == "__init__":
                parts = parts[:-1]
            if len(parts) > 1 and not any(p.startswith("_") for p in parts) and self._importable(parts):
                found.append(".".join(parts))
        return sorted(set(found))

    def _importable(self, parts: tuple[str, ...]) -> bool:
        path = self.root
        for part in parts[:-1]:
            path = path / part
            if not (path / "__init__.py").is_file():
                return False
        return True

    def submodules(self, name: str) -> list[str]:
        if name not in self._folders:
            self._folders[name] = self._read_folder(name)
        return self._folders[name]

    def _read_folder(self, name: str) -> list[str]:
        folder = self.root.joinpath(*name.split("."))
        if not folder.is_dir():
            return []
        names = {p.stem for p in folder.iterdir() if p.suffix in (".py", ".pyi") and p.stem != "__init__"}
        names |= {p.name for p in folder.iterdir() if any((p / f"__init__{s}").is_file() for s in (".py", ".pyi"))}
        return sorted(names)

    def names(self, name: str, _seen: frozenset[str] = frozenset()) -> frozenset[str]:
        """All names that the module binds, those of its star imports included."""
        module = self.module(name)
        if module is None or name in _seen:
            return frozenset()
        if name in self._names:
            return self._names[name]
        found = set(self._compiled_names(name) if module.is_stub else module.bindings)
        for star in module.stars:
            found |= self.star_names(star, _seen | {name})
        if name == "torch":
            # torch/__init__.py copies the public names of both compiled modules into itself.
            found |= {n for n in self._compiled_names("torch._C") if not n.startswith("_") and not n.endswith("Base")}
            found |= {n for n in self._compiled_names("torch._C._VariableFunctions") if not n.startswith("__")}
            found |= self._lazy_attributes(module) | _UNSTUBBED
        found -= module.deleted - {b for b, all_ in module.bindings.items() if any(x.kind == "import" for x in all_)}
        if module.is_package:
            found.update(self.submodules(name))
        if not _seen:
            self._names[name] = frozenset(found)
        return frozenset(found)

    def _compiled_names(self, name: str) -> frozenset[str]:
        """What a stub declares itself; its imports only serve its annotations."""
        if name in self._compiled:
            return self._compiled[name]
        stub = self.stub(name)
        if stub is None:
            return frozenset()
        self._compiled[name] = frozenset(
            n
            for n, all_ in stub.bindings.items()
            if any(b.kind not in ("import", "module") and not _is_type_variable(b.node) for b in all_)
        )
        return self._compiled[name]

    @staticmethod
    def opaque_stars(module: Module) -> list[str]:
        """Modules outside the wheel that it star-imports: what they bind is not known here."""
        return [s for s in module.stars if not s.startswith("torch")]

    @staticmethod
    def _lazy_attributes(module: Module) -> frozenset[str]:
        """What a module's `__getattr__` answers to: keys of its tables, and names that it compares with."""
        found: set[str] = set()
        for statement in module.tree.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.FunctionDef) and node.name == "__getattr__" and node.args.args:
                    found |= _compared(node, node.args.args[0].arg)
        for table in ("_deprecated_attrs", "_lazy_modules"):
            for node in ast.walk(module.tree):
                if isinstance(node, ast.Assign) and any(
                    isinstance(t, ast.Name) and t.id == table for t in node.targets
                ):
                    elements = (
                        node.value.keys
                        if isinstance(node.value, ast.Dict)
                        else node.value.elts
                        if isinstance(node.value, ast.Set)
                        else []
                    )
                    found |= {e.value for e in elements if isinstance(e, ast.Constant) and isinstance(e.value, str)}
        return frozenset(found)

    def star_names(self, name: str, seen: frozenset[str] = frozenset()) -> frozenset[str]:
        """Names that `from name import *` binds; a superset when `__all__` is computed."""
        module = self.module(name)
        if module is None:
            return frozenset()
        if module.exported is not None and module.exported_complete:
            return module.exported
        return frozenset(n for n in self.names(name, seen) if not n.startswith("_")) | (module.exported or frozenset())

    def resolve(self, module_name: str, name: str, depth: int = 0) -> Definition | None:
        """Follow imports, re-exports and plain aliases to the definition; None when it cannot be followed."""
        if depth > 12:
            return None
        if depth == 0 and (module_name, name) in self._resolved:
            return self._resolved[module_name, name]
        found = self._resolve(module_name, name, depth)
        if depth == 0:
            self._resolved[module_name, name] = found
        return found

    def _resolve(self, module_name: str, name: str, depth: int) -> Definition | None:
        module = self.module(module_name)
        if module is None:
            return None
        bindings = module.bindings.get(name)
        if bindings is None:
            for star in module.stars:
                if name in self.star_names(star):
                    return self.resolve(star, name, depth + 1)
            if module.is_package and name in self.submodules(module_name):
                return Definition(f"{module_name}.{name}", "", "module", ())
            if module_name == "torch":
                for compiled in ("torch._C._VariableFunctions", "torch._C"):
                    if name in self._compiled_names(compiled):
                        return self.resolve(compiled, name, depth + 1)
            if module_name.startswith("torch._C"):
                return Definition(module_name, name, "builtin", ())
            return None
        for kind in ("function", "class"):
            nodes = tuple(b.node for b in bindings if b.kind == kind and b.node is not None)
            if nodes:
                return Definition(module_name, name, kind, nodes)
        last = bindings[-1]
        for binding in reversed(bindings):
            if binding.kind == "import":
                last = binding
                break
        if last.kind == "module":
            return Definition(last.target, "", "module", ())
        if last.kind == "import":
            if self.module(f"{last.target}.{last.attr}") is not None and (
                last.target == module_name
                or (owner := self.module(last.target)) is None
                or last.attr not in owner.bindings
            ):
                return Definition(f"{last.target}.{last.attr}", "", "module", ())
            return self.resolve(last.target, last.attr, depth + 1)
        if last.node is None:
            return Definition(module_name, name, "value", ())
        return self._alias(module_name, name, last.node, depth)

    def _alias(self, module_name: str, name: str, value: ast.AST, depth: int) -> Definition:
        """`x = y`, `x = _add_docstr(y, ...)` and `x = boolean_dispatch(..., if_false=y)` stand for y."""
        if isinstance(value, ast.Call):
            called = (dotted(value.func) or "").rpartition(".")[2]
            if called in ("_add_docstr", "_jit_unused", "deprecated") and value.args:
                value = value.args[0]
            elif called == "boolean_dispatch":
                value = next((k.value for k in value.keywords if k.arg == "if_false"), value)
        path = dotted(value)
        if path is not None:
            target = self.resolve_path(module_name, path, depth + 1)
            if target is not None:
                return target
        return Definition(module_name, name, "value", (value,))

    def resolve_path(self, module_name: str, path: str, depth: int = 0) -> Definition | None:
        """Resolve a dotted expression as the module would read it."""
        head, *rest = path.split(".")
        found = self.resolve(module_name, head, depth)
        for attr in rest:
            if found is None:
                return None
            if found.kind == "module":
                owner = found.module
                found = self.resolve(owner, attr, depth)
            elif found.kind in ("value", "builtin") and found.module.startswith("torch._C"):
                found = Definition(found.qualname, attr, "builtin", ())
            else:
                return None
        return found
