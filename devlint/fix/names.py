"""What a file's own text says of its names: what imports bind, its classes and functions, and what annotations admit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property

from devlint import knowledge
from devlint.fix.places import Function

#: Classes of `torch.nn` that give something else than one tensor, or whose result hangs on what they are given.
_NOT_ONE_TENSOR = frozenset({
    "RNN", "LSTM", "GRU", "LSTMCell", "MultiheadAttention", "AdaptiveLogSoftmaxWithLoss", "Sequential", "ModuleList",
    "ModuleDict", "Module", "ParameterList", "ParameterDict", "DataParallel", "Identity", "Transformer",
    "TransformerEncoder", "RNNBase", "RNNCellBase", "Container", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d",
})  # fmt: skip
#: Those of them that take one tensor first, all the same.
_TAKE_TENSOR = frozenset({"LSTMCell", "MaxPool1d", "MaxPool2d", "MaxPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d"})
#: Classes whose `weight` is always a tensor.
_WEIGHTED = frozenset({
    "Linear", "Bilinear", "Embedding", "EmbeddingBag", "Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d",
    "ConvTranspose2d", "ConvTranspose3d", "PReLU",
})  # fmt: skip
#: Classes that hold nothing of their own.
_WITHOUT_STATE = (
    "Loss",
    "LU",
    "Pool",
    "Dropout",
    "Softmax",
    "Sigmoid",
    "Tanh",
    "Flatten",
    "Upsample",
    "Identity",
    "Pad",
)


class Names:
    """The names of one file."""

    def __init__(self, module: ast.Module) -> None:
        self.imports: dict[str, str] = {}
        self.classes: dict[str, ast.ClassDef] = {}
        self.functions: dict[str, Function] = {}
        self.owners: dict[int, ast.ClassDef] = {}  # of methods, by id
        self.globals: set[str] = set()
        twice: set[str] = set()
        for node in ast.walk(module):
            if isinstance(node, ast.Import):
                for alias in node.names:
                    self._import(alias.asname or alias.name.partition(".")[0],
                                 alias.name if alias.asname else alias.name.partition(".")[0], twice)  # fmt: skip
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                for alias in node.names:
                    self._import(alias.asname or alias.name, f"{node.module}.{alias.name}", twice)
            elif isinstance(node, ast.ClassDef):
                self.classes[node.name] = node
                self.owners.update({id(inner): node for inner in node.body if isinstance(inner, Function)})
            elif isinstance(node, (ast.Global, ast.Nonlocal)):
                self.globals.update(node.names)
        for node in module.body:
            if isinstance(node, Function):
                self.functions[node.name] = node
        for name in twice:
            self.imports.pop(name, None)

    def _import(self, name: str, qualname: str, twice: set[str]) -> None:
        if self.imports.setdefault(name, qualname) != qualname:
            twice.add(name)  # what a `try` binds in two ways may be either

    def qualname(self, node: ast.AST) -> str:
        """The full name of what a path of attributes stands for through the imports; "" for everything else."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id not in self.imports:
            return ""
        return ".".join([self.imports[node.id], *reversed(parts)])

    @cached_property
    def has_stand_ins(self) -> bool:
        """Whether a class of the file stands in for tensors: torch's functions take its objects, and it is no tensor.

        Its `__torch_function__` says so [torch/overrides.py]. An annotation does not tell its objects from tensors, and
        neither does what torch's functions are given: their device may be that of an empty tensor on `meta`.
        """
        return any(
            isinstance(member, Function) and member.name == "__torch_function__"
            for class_ in self.classes.values()
            if not any(map(self.is_tensor, class_.bases))
            for member in class_.body
        )

    # Annotations

    def is_tensor(self, annotation: ast.expr | None) -> bool:
        """Whether an annotation admits tensors alone. `Float[Tensor, "n d"]` of jaxtyping does."""
        annotation = _unquoted(annotation)
        if isinstance(annotation, ast.Subscript):
            name = self.qualname(annotation.value)
            if name.startswith(("jaxtyping.", "typing.Annotated", "typing_extensions.Annotated")):
                inner = annotation.slice.elts[0] if isinstance(annotation.slice, ast.Tuple) else annotation.slice
                return self.is_tensor(inner)
            return name in ("torchtyping.TensorType",)
        name = self.qualname(annotation) if annotation is not None else ""
        return name == "torch.nn.Parameter" or (name.startswith("torch.") and name.endswith("Tensor"))

    def is_tensor_or_none(self, annotation: ast.expr | None) -> bool:
        """Whether an annotation admits tensors and None: `Tensor | None`, `Optional[Tensor]`."""
        annotation = _unquoted(annotation)
        if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
            return self._is_none_beside(annotation.left, annotation.right)
        if isinstance(annotation, ast.Subscript):
            name = self.qualname(annotation.value)
            if name.endswith(".Optional"):
                return self.is_tensor(annotation.slice)
            if name.endswith(".Union") and isinstance(annotation.slice, ast.Tuple) and len(annotation.slice.elts) == 2:
                return self._is_none_beside(*annotation.slice.elts)
        return self.is_tensor(annotation)

    def _is_none_beside(self, left: ast.expr, right: ast.expr) -> bool:
        pairs = ((left, right), (right, left))
        return any(self.is_tensor(one) and is_none(other) for one, other in pairs)

    def is_module(self, annotation: ast.expr | None) -> bool:
        """Whether an annotation admits modules alone."""
        annotation = _unquoted(annotation)
        if isinstance(annotation, ast.Name) and annotation.id in self.classes:
            return self.is_module_class(self.classes[annotation.id])
        return annotation is not None and self.makes_module(self.qualname(annotation))

    # Classes

    def makes_module(self, qualname: str) -> bool:
        record = knowledge.function(qualname) if qualname.startswith("torch.") else None
        return record is not None and record.result == "module"

    def is_module_class(self, node: ast.ClassDef, depth: int = 4) -> bool:
        """Whether a class derives from `nn.Module`, as far as the file shows."""
        for base in node.bases:
            name = self.qualname(base)
            if self.makes_module(name) or name in ("lightning.LightningModule", "pytorch_lightning.LightningModule"):
                return True
            if isinstance(base, ast.Name) and base.id in self.classes and depth:
                if self.classes[base.id] is not node and self.is_module_class(self.classes[base.id], depth - 1):
                    return True
        return False

    def family(self, node: ast.ClassDef) -> list[ast.ClassDef]:
        """A class with its bases and subclasses in the file."""
        found = [node]
        for one in found:  # which grows
            found += [self.classes[b.id] for b in one.bases if isinstance(b, ast.Name) and b.id in self.classes]
            found = list(dict.fromkeys(found))
            if len(found) > 20:
                break
        below = [
            c for c in self.classes.values() if any(isinstance(b, ast.Name) and b.id == node.name for b in c.bases)
        ]
        return list(dict.fromkeys([*found, *below]))

    def has_parameters(self, node: ast.ClassDef) -> bool:
        """Whether objects of a class surely hold a parameter: it keeps one, or a layer of torch that does, in `__init__`."""
        for class_ in self.family(node):
            for method in class_.body:
                if isinstance(method, Function) and method.name == "__init__":
                    if any(map(self._keeps_parameter, method.body)):
                        return True
        return False

    def _keeps_parameter(self, statement: ast.stmt) -> bool:
        if not isinstance(statement, ast.Assign) or not isinstance(statement.value, ast.Call):
            return False
        if not isinstance(statement.targets[0], ast.Attribute):
            return False
        return self._holds_parameter(statement.value)

    def _holds_parameter(self, call: ast.Call) -> bool:
        name = self.qualname(call.func)
        if name in ("torch.nn.Sequential", "torch.nn.ModuleList"):
            inner = [a for arg in call.args for a in (arg.elts if isinstance(arg, ast.List) else [arg])]
            return any(isinstance(a, ast.Call) and self._holds_parameter(a) for a in inner)
        if name == "torch.nn.Parameter":
            return True
        return self.makes_module(name) and not name.rpartition(".")[2].endswith(_WITHOUT_STATE) and "Pool" not in name

    def makes_parameter(self, value: ast.expr) -> bool:
        """Whether an expression makes a module that surely holds a parameter, and may move it."""
        if not isinstance(value, ast.Call):
            return False
        if isinstance(value.func, ast.Attribute) and value.func.attr in ("to", "cuda", "cpu", "eval", "train"):
            return self.makes_parameter(value.func.value)
        class_ = self.classes.get(value.func.id) if isinstance(value.func, ast.Name) else None
        if class_ is None:
            return self._holds_parameter(value)
        kept = self._kept_arguments(class_)
        return self.has_parameters(class_) or any(
            i in kept and self.makes_parameter(a) for i, a in enumerate(value.args)
        )

    def _kept_arguments(self, node: ast.ClassDef) -> set[int]:
        """The positions of the arguments that a module class keeps as they are: `self.net = net` in `__init__`."""
        if not self.is_module_class(node):
            return set()
        inits = [m for m in node.body if isinstance(m, Function) and m.name == "__init__"]
        given = [a.arg for a in inits[0].args.args[1:]] if inits else []
        kept = {
            ast.unparse(statement.value)
            for statement in (inits[0].body if inits else ())
            if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute)
        }
        return {position for position, name in enumerate(given) if name in kept}

    def layer(self, value: ast.AST) -> str:
        """The name of the class of `torch.nn` that an expression makes an object of; "" for everything else."""
        name = self.qualname(value.func) if isinstance(value, ast.Call) else ""
        return name.rpartition(".")[2] if name.startswith("torch.nn.") and self.makes_module(name) else ""


def gives_tensor(layer: str) -> bool:
    """Whether calling a layer of that class of `torch.nn` gives one tensor."""
    return bool(layer) and layer not in _NOT_ONE_TENSOR


def takes_tensor(layer: str) -> bool:
    """Whether a layer of that class of `torch.nn` takes a tensor first and nothing else."""
    return bool(layer) and (layer not in _NOT_ONE_TENSOR or layer in _TAKE_TENSOR)


def has_weight(layer: str) -> bool:
    return layer in _WEIGHTED


def is_none(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


def parameters(function: Function) -> Iterator[tuple[ast.arg, ast.expr | None]]:
    """The named parameters of a function, each with its default."""
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    padded: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    yield from zip(positional, [*padded, *arguments.defaults], strict=True)
    yield from zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)


def _unquoted(annotation: ast.expr | None) -> ast.expr | None:
    """An annotation that is written as a string, parsed."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            return ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return None
    return annotation
