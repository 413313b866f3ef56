"""Iteration: what a loop over a value gives."""

from __future__ import annotations

import ast

from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses
from devlint.facts.idioms.devices import Devices
from devlint.facts.interpreter.operations import TURN
from devlint.facts.values import BATCH, NOTHING, NUMBER, TENSOR_KINDS, Value, merge
from devlint.model import Origin

#: Factories whose results have one dimension: what a loop takes from them has none.
_ONE_DIMENSION = frozenset(
    {"torch.arange", "torch.randperm", "torch.range", "torch.linspace", "torch.logspace", "torch.hann_window"}
)

#: How calls of methods of a base begin, and of the one that gives tensors, or structures of them.
_OF_BASE, _FORWARD = "super().", "super().forward("


class Iteration(Devices):
    """Adds `element` and `turns`."""

    def element(self, value: Value) -> Value:
        """What iterating over a value gives."""
        return element_of(value)

    def turns(self, node: ast.expr, iterated: Value) -> Value:
        """What a loop over an expression gives. What a base that cannot be read gives one by one may be objects of its own."""
        if guesses.is_guess(iterated) and iterated.because and iterated.because[0].path is None:
            start = iterated.because[0].span.start
            if self.source.text.startswith(_OF_BASE, start) and not self.source.text.startswith(_FORWARD, start):
                return NOTHING
        element = self.element(iterated)
        if element.is_tensor and isinstance(node, ast.Call) and self.qualify(node.func) in _ONE_DIMENSION:
            return replace(element, zero_dim=True)
        if element.kind == "tensor" and iterated.kind == "tensor" and element.zero_dim is None:
            if "nonzero" in self.text(node):
                return element  # its rows have a dimension
            return replace(element, type_name=element.type_name or TURN)
        return element


def turn_of(value: Value) -> Value:
    """What a loop takes from one of several values: an item of a tensor may have no dimension left."""
    element = element_of(value)
    if value.kind == "tensor" and element.kind == "tensor" and element.zero_dim is None and element.type_name is None:
        return replace(element, type_name=TURN)
    if value.kind == "tensors" and value.moved and element.type_name in (None, "moved"):
        return replace(element, zero_dim=None, type_name=TURN)
    return element


def element_of(value: Value) -> Value:
    """What iterating over a value, or indexing it with something unknown, gives."""
    if value.kind == "loader":
        if not value.device:
            return NOTHING
        because = (*value.because[:1],)
        text = Origin(because[0].span, "its batches come from host memory") if because else None
        name = BATCH if value.type_name == BATCH else None
        return Value("tensors", value.device, False, type_name=name, because=(text,) if text else ())
    if value.kind == "module" and isinstance(value.elements, tuple):
        part = value.elements[0]
        return replace(part, device=value.device, because=value.because)
    if value.kind == "dict":
        return Value("string") if value.elements else NOTHING
    if value.kind == "tensors" or guesses.is_guess(value):
        return value
    if value.kind in TENSOR_KINDS:
        # an item may have no dimension left, whatever is known of the whole
        made = tuple(replace(creation, zero_dim=None) for creation in value.made)
        return Value("tensor", value.device, None, because=value.because, made=made)
    if value.kind == "dataset":
        return Value("tensors", value.device, None, because=value.because) if value.device else NOTHING
    if isinstance(value.elements, tuple):
        if value.type_name == "enumerate":
            return Value("tuple", elements=(NUMBER, element_of(value.elements[0])))
        if value.type_name == "zip":
            return Value("tuple", elements=tuple(map(turn_of, value.elements)))
        if value.elements:
            result = value.elements[0]
            for other in value.elements[1:]:
                result = merge(result, other)
            return result
        return NOTHING
    if value.type_name == "range":
        return NUMBER
    if value.kind == "module":
        return Value("module", value.device, because=value.because)
    return NOTHING
