"""Which names of a method stand for the state of a module: the whole module, its parameters, a mapping of them, one of them.

    for name, param in model.named_parameters():   # `param`: a tensor of `model`
        old = self.shadow[name]                    # a tensor of `self.shadow`, where that is known to be a mapping
        self.shadow[name] = 0.9 * old + 0.1 * param

A name is known where all that the method binds to it is of the same module and was not moved. `meetings` gives the
operations that bring tensors of two different ones together and that torch refuses across devices.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple, TypeAlias

from devlint import knowledge
from devlint.facts.frozen import record, replace
from devlint.facts.text.method_names import SAME_MODULE, SAME_PLACE, TENSOR_ATTRIBUTES
from devlint.facts.text.nodes import children
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signatures import named_parameters

#: `given` is an argument or attribute of which nothing else is known: a module, or its parameters.
What = Literal["given", "tensors", "pairs", "mapping", "tensor"]


@record(frozen=True, slots=True)
class State:
    """The state of the module that a path (`model`, `self.model`) stands for, or a part of it. `new`: it is a copy."""

    root: str
    what: What
    new: bool = False


class Meeting(NamedTuple):
    """An operation on tensors of two states. `left` and `right`: the expressions, with the paths they belong to."""

    node: ast.expr | ast.AugAssign
    operation: str
    left: tuple[ast.expr, str]
    right: tuple[ast.expr, str]


Shape: TypeAlias = "State | tuple[Shape, ...] | None"
Function = ast.FunctionDef | ast.AsyncFunctionDef

_LISTED = frozenset({"parameters", "buffers"})
_NAMED = frozenset({"named_parameters", "named_buffers"})
_SAME_KIND = frozenset({"list", "tuple", "iter", "reversed", "sorted"})
_COPIES = frozenset({"deepcopy", "zeros_like", "ones_like", "empty_like", "clone"})
#: Methods of a tensor whose result is where it is, whatever numbers they are given.
_SAME_PLACE = SAME_PLACE | {
    "requires_grad_", "detach_", "mul", "mul_", "add", "add_", "sub", "sub_", "div", "div_", "square", "pow", "abs", "sqrt",
    "neg",
}  # fmt: skip
_OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


class States:
    """What the names of one method stand for. `kept`: what the attributes of `self` hold copies of."""

    def __init__(self, method: Function, kept: Mapping[str, What]) -> None:
        self.method = method
        self.kept = kept
        self.nodes = list(own_nodes(method))
        self.parameters = {a.arg for a in named_parameters(method.args)[1:]}
        self._bound: dict[str, list[tuple[ast.expr | None, tuple[int, ...], bool]]] = {}
        self._busy: set[str] = set()
        for node in self.nodes:
            self._bind(node)

    def _bind(self, node: ast.AST) -> None:
        """Note what a node binds: the expression, the places within it, and whether its elements are meant."""
        if isinstance(node, ast.Assign):
            for target in node.targets:
                self._targets(target, node.value, (), False)
        elif isinstance(node, (ast.AnnAssign, ast.NamedExpr)):
            self._targets(node.target, node.value, (), False)
        elif isinstance(node, (ast.For, ast.AsyncFor, ast.comprehension)):
            self._targets(node.target, node.iter, (), True)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            self._targets(node.optional_vars, None, (), False)

    def _targets(self, target: ast.expr, value: ast.expr | None, places: tuple[int, ...], element: bool) -> None:
        if isinstance(target, ast.Name):
            self._bound.setdefault(target.id, []).append((value, places, element))
        elif isinstance(target, (ast.Tuple, ast.List)):
            for place, part in enumerate(target.elts):
                self._targets(part, value, (*places, place), element)

    def of(self, node: ast.expr) -> State | None:
        """What an expression stands for."""
        found = self._shape(node)
        return found if isinstance(found, State) else None

    def _shape(self, node: ast.expr) -> Shape:
        if isinstance(node, ast.Name):
            return self._name(node.id)
        if isinstance(node, ast.Attribute):
            if is_self_attribute(node):
                kept = self.kept.get(node.attr)
                return State(f"self.{node.attr}", kept if kept is not None else "given")
            base = self.of(node.value)
            if base is None:
                return None
            if base.what == "tensor":
                return base if node.attr in TENSOR_ATTRIBUTES or node.attr == "grad" else None
            return base if base.what == "given" and node.attr == "module" else None
        if isinstance(node, ast.Subscript):
            base = self.of(node.value)
            if base is None or base.what not in ("mapping", "tensors", "tensor"):
                return None
            return base if isinstance(node.slice, ast.Slice) else replace(base, what="tensor")
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.BinOp):
            left, right = self.tensor(node.left), self.tensor(node.right)
            if left is not None and right is not None and left.root != right.root:
                return None
            found = left or right
            return replace(found, new=True) if found is not None else None
        if isinstance(node, ast.Tuple):
            return tuple(map(self._shape, node.elts))
        if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            element = self._shape(node.elt)
            if isinstance(element, tuple):
                pair = element[1] if len(element) == 2 else None
                return replace(pair, what="pairs") if isinstance(pair, State) and pair.what == "tensor" else None
            return replace(element, what="tensors") if element is not None and element.what == "tensor" else None
        if isinstance(node, ast.DictComp):
            value = self.of(node.value)
            return replace(value, what="mapping") if value is not None and value.what == "tensor" else None
        return None

    def tensor(self, node: ast.expr) -> State | None:
        """The state that an expression is one tensor of."""
        found = self.of(node)
        return found if found is not None and found.what == "tensor" else None

    def _name(self, name: str) -> Shape:
        given: Shape = State(name, "given") if name in self.parameters else None
        bound = self._bound.get(name)
        if bound is None or name in self._busy:
            return given
        self._busy.add(name)
        found: list[Shape] = [given] if given is not None else []
        for value, places, element in bound:
            shape = self._element(value) if element and value is not None else None
            if not element and value is not None:
                shape = self._shape(value)
            for place in places:
                shape = shape[place] if isinstance(shape, tuple) and place < len(shape) else None
            found.append(shape)
        self._busy.discard(name)
        first = found[-1]
        if not isinstance(first, State):
            return first if len(found) == 1 else None
        same = all(isinstance(f, State) and f.root == first.root and f.what in (first.what, "given") for f in found)
        return first if same else None

    def _element(self, node: ast.expr) -> Shape:
        """What a loop over an expression gives."""
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
            if node.func.id == "zip":
                return tuple(map(self._element, node.args))
            if node.func.id == "enumerate" and node.args:
                return (None, self._element(node.args[0]))
        found = self.of(node)
        if found is None or found.what == "mapping":
            return None
        tensor = replace(found, what="tensor")
        return (None, tensor) if found.what == "pairs" else tensor

    def _call(self, node: ast.Call) -> Shape:
        name = last_name(node.func)
        if isinstance(node.func, ast.Name) or (isinstance(node.func, ast.Attribute) and is_library(node.func.value)):
            first = self.of(node.args[0]) if node.args else None
            if name == "filter" and len(node.args) == 2:
                return self.of(node.args[1])
            if first is None or any(keyword.arg == "device" for keyword in node.keywords):
                return None
            if name in _COPIES:
                return replace(first, new=True)
            if name in ("dict", "OrderedDict"):
                return replace(first, what="mapping") if first.what in ("pairs", "mapping") else None
            return first if name in _SAME_KIND and first.what != "tensor" else None
        base = self.of(node.func.value) if isinstance(node.func, ast.Attribute) else None
        if base is None:
            return None
        if base.what == "given":
            if name in _LISTED:
                return replace(base, what="tensors")
            if name in _NAMED:
                return replace(base, what="pairs")
            if name == "state_dict":
                return replace(base, what="mapping")
            return base if name in SAME_MODULE else None
        if base.what == "mapping":
            if name in ("items", "values"):
                return replace(base, what="pairs" if name == "items" else "tensors")
            return replace(base, what="tensor") if name in ("get", "pop") else base if name == "copy" else None
        if base.what != "tensor" or name not in _SAME_PLACE:
            return None
        if any(self.tensor(argument) not in (None, base) for argument in node.args):
            return None
        return replace(base, new=True) if name == "clone" else base

    def meetings(self) -> Iterator[Meeting]:
        """The operations of the method on tensors of two states, which torch refuses where they are on two devices."""
        for node in self.nodes:
            if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
                yield from self._meeting(node, _OPERATORS[type(node.op)], node.left, node.right, "tensor")
            elif isinstance(node, ast.AugAssign) and type(node.op) in _OPERATORS:
                yield from self._meeting(node, _OPERATORS[type(node.op)] + "=", node.target, node.value, "tensor")
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
                name = node.func.attr
                if name.startswith("_foreach_") and len(node.args) > 1 and is_library(node.func.value):
                    if not name.startswith("_foreach_copy"):
                        yield from self._meeting(node, f"torch.{name}", node.args[0], node.args[1], "tensors")
                elif is_library(node.func.value):
                    known = knowledge.function(f"torch.{name}")
                    if known is not None and known.mixing in knowledge.ON_ONE_DEVICE and len(node.args) > 1:
                        yield from self._meeting(node, f"torch.{name}", node.args[0], node.args[1], "tensor")
                else:
                    known = knowledge.method("Tensor", name)
                    if known is not None and known.mixing in knowledge.ON_ONE_DEVICE:
                        for argument in node.args:
                            yield from self._meeting(node, name, node.func.value, argument, "tensor")

    def _meeting(
        self, node: ast.expr | ast.AugAssign, operation: str, left: ast.expr, right: ast.expr, what: What
    ) -> Iterator[Meeting]:
        one, other = self.of(left), self.of(right)
        if one is None or other is None or one.root == other.root or {one.what, other.what} != {what}:
            return
        yield Meeting(node, operation, (self.named(left, one), one.root), (self.named(right, other), other.root))

    def named(self, node: ast.expr, state: State) -> ast.expr:
        """The part of an expression that a reader would point at: `self.shadow[name]` of `0.9 * self.shadow[name]`."""
        while True:
            if isinstance(node, ast.BinOp):
                sides = [side for side in (node.left, node.right) if self.tensor(side) is not None]
                if len(sides) != 1:
                    return node
                node = sides[0]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and self.tensor(node.func.value):
                node = node.func.value
            else:
                return node


def is_library(node: ast.expr) -> bool:
    """Whether what a function is taken from is a module of Python by its usual name: `torch`, `copy`, `F`."""
    return isinstance(node, ast.Name) and node.id in ("torch", "copy", "F", "collections")


def own_nodes(function: Function) -> Iterator[ast.AST]:
    """The nodes of a function's body without those of functions and classes in it."""
    pending: list[ast.AST] = list(function.body)
    for node in pending:  # which grows
        if not isinstance(node, _FUNCTIONS):
            yield node
            pending += children(node)
