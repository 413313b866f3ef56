"""`Facts`: everything the analysis of one file found, as rules, reports and probes see it."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from devlint import knowledge
from devlint.facts.events import Event, Scope
from devlint.facts.values import TENSOR_KINDS, Device, Symbol, Value
from devlint.file_state import FileState
from devlint.model import Origin, Span
from devlint.project_files import Search


@dataclass(slots=True)
class Facts:
    """The facts of one file. `imports` maps a local name to the qualified name it stands for; `module_imports` are
    those of them that are bound at module level.

    `probes` holds each `reveal_device(x)` call's span with the value of `x`. `budget_hits` counts functions that were
    not analysed to the end because they exceeded the budget; `too_deep` are statements nested too deeply to be analysed.
    """

    path: str
    text: str
    events: list[Event] = field(default_factory=list)
    imports: Mapping[str, str] = field(default_factory=dict)
    module_imports: Mapping[str, str] = field(default_factory=dict)
    probes: list[tuple[Span, Value]] = field(default_factory=list)
    budget_hits: int = 0
    #: Variables that hold a tensor where they are last seen, by function and name, and whether its device is known.
    variables: dict[tuple[str, str], bool] = field(default_factory=dict)
    cpu_generators: set[Span] = field(default_factory=set)  # calls of `torch.Generator()` that draws on the CPU rely on
    too_deep: list[Span] = field(default_factory=list)
    read: Mapping[str, FileState] = field(default_factory=dict)  # other files that the facts follow from, by path
    #: Asked before an event is reported: what shows in the project's calls that it holds; None when they refute it.
    holds: Callable[[Event], tuple[Origin, ...] | None] = field(default=lambda event: ())
    searched: Callable[[], Search | None] = field(default=lambda: None)  # what was looked for to answer that
    is_test: bool = False  # the file belongs to tests
    torch_version: tuple[int, int] = (2, 7)  # the lowest torch the project supports
    torch_stated: bool = True  # somebody said so; otherwise it is assumed
    torch_newest: tuple[int, int] | None = None  # the newest that the project admits, None without an upper bound

    def note_variables(self, function: str, values: Mapping[str, Value]) -> None:
        """Count the variables of a function, by the values with which it ends."""
        for name, value in values.items():
            if value.kind in TENSOR_KINDS and name.isidentifier():
                self.variables[function, name] = bool(value.device)

    @property
    def covers_torch(self) -> bool:
        """Whether what is known of torch covers some version that the project admits."""
        return self.torch_newest is None or self.torch_newest >= knowledge.VERSIONS[0]

    def source(self, span: Span) -> str:
        """The text of the file at `span`."""
        return self.text[span.start : span.end]

    def spell(self, qualname: str) -> str:
        """How this file writes a qualified name: through its module-level imports where they allow it, else in full."""
        best = qualname
        for local, target in (self.module_imports or self.imports).items():
            if qualname == target:
                return local
            if qualname.startswith(target + ".") and len(local) + len(qualname) - len(target) < len(best):
                best = local + qualname[len(target) :]
        return best

    def device_expression(self, scope: Scope, device: Device) -> str | None:
        """An expression whose device is `device`, valid where `scope` holds; None when nothing there is known to be on it.

        A device variable first, one that the file imports as well, then a tensor's `.device`, then that of the parameters of
        the module itself.
        """
        if len(device) != 1:
            return None
        (place,) = device
        if isinstance(place, Symbol) and self.is_imported(place, scope):
            return place.name
        tensors: list[str] = []
        for path, value in scope.items():
            if value.device != device or "[" in path:
                continue
            if value.kind in ("device", "string"):
                return path
            if value.kind in TENSOR_KINDS and not (value.kind == "tensors" and self.holds_several(path)):
                tensors.append(path)
        if not tensors:
            owner = scope.get("self")
            held = (v for path, v in scope.items() if path.startswith("self.") and v.kind in ("parameter", "module"))
            if owner is not None and owner.kind == "module" and owner.device == device and any(v.device for v in held):
                return "next(self.parameters()).device"
            return None
        return f"{min(tensors, key=lambda p: p.count('.'))}.device"

    def is_imported(self, place: Symbol, scope: Scope) -> bool:
        """Whether a place is what an import at the module level binds, or an attribute of it: `config.device`. Not where
        anything else in the file has the name."""
        root = place.name.partition(".")[0]
        if place.scope != 0 or root not in self.module_imports or root in _bound_names(self.text):
            return False
        bound = scope.get(root)
        return bound is None or bound.kind == "namespace"

    def holds_several(self, path: str) -> bool:
        """Whether the text reads what is at a path by a key or takes it apart: `batch["images"]`, `inputs[name]` and
        `for box in boxes` are tensors, `batch`, `inputs` and `boxes` may have no device.
        """
        by_key = f'{path}["' in self.text or f"{path}['" in self.text or _is_read_by_name(self.text, path)
        return by_key or _is_looped_over(self.text, path)

    def bound_at(self, scope: Scope, at: Span) -> Scope:
        """What of a scope is surely bound when `at` runs first: not what a loop's body binds further down."""
        row = self.text.count("\n", 0, at.start) + 1
        late = _bound_later(self.text, row)
        return {path: value for path, value in scope.items() if path.partition(".")[0] not in late}


@lru_cache(maxsize=32)
def _is_read_by_name(text: str, path: str) -> bool:
    """Whether a text reads what is at a path by a name, a number or its keys: `path[name]`, `path[0]`, `path.items()`."""
    return (
        re.search(rf"(?<![\w.]){re.escape(path)}(?:\[[A-Za-z_]\w*\]|\[-?\d+\]|\.(?:items|keys|values)\()", text)
        is not None
    )


@lru_cache(maxsize=32)
def _is_looped_over(text: str, path: str) -> bool:
    """Whether a text loops over what is at a path: `for x in path`, `zip(a, path)`."""
    name = rf"(?<![\w.]){re.escape(path)}(?![\w.(\[])"
    return re.search(rf"\bfor\b[^\n]*\bin {name}|\b(?:enumerate|zip|map|reversed)\([^\n]*{name}", text) is not None


@lru_cache(maxsize=32)
def _bound_later(text: str, row: int) -> frozenset[str]:
    """The local names of the function around a row, or of the module, whose first binding stands at the row or below."""
    _, functions = _outline(text)
    inside = [at for at, each in enumerate(functions) if each.lineno <= row <= (each.end_lineno or 0)]
    first = _first_bindings(text, inside[-1] if inside else None)
    return frozenset(name for name, line in first.items() if line >= row)


@lru_cache(maxsize=4)
def _first_bindings(text: str, at: int | None) -> dict[str, int]:
    """The row of the first binding of each local name of a function, by its place among those of the file, or of the module."""
    tree, functions = _outline(text)
    first: dict[str, int] = {}
    given: set[str] = set()
    pending: list[ast.AST] = list(ast.iter_child_nodes(functions[at] if at is not None else tree))
    while pending:
        node = pending.pop()
        if isinstance(node, ast.arg):
            given.add(node.arg)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            given.update(node.names)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            first[node.id] = min(node.lineno, first.get(node.id, node.lineno))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            continue
        pending.extend(ast.iter_child_nodes(node))
    return {name: line for name, line in first.items() if name not in given}


#: What binds a name that it has as a text.
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchAs, ast.MatchStar)


@lru_cache(maxsize=1)
def _bound_names(text: str) -> frozenset[str]:
    """What a file binds anywhere but by an import at the module level: variables, arguments, functions, classes."""
    tree, _ = _outline(text)
    own = set(map(id, tree.body))
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                found.add(node.id)
        elif isinstance(node, ast.arg):
            found.add(node.arg)
        elif isinstance(node, _NAMED):
            found.add(node.name or "")
        elif isinstance(node, (ast.Import, ast.ImportFrom)) and id(node) not in own:
            found.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
    return frozenset(found)


@lru_cache(maxsize=1)
def _outline(text: str) -> tuple[ast.Module, list[ast.FunctionDef | ast.AsyncFunctionDef]]:
    """The tree of a file and its functions, the outer ones before those inside them; of the last file that was asked for."""
    tree = ast.parse(text)
    return tree, [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
