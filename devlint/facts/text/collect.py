"""The functions and classes that a file defines, and what a class is by its bases and methods."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TypeAlias

from devlint import knowledge
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.names import Imports
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.references import is_self

#: What only a module keeps in an attribute: it does nothing for any other object.
_REGISTERED = frozenset(
    {
        "torch.nn.Parameter", "torch.nn.parameter.Parameter", "torch.nn.ModuleList", "torch.nn.ModuleDict",
        "torch.nn.ParameterList", "torch.nn.ParameterDict",
    }
)  # fmt: skip
_DATASET_LIKE = frozenset({"__getitem__", "__len__"})


Definition: TypeAlias = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def definitions(body: list[ast.stmt]) -> Iterator[Definition]:
    for node in body:
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node
            if isinstance(node, ast.ClassDef):
                yield from (n for n in definitions(node.body) if isinstance(n, ast.ClassDef))
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            for name in ("body", "orelse", "finalbody"):
                yield from definitions(getattr(node, name, []))
            for handler in getattr(node, "handlers", []):
                yield from definitions(handler.body)


def collect_class(node: ast.ClassDef, classes: Mapping[str, ClassFacts], imports: Imports) -> ClassFacts:
    """The facts about a class before any of its methods ran. `classes`: those of the file that are known so far."""
    bases = tuple(filter(None, (qualified(base, imports) for base in node.bases)))
    local = tuple(classes[b] for b in bases if b in classes)
    methods = {n.name: n for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
    foreign = any(_is_foreign(base, imports) for base in bases)
    family = _family(bases, local, methods, node)
    family = None if foreign and family == "Module" else family
    class_ = ClassFacts(node, node.name, family, bases, local, methods)
    class_.properties = {
        name
        for name, method in methods.items()
        if method.decorator_list
        and any(isinstance(d, ast.Name) and d.id in ("property", "cached_property") for d in method.decorator_list)
    }
    return class_


def _registers(method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method calls what only a module has: `self.register_buffer(...)`."""
    return any(
        isinstance(node, ast.Attribute)
        and node.attr in ("register_buffer", "register_parameter")
        and is_self(node.value)
        for node in walk(method)
    )


def _keeps_registered(method: ast.FunctionDef | ast.AsyncFunctionDef, imports: Imports) -> bool:
    """Whether a method keeps what only a module registers: `self.weight = nn.Parameter(...)`, `self.all = nn.ModuleList()`."""
    for node in statements(method):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            kept = any(isinstance(target, ast.Attribute) and is_self(target.value) for target in node.targets)
            if kept and qualified(node.value.func, imports) in _REGISTERED:
                return True
    return False


def registers_parts(node: ast.ClassDef, imports: Imports) -> bool:
    """Whether a class does what only a module does: registers buffers, keeps parameters or lists of modules."""
    methods = [n for n in node.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return any(_registers(method) or _keeps_registered(method, imports) for method in methods)


def settle(classes: Mapping[str, ClassFacts], imports: Imports) -> None:
    """Which classes of the file with a base that is not known are modules.

    Those that keep a parameter or a list of modules, and those that share their one base with a module.
    """
    for class_ in classes.values():
        if class_.family is None and class_.bases and not class_.abroad and not class_.followed:
            if any(_keeps_registered(method, imports) for method in class_.methods.values()):
                class_.family = "Module"
    bases = {
        class_.bases[0]
        for class_ in classes.values()
        if class_.is_module and not class_.abroad and len(class_.bases) == 1 and not class_.followed
    }
    bases = {base for base in bases if base not in classes and base.partition(".")[0] not in _STANDARD}
    for class_ in classes.values():
        if class_.family is None and not class_.abroad and not class_.followed:
            alike = len(class_.bases) == 1 and class_.bases[0] in bases
            if alike or any(base.is_module for base in class_.local_bases):
                class_.family = "Module"


def qualified(node: ast.expr, imports: Imports) -> str | None:
    """The name that an expression spells, by the import table; None for what is no dotted name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Subscript):
        return qualified(node.value, imports)
    if not isinstance(node, ast.Name):
        return None
    return ".".join([imports.names.get(node.id, node.id), *reversed(parts)])


#: Bases of what prepares a model's inputs on the host: `transformers.ProcessorMixin`.
_PREPARES = frozenset(
    {
        "ProcessorMixin", "FeatureExtractionMixin", "SequenceFeatureExtractor", "ImageProcessingMixin", "PreTrainedTokenizer",
        "PreTrainedTokenizerBase", "PreTrainedTokenizerFast",
    }
)  # fmt: skip


#: Packages whose metrics are modules [torchmetrics/metric.py].
_METRICS = ("torchmetrics.", "pytorch_lightning.metrics.")
#: Modules of the standard library whose classes are bases that say nothing: `abc.ABC`, `typing.Generic`.
_STANDARD = frozenset({"abc", "typing", "typing_extensions", "enum", "object", "collections"})
#: Packages with modules of their own.
_OTHER_FRAMEWORKS = frozenset(
    {"mlx", "flax", "haiku", "keras", "tensorflow", "paddle", "mindspore", "mxnet", "tinygrad", "equinox"}
)


def _is_foreign(base: str, imports: Imports) -> bool:
    """Whether a base is a class of another framework, or of an `nn` that no import brings: `nn = importorskip("mlx.nn")`."""
    unbound = base == "nn.Module" and not imports.stars and not imports.mentions_torch
    return unbound or base.partition(".")[0] in _OTHER_FRAMEWORKS


def _family(
    bases: tuple[str, ...],
    local: tuple[ClassFacts, ...],
    methods: dict[str, ast.FunctionDef | ast.AsyncFunctionDef],
    node: ast.ClassDef,
) -> str | None:
    for class_ in local:
        if class_.family is not None:
            return class_.family
    for base in bases:
        known = knowledge.cls(base)
        if known is not None and known.family != "object":
            return known.family
        if base.startswith(_METRICS) and ".functional." not in base:
            return "Module"
    bases = tuple(base for base in bases if base.partition(".")[0] not in _STANDARD)
    last = [b.rsplit(".", 1)[-1] for b in bases]
    if any(name.endswith(("Dataset", "Datasets")) for name in last):
        return "Dataset"
    if "forward" in methods and bases and not any(name.endswith(("Function", "Transform")) for name in last):
        return "Module"
    if any(name in ("Module", "LightningModule", "PreTrainedModel", "ModelMixin") for name in last):
        return "Module"
    if bases and any(map(_registers, methods.values())):
        return "Module"
    if methods.keys() >= _DATASET_LIKE and any(name.endswith("Sampler") for name in last):
        return "Sampler"
    if any(name in _PREPARES or (name.endswith("FeatureExtractor") and "__call__" in methods) for name in last):
        return "Processor"
    if "__call__" in methods and any("collat" in name.lower() for name in (node.name, *last)):
        return "Collator"
    return None
