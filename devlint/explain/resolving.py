"""What names in the user's files stand for: functions, classes and modules of the project, loaders, and who calls what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from devlint import knowledge
from devlint.explain.bindings import bindings, stores
from devlint.explain.sources import File, Files, Plain, defined
from devlint.explain.suspects import Context
from devlint.facts.text.collect import qualified
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import is_self_attribute, last_name

LOADERS = re.compile(r"Loader|Iterator|Bunch|BatchSampler")
_LOADER = re.compile(r"load|_?iter$|iterator|batches|dataset|_set$|^data$|_data$|data_?source|sampler", re.IGNORECASE)
_MODULES = re.compile(r"model|net$|_net|^net|module|critic|actor|encoder|decoder|generator|discriminator|criterion")

#: How classes of torch end whose own attributes are modules, or weights that they name themselves.
_OF_MODULES = (
    "Sequential", "List", "Dict", "RNN", "LSTM", "GRU", "Cell", "Parallel", "Transformer", "Encoder", "Decoder", "Layer",
)  # fmt: skip
#: Calls that keep a module where a move of their own reaches it.
_KEEPING = re.compile(
    r"append|insert|extend|add_module|setattr|Parallel|Sequential|List|Dict|device|prepare|cuda|wrap|initialize|setup"
)


class Resolver:
    """Questions about the user's files that their text answers."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def lineage(self, file: File, class_: ast.ClassDef, depth: int = 0) -> Iterator[tuple[File, ast.ClassDef]]:
        """A class and its bases, as far as the project defines them."""
        yield file, class_
        if depth > 4:
            return
        for base in class_.bases:
            known = self.resolve(base, file)
            if known is not None and isinstance(known[1], ast.ClassDef) and known[1] is not class_:
                yield from self.lineage(known[0], known[1], depth + 1)

    def is_module_class(self, file: File, class_: ast.ClassDef) -> bool:
        """Whether a class is an `nn.Module`, by its bases or by what it defines."""
        for _, each in self.lineage(file, class_):
            names = {last_name(base) for base in each.bases}
            if any(name.endswith(("Module", "Model", "Layer", "Network", "Net")) for name in names):
                return True
            if any(getattr(n, "name", "") == "forward" for n in each.body) and each.bases:
                return True
        return False

    def resolve(self, node: ast.expr, file: File) -> tuple[File, Plain | ast.ClassDef] | None:
        """The function or class of the project that a name or a dotted name stands for."""
        if isinstance(node, ast.Name):
            own = defined(file.tree, node.id)
            if own is not None:
                return file, own
        name = imported(node, file)
        if name is None and isinstance(node, ast.Name) and file.imports.stars:
            name = node.id
            for star in file.imports.stars:
                known = self.files.definition(file, f"{star}.{name}" if not star.endswith(".") else star + name)
                if known is not None:
                    return known
            return None
        if name is None or name.startswith("torch."):
            return None
        return self.files.definition(file, name)

    def class_of_name(self, node: ast.Name, at: Context) -> tuple[File, ast.ClassDef] | None:
        """The class of the project whose constructor made what a name is bound to."""
        for scope in (at.function, at.file.tree):
            if scope is None:
                continue
            for binding in bindings(scope).get(node.id, []):
                made = binding.value
                while isinstance(made, ast.Call):
                    known = self.resolve(made.func, at.file)
                    if known is not None and isinstance(known[1], ast.ClassDef):
                        return known[0], known[1]
                    if not isinstance(made.func, ast.Attribute):
                        break
                    made = made.func.value  # `Net().to(device)`
        return None

    def class_of_attribute(self, node: ast.expr, at: Context) -> tuple[File, ast.ClassDef] | None:
        """The class of the project that `self.name` holds an instance of, by what its owner puts there."""
        if not (isinstance(node, ast.Attribute) and is_self_attribute(node)) or at.function is None:
            return None
        owner = at.file.class_of(at.function)
        for file, class_ in self.lineage(at.file, owner) if owner is not None else ():
            for store in stores(class_, node.attr):
                known = self.resolve(store.value.func, file) if isinstance(store.value, ast.Call) else None
                if known is not None and isinstance(known[1], ast.ClassDef):
                    return known[0], known[1]
        return None

    def is_loader(self, node: ast.expr, at: Context) -> bool:
        """Whether an expression is a loader of batches, by its name or by what makes it."""
        if isinstance(node, ast.Call):
            name = last_name(node.func)
            return bool(LOADERS.search(name)) or (
                name not in ("load", "loads") and bool(_LOADER.search(name)) and "torch" not in name
            )
        if isinstance(node, ast.Subscript):
            return self.is_loader(node.value, at)
        if _LOADER.search(last_name(node)):
            return True
        if isinstance(node, ast.Name):
            scope = at.function or at.file.tree
            for binding in bindings(scope).get(node.id, []):
                if isinstance(binding.value, ast.Call) and self.is_loader(binding.value, at):
                    return True
        return False

    def near(self, file: File, word: str) -> Iterator[File]:
        """A file, and the others of the project that mention a word."""
        yield file
        yield from (other for other in self.files.mentioning(word) if other is not file)

    def calls_by_name(self, file: File, name: str) -> Iterator[tuple[File, ast.Call]]:
        """The calls in the project of what has a name."""
        for each in self.near(file, name):
            for call in walk(each.tree):
                if isinstance(call, ast.Call) and last_name(call.func) == name:
                    yield each, call

    def calls_of_instances(self, file: File, class_: ast.ClassDef) -> Iterator[tuple[File, ast.Call]]:
        """The calls of what a class makes: `net = Net()`, then `net(x)`, or the same with an attribute of `self`."""
        for each in self.near(file, class_.name):
            bound = {
                ast.unparse(target)
                for node in walk(each.tree)
                if isinstance(node, ast.Assign) and _constructs(node.value, class_.name)
                for target in node.targets
            }
            for call in walk(each.tree):
                if (
                    isinstance(call, ast.Call)
                    and isinstance(call.func, (ast.Name, ast.Attribute))
                    and ast.unparse(call.func) in bound
                ):
                    yield each, call

    def callee(self, func: ast.expr, at: Context) -> tuple[File, Plain] | None:
        """The function or method of the project that a call runs, a module's `forward` for a call of the module."""
        if (
            isinstance(func, ast.Attribute)
            and isinstance(func.value, ast.Name)
            and func.value.id in ("self", "cls")
            and at.function is not None
        ):
            owner = at.file.class_of(at.function)
            if owner is None:
                return None
            own = self.method(at.file, owner, (func.attr,))
            if own is not None:
                return own
            held = self.class_of_attribute(func, at)
            return self.method(*held, ("forward", "__call__")) if held is not None else None
        if isinstance(func, ast.Name):
            for scope in (at.function, None if at.function is None else at.file.function_of(at.function)):
                for each in getattr(scope, "body", ()):
                    if isinstance(each, (ast.FunctionDef, ast.AsyncFunctionDef)) and each.name == func.id:
                        return at.file, each
        known = self.resolve(func, at.file)
        if known is not None:
            if isinstance(known[1], ast.ClassDef):
                return None
            return known[0], known[1]
        target = func if isinstance(func, ast.Name) else func.value if isinstance(func, ast.Attribute) else None
        if isinstance(target, ast.Name):
            made = self.class_of_name(target, at)
            if made is not None:
                names = ("forward", "__call__") if isinstance(func, ast.Name) else (last_name(func),)
                return self.method(*made, names)
        return None

    def method(self, file: File, class_: ast.ClassDef, names: tuple[str, ...]) -> tuple[File, Plain] | None:
        """The method of a class, or of its bases, that has one of some names."""
        for home, each in self.lineage(file, class_):
            for node in each.body:
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.name in names:
                    return home, node
        return None

    def makes_module(self, node: ast.Call, at: Context) -> bool:
        """Whether a call constructs a module, or copies one; one that it moves at once left out."""
        if last_name(node.func) == "deepcopy" and node.args:
            return isinstance(node.args[0], ast.Name) and self.is_module(node.args[0], at)
        name = imported(node.func, at.file)
        if name is not None and name.startswith("torch.nn.") and not name.startswith("torch.nn.functional"):
            return last_name(node.func)[:1].isupper() and _holds_tensors(node, name)
        known = self.resolve(node.func, at.file)
        return known is not None and isinstance(known[1], ast.ClassDef) and self.is_module_class(known[0], known[1])

    def is_module(self, node: ast.expr, at: Context) -> bool:
        """Whether an expression is a module, an optimizer or the like, which moves in place or not at all."""
        if isinstance(node, ast.Call):
            return self.makes_module(node, at)
        if isinstance(node, ast.Name):
            for scope in (at.function, at.file.tree):
                for binding in bindings(scope).get(node.id, []) if scope is not None else ():
                    if isinstance(binding.value, ast.Call) and self.is_module(binding.value, at):
                        return True
        return isinstance(node, (ast.Name, ast.Attribute)) and bool(_MODULES.search(last_name(node)))

    def is_moved(self, path: str, at: Context) -> bool:
        """Whether the file moves a module of this name, or hands it on: `net.to(..)`, `blocks.append(net)`."""
        for node in walk(at.file.tree):
            if isinstance(node, ast.Call) and _KEEPING.search(last_name(node.func)):
                given = (*node.args, *(k.value for k in node.keywords))
                if any(isinstance(each, (ast.Name, ast.Attribute)) and ast.unparse(each) == path for each in given):
                    return True
            if (
                isinstance(node, (ast.Assign, ast.Return))
                and isinstance(node.value, ast.Name)
                and node.value.id == path
            ):
                return True
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in OFF_HOST:
                if ast.unparse(node.func.value) == path:
                    return True
        return False


def imported(node: ast.expr, file: File) -> str | None:
    """The qualified name of something that a file imports; None for what it defines or binds itself."""
    root = node
    while isinstance(root, ast.Attribute):
        root = root.value
    if not isinstance(root, ast.Name) or root.id not in file.imports.names:
        return None
    return qualified(node, file.imports)


def _holds_tensors(node: ast.Call, name: str) -> bool:
    """Whether a module of torch has parameters or buffers, or holds modules: not an activation, not a loss without weights."""
    known = knowledge.cls(name)
    if known is None or known.family != "Module":
        return False
    if name.endswith("Loss"):
        return any(k.arg in ("weight", "pos_weight") for k in node.keywords) or bool(node.args)
    bare = name.endswith(_OF_MODULES)
    return bare or not known.attributes.isdisjoint({"weight", "bias", "running_mean", "in_proj_weight"})


def _constructs(node: ast.expr, name: str) -> bool:
    """Whether an expression constructs a class by its name, moved at once or not: `Net(3).to(device)`."""
    while isinstance(node, ast.Call):
        if last_name(node.func) == name:
            return True
        if not isinstance(node.func, ast.Attribute):
            return False
        node = node.func.value
    return False
