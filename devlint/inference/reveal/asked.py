"""What is known on some lines of a file: its values with their places, its operations with what decided about each."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from devlint.file_state import FileState
from devlint.inference.analysis import judged
from devlint.inference.events import ORIGINS, DeviceMismatch
from devlint.inference.program.neighbours import Neighbours
from devlint.inference.program.project import Project
from devlint.inference.reveal.record import Operation, Record, Seen
from devlint.inference.reveal.words import Words
from devlint.inference.summary.analyser import Analyser
from devlint.inference.terms.places import CPU, Alternative, is_unread, zero_dim_of
from devlint.inference.terms.values import TENSORS, Value
from devlint.inference.witness.model import Mismatch
from devlint.model import Span
from devlint.source import Source

#: Reasons that are told of one operation.
MOST = 6
#: Kinds of values that are nowhere, and that a reader does not ask for.
_PLAIN = frozenset(
    {
        "number", "string", "bool", "none", "size", "dtype", "function", "class", "library", "partial", "record", "bound",
        "other", "list", "dict", "tuple", "array", "instance", "iterator", "dataset", "optimizer", "scheduler", "loader",
    }
)  # fmt: skip
_SHOWN = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.BinOp, ast.Compare)
_OPERATIONS = (ast.BinOp, ast.Compare, ast.AugAssign, ast.Call, ast.Subscript)

Load = Callable[[str], tuple[FileState, ast.Module | None]]


class Trail(NamedTuple):
    """One line that explains where a value is. Row and column are 1-based. `on_host`: whether the value is on the CPU."""

    path: str
    row: int
    column: int
    text: str
    on_host: bool


@dataclass(frozen=True, slots=True)
class Shown:
    """One value. `what`: its kind and place in words. `devices`: the names of its places, None where no place is known."""

    span: Span
    text: str
    kind: str
    what: str
    devices: tuple[str, ...] | None
    zero_dim: bool | None
    because: tuple[Trail, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """One operation, with what decided that something or nothing is reported. `code`: of a finding, its rule."""

    span: Span
    text: str
    reasons: tuple[str, ...]
    code: str | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """All that is known of the rows that were asked for, in the order of the text."""

    values: list[Shown]
    operations: list[Told]


def ask(
    tree: ast.Module, source: Source, load: Load | None, targets: tuple[str, ...], rows: range,
    around: Neighbours | None = None,
) -> Answer:  # fmt: skip
    """What the inference knows on some 1-based rows of a file. Arguments as for `analysis.device_mismatches`."""
    record = Record(os.path.abspath(source.path), rows)
    found = judged(Analyser(Project(load), record), tree, source, targets, around)
    words = Words(record)
    return Answer(_values(record, words, source), _operations(record, words, source, tree, found))


# -- values


def _values(record: Record, words: Words, source: Source) -> list[Shown]:
    found = []
    for node, runs in record.seen.items():
        runs = [
            each for each in runs if each.value.kind not in _PLAIN and (each.places or each.value.kind != "unknown")
        ]
        if isinstance(node, _SHOWN) and runs:
            found.append(_shown(node, runs, words, source))
    return sorted(found, key=lambda each: each.span)


def _shown(node: ast.expr, runs: list[Seen], words: Words, source: Source) -> Shown:
    span = source.span(node)
    known = [at for each in runs for at in each.places if not is_unread(at.atom)]
    kinds = dict.fromkeys(each.value.kind for each in runs)
    names = tuple(dict.fromkeys(words.at(at).removeprefix("on ").strip("`") for at in known))
    because: list[Trail] = []
    for at in known:
        if at.origin is not None and at.origin.node is not None and isinstance(at.origin.node, (ast.expr, ast.stmt)):
            place = at.origin.node.lineno, at.origin.node.col_offset + 1
            because.append(Trail(at.origin.file or words.record.path, *place, _origin(at, words), at.atom == CPU))
    zero_dim = zero_dim_of(tuple(known)) if known else None
    return Shown(
        span,
        source.text[span.start : span.end],
        " or ".join(kinds),
        words.value(runs),
        names or None,
        zero_dim if all(each.value.kind in TENSORS for each in runs) else None,
        tuple(dict.fromkeys(because)),
    )


def _origin(at: Alternative, words: Words) -> str:
    assert at.origin is not None
    text, where = ORIGINS[at.origin.why], words.at(at).removeprefix("on ")
    return text.replace("moved here", f"moved to {where} here").replace("that device", where)


# -- operations


def _operations(
    record: Record, words: Words, source: Source, tree: ast.Module, found: list[tuple[DeviceMismatch, Mismatch]]
) -> list[Told]:
    told: list[Told] = []
    reported: set[ast.AST] = set()
    for event, mismatch in found:
        reported.add(mismatch.node)
        spans = {source.row(event.span.start): event.span}
        if mismatch.site.file == record.path:
            spans.setdefault(getattr(mismatch.node, "lineno", 0), source.span(mismatch.node))
        for row, span in spans.items():
            if row in record.rows:
                reasons = tuple(words.found(mismatch))
                told.append(Told(span, source.text[span.start : span.end], reasons, event.code))
    for node in _nodes(tree, record.rows):
        if node not in reported:
            reasons = tuple(dict.fromkeys(_reasons(node, record, words)))[:MOST]
            if reasons:
                span = source.span(node)
                told.append(Told(span, source.text[span.start : span.end], reasons))
    return sorted(told, key=lambda each: (each.span, each.code or ""))


def _nodes(tree: ast.Module, rows: range) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        if isinstance(node, _OPERATIONS) and node.lineno in rows:
            yield node


def _reasons(node: ast.AST, record: Record, words: Words) -> Iterator[str]:
    """What decided about an operation, the nearest to a finding first."""
    operation = record.operations.get(node)
    if operation is not None:
        yield from _decided(operation, words)
        if operation.constraints or operation.left:
            return
    operands = _operands(node, record)
    if not any(value.may_be_tensor and value.places for _, value in operands):
        return
    why = record.unread_calls.get(node)
    if why is not None:
        yield f"{words.unknown(node, ())}. What it does inside is not known"
    elif isinstance(node, ast.Call):
        yield "this call needs no two values on one device itself: what it does inside is judged there"
    elif len(operands) < 2 or isinstance(node, ast.Subscript):
        yield "only one tensor takes part"
    else:
        yield "no tensor takes part that is surely one"


def _decided(operation: Operation, words: Words) -> Iterator[str]:
    for mismatch in operation.found:
        yield from (f"a stronger finding stands for this one: {text}" for text in words.found(mismatch))
        return
    quiet = [words.quiet(each) for each in operation.quiet]
    yield from quiet
    yield from (words.left(each) for each in operation.left)
    yield from (words.lost(each) for each in operation.lost)
    if operation.constraints and not quiet and not operation.lost:
        yield "its function is read only as a part of what calls it, and no call was read"


def _operands(node: ast.AST, record: Record) -> list[tuple[ast.AST, Value]]:
    """The values that an operation gets itself."""
    if isinstance(node, ast.BinOp):
        parts: list[ast.expr] = [node.left, node.right]
    elif isinstance(node, ast.Compare):
        parts = [node.left, *node.comparators]
    elif isinstance(node, ast.AugAssign):
        parts = [node.target, node.value]
    elif isinstance(node, ast.Subscript):
        parts = [node.value, node.slice]
    elif isinstance(node, ast.Call):
        own = [node.func.value] if isinstance(node.func, ast.Attribute) else []
        parts = [*own, *node.args, *(each.value for each in node.keywords)]
    else:
        return []
    return [(part, seen[-1].value) for part in parts if (seen := record.seen.get(part))]
