"""What a file offers to those that import it, from its text alone: known without running it, and small enough to keep."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.collect import collect_class, definitions
from devlint.facts.text.method_names import MOVES
from devlint.facts.text.names import Imports
from devlint.facts.text.references import stored_names
from devlint.facts.text.returned import Forms, may_return_host_data
from devlint.source import Source

#: What a function calls that puts a tensor somewhere, whatever it is given.
PLACES = frozenset(
    {
        "zeros", "ones", "empty", "full", "eye", "arange", "linspace", "logspace", "range", "rand", "randn", "randint",
        "randperm", "tensor", "as_tensor", "from_numpy", "asarray", "load", "Tensor", "FloatTensor", "LongTensor",
        "device", "to", "cpu", "cuda", "Generator", "tril_indices", "triu_indices", "normal", "bernoulli", "multinomial",
        "hann_window", "hamming_window", "kaiser_window", "blackman_window", "bartlett_window",
    }
)  # fmt: skip
_PLACE = re.compile(rf"\b(?:{'|'.join(sorted(PLACES))})\b")
MOVE = re.compile(rf"\.(?:{'|'.join(sorted(MOVES))})\(")
#: What binds names on `self`. Each starts with plain text, which is searched for much faster than a word boundary.
_SETS = (
    re.compile(r"self\.(?<=\bself\.)(\w+)\b(?=[^\n]*(?:(?<![=!<>])=(?!=)|\bin\b|,\s*\n))"),
    re.compile(r"as self\.(?<=\bas self\.)(\w+)"),
    re.compile(r"""register_\w+\(\s*["'](\w+)"""),
)


@dataclass(frozen=True, slots=True)
class ExportedClass:
    """A class as its text shows it.

    `bases`: qualified, as its file writes them; `near`: those that are classes of the file. `sets`: at least the names
    that its methods bind on `self`. `moves`: whether some method moves something. `keeps`: whether it registers buffers.
    `returned`: what methods give back that is on the host, by name.
    """

    name: str
    family: str | None
    bases: tuple[str, ...]
    near: tuple[str, ...]
    methods: frozenset[str]
    sets: frozenset[str]
    moves: bool
    keeps: bool
    returned: Mapping[str, Forms]


@dataclass(frozen=True, slots=True)
class Exports:
    """The names of a file's module level. `placing`: the functions whose text names what makes or moves tensors.

    `late`: what its functions import for themselves.
    """

    imports: Mapping[str, str]
    late: frozenset[str]
    stars: tuple[str, ...]
    functions: frozenset[str]
    placing: frozenset[str]
    classes: Mapping[str, ExportedClass]
    values: frozenset[str]
    knows_torch: bool


def exports(tree: ast.Module, source: Source, imports: Imports) -> Exports:
    """Read a file's definitions, and what its module level binds."""
    functions: set[str] = set()
    placing: set[str] = set()
    classes: dict[str, ClassFacts] = {}
    found: dict[str, ExportedClass] = {}
    for node in definitions(tree.body):
        span = source.span(node)
        body = source.text[span.start : span.end]
        if not isinstance(node, ast.ClassDef):
            if node.name not in functions and _PLACE.search(body) is not None:
                placing.add(node.name)
            functions.add(node.name)
        elif node.name not in classes:
            class_ = classes[node.name] = collect_class(node, classes, imports)
            found[node.name] = ExportedClass(
                node.name,
                class_.family,
                class_.bases,
                tuple(base.name for base in class_.local_bases),
                frozenset(class_.methods),
                frozenset(name for pattern in _SETS for name in pattern.findall(body)),
                MOVE.search(body) is not None,
                "register_buffer" in body,
                class_.returned if class_.is_module and may_return_host_data(body) else {},
            )
    return Exports(
        imports.module_level,
        frozenset(imports.names.values()).difference(imports.module_level.values()),
        tuple(imports.stars),
        frozenset(functions),
        frozenset(placing),
        found,
        frozenset(bound(tree)),
        imports.mentions_torch,
    )


def bound(tree: ast.Module) -> set[str]:
    """The names that the statements of the module level bind, those of definitions and imports left out."""
    names: set[str] = set()
    stack: list[ast.stmt] = list(tree.body)
    while stack:
        statement = stack.pop()
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            continue
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            for child in getattr(statement, name, ()):
                stack += [child] if isinstance(child, ast.stmt) else child.body
        if isinstance(statement, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.For, ast.With, ast.AsyncWith)):
            names |= stored_names(statement)
    return names
