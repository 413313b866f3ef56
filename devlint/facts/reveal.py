"""What the analysis knows of every value on some lines, and why it does not know the rest."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path

from devlint.errors import SourceError
from devlint.facts.analysis import interpret
from devlint.facts.interpreter.flow import Flow
from devlint.facts.interpreter.machine import SourceLike
from devlint.facts.project.project import Project
from devlint.facts.text.nodes import encloses
from devlint.facts.text.signatures import parameter_of
from devlint.facts.values import TENSOR_KINDS, Value, merge
from devlint.model import Origin, Span
from devlint.settings import Settings
from devlint.source import Source, read_source

_SHOWN = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp)
_PLAIN = frozenset({"namespace", "number", "string", "bool", "none", "function", "class", "dtype", "object"})


@dataclass(frozen=True, slots=True)
class Revealed:
    """One expression: where it stands, what is known of it, the reason when nothing is, and whether it is bound there."""

    span: Span
    text: str
    value: Value
    reason: str | None
    is_bound: bool


class _Watcher(Flow):
    """The interpreter, noting what expressions of some rows evaluate to; several runs of a place are joined."""

    rows = range(0)
    seen: dict[Span, tuple[ast.expr, Value]]

    def evaluate(self, node: ast.expr) -> Value:
        value = super().evaluate(node)
        if node.lineno in self.rows and isinstance(node, _SHOWN):
            self._note(node, value)
        return value

    def assign_target(
        self, target: ast.expr, value: Value, source: ast.expr | None, statement: ast.stmt | None = None
    ) -> None:
        super().assign_target(target, value, source, statement)
        if target.lineno in self.rows and isinstance(target, (ast.Name, ast.Attribute)):
            path = self.path(target)
            self._note(target, (self.lookup(path) if path is not None else None) or value)

    def _note(self, node: ast.expr, value: Value) -> None:
        span = self.span(node)
        known = self.seen.get(span)
        self.seen[span] = (node, value if known is None else merge(known[1], value))


def reveal(
    tree: ast.Module, source: SourceLike, settings: Settings, rows: range, project: Project | None = None
) -> list[Revealed]:
    """Every value on some 1-based rows that has a device, or might have one, in the order of the text.

    Modules, functions, numbers and strings are left out, except for device strings.
    """
    made: list[_Watcher] = []

    def watcher(*arguments: object) -> Flow:
        flow = _Watcher(*arguments)  # type: ignore[arg-type]
        flow.rows, flow.seen = rows, {}
        made.append(flow)
        return flow

    interpret(tree, source, settings, watcher, project)
    (flow,) = made
    found = []
    for span, (node, value) in sorted(flow.seen.items()):
        if value.kind in _PLAIN and not value.device:
            continue
        reason = None if value.device else why_unknown(node, value, flow)
        is_bound = isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Store)
        found.append(Revealed(span, source.text[span.start : span.end], value, reason, is_bound))
    return found


def why_unknown(node: ast.expr, value: Value, flow: Flow) -> str:
    """The reason in a reader's words why nothing is known of an expression's device."""
    if isinstance(node, ast.Call):
        name = flow.text(node.func)
        if value.kind in TENSOR_KINDS:
            return f"the arguments of `{name}` are on an unknown device, or their devices depend on the path through the code"
        return f"devlint does not know what `{name}` returns"
    if isinstance(node, ast.BinOp):
        return "one operand is unknown"
    if isinstance(node, ast.Name):
        for function in flow.functions.values():
            if parameter_of(function.node.args, node.id) is not None and encloses(function.node, node):
                return f"`{node.id}` is an argument, and nothing shows that it is a tensor"
        return f"devlint does not know where `{node.id}` comes from, or its device depends on the path through the code"
    return f"devlint does not know the value of `{flow.text(node)}`"


def row_of(origin: Origin, source: Source) -> int | None:
    """The row of what explains a value in a file, this one or another; None when the other cannot be read any more."""
    if origin.path is not None:
        try:
            source = read_source(Path(origin.path))
        except SourceError:
            return None
    return source.position(origin.span.start).row if origin.span.end <= len(source.text) else None
