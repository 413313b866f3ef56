"""An interpreter that notes what the arguments of some calls say of where they are: on the host, on a device, unknown."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Literal, NamedTuple

from devlint.facts.interpreter.factories import is_made_up
from devlint.facts.interpreter.flow import Flow
from devlint.facts.interpreter.operations import CPU_PLACE
from devlint.facts.text.defined import Function
from devlint.facts.text.method_names import TO_HOST
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain, is_own_attribute, last_name
from devlint.facts.text.results import is_made_on_host
from devlint.facts.text.signatures import named_parameters
from devlint.facts.text.signs import moves
from devlint.facts.values import BATCH, CPU, GUESS, NUMBER, Value, is_surely_accelerator, may_be_accelerator
from devlint.model import Origin

_HOST_KINDS = frozenset({"ndarray", "number", "bool", "string"})

Answer = Literal["host", "batch", "device", "argument", "open", "unknown"]


class Said(NamedTuple):
    """What one call says of one argument. "argument": it passes on the parameter `name` of `function`; "batch": it passes
    on what a loader gives, unmoved; "open": it passes on an argument of a function that nobody in the project calls, or
    shows with made-up data how the function is used, at module level or in a test of the file's own. `whole`: of "device",
    that the tensor has a dimension.
    """

    answer: Answer
    function: Function | None = None
    name: str = ""
    where: Origin | None = None
    whole: bool = False


UNKNOWN = Said("unknown")
OPEN = Said("open")
HOST = Said("host")
LOADED_BATCH = Said("batch")


class Listener(Flow):
    """The interpreter, noting what some expressions say of where they are."""

    wanted: set[int]
    heard: dict[int, list[Said]]

    def evaluate(self, node: ast.expr) -> Value:
        value = super().evaluate(node)
        if id(node) in self.wanted:
            self.heard.setdefault(id(node), []).append(self.said(node, value))
        return value

    def element(self, value: Value) -> Value:
        """What a loop takes from an array is host data, too: an array or a number."""
        if value.kind == "ndarray":
            return value
        if value.type_name in ("zip", "enumerate") and isinstance(value.elements, tuple):
            parts = tuple(map(self.element, value.elements))
            return Value("tuple", elements=parts if value.type_name == "zip" else (NUMBER, *parts))
        return super().element(value)

    def said(self, node: ast.expr, value: Value) -> Said:
        if self.host and not is_surely_accelerator(value.device):
            return HOST
        if value.kind in _HOST_KINDS:
            return HOST
        if value.kind in ("list", "tuple") and isinstance(value.elements, tuple):
            parts = [self.said(node, element) for element in value.elements]
            return next((p for p in parts if p.answer == "device"), parts[0] if len(set(parts)) == 1 else UNKNOWN)
        if (value.is_tensor or value.type_name == GUESS) and value.device:
            return self.placed(node, value)
        if value.kind == "module" and value.device and self.function is not None and not value.shared:
            return self.placed(node, value)
        if any(isinstance(c, ast.Call) and getattr(c.func, "attr", "") in TO_HOST for c in chain(node)):
            return HOST
        if value.kind == "unknown" and value.device == CPU:
            return HOST  # a checkpoint that is put there as a whole
        if value.kind == "unknown":
            if (
                self.owner is not None
                and isinstance(node, ast.Attribute)
                and is_kept_on_host(self.owner.node, node, {} if self.owner.is_module else self.imports.names)
            ):
                return HOST
            return self.passed_on(node)
        return UNKNOWN

    def placed(self, node: ast.expr, value: Value) -> Said:
        """What a tensor says whose device is known, or assumed."""
        if value.device == CPU:
            if value.type_name == BATCH:
                return LOADED_BATCH
            return OPEN if (self.function is None or self.is_trial) and is_made_up((value,)) else HOST
        if CPU_PLACE in value.device or not may_be_accelerator(value.device):
            return UNKNOWN
        places = self.assumed_modules if value.kind == "module" else self.assumed
        assumed = places.get(value.because[0].span) if value.because and value.because[0].path is None else None
        if assumed is not None:
            return Said("argument", *assumed)
        if value.type_name == GUESS:
            return UNKNOWN
        return Said("device", where=Origin(self.span(node), "", self.source.path), whole=value.zero_dim is False)

    def passed_on(self, node: ast.expr) -> Said:
        """A parameter that is passed on as it is, whatever it is."""
        *_, start = chain(node)
        function = self.function
        if (
            function is None
            or not isinstance(start, ast.Name)
            or any(isinstance(c, ast.Attribute) for c in chain(node))
        ):
            return UNKNOWN
        own = self.scan.functions.get(id(function.node))
        if own is None or own.bound.get(start.id) or start.id not in parameters(function):
            return UNKNOWN
        return Said("argument", function, start.id)


def is_kept_on_host(class_: ast.ClassDef, attribute: ast.Attribute, names: Mapping[str, str]) -> bool:
    """Whether all that a class stores in `self.name` is None or made on the host: `torch.from_numpy(a)`, `x.cpu()`.

    Or what it makes of that: `self.table = pad(self.table, size)`. `names`: imports, where what torch makes stays too.
    """
    if not is_own_attribute(attribute, attribute.attr):
        return False
    stored = [
        node.value
        for node in walk(class_)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
        if any(
            is_own_attribute(t, attribute.attr)
            for t in (node.targets if isinstance(node, ast.Assign) else [node.target])
        )
    ]
    stored = [v for v in stored if not is_made_of(v, attribute.attr)]
    kept = [v for v in stored if not (isinstance(v, ast.Constant) and v.value is None)]
    return bool(kept) and all(
        any(isinstance(c, ast.Call) and last_name(c.func) in TO_HOST | {"from_numpy"} for c in chain(v))
        or is_made_on_host(v, names)
        for v in kept
    )


def is_made_of(node: ast.expr, name: str) -> bool:
    """Whether a call computes something from `self.name` and from nothing else of an object, without moving it."""
    if not isinstance(node, ast.Call) or moves(node):
        return False
    return any(isinstance(n, ast.expr) and is_own_attribute(n, name) for a in node.args for n in walk(a))


def parameters(function: Function) -> set[str]:
    return {a.arg for a in named_parameters(function.node.args)} - {"self", "cls"}
