"""Tensors that libraries of the host read: numpy, matplotlib, pandas and others want them on the CPU."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from devlint.facts.events import Operand, Use
from devlint.facts.idioms import guesses
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.opaque_calls import BY_MODEL, OpaqueCalls
from devlint.facts.interpreter.operations import CPU_PLACE, STATE
from devlint.facts.text.references import chain
from devlint.facts.text.signs import moves
from devlint.facts.values import (
    COMPUTED,
    GUESS,
    HOME,
    OUTPUT,
    Conflict,
    Value,
    is_assumed,
    is_surely_accelerator,
    may_be_accelerator,
)

if TYPE_CHECKING:
    from devlint.knowledge import Function as Record


#: What makes an array of each value of a dict.
_OF_COLUMNS = frozenset({"pandas.DataFrame"})


class HostReads(OpaqueCalls):
    """Adds `note_use` and `use`."""

    def note_use(self, node: ast.expr, consumer: str, operands: list[Operand]) -> None:
        """Emit `Use` for the first operand that may be on an accelerator."""
        for operand in operands:
            self.use(node, consumer, operand, detached=False)

    def use(self, node: ast.expr, consumer: str, operand: Operand, detached: bool) -> None:
        device, also_arrays = operand.value.device, False
        unmoved = CPU_PLACE in device and not is_moved_here(operand.value)
        if (self.host and not self.is_placed_in_init(device)) or not may_be_accelerator(device) or unmoved:
            return
        if operand.value.type_name == STATE and device == HOME:
            return  # programs that convert weights load them into host memory
        if operand.value.type_name == GUESS and consumer != "numpy":
            return  # it may be an array
        if any(origin.text == BY_MODEL for origin in operand.value.because[:1]):
            return  # who reads it so knows of a model on the host, as far as anybody can tell
        if self.function is not None:
            evidence = self.evidence.get(id(self.function.node))
            roots = {operand.text.split(".", 1)[0].split("[", 1)[0]}
            assumed = self.assumed.get(operand.value.because[0].span) if operand.value.because else None
            if assumed is not None and assumed[0] is self.function:
                roots.add(assumed[1])
            given = assumed is None and bool(operand.value.because) and not guesses.is_guess(operand.value)
            if evidence is not None and not roots.isdisjoint(evidence.narrowed):
                asked = not roots.isdisjoint(evidence.asked) and not is_moved_whole(operand.value)
                is_sure = consumer == "numpy" and operand.value.kind == "tensor"  # no array has that
                if not is_sure and (not given or asked):
                    return  # the code asks what it is, so it may be an array here
                also_arrays = not is_sure
        if "accelerator" in self.guards.fails or "cuda" in self.guards.fails:
            return
        level: Conflict = "certain" if is_surely_accelerator(device) else "assume"
        if level == "assume" and is_assumed(device) and not self.assume:
            return
        if level == "assume" and device <= self.unsure:
            return  # it is beside a tensor that may come from the host as well
        if level == "assume" and not self.may_be_read_wrongly(operand.value, consumer):
            return
        self.emit(
            Use(
                self.span(node), node, operand.value.because, self.guards, self.scope(), self.name, consumer, operand,
                level, detached, also_arrays, id(operand.node) in self.containers,
            ),
            operand.span,
        )  # fmt: skip

    def may_be_read_wrongly(self, value: Value, consumer: str) -> bool:
        """Whether what rests on an assumption about an argument is likely enough a tensor of an accelerator here."""
        origin = value.because[0] if value.because else None
        if consumer != "numpy" and value.kind == "tensors" and not value.moved and origin is not None:
            # what a function that is not known gives may be arrays; a model that was moved gives tensors
            moved = origin.text.startswith("moved to")
            return moved and (value.type_name == OUTPUT or consumer.startswith("sklearn."))
        if origin is not None and origin.text == COMPUTED and consumer != "numpy":
            origin = value.because[-1]  # what it was computed from
        assumed = self.assumed.get(origin.span) if origin is not None else None
        if assumed is None:
            return True
        function, name = assumed
        if consumer != "numpy" and self.moves_copy(function.node, name):
            return False
        evidence = self.evidence.get(id(function.node))
        if evidence is not None and consumer != "numpy" and name in evidence.weak:
            return False  # what has a shape may be an array
        shown = consumer != "numpy" and evidence is not None  # that it has `numpy` shows a tensor of the host as well
        sure = shown and evidence is not None and name in (evidence.tensors | evidence.containers) - evidence.weak
        annotated = evidence is None or name in evidence.annotated
        by_method = consumer == "numpy"
        return self.callers.may_pass_device_data(function, name, annotated, is_sure=sure, by_method=by_method)

    def moves_copy(self, function: ast.AST, name: str) -> bool:
        """Whether a function moves an argument for somebody else, `model(x.to(device))`: it was given it in host memory."""
        own = self.scan.functions.get(id(function))
        for call in own.calls if own is not None else ():
            if isinstance(call.func, ast.Attribute) and moves(call):
                *_, root = chain(call.func.value)
                if isinstance(root, ast.Name) and root.id == name:
                    return True
        return False

    def columns(self, record: Record, arguments: Arguments) -> Iterator[Operand]:
        """The tensors of `pd.DataFrame({"x": x})`: each column becomes an array."""
        first = arguments.get("data", 0) if record.qualname in _OF_COLUMNS else None
        if first is None or not isinstance(first[1].elements, dict):
            return
        written: list[tuple[object, ast.expr]] = []
        if isinstance(first[0], ast.Dict):
            keys = [key.value if isinstance(key, ast.Constant) else None for key in first[0].keys]
            written = list(zip(keys, first[0].values, strict=True))
        elif isinstance(first[0], ast.Call):
            written = [(k.arg, k.value) for k in first[0].keywords]
        for key, column in written:
            value = first[1].elements.get(str(key))
            if value is not None and value.is_tensor:
                yield self.operand(column, value)

    def positions(self, record: Record, arguments: Arguments) -> Iterator[Operand]:
        """The rows and columns of `sp.coo_matrix((values, (rows, columns)))`."""
        first = arguments.get("arg1", 0) if record.qualname.startswith("scipy.sparse.") else None
        if first is None or not isinstance(first[0], ast.Tuple) or not isinstance(first[1].elements, tuple):
            return
        for pair, held in zip(first[0].elts, first[1].elements, strict=False):
            if isinstance(pair, ast.Tuple) and isinstance(held.elements, tuple):
                for node, value in zip(pair.elts, held.elements, strict=False):
                    if value.is_tensor:
                        yield self.operand(node, value)


def drawn(operands: list[Operand], arguments: Arguments) -> list[Operand]:
    """What a function that draws turns into arrays: the limits of its colours are read by `item()` [matplotlib/colors.py]."""
    limits = [arguments.keywords[k][0] for k in ("vmin", "vmax") if k in arguments.keywords]
    return [operand for operand in operands if operand.node not in limits]


def is_moved_whole(value: Value) -> bool:
    """Whether a value is what a move gives, on every path: no array has `to`, whatever else the code asks of it."""
    return value.moved and CPU_PLACE not in value.device and is_moved_here(value)


def is_moved_here(value: Value) -> bool:
    """Whether some path moved a value away from the CPU: `if use_cuda: x = x.cuda()`."""
    texts = [origin.text for origin in value.because[:1]]
    if COMPUTED in texts and value.split is not None:  # what a model gives is where its input is, moved or not
        return any(side.moved and may_be_accelerator(side.device) for side in value.split[1:])
    return any(text.startswith("moved to") and "the CPU" not in text for text in texts)
