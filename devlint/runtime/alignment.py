"""Which values of a program are looked at so that a corrected copy can be compared with the original.

Looked at are the statements of the functions, classes or module that a fix writes in, and in a statement that a fix
writes in each expression, too. An expression of the original and what a fix put in its place get one name, so that the
one can be compared with the other: that `labels` became `labels.to(device)` is right if both are the same numbers.
Free of torch.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field

from devlint.runtime.correction import Edition, FixCase, Variant
from devlint.runtime.instrument import Spot, bound_by, value_of
from devlint.runtime.places import Places, begin_of, bodies

_LOOKED_AT = (
    ast.Call, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.Subscript, ast.Attribute, ast.Name, ast.IfExp,
)  # fmt: skip
_APART = (ast.Lambda, ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp, ast.JoinedStr)
_OF_DEVICES = ("device", "set_device", "set_device_index", "cuda", "xpu", "get_device_properties")
_BY_DEVICE = ("device", "device_ids", "output_device", "map_location", "device_type", "device_id")
"""Calls and arguments that name a card, by a number or a text (torch.device, torch.cuda.set_device, nn.DataParallel)."""
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


@dataclass(slots=True)
class Watched:
    """What one edition of a program is asked for.

    looked: numbers of statements, by file. discarded: those of calls without a use for their result that a finding says
    do not exist; where faults are let through they are passed over. spots: expressions, by file, with their numbers.
    names: of those numbers.
    """

    looked: dict[str, list[int]] = field(default_factory=dict)
    spots: dict[str, list[tuple[Spot, int]]] = field(default_factory=dict)
    discarded: dict[str, list[int]] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)

    def within(self, other: Watched) -> bool:
        """Whether another asks for at least as much, of the same edition."""
        return set(self.names.values()) <= set(other.names.values()) and all(
            set(numbers) <= set(other.looked.get(path, ())) for path, numbers in self.looked.items()
        )


class Alignment:
    """The statements that the fixes of a program concern, in the original and in its corrected copies.

    own: by file, the numbers of the statements that fixes are about or write in. watch: where their faults may show.
    """

    def __init__(self, originals: Mapping[str, Places], cases: Sequence[FixCase]) -> None:
        self._files: dict[str, _Original] = {}
        main = next(iter(originals), "")
        for path, places in originals.items():
            mine = [case for case in cases if (case.file or main) == path]
            if mine:
                self._files[path] = _Original(places, mine)
        whole = Edition(originals, [])
        self._discarded = {
            path: [whole.key(path, str(number)) for number in original.discarded]
            for path, original in self._files.items()
        }

    def of(self, edition: Edition) -> Watched:
        """What is looked at in an edition."""
        found = Watched()
        number = len(edition.keys)
        for path, original in self._files.items():
            variant = edition.files[path]
            first = edition.first[path]
            found.looked[path] = [first + each for each in original.looked(variant)]
            spots = []
            for name, node in original.pairs(variant):
                found.names[number] = edition.key(path, name)
                spots.append((Spot.of(node), number))
                number += 1
            found.spots[path] = spots
            found.discarded[path] = [first + each for each in original.passed_over(variant)]
        return found

    @property
    def discarded(self) -> frozenset[str]:
        """The keys of calls without a use for their result that a finding says do not exist."""
        return frozenset(key for keys in self._discarded.values() for key in keys)


class _Original:
    """One file with fixes."""

    def __init__(self, places: Places, cases: Sequence[FixCase]) -> None:
        self._places = places
        self._statements = _statements(places.lines.text)
        self._own: set[int] = set()
        about: set[int] = set()
        for case in cases:
            finding = places.at(case.span.start)
            mine = {finding} if finding is not None else set()
            for edit in (*case.edits, *case.shared):
                mine.update(places.touching(edit.start, edit.end))
            self._own |= mine
            about |= mine | {at for span in case.related if (at := places.at(span.start)) is not None}
        self._inside = self._of_the_same_scopes(about)
        named = {places.at(case.span.start) for case in cases if case.code == "DEV301"}
        self.discarded = {n for n in named if n is not None and isinstance(self._statements[n], ast.Expr)}

    def passed_over(self, variant: Variant) -> list[int]:
        """The numbers, in a variant, of calls that do not exist and whose results nothing uses."""
        return [number for number, key in enumerate(variant.keys) if key in map(str, self.discarded)]

    def looked(self, variant: Variant) -> list[int]:
        """The numbers, in a variant, of the statements to look at; what a fix put in is among them."""
        statements = self._statements if variant.places is self._places else _statements(variant.text)
        return [
            number
            for number, (key, statement) in enumerate(zip(variant.keys, statements, strict=True))
            if (key.startswith("+") or (int(key) in self._inside and self._is_alike(int(key), statement)))
            and (value_of(statement) is not None or bound_by(statement))
        ]

    def _is_alike(self, number: int, statement: ast.stmt) -> bool:
        """Whether the value of a statement may be compared with that of the original's: a result that was dropped may be
        assigned, but an assignment that became a call has another value."""
        mine = type(self._statements[number])
        return type(statement) is mine or (mine is ast.Expr and isinstance(statement, ast.Assign))

    def pairs(self, variant: Variant) -> Iterator[tuple[str, ast.expr]]:
        """Expressions of a variant that stand for one of the original, with its name: the statement and the offsets."""
        same = variant.places is self._places
        statements = self._statements if same else _statements(variant.text)
        at = {key: number for number, key in enumerate(variant.keys)}
        seen: set[Spot] = set()
        named: set[str] = set()
        for number in sorted(self._own):
            there = at.get(str(number))
            counterpart = statements[there] if there is not None else self._rewritten(number, variant, statements)
            if counterpart is None:
                continue
            mine = self._statements[number]
            for one, other in (*aligned_statements(mine, counterpart), *self._kept(mine, counterpart, variant)):
                spot, name = Spot.of(other), f"{number}{_offsets(one)}"
                if spot not in seen and name not in named:
                    seen.add(spot)
                    named.add(name)
                    yield name, other

    def _kept(self, one: ast.stmt, other: ast.stmt, variant: Variant) -> Iterator[tuple[ast.expr, ast.expr]]:
        """Expressions whose text a fix kept, wherever in the statement it stands."""
        if variant.places is self._places:
            return
        there = {self._span(node, self._places): node for node in _expressions(one)}
        for node in _expressions(other):
            kept = variant.to_original(*self._span(node, variant.places))
            if kept in there:
                yield there[kept], node

    @staticmethod
    def _span(node: ast.expr, places: Places) -> tuple[int, int]:
        spot = Spot.of(node)
        return places.lines.offset(spot.line, spot.column), places.lines.offset(spot.end_line, spot.end_column)

    def _rewritten(self, number: int, variant: Variant, statements: list[ast.stmt]) -> ast.stmt | None:
        """The one plain statement that a fix put where a statement was of which it kept nothing."""
        gone = self._places.statements[number]
        new = [
            statements[index]
            for index, key in enumerate(variant.keys)
            if key.startswith("+") and gone.start <= int(key[1:].partition(".")[0]) < max(gone.end, gone.start + 1)
        ]
        plain = [statement for statement in new if next(bodies(statement), None) is None]
        return plain[0] if len(plain) == 1 else None

    def _of_the_same_scopes(self, about: Set[int]) -> frozenset[int]:
        """The statements of the outermost function or class around each of some statements, else of the module's own
        level."""
        tree = ast.parse(self._places.lines.text)
        numbers = {begin_of(node): number for number, node in enumerate(self._statements)}
        found: set[int] = set()
        level: set[int] = set()
        for scope, members in _scopes(tree):
            inside = {numbers[begin_of(member)] for member in members if begin_of(member) in numbers}
            if scope is None:
                level = inside
            elif inside & about:
                found |= inside
        if about - found:
            found |= level
        return frozenset(found)


def _scopes(tree: ast.Module) -> Iterator[tuple[ast.stmt | None, list[ast.stmt]]]:
    """The outermost functions and classes with all statements in them, and None with those of the module's own level."""
    level: list[ast.stmt] = []
    waiting = [*tree.body]
    while waiting:
        statement = waiting.pop()
        if isinstance(statement, _SCOPES):
            yield statement, [inner for block in bodies(statement) for inner in block]
            continue
        level.append(statement)
        for name in ("body", "orelse", "finalbody"):
            waiting += getattr(statement, name, [])
        for inner in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
            waiting += inner.body
    yield None, level


def _statements(text: str) -> list[ast.stmt]:
    """The statements of a text in the order in which `Places` numbers them."""
    return [statement for block in bodies(ast.parse(text)) for statement in block]


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """The expressions that a statement computes itself, outside of what it defines or repeats."""
    waiting: list[ast.AST] = [
        each
        for name, value in ast.iter_fields(statement)
        if name
        not in ("body", "orelse", "finalbody", "handlers", "cases", "targets", "target", "decorator_list", "args")
        for each in (value if isinstance(value, list) else [value])
        if isinstance(each, ast.AST)
    ]
    while waiting:
        node = waiting.pop()
        if isinstance(node, _APART):
            continue
        if isinstance(node, _LOOKED_AT) and isinstance(getattr(node, "ctx", None) or ast.Load(), ast.Load):
            yield node
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute | ast.Name):
            waiting += [node.func.value] if isinstance(node.func, ast.Attribute) else []
            waiting += [*node.args, *node.keywords]
        else:
            waiting += ast.iter_child_nodes(node)


def _offsets(node: ast.expr) -> str:
    spot = Spot.of(node)
    return f"@{spot.line}:{spot.column}-{spot.end_line}:{spot.end_column}"


# ------------------------------------------------------------------------------------------------ pairs of nodes


def aligned_statements(one: ast.stmt, other: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Expressions of one statement and what stands in their place in another."""
    if isinstance(one, ast.With | ast.AsyncWith) and isinstance(other, ast.With | ast.AsyncWith):
        for item, its_item in zip(one.items, other.items, strict=False):
            yield from aligned(item.context_expr, its_item.context_expr)
        return
    for name in ("value", "test", "iter"):
        mine, its = getattr(one, name, None), getattr(other, name, None)
        if isinstance(mine, ast.expr) and isinstance(its, ast.expr):
            yield from aligned(mine, its)


def aligned(one: ast.expr, other: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Two expressions, and as far as they are built alike, the expressions in them."""
    if isinstance(one, _LOOKED_AT) and not isinstance(other, ast.Constant):
        yield one, other
    if type(one) is type(other):
        for mine, its in _parts(one, other):
            yield from aligned(mine, its)


def _parts(one: ast.expr, other: ast.expr) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(one, ast.Call) and isinstance(other, ast.Call):
        yield from _parts_of_calls(one, other)
        return
    if isinstance(one, _APART):
        return
    if getattr(one, "attr", None) != getattr(other, "attr", None):
        return
    if type(getattr(one, "op", None)) is not type(getattr(other, "op", None)):
        return
    for name, mine in ast.iter_fields(one):
        its = getattr(other, name)
        if isinstance(mine, ast.expr) and isinstance(its, ast.expr):
            yield mine, its
        elif isinstance(mine, list) and isinstance(its, list) and len(mine) == len(its):
            yield from (
                (a, b) for a, b in zip(mine, its, strict=True) if isinstance(a, ast.expr) and isinstance(b, ast.expr)
            )


def _called(call: ast.Call) -> str:
    return (
        call.func.attr
        if isinstance(call.func, ast.Attribute)
        else call.func.id
        if isinstance(call.func, ast.Name)
        else ""
    )


def _parts_of_calls(one: ast.Call, other: ast.Call) -> Iterator[tuple[ast.expr, ast.expr]]:
    """What a method is called on, and arguments by position and by name."""
    if _called(one) in _OF_DEVICES:  # which card is asked for is what fixes change
        return
    if isinstance(one.func, ast.Attribute) and isinstance(other.func, ast.Attribute):
        if one.func.attr != other.func.attr:
            return
        yield one.func.value, other.func.value
    elif ast.dump(one.func) != ast.dump(other.func):
        return
    for mine, its in zip(one.args, other.args, strict=False):
        if isinstance(mine, ast.Starred) or isinstance(its, ast.Starred):
            break
        yield mine, its
    named = {each.arg: each.value for each in other.keywords if each.arg and each.arg not in _BY_DEVICE}
    yield from ((each.value, named[each.arg]) for each in one.keywords if each.arg and each.arg in named)
