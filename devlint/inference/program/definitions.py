"""What the code defines: files with their imports, functions, and classes with their bases, methods and family."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from devlint import knowledge
from devlint.inference.library import protocols

Answer = TypeVar("Answer")
FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Finder(Protocol):
    """Finds what a qualified name, as a file writes it, stands for in the project. It knows which files answers follow from.

    `epoch` changes with who asks.
    """

    @property
    def epoch(self) -> int: ...

    def find(self, asker: File, name: str) -> File | Function | Class | None: ...

    def followed(self) -> AbstractContextManager[Trail]: ...

    def look(self, trail: Trail) -> None: ...


#: The files that an answer follows from, by their paths.
Trail: TypeAlias = "dict[str, File | None]"


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
    project: Finder | None = None
    imports: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    rebound: set[str] = field(default_factory=set)
    stars: list[str] = field(default_factory=list)
    sets_default_device: bool = False  # somewhere, for all that it runs later
    nodes: dict[int, list[ast.AST]] = field(default_factory=dict)  # see `nodes_of`
    moved_outside: frozenset[str] | None = None  # the fields that code moves on other objects, once that was asked
    bound: frozenset[str] | None = None  # the attributes that code binds, "*" for any, once that was asked

    told: dict[Any, Any] = field(default_factory=dict)  # see `once`

    def once(self, asked: Any, answer: Callable[[], Answer]) -> Answer:
        """What was asked of the text of this file, found out once. The answer must not follow from another file."""
        if asked not in self.told:
            self.told[asked] = answer()
        return self.told[asked]  # type: ignore[no-any-return]

    def attributes_of(self, function: int) -> frozenset[str]:
        """The names of the attributes that a function, by the identity of its node, mentions."""
        nodes = self.nodes.get(function, ())
        return self.once(
            ("attributes", function), lambda: frozenset(each.attr for each in nodes if type(each) is ast.Attribute)
        )

    def attributes(self) -> frozenset[str]:
        """The names of the attributes that the file mentions."""
        return self.once("attributes", lambda: frozenset[str]().union(*map(self.attributes_of, self.nodes)))

    def nodes_of(self, function: ast.AST) -> list[ast.AST]:
        """The names, attributes, items and calls in a function, those in functions inside it left out."""
        return self.nodes.get(id(function), [])

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


def read_file(path: str, tree: ast.Module, project: Finder | None) -> File:
    """The definitions of a parsed file. No statement is run."""
    file = File(path, tree, project)
    for node in _statements(tree.body):
        _define(file, node)
    imports, calls, names = _index(file)
    for each in imports:
        _import(file, each)
    for statement in names:
        file.rebound.update(statement.names)
    file.sets_default_device = any(_sets_default_device(file, call) for call in calls)
    return file


#: Nodes that hold no expression.
_EMPTY = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.Constant, ast.MatchSingleton)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
Indexed: TypeAlias = tuple[list[ast.Import | ast.ImportFrom], list[ast.Call], list[ast.Global]]


def _index(file: File) -> Indexed:
    """Go through a tree once. What functions do to names, attributes and items is kept by function."""
    imports: list[ast.Import | ast.ImportFrom] = []
    defaults: list[ast.Call] = []
    names: list[ast.Global] = []
    pending: list[tuple[ast.AST, list[ast.AST]]] = [(file.tree, file.nodes.setdefault(id(file.tree), []))]
    pop, push = pending.pop, pending.append
    while pending:
        node, bucket = pop()
        kind = type(node)
        if kind in _KEPT:
            bucket.append(node)
            if kind is ast.Call and _last_name(node.func) in _SET_DEFAULT:  # type: ignore[attr-defined]
                defaults.append(node)  # type: ignore[arg-type]
        elif kind in _FUNCTIONS:
            bucket = file.nodes.setdefault(id(node), [])
        elif kind is ast.Import or kind is ast.ImportFrom:
            imports.append(node)  # type: ignore[arg-type]
        elif kind is ast.Global:
            names.append(node)  # type: ignore[arg-type]
        for name in _PARTS[kind]:
            value = getattr(node, name, None)
            if type(value) is list:
                for each in value:
                    push((each, bucket))
            elif value is not None:
                push((value, bucket))
    imports.reverse()
    return imports, defaults, names


class _Parts(dict[type, tuple[str, ...]]):
    """By a type of nodes: its fields that hold expressions or statements, or nodes that hold them."""

    def __missing__(self, kind: type) -> tuple[str, ...]:
        fields = () if issubclass(kind, _EMPTY) else getattr(kind, "_fields", ())
        self[kind] = tuple(name for name in fields if name not in _PLAIN)
        return self[kind]


#: Fields that hold no nodes, or none that matter [Python's library reference, "ast", abstract grammar].
_PLAIN = frozenset(
    ["arg", "asname", "attr", "conversion", "ctx", "id", "is_async", "kwd_attrs", "level", "module", "name", "names", "op",
     "ops", "rest", "simple", "type_comment", "type_ignores"]
)  # fmt: skip
_PARTS = _Parts()
_KEPT = frozenset({ast.Name, ast.Attribute, ast.Subscript, ast.Call})
_SET_DEFAULT = frozenset({"set_default_device", "set_default_tensor_type"})


def _last_name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


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


#: What a class is by its bases. "unread": a base cannot be read. "object": all bases are read, and none is torch's.
Family: TypeAlias = str
Binding: TypeAlias = Literal["instance", "static", "class", "property", "setter"]


@dataclass(eq=False)
class Class:
    """A class of the project.

    `outer`: what runs the function around it, for one inside a function; it holds its names. `around`: the class that it
    stands in. `inner`: the classes that stand in it.
    """

    file: File
    node: ast.ClassDef
    outer: Any = None
    around: Class | None = None
    methods: dict[str, Function] = field(default_factory=dict)
    setters: dict[str, Function] = field(default_factory=dict)
    values: dict[str, ast.expr] = field(default_factory=dict)
    inner: dict[str, Class] = field(default_factory=dict)
    _bases: list[Class | str] | None = None
    _lineage: list[Class | str] | None = None
    _named_in: Trail = field(default_factory=dict)  # the files that the bases follow from
    _trail: Trail = field(default_factory=dict)  # those that the lineage follows from
    _epoch: int = -1  # when they were told last

    def __post_init__(self) -> None:
        for node in self.node.body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self._add(node)
            elif isinstance(node, ast.ClassDef):
                self.inner[node.name] = Class(self.file, node, self.outer, self)
            elif isinstance(node, ast.Assign):
                self.values.update({t.id: node.value for t in node.targets if isinstance(t, ast.Name)})
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
                self.values[node.target.id] = node.value

    def _add(self, node: FunctionNode) -> None:
        function = Function(self.file, node, self, self.outer)
        if any(isinstance(d, ast.Attribute) and d.attr in ("setter", "deleter") for d in node.decorator_list):
            self.setters[node.name] = function
        else:
            self.methods[node.name] = function

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def lineage(self) -> list[Class | str]:
        """The class and its bases in the order in which attributes are looked for. A string is the qualified name of a base
        that is not of the project, "?" one that cannot be told."""
        project = self.file.project
        if self._lineage is None:
            with project.followed() if project is not None else nullcontext({}) as self._trail:
                self._lineage = self._linearised()
        elif project is not None and self._trail and project.epoch != self._epoch:
            project.look(self._trail)
        if project is not None:
            self._epoch = project.epoch
        return self._lineage

    def _linearised(self) -> list[Class | str]:
        found: list[Class | str] = [self]
        pending: list[Class | str] = list(self.bases)
        while pending:
            each = pending.pop(0)
            if each not in found:
                found.append(each)
                if isinstance(each, Class):
                    pending = [*each.bases, *pending] if len(each.bases) == 1 else [*pending, *each.bases]
        return found

    @property
    def bases(self) -> list[Class | str]:
        """The bases that the class itself names."""
        project = self.file.project
        if self._bases is None:
            with project.followed() if project is not None else nullcontext({}) as self._named_in:
                self._bases = [base for node in self.node.bases for base in self._base(node)]
        elif project is not None and self._named_in:
            project.look(self._named_in)
        return self._bases

    def _base(self, node: ast.expr) -> Iterator[Class | str]:
        if isinstance(node, ast.Subscript):  # Generic[T]
            node = node.value
        beside = self._beside(node.id) if isinstance(node, ast.Name) else None
        if beside is not None:
            yield beside
            return
        name = self.file.qualified(node)
        if name is None:
            plain = dotted(node)
            yield plain if plain in ("object", "Exception", "dict", "list", "tuple") else "?"
            return
        found = self.file.project.find(self.file, name) if self.file.project is not None else None
        yield found if isinstance(found, Class) else name

    def _beside(self, name: str) -> Class | None:
        """Another class of this name in the class or a function around this one, or at the module level."""
        found = self.around.inner.get(name) if self.around is not None else None
        if found is not None and found is not self:
            return found
        around = self.outer
        while around is not None:
            value = around.state.names.get(name)
            if value is not None:
                return value.ref if isinstance(value.ref, Class) and value.ref is not self else None
            around = around.outer
        found = self.file.classes.get(name)
        return found if found is not self else None

    @property
    def family(self) -> Family:
        """The family of the first base of a library that has one, "unread" where a base cannot be read, else "object"."""
        return self._family if self.lineage else "object"

    @cached_property
    def _family(self) -> Family:
        unread = False
        for base in self.lineage:
            if isinstance(base, str):
                family = protocols.family_of_base(base)
                if family not in ("unread", "object"):
                    return family
                unread = unread or family == "unread"
        return "unread" if unread else "object"

    @property
    def is_module(self) -> bool:
        """Whether it is a module: by its bases, or, where one cannot be read, by what only a module does.

        That is: it has a `forward`, and its constructor binds parameters or parts, which `torch.nn.Module` registers.
        """
        family = self.family
        return family == "Module" if family != "unread" else self._is_like_module

    @cached_property
    def _is_like_module(self) -> bool:
        init = self.method("__init__")
        return init is not None and self.method("forward") is not None and _binds_parts(init)

    @property
    def may_be_module(self) -> bool:
        return self.family in ("Module", "unread")

    def method(self, name: str) -> Function | None:
        for each in self.lineage:
            if isinstance(each, Class) and name in each.methods:
                return each.methods[name]
        return None

    def method_above(self, owner: Class, name: str) -> Function | None:
        """The method that `super().name` means in a method of `owner`, for an object of this class."""
        line = self.lineage if owner in self.lineage else owner.lineage
        for each in line[line.index(owner) + 1 :]:
            if isinstance(each, Class) and name in each.methods:
                return each.methods[name]
        return None

    def setter(self, name: str) -> Function | None:
        return next((c.setters[name] for c in self.lineage if isinstance(c, Class) and name in c.setters), None)

    def class_inside(self, name: str) -> Class | None:
        """The class of this name in the body of the class, or of a base."""
        return next((c.inner[name] for c in self.lineage if isinstance(c, Class) and name in c.inner), None)

    def value(self, name: str) -> tuple[Class, ast.expr] | None:
        """What the body of the class, or of a base, binds a name to."""
        return next(((c, c.values[name]) for c in self.lineage if isinstance(c, Class) and name in c.values), None)

    @property
    def is_read(self) -> bool:
        """Whether all bases are read, or are known as data."""
        return all(isinstance(base, Class) or protocols.family_of_base(base) != "unread" for base in self.lineage)

    @property
    def is_data(self) -> bool:
        """Whether its constructor is made of its annotated fields: a data class or a named tuple."""
        return bool(self.lineage) and self._is_data

    @cached_property
    def _is_data(self) -> bool:
        names = {self.file.qualified(d.func if isinstance(d, ast.Call) else d) for d in self.node.decorator_list}
        return not names.isdisjoint(protocols.DATA_CLASS_DECORATORS) or any(
            base in protocols.DATA_CLASS_BASES for base in self.lineage if isinstance(base, str)
        )

    @property
    def data_fields(self) -> list[tuple[str, ast.expr, ast.expr | None]]:
        """The fields of a data class in order: name, annotation, default."""
        return self._data_fields if self.lineage else []

    @cached_property
    def _data_fields(self) -> list[tuple[str, ast.expr, ast.expr | None]]:
        found: dict[str, tuple[str, ast.expr, ast.expr | None]] = {}
        for each in reversed(self.lineage):
            if isinstance(each, Class):
                for node in each.node.body:
                    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                        found[node.target.id] = (node.target.id, node.annotation, node.value)
        return list(found.values())


def with_inner(class_: Class) -> Iterator[Class]:
    """A class and those that stand in it."""
    yield class_
    for each in class_.inner.values():
        yield from with_inner(each)


def _binds_parts(init: Function) -> bool:
    """Whether a constructor makes modules or parameters of torch."""
    for node in init.file.nodes_of(init.node):
        name = init.file.qualified(node.func) if isinstance(node, ast.Call) else None
        if name is not None and name.startswith("torch.nn."):
            record = knowledge.function(name)
            if name == "torch.nn.Parameter" or (record is not None and record.result == "module"):
                return True
    return False


def binding_of(function: Function) -> Binding:
    """How a method is bound when it is read from an object."""
    for name in function.decorators():
        last = name.rpartition(".")[2]
        if last in ("staticmethod", "classmethod"):
            return "static" if last == "staticmethod" else "class"
        if last in ("property", "cached_property", "lazy_property"):
            return "property"
    if function.name == "__new__":
        return "class"
    return "instance"
