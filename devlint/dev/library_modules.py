"""Generates `devlint/knowledge/library_modules.json`: which classes of other libraries hold tensors when they are new.

    python -m devlint.dev.library_modules WHEEL...       unpacked wheels, each a folder

    pip download --no-deps -d wheels torchaudio torchvision torch_geometric torchmetrics
    pip download --no-deps -d wheels torchmetrics==0.6.0

The files are read, never imported. A class holds tensors where its `__init__`, run on the defaults of its parameters,
surely registers a parameter, a buffer or a part that holds one, or adds the state of a metric to which `update` adds.
What depends on a parameter is stored with its name: `Spectrogram(window_fn,wkwargs)` holds a window on the CPU unless
one of these is given. Classes that put their own state on the device of their input are left out.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from devlint import knowledge

TARGET = Path(__file__).resolve().parent.parent / "knowledge" / "library_modules.json"
#: Where the public names of each package stand.
PREFIXES: Mapping[str, tuple[str, ...]] = {
    "torchaudio": ("torchaudio.transforms", "torchaudio.models"),
    "torchvision": ("torchvision.models", "torchvision.ops"),
    "torch_geometric": ("torch_geometric.nn", "torch_geometric.explain"),
    "torchmetrics": ("torchmetrics",),
}
#: Parameters of these types are numbers, texts and flags, which are on no device.
_PLAIN = re.compile(r"int|float|bool|str|Literal|dtype|Optional|Union|List|Tuple|Sequence|list|tuple|None|Final")
_PARAMETERS = frozenset({"Parameter", "UninitializedParameter", "UninitializedBuffer", "Buffer"})
_LISTS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
_TENSORS = frozenset(
    {"tensor", "zeros", "ones", "empty", "full", "rand", "randn", "arange", "linspace", "Tensor", "eye"}
)
#: What puts something beside a tensor.
_PUTS = frozenset({"to", "to_device", "type_as", "cuda"})
_DEPTH = 8

Needs = frozenset[str]  # parameters that must not be given
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class File:
    name: str
    tree: ast.Module
    package: bool
    names: dict[str, str] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    functions: dict[str, FunctionNode] = field(default_factory=dict)


def last(node: ast.AST | None) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def is_of_self(node: ast.AST | None) -> bool:
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def is_below_self(node: ast.AST | None) -> bool:
    """Whether an expression reads something of the object itself: `self.weight`, `self.weight.data`, `self.total.device`."""
    while isinstance(node, ast.Attribute):
        if is_of_self(node):
            return True
        node = node.value
    return False


class Library:
    """The files of an unpacked wheel, and what its names stand for."""

    def __init__(self, root: Path, package: str) -> None:
        self.files: dict[str, File] = {}
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            inside = parts[-1] == "__init__"
            name = ".".join(parts[:-1] if inside else parts)
            self.files[name] = self._read(File(name, ast.parse(path.read_text(encoding="utf-8")), inside))
        self._states: dict[str, list[Needs]] = {}

    def _read(self, file: File) -> File:
        for node in ast.walk(file.tree):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    local = alias.asname or alias.name.partition(".")[0]
                    file.names.setdefault(local, alias.name if alias.asname else local)
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                if node.level:
                    above = file.name.split(".")
                    above = above[: len(above) - node.level + file.package]
                    base = ".".join([*above, *([node.module] if node.module else [])])
                for alias in node.names:
                    if alias.name == "*":
                        file.stars.append(base)
                    else:
                        file.names.setdefault(alias.asname or alias.name, f"{base}.{alias.name}")
        for node in file.tree.body:
            if isinstance(node, ast.ClassDef):
                file.classes[node.name] = node
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                file.functions[node.name] = node
        return file

    def canonical(self, qualname: str, depth: int = 0) -> str:
        """The name under which a class or function is defined, whatever packages hand it on."""
        home, _, name = qualname.rpartition(".")
        file = self.files.get(home)
        if file is None or depth > _DEPTH or name in file.classes or name in file.functions:
            return qualname
        if name in file.names:
            return self.canonical(file.names[name], depth + 1)
        for star in file.stars:
            found = self.canonical(f"{star}.{name}", depth + 1)
            if self.class_of(found) is not None:
                return found
        return qualname

    def qualify(self, file: File, node: ast.AST | None) -> str:
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        first = file.names.get(node.id)
        if first is None:
            first = f"{file.name}.{node.id}" if node.id in (*file.classes, *file.functions) else ""
            if not first:
                found = (self.canonical(f"{star}.{node.id}") for star in file.stars)
                first = next((each for each in found if self.class_of(each) is not None), node.id)
        return self.canonical(".".join([first, *reversed(parts)]))

    def class_of(self, qualname: str) -> tuple[File, ast.ClassDef] | None:
        home, _, name = qualname.rpartition(".")
        file = self.files.get(home)
        return (file, file.classes[name]) if file is not None and name in file.classes else None

    def lineage(self, qualname: str, depth: int = 0) -> Iterator[tuple[str, File, ast.ClassDef]]:
        found = self.class_of(qualname)
        if found is None or depth > _DEPTH:
            return
        yield qualname, *found
        for base in found[1].bases:
            yield from self.lineage(self.qualify(found[0], base), depth + 1)

    def is_module(self, qualname: str) -> bool:
        ends = {self.qualify(file, base) for _, file, node in self.lineage(qualname) for base in node.bases}
        return any((known := knowledge.cls(end)) is not None and known.family == "Module" for end in ends if end)

    def method(self, qualname: str, name: str) -> tuple[str, File, FunctionNode] | None:
        for owner, file, node in self.lineage(qualname):
            for child in node.body:
                if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and child.name == name:
                    return owner, file, child
        return None

    # -- what a class holds ----------------------------------------------------------------------------------------

    def holds(self, qualname: str) -> Needs | None:
        """The parameters on which it depends that a new object holds tensors; None where it surely holds none."""
        states = self.states(qualname)
        return min(states, key=lambda needs: (len(needs), sorted(needs))) if states else None

    def states(self, qualname: str) -> list[Needs]:
        known = self._states.get(qualname)
        if known is None:
            self._states[qualname] = []  # a class that holds one of its own kind
            found: list[Needs] = []
            if self.is_module(qualname) and not self.moves_itself(qualname):
                init = self.method(qualname, "__init__")
                if init is not None:
                    found = Init(self, qualname, *init, {}).run()
                made = self.method(qualname, "__new__")
                if made is not None and not found:
                    found = self.dispatched(*made)
            known = self._states[qualname] = found
        return known

    def dispatched(self, owner: str, file: File, new: FunctionNode) -> list[Needs]:
        """What `__new__` gives that chooses among classes: what all of them hold."""
        made = [n.value.func for n in ast.walk(new) if isinstance(n, ast.Return) and isinstance(n.value, ast.Call)]
        needs = [self.holds(self.qualify(file, function)) for function in made]
        known = [each for each in needs if each is not None]
        return [frozenset().union(*known)] if known and len(known) == len(needs) else []

    def moves_itself(self, qualname: str) -> bool:
        """Whether a method puts a state of its own somewhere else than where it is."""
        for _, _, node in self.lineage(qualname):
            for method in node.body:
                if not isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef)) or method.name == "__init__":
                    continue
                for call in ast.walk(method):
                    if isinstance(call, ast.Call) and last(call.func) in _PUTS and "dtype" not in ast.dump(call):
                        moved = call.func.value if isinstance(call.func, ast.Attribute) else None
                        if any(is_below_self(part) for part in (*call.args, *(k.value for k in call.keywords), moved)):
                            return True
        return False

    def is_changed(self, qualname: str, state: str, dimensions: bool) -> bool:
        """Whether a class does `self.state += x`, which torch refuses for an `x` on another device; or, where the state
        has dimensions, `self.state = self.state + x`, which it does then."""
        for _, _, node in self.lineage(qualname):
            for n in ast.walk(node):
                if isinstance(n, ast.AugAssign) and is_of_self(n.target) and last(n.target) == state:
                    return True
                if dimensions and isinstance(n, ast.BinOp) and isinstance(n.op, ast.Add) and is_of_self(n.left):
                    if last(n.left) == state:
                        return True
        return False


class Init:
    """A run of `__init__`, or of a method that it calls, on what is known of its parameters."""

    def __init__(
        self,
        library: Library,
        cls: str,
        owner: str,
        file: File,
        node: FunctionNode,
        given: Mapping[str, ast.expr],
        depth: int = 0,
    ) -> None:
        self.library, self.cls, self.owner, self.file, self.node, self.depth = library, cls, owner, file, node, depth
        spec = node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        self.defaults: dict[str, ast.expr] = dict(
            zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True)
        )
        self.defaults |= {a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None}
        self.defaults |= given
        every = (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)
        self.parameters = {a.arg for a in every} - {"self"}
        self.kinds = {a.arg: a.annotation for a in every}
        self.locals: dict[str, list[ast.expr]] = {}
        self.under: Needs = frozenset()  # what the conditions ask under which a statement stands
        self.why: dict[str, Needs] = {}  # the same for what is bound to a local variable

    def copy(self) -> Init:
        other = Init(self.library, self.cls, self.owner, self.file, self.node, self.defaults, self.depth)
        other.locals = {name: list(values) for name, values in self.locals.items()}
        return other

    def run(self) -> list[Needs]:
        return self.block(self.node.body)

    def block(self, body: Iterable[ast.stmt]) -> list[Needs]:
        found: list[Needs] = []
        for node in body:
            found += self.statement(node)
        return found

    def statement(self, node: ast.stmt) -> list[Needs]:
        if isinstance(node, ast.If):
            test = self.test(node.test)
            if test is None:
                one, other = self.block(node.body), self.block(node.orelse)
                return [a | b for a in one[:1] for b in other[:1]]
            value, names = test
            outside, self.under = self.under, self.under | names
            taken = self.block(node.body if value else node.orelse)
            self.under = outside
            other = Init.block(self.copy(), node.orelse if value else node.body) if taken else []
            either = [a | b for a in taken[:1] for b in other[:1]]  # one way or the other
            return either or [needs | names for needs in taken]
        if isinstance(node, (ast.With, ast.AsyncWith)):
            return self.block(node.body)
        if isinstance(node, ast.For):
            turns = node.iter.elts if isinstance(node.iter, (ast.Tuple, ast.List)) else []
            if turns and isinstance(node.target, ast.Name):
                self.locals[node.target.id] = turns[:1]
                return self.block(node.body)
            return []
        if isinstance(node, ast.Try):
            return self.block(node.body)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            for target in targets:
                for part in target.elts if isinstance(target, ast.Tuple) else [target]:
                    if isinstance(part, ast.Name):
                        self.locals.setdefault(part.id, []).append(node.value)
                        self.why[part.id] = self.why.get(part.id, frozenset()) | self.under
            return self.made(node.value) if any(map(is_of_self, targets)) else []
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            return self.call(node.value)
        return []

    def call(self, node: ast.Call) -> list[Needs]:
        name, function = last(node.func), node.func
        given: dict[str | int, ast.expr] = {
            **dict(enumerate(node.args)),
            **{k.arg: k.value for k in node.keywords if k.arg},
        }
        if not isinstance(function, ast.Attribute):
            return []
        if name == "__init__" and isinstance(function.value, ast.Call) and last(function.value.func) == "super":
            bases = [self.library.qualify(self.file, base) for base in self.bases()]
            for base in bases:
                found = self.library.method(base, "__init__")
                if found is not None:
                    return self.followed(found, node)
            return []
        if name in ("append", "add_module", "register_module") and (is_of_self(function.value) or is_of_self(function)):
            return [needs for part in node.args for needs in self.made(part)]
        if not is_of_self(function):
            return []
        if name in ("register_buffer", "register_parameter"):
            value = given.get(1) or given.get("tensor") or given.get("param")
            if value is None or (isinstance(value, ast.Constant) and value.value is None):
                return []
            return self.after(value)
        if name == "add_state":
            state, default = given.get(0) or given.get("name"), given.get(1) or given.get("default")
            text = self.value(state) if state is not None else None
            made = self.tensor(default) if default is not None else []
            if not made or text is None:
                return []
            return made if self.library.is_changed(self.cls, str(text[0]), self.has_dimensions(default)) else []
        found = self.library.method(self.cls, name)
        return self.followed(found, node) if found is not None else []

    def bases(self) -> Sequence[ast.expr]:
        found = self.library.class_of(self.owner)
        return found[1].bases if found is not None else ()

    def followed(self, found: tuple[str, File, FunctionNode], node: ast.Call) -> list[Needs]:
        """What a method does that is called here, in terms of the parameters of this one."""
        if self.depth > _DEPTH:
            return []
        spec = found[2].args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)][1:]
        passed = {**dict(zip(names, node.args, strict=False)), **{k.arg: k.value for k in node.keywords if k.arg}}
        known = {
            k: self.defaults[v.id] if isinstance(v, ast.Name) and v.id in self.defaults else v
            for k, v in passed.items()
        }
        inner = Init(self.library, self.cls, *found, known, self.depth + 1)
        origin = {k: self.used(v) for k, v in passed.items()}
        open_end = any(k.arg is None for k in node.keywords)
        result = []
        for needs in inner.run():
            mapped = [origin.get(name, {name} if open_end else set()) for name in needs]
            result.append(frozenset[str]().union(*mapped))
        return result

    def used(self, node: ast.AST, seen: frozenset[str] = frozenset()) -> set[str]:
        """The parameters that an expression is made of, by way of local variables too."""
        found: set[str] = set()
        for child in ast.walk(node):
            if isinstance(child, ast.Name):
                if child.id in self.parameters:
                    found.add(child.id)
                if child.id in self.locals and child.id not in seen:
                    for value in self.locals[child.id]:
                        found |= self.used(value, seen | {child.id})
        return found

    def after(self, node: ast.expr) -> list[Needs]:
        """A tensor that is registered: on the device of what it is made of, if a parameter may be a tensor or a function."""
        placing = {name for name in self.used(node) if not self.is_plain(name)}
        return [] if any(name not in self.defaults for name in placing) else [frozenset(placing)]

    def is_plain(self, name: str) -> bool:
        annotation = self.kinds.get(name)
        if annotation is None:
            return isinstance(self.defaults.get(name), ast.Constant) and self.defaults[name].value is not None  # type: ignore[attr-defined]
        words = re.findall(r"[A-Za-z_]+", ast.unparse(annotation))
        words = [w for w in words if w not in ("typing", "torch", "t")]
        return bool(words) and all(
            _PLAIN.fullmatch(word) or (not word[:1].isupper() and "Literal" in words) for word in words
        )

    def tensor(self, node: ast.expr) -> list[Needs]:
        """The default of a metric's state, where it is a new tensor and no list."""
        if isinstance(node, ast.Name):
            if node.id in self.locals:
                found = [self.tensor(value) for value in self.locals[node.id]]
                return [needs | self.why.get(node.id, frozenset()) for needs in found[-1]]
            default = self.defaults.get(node.id)
            return [frozenset({node.id})] if default is not None and self.tensor(default) else []
        if isinstance(node, ast.Lambda):
            return self.tensor(node.body)
        if isinstance(node, ast.IfExp):
            test = self.test(node.test)
            return [] if test is None else [n | test[1] for n in self.tensor(node.body if test[0] else node.orelse)]
        if isinstance(node, ast.UnaryOp):
            return self.tensor(node.operand)
        if isinstance(node, ast.Call):
            if last(node.func) in self.locals and not node.args:
                return self.tensor(ast.Name(last(node.func), ast.Load()))
            return [frozenset()] if last(node.func) in _TENSORS else []
        return []

    def has_dimensions(self, node: ast.AST | None, depth: int = 0) -> bool:
        """Whether the default of a state is a tensor of one dimension at least: `torch.zeros(n)`."""
        if isinstance(node, ast.Lambda):
            return self.has_dimensions(node.body)
        if not isinstance(node, ast.Call) or depth > _DEPTH:
            return False
        if last(node.func) in self.locals:
            return any(self.has_dimensions(value, depth + 1) for value in self.locals[last(node.func)])
        return last(node.func) in _TENSORS - {"tensor"} and bool(node.args)

    def made(self, node: ast.expr) -> list[Needs]:
        """What an expression makes: a parameter, or a module that holds one."""
        if isinstance(node, ast.IfExp):
            test = self.test(node.test)
            return [] if test is None else [n | test[1] for n in self.made(node.body if test[0] else node.orelse)]
        if isinstance(node, ast.BoolOp):
            return []
        if not isinstance(node, ast.Call):
            return []
        name = last(node.func)
        qualname = self.library.qualify(self.file, node.func)
        if name in _PARAMETERS:
            return self.after(node)
        if name in _LISTS:
            parts: list[ast.expr] = []
            for argument in node.args:
                inner = argument.value if isinstance(argument, ast.Starred) else argument
                inner = inner.elt if isinstance(inner, ast.ListComp) else inner
                parts += inner.elts if isinstance(inner, (ast.List, ast.Tuple)) else [inner]
            return [needs for part in parts for needs in self.made(part)]
        known = knowledge.cls(qualname) if qualname.startswith("torch.") else None
        if known is not None:
            return [frozenset()] if known.family == "Module" and known.takes_device else []
        if is_of_self(node.func):
            helper = self.library.method(self.cls, name)
            if helper is None or self.depth > _DEPTH:
                return []
            called = Init(self.library, self.cls, *helper, {}, self.depth + 1)
            given_back = [n.value for n in ast.walk(helper[2]) if isinstance(n, ast.Return) and n.value is not None]
            every = [called.made(value) for value in given_back]
            return [frozenset()] if every and all(each == [frozenset()] for each in every) else []
        if self.library.class_of(qualname) is None:
            return []
        needs = self.library.holds(qualname)
        given = {k.arg for k in node.keywords}
        if needs is None or (needs and (None in given or needs & given)):
            return []
        return [frozenset()]

    def test(self, node: ast.expr) -> tuple[bool, Needs] | None:
        """Whether a condition holds on the defaults, and the parameters that it asks; None where that is not known."""
        names = self.used(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.test(node.operand)
            return (not inner[0], inner[1]) if inner is not None else None
        if isinstance(node, ast.BoolOp):
            parts = [self.test(value) for value in node.values]
            if any(part is None for part in parts):
                return None
            values = [part[0] for part in parts if part is not None]
            return (all(values) if isinstance(node.op, ast.And) else any(values)), frozenset(names)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left, right, op = self.value(node.left), self.value(node.comparators[0]), node.ops[0]
            if left is None or right is None:
                return None
            if isinstance(op, (ast.Is, ast.Eq)):
                return left[0] == right[0], frozenset(names)
            if isinstance(op, (ast.IsNot, ast.NotEq)):
                return left[0] != right[0], frozenset(names)
            if isinstance(op, (ast.In, ast.NotIn)) and isinstance(right[0], tuple):
                return (left[0] in right[0]) is isinstance(op, ast.In), frozenset(names)
            return None
        value = self.value(node)
        return (bool(value[0]), frozenset(names)) if value is not None else None

    def value(self, node: ast.expr) -> tuple[object] | None:
        if isinstance(node, ast.Constant):
            return (node.value,)
        if isinstance(node, (ast.Tuple, ast.List)):
            parts = [self.value(each) for each in node.elts]
            return (tuple(p[0] for p in parts if p is not None),) if all(parts) else None
        if isinstance(node, ast.Name) and len(self.locals.get(node.id, ())) == 1 and node.id not in self.parameters:
            only = self.locals[node.id][0]
            return self.value(only) if isinstance(only, ast.Constant) else None
        if isinstance(node, ast.Name) and node.id not in self.locals:
            default = self.defaults.get(node.id)
            return self.value(default) if isinstance(default, (ast.Constant, ast.Tuple, ast.List)) else None
        if is_of_self(node):  # `self.affine = affine`
            name = last(node)
            return self.value(ast.Name(name, ast.Load())) if name in self.parameters else None
        return None


def public(library: Library, prefixes: Iterable[str]) -> Iterator[tuple[str, str, str]]:
    """The classes and builders below the prefixes: prefix, name, and where it is defined."""
    for prefix in prefixes:
        for file in library.files.values():
            if file.name == prefix or file.name.startswith(prefix + "."):
                yield from ((prefix, name, f"{file.name}.{name}") for name in file.classes if not name.startswith("_"))


def builders(library: Library, prefixes: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The functions below the prefixes whose annotation says that they give an object that holds tensors."""
    for prefix in prefixes:
        for file in library.files.values():
            if file.name.startswith(prefix + "."):
                for name, node in file.functions.items():
                    if not name.startswith("_") and node.returns is not None:
                        if library.holds(library.qualify(file, node.returns)) == frozenset():
                            yield prefix, name


def collect(roots: Iterable[Path]) -> dict[str, object]:
    found: dict[str, dict[str, Needs | None]] = {}
    sources: dict[str, list[str]] = {}
    for root in roots:
        for package, prefixes in PREFIXES.items():
            if not (root / package).is_dir():
                continue
            library = Library(root, package)
            version = next(
                (p.name.split("-")[1] for p in root.glob("*.dist-info") if p.name.startswith(package + "-")), "?"
            )
            sources.setdefault(package, []).append(version.removesuffix(".dist"))
            here: dict[tuple[str, str], list[Needs | None]] = {}
            for prefix, name, qualname in public(library, prefixes):
                if library.is_module(qualname):
                    here.setdefault((prefix, name), []).append(library.holds(qualname))
            if package == "torchvision":
                for prefix, name in builders(library, prefixes):
                    here.setdefault((prefix, name), []).append(frozenset())
            for (prefix, name), needs in here.items():
                known = [n for n in needs if n is not None]
                agreed = frozenset().union(*known) if len(known) == len(needs) else None
                table = found.setdefault(prefix, {})
                if name in table and (table[name] is None or agreed is None):
                    agreed = None  # a version without it
                elif name in table:
                    agreed = (table[name] or frozenset()) | (agreed or frozenset())
                table[name] = agreed
    modules = {
        prefix: sorted(
            name + (f"({','.join(sorted(needs))})" if needs else "")
            for name, needs in table.items()
            if needs is not None
        )
        for prefix, table in sorted(found.items())
    }
    return {"sources": {p: sorted(v) for p, v in sorted(sources.items())}, "modules": modules}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", nargs="+", type=Path)
    data = collect(parser.parse_args().wheels)
    TARGET.write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
