"""Tensors whose data a function exchanges for what may be on another device: they stay the same objects, elsewhere.

    def move(tensor, device):
        tensor.data = tensor.data.to(device)

    def move_all(tensors, device):
        for tensor in tensors:
            move(tensor, device)       # a helper of the file does it

    def _apply(self, fn):
        for tensor in (self.mean, self.scale):
            tensor.data = fn(tensor.data)

Known by the text alone: which parameters of a function it does that to, or to items of, and which attributes of `self`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from devlint.facts.text.nodes import walk
from devlint.facts.text.parameters import loop_pairs
from devlint.facts.text.references import given, is_self_attribute, last_name
from devlint.facts.text.scan import FunctionScan, Scan
from devlint.facts.text.signatures import named_parameters

_ROUNDS = 4  # functions followed into each other


class MovedData:
    """Answers for one file. `may_move`: whether an expression may be on another device than what it is made of."""

    def __init__(self, scan: Scan, may_move: Callable[[ast.expr], bool]) -> None:
        self._may_move = may_move
        self._parameters: dict[int, frozenset[str]] = {}  # by the identity of the function's node
        self._by_name: dict[str, list[FunctionScan]] = {}  # the functions of which there is something to say
        functions = list(scan.functions.values()) if any(s.attr == "data" for s in scan.stores) else []
        for _ in range(_ROUNDS if functions else 0):
            known = dict(self._parameters)
            for own in functions:
                self._read(own)
            if self._parameters == known:
                break

    def parameters(self, function: ast.AST) -> frozenset[str]:
        """The parameters of a function whose data, or that of whose items, it moves."""
        return self._parameters.get(id(function), frozenset())

    def attributes(self, own: FunctionScan | None) -> set[str]:
        """The attributes of `self` that a method does that to."""
        if own is None or not (self._by_name or any(store.attr == "data" for store in own.stores)):
            return set()
        return {last_name(each) for each in self._subjects(own) if is_self_attribute(each)}

    def _read(self, own: FunctionScan) -> None:
        if not isinstance(own.node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return
        if not self._by_name and not any(store.attr == "data" for store in own.stores):
            return
        names = {argument.arg for argument in named_parameters(own.node.args)} - {"self", "cls"}
        found = names.intersection(each.id for each in self._subjects(own) if isinstance(each, ast.Name))
        if found:
            self._parameters[id(own.node)] = frozenset(found)
            same = self._by_name.setdefault(own.node.name, [])
            if own not in same:
                same.append(own)

    def _subjects(self, own: FunctionScan) -> Iterator[ast.expr]:
        """The names and attributes whose data, or that of whose items, a function moves."""
        pending: list[ast.expr] = []
        if any(store.attr == "data" for store in own.stores):
            for node in walk(own.node):
                if isinstance(node, ast.Assign) and self._may_move(node.value):
                    pending += [t.value for t in node.targets if isinstance(t, ast.Attribute) and t.attr == "data"]
        for call in own.calls:
            for other in self._by_name.get(last_name(call.func), ()):
                pending += self._handed(call, other)
        if not pending:
            return
        loops = [
            pair
            for node in walk(own.node)
            if isinstance(node, (ast.For, ast.comprehension))
            for pair in loop_pairs(node)
        ]
        for each in pending:  # which grows
            if isinstance(each, (ast.List, ast.Tuple)):
                pending += each.elts
            elif isinstance(each, (ast.Starred, ast.Subscript)):
                pending.append(each.value)
            elif isinstance(each, ast.BinOp):
                pending += [each.left, each.right]
            elif isinstance(each, ast.Call):
                pending += [*each.args, *([each.func.value] if isinstance(each.func, ast.Attribute) else [])]
            else:
                yield each
                if isinstance(each, ast.Name):
                    sources = [source for part, source in loops if isinstance(part, ast.Name) and part.id == each.id]
                    pending += [source for source in sources if source not in pending]

    def _handed(self, call: ast.Call, other: FunctionScan) -> Iterator[ast.expr]:
        """What a call hands to another function for the parameters whose data that moves."""
        assert isinstance(other.node, (ast.FunctionDef, ast.AsyncFunctionDef))
        names = [argument.arg for argument in named_parameters(other.node.args)]
        first = int(other.owner is not None and isinstance(call.func, ast.Attribute) and names[:1] == ["self"])
        for name in self._parameters.get(id(other.node), ()):
            yield from given(call, name, names.index(name) - first)
