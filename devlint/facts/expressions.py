"""Expressions: what every kind of `ast` expression evaluates to."""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from devlint.facts import attribute_lists, converted, guesses, rows, turns
from devlint.facts import guards as conditions
from devlint.facts.api_calls import note_api, note_truth
from devlint.facts.callers import chain, last_name
from devlint.facts.container_methods import ELEMENTS
from devlint.facts.devices import parse_device
from devlint.facts.events import Clock, ColdTimer, Compare, Guards
from devlint.facts.frozen import replace
from devlint.facts.methods import Methods
from devlint.facts.nodes import walk
from devlint.facts.operations import CPU_PLACE, TURN, symbol
from devlint.facts.values import (
    ACCELERATORS,
    BOOL,
    CPU,
    GROWN,
    GUESS,
    HOME,
    NO_TENSOR,
    NONE,
    NOTHING,
    NUMBER,
    STRING,
    UNKNOWN,
    Kind,
    Place,
    Symbol,
    Value,
    extent,
    grown,
    is_surely_accelerator,
    join,
    merge,
)
from devlint.model import Origin

OPERATORS: dict[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
    ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_BUILTINS = frozenset(dir(builtins))
_TRUE = Value("bool", constant=True)
_FALSE = Value("bool", constant=False)


@lru_cache(1000)
def literal(value: str | int) -> Value:
    """What is known of a text or a whole number that the code writes down."""
    if isinstance(value, int):
        return Value("number", constant=value)
    return Value("string", parse_device(value) if len(value) <= 12 else UNKNOWN, constant=value)


#: Functions whose results are several tensors: `x.sort()[1]` is no item of one.
#: Names of what holds settings, which are numbers and texts, wherever the object that has them is.
_SETTINGS = re.compile(r"(?:^|[._])(?:kwargs|config|cfg|options|settings|hparams)$")
_SEVERAL = frozenset(
    {
        "sort",
        "max",
        "min",
        "topk",
        "kthvalue",
        "median",
        "mode",
        "unique",
        "split",
        "chunk",
        "unbind",
        "where",
        "nonzero",
    }
)


def counts(loop: ast.For, name: str) -> bool:
    """Whether a loop counts with a name: `for name in range(n)`, `for name, x in enumerate(xs)`."""
    call, target = loop.iter, loop.target
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
        return False
    if call.func.id == "enumerate" and isinstance(target, ast.Tuple) and target.elts:
        target = target.elts[0]
    return call.func.id in ("range", "enumerate") and isinstance(target, ast.Name) and target.id == name


def is_of_tensor(key: ast.expr) -> bool:
    """Whether what stands in brackets is for a tensor, or an array: `[:, 0]`, `[..., :2]`."""
    return isinstance(key, ast.Tuple) and any(
        isinstance(part, ast.Slice) or (isinstance(part, ast.Constant) and part.value is ...) for part in key.elts
    )


def is_index(value: Value) -> bool:
    """Whether a tensor indexes by its elements; a 0-dim one is read as a number, wherever it is.

    [torch/csrc/autograd/python_variable_indexing.cpp, applySlicing: applySelect with the integer]
    """
    return value.is_tensor and value.zero_dim is not True


def is_new_axis(node: ast.expr) -> bool:
    """Whether a part of an index adds a dimension: `x[None]`."""
    return isinstance(node, ast.Constant) and node.value is None


class Expressions(Methods):
    """Adds `evaluate`."""

    def evaluate(self, node: ast.expr) -> Value:
        self.steps += 1
        if self.steps > self.budget:
            self.step(node)
        return _HANDLERS.get(type(node), Expressions.other)(self, node)

    def other(self, node: ast.expr) -> Value:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child)
        return NOTHING

    # -- atoms --------------------------------------------------------------------------------------------------------

    def constant(self, node: ast.Constant) -> Value:
        value = node.value
        if value is None:
            return NONE
        if value is True:
            return _TRUE
        if value is False:
            return _FALSE
        if isinstance(value, str):
            if len(value) > 12 and not value.startswith("torch."):
                return STRING
            known = literal(value)
            if known.device:
                span = self.span(node)
                self.literals[span] = (node, self.name, self.guards)
                return replace(known, because=(Origin(span, "named here"),))
            return known
        if isinstance(value, int):
            return literal(value)
        if isinstance(value, (float, complex)):
            return NUMBER
        return NOTHING

    def name_(self, node: ast.Name) -> Value:
        found = self.lookup(node.id)
        if found is not None:
            return found
        target = self.imports.names.get(node.id)
        if target is not None:
            return self.namespace(target)
        if node.id in self.functions:
            return Value("function", type_name=node.id)
        if node.id in self.classes:
            return Value("class", type_name=node.id)
        if node.id in _BUILTINS:
            return self.namespace(f"builtins.{node.id}")
        for star in self.imports.stars:
            if star.startswith("torch"):
                from devlint import knowledge

                if knowledge.is_public_name(star, node.id):
                    return self.namespace(f"{star}.{node.id}")
        starred = self.by_star(node.id) if self.imports.stars else None
        return self.namespace(starred) if starred is not None else NOTHING

    def attribute(self, node: ast.Attribute) -> Value:
        path = self.path(node)
        if path is not None:
            found = self.state.env.get(path)
            if found is None and path.startswith("self.") and self.owner is not None:
                found = self.lookup(path)
            if found is None and self.function is not None:
                found = self.function.closure.get(path) or self.globals.get(path)
            if found is not None:
                return self.used_attribute(path, attribute_lists.filled(self, path, found))
        base = self.evaluate(node.value)
        if base.kind == "namespace":
            qualname = f"{base.type_name}.{node.attr}"
            if qualname.startswith("torch."):
                note_api(self, node, qualname, None)
            return self.namespace(qualname)
        sizes = node.attr == "batch_sizes" and self.may_be_packed(base)
        if base.kind == "unknown" and node.attr not in ("device", "grad") and not sizes:
            return self.parameter_within(node) or guesses.part(base, node.attr)
        return self.read_attribute(node, base)

    def parameter_within(self, node: ast.Attribute) -> Value | None:
        """`model.head.weight` of a model whose class is not known: a parameter, which is where the model is."""
        if node.attr not in ("weight", "bias"):
            return None
        for part in chain(node.value):
            if isinstance(part, ast.Call):
                return None
            path = self.path(part)
            known = self.lookup(path) if path is not None else None
            if known is not None and known.kind == "module":
                return Value("parameter", known.device, None, because=known.because) if known.device else None
        return None

    def used_attribute(self, path: str, value: Value) -> Value:
        return value

    def subscript(self, node: ast.Subscript) -> Value:
        path = self.path(node)
        if path is not None:
            found = self.lookup(path)
            if found is not None:
                self.evaluate(node.value)
                return found
        base = self.evaluate(node.value)
        key = node.slice
        index = self.evaluate(key)
        if isinstance(base.elements, tuple) and base.kind in ("list", "tuple"):
            if base.type_name == GROWN:
                return base if isinstance(key, ast.Slice) else self.element(base)
            if isinstance(key, ast.Constant) and isinstance(key.value, int):
                return base.elements[key.value] if -len(base.elements) <= key.value < len(base.elements) else NOTHING
            if isinstance(key, ast.UnaryOp) and isinstance(key.operand, ast.Constant) and base.elements:
                value = key.operand.value
                if isinstance(value, int) and value <= len(base.elements):
                    return base.elements[-value]
            if isinstance(key, ast.Slice):
                return replace(base, elements=None)
            return self.element(base)
        if isinstance(base.elements, dict):
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                return base.elements.get(key.value) or base.elements.get("*", NOTHING)
            return self.values_of(self.path(node.value), base)
        if base.kind == "tensors":
            if isinstance(key, ast.Constant) and isinstance(key.value, str) and _SETTINGS.search(self.text(node.value)):
                return NOTHING  # `G.rendering_kwargs["scale"]`
            # several indices, or a slice among them, are for a tensor, or for an array, which a caller may well give
            is_tensor = is_of_tensor(key) and not (base.because and base.because[0].span in self.assumed)
            return replace(base, kind="tensor", zero_dim=None) if is_tensor else base
        if base.type_name == "size":
            if isinstance(key, ast.Slice):
                return base
            return extent(base, str(base.constant))
        if base.is_tensor:
            parts = (
                [index]
                if index.kind != "tuple"
                else list(index.elements or ())
                if isinstance(index.elements, tuple)
                else []
            )
            nodes = key.elts if isinstance(key, ast.Tuple) else [key]
            pairs = list(zip(nodes, parts, strict=False)) if index.kind == "tuple" else [(key, index)]
            operands = [self.operand(n, v) for n, v in pairs if is_index(v) and not self.is_item(n, v)]
            receiver = self.operand(node.value, base)
            if base.zero_dim is True and isinstance(key, ast.Constant) and isinstance(key.value, int):
                return NOTHING  # a number in torch 0.3, `loss.data[0]`, and refused since
            if operands:
                if self.meet(node, [receiver, *operands], "index", "index", "index") is not None:
                    return Value("tensor", UNKNOWN, False)  # torch refuses it; what would follow is no other fault
            keeps = any(isinstance(n, ast.Slice) or is_new_axis(n) for n in nodes) or bool(operands)
            made = base.made
            if not keeps and len(base.device) > 1:  # an item of what was made on one path may have no dimension left
                made = tuple(replace(creation, zero_dim=None) for creation in made)
            return Value(
                "tensor", base.device, False if keeps else None, because=base.because, made=made,
                attribute=base.attribute, type_name=GUESS if base.type_name == GUESS else None,
            )  # fmt: skip
        if base.kind == "module":
            found = self.element(base)
            if found.kind == "module":
                return replace(found, moved=base.moved) if found.device == base.device else found
            return Value("module", base.device, because=base.because, moved=base.moved)
        if base.kind == "dataset" and base.device:
            return Value("tensors", base.device, None, because=base.because)
        return guesses.part(base)

    def is_item(self, node: ast.expr, value: Value) -> bool:
        """Whether an index is one item of a tensor, `found[i]` or `i` of `for i in found`, which may well have no dimension.

        An integer tensor without dimensions is read as an int, whatever its device [torch/csrc/autograd/
        python_variable_indexing.cpp].
        """
        if value.zero_dim is not None:
            return False
        if value.type_name == TURN:
            return True
        if not isinstance(node, ast.Subscript):
            return False
        if isinstance(node.value, ast.Call) and last_name(node.value.func) in _SEVERAL:
            return False
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return all(map(self.is_count, parts))

    def for_loops(self) -> list[ast.For]:
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        return [a for a in own.assigns if isinstance(a, ast.For)] if own is not None else []

    def is_count(self, node: ast.expr) -> bool:
        """Whether an index is an integer: a literal, what a loop counts with, a number that is bound to the name."""
        if isinstance(node, ast.Constant):
            return isinstance(node.value, int)
        if not isinstance(node, ast.Name):
            return False
        known = self.lookup(node.id)
        return (known is not None and known.kind == "number") or any(counts(loop, node.id) for loop in self.for_loops())

    def slice_(self, node: ast.Slice) -> Value:
        for part in (node.lower, node.upper, node.step):
            if part is not None:
                self.evaluate(part)
        return NOTHING

    # -- containers ---------------------------------------------------------------------------------------------------

    def list_(self, node: ast.List | ast.Tuple) -> Value:
        kind: Kind = "list" if isinstance(node, ast.List) else "tuple"
        if any(isinstance(e, ast.Starred) for e in node.elts):
            parts: list[Value] | None = []
            for element in node.elts:
                value = self.evaluate(element.value if isinstance(element, ast.Starred) else element)
                opened = rows.starred(value) if isinstance(element, ast.Starred) else (value,)
                parts = [*parts, *opened] if parts is not None and opened is not None else None
            return Value(kind, elements=tuple(parts) if parts is not None and len(parts) <= ELEMENTS else None)
        if len(node.elts) > ELEMENTS:
            for element in node.elts:
                self.evaluate(element)
            return Value(kind)
        values = tuple(self.evaluate(e) for e in node.elts)
        for element, value in zip(node.elts, values, strict=True):
            if value.kind == "module":
                self.give(element, value)
        return Value(kind, elements=values)

    def dict_(self, node: ast.Dict) -> Value:
        elements: dict[str, Value] = {}
        known = len(node.keys) <= ELEMENTS
        for key, value in zip(node.keys, node.values, strict=True):
            found = self.evaluate(value)
            if found.kind == "module":
                self.give(value, found)
            if isinstance(key, ast.Constant) and key.value == "device":
                self.note_named(value)
            if isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
                elements[key.value if isinstance(key.value, str) else repr(key.value)] = found
            else:
                known = False
                if key is not None:
                    self.evaluate(key)
        return Value("dict", elements=elements if known else None)

    def comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> Value:
        saved = dict(self.state.env)
        each: tuple[Value, ...] = ()
        for generator in node.generators:
            iterated = self.evaluate(generator.iter)
            if iterated.type_name == rows.COLUMNS and isinstance(node, (ast.ListComp, ast.GeneratorExp)):
                each = rows.columns_of(node, iterated)
            self.assign_target(generator.target, self.turns(generator.iter, iterated), generator.iter)
            for test in generator.ifs:
                self.evaluate(test)
        if isinstance(node, ast.DictComp):
            self.evaluate(node.key)
            value = self.evaluate(node.value)
            result = Value("dict", type_name="comprehension", elements=None)
            if value.kind == "module" or value.is_tensor:
                result = Value("dict", type_name="comprehension", elements={"*": value})
        else:
            parts = []
            for column in each:
                self.assign_target(node.generators[0].target, column, node.generators[0].iter)
                parts.append(self.evaluate(node.elt))
            if parts:
                result = Value("list", elements=tuple(parts))
            else:
                result = Value("list", type_name="comprehension", elements=(self.evaluate(node.elt),))
        targets = (n for generator in node.generators for n in walk(generator.target))
        self.leave_scope({n.id for n in targets if isinstance(n, ast.Name)}, saved)
        return result

    def assign_target(self, target: ast.expr, value: Value, source: ast.expr | None) -> None:
        raise NotImplementedError

    # -- operators ----------------------------------------------------------------------------------------------------

    def binary(self, node: ast.BinOp) -> Value:
        """A chain such as `a + b + c + ...` is walked without recursion: generated code has thousands of terms."""
        spine = [node]
        while isinstance(spine[-1].left, ast.BinOp):
            spine.append(spine[-1].left)
        value = self.evaluate(spine[-1].left)
        while spine:
            node = spine.pop()
            value = self.binary_step(node, value)
        return value

    def binary_step(self, node: ast.BinOp, left: Value) -> Value:
        right = self.evaluate(node.right)
        if left.kind == "clock" and right.kind == "clock":
            self.elapsed(node, left, right)
            return NUMBER
        if left.kind == "string" and isinstance(node.op, ast.Mod):
            return STRING
        return self.binary_operation(node, node.left, left, node.right, right, node.op)

    def binary_operation(
        self, node: ast.expr, left_node: ast.expr, left: Value, right_node: ast.expr, right: Value, op: ast.operator
    ) -> Value:
        if isinstance(op, ast.MatMult):
            left, right = guesses.tensor(left), guesses.tensor(right)
        left, right = self.beside(left, right), self.beside(right, left)
        tensors = [self.operand(n, v) for n, v in ((left_node, left), (right_node, right)) if v.is_tensor]
        if not tensors:
            for one, other in ((left, right), (right, left)):
                if isinstance(op, ast.Mult) and one.kind == "list" and isinstance(one.elements, tuple) and one.elements:
                    if other.kind in ("number", "unknown"):
                        return grown(one.elements)
            if isinstance(op, ast.Sub) and "extent" in (left.type_name, right.type_name):
                if not isinstance(left.constant, int) and not isinstance(right.constant, int):
                    return NUMBER  # what is missing to another size is no tensor's size
            for one, other in ((left, right), (right, left)):
                if guesses.is_guess(one) and other.kind in ("number", "unknown"):
                    return one if other.device in (one.device, UNKNOWN) else NOTHING
            if left.kind == "number" and right.kind == "number":
                for side in (left, right):
                    if side.type_name == "extent":
                        return side
                return NUMBER
            if isinstance(op, ast.MatMult) and "ndarray" not in (left.kind, right.kind):
                return NOTHING
            if "size" in (left.type_name, right.type_name):
                return left if left.type_name == "size" else right
            if "extent" in (left.type_name, right.type_name):
                return left if left.type_name == "extent" else right
            if left.kind == "string" and isinstance(op, (ast.Add, ast.Mod)):
                return STRING
            if left.kind == "list" and right.kind == "list":
                if isinstance(left.elements, tuple) and isinstance(right.elements, tuple):
                    if len(left.elements) + len(right.elements) <= ELEMENTS:
                        return Value("list", elements=left.elements + right.elements)
                return Value("list")
            if left.kind == "clock" or right.kind == "clock":
                return NUMBER
            return NOTHING
        symbol_ = OPERATORS.get(type(op), "?")
        if len(tensors) == 2:
            self.meet(node, tensors, "operator", symbol_, "exact" if symbol_ == "@" else "scalar")
        else:
            other = right if left.is_tensor else left
            other_node = right_node if left.is_tensor else left_node
            if symbol_ == "@" and other.kind == "unknown":
                given = self.argument_tensor(other_node)
                if given is not None:
                    both = [self.operand(left_node, left), self.operand(right_node, given)]
                    if not left.is_tensor:
                        both = [self.operand(left_node, given), self.operand(right_node, right)]
                    self.meet(node, both, "operator", "@", "exact")
                    return self.combine(both)
            # a 0-dim tensor, as an item is, beside an unknown value may be broadcast to its size, and may leave its device
            only = tensors[0]
            yields = other.kind == "unknown" and (only.value.zero_dim is True or self.is_item(only.node, only.value))
            value = self.combine(tensors, None if yields else only.value.zero_dim)
            if yields and CPU_PLACE in value.device:
                value = replace(value, device=UNKNOWN, made=())
            self.work(node, f"`{symbol_}` is queued here", value.device)
            return value
        value = self.combine(tensors)
        self.work(node, f"`{symbol_}` is queued here", value.device)
        return value

    def beside(self, value: Value, other: Value) -> Value:
        """The input of a `forward` in arithmetic with a tensor is one."""
        if guesses.is_guess(value) and other.is_tensor and value.because and value.because[0].span in self.assumed:
            function, _ = self.assumed[value.because[0].span]
            if function.name.endswith(".forward") and not value.made:
                return self.as_tensor(value)
        return value

    def argument_tensor(self, node: ast.expr) -> Value | None:
        """An argument of the function, or a view of one, that an operation shows to be a tensor."""
        while isinstance(node, (ast.Call, ast.Attribute)):
            node = node.func if isinstance(node, ast.Call) else node.value
        if not isinstance(node, ast.Name) or self.function is None or not self.assume or self.host:
            return None
        spec = self.function.node.args
        for argument in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs):
            if argument.arg == node.id and self.state.env.get(node.id) is NOTHING and argument.arg != "self":
                origin = Origin(self.span(argument), f"`{node.id}` is an argument, which may be on an accelerator")
                return Value("tensor", HOME, None, because=(origin,))
        return None

    def unary(self, node: ast.UnaryOp) -> Value:
        value = self.evaluate(node.operand)
        if isinstance(node.op, ast.Not):
            note_truth(self, node.operand)
            if value.is_tensor:
                self.wait_for(value)
            return BOOL
        if value.kind == "number" and isinstance(value.constant, int) and isinstance(node.op, ast.USub):
            return Value("number", constant=-value.constant)
        return value if value.is_tensor or value.kind == "number" or guesses.is_guess(value) else NOTHING

    def boolean(self, node: ast.BoolOp) -> Value:
        saved = self.guards
        result: Value | None = None
        for index, part in enumerate(node.values):
            value = self.evaluate(part)
            note_truth(self, part)
            if result is None:
                result = value
            elif isinstance(node.op, ast.Or) and result.type_name == "chosen:accelerator":
                result = replace(value, device=symbol("chosen", 0), kind="device", type_name="chosen:accelerator")
            elif isinstance(node.op, ast.And) and (result.type_name or "").endswith("is_available"):
                pass  # flag and is_available(): true only where it is available
            elif isinstance(node.op, ast.And) and (value.type_name or "").endswith("is_available"):
                result = value
            else:
                result = merge(result, value)
            if index + 1 < len(node.values):
                condition = conditions.read(part, self.qualify, self.asked, self.text)
                self.guards = self.under(condition if isinstance(node.op, ast.And) else condition.negated())
        self.guards = saved
        return result if result is not None else NOTHING

    def compare(self, node: ast.Compare) -> Value:
        self.compared.update((id(node.left), *map(id, node.comparators)))
        values = [self.evaluate(node.left), *(self.evaluate(c) for c in node.comparators)]
        nodes = [node.left, *node.comparators]
        for index, operator in enumerate(node.ops):
            symbol_ = _COMPARISONS.get(type(operator))
            left, right = values[index], values[index + 1]
            if symbol_ is None:
                continue
            left, right = self.beside(left, right), self.beside(right, left)
            if left.is_tensor and right.is_tensor and not symbol_.endswith("in"):
                operands = [self.operand(nodes[index], left), self.operand(nodes[index + 1], right)]
                self.meet(node, operands, "operator", symbol_, "scalar")
                return self.combine(operands)
            if self.compares_devices(nodes[index], left, nodes[index + 1], right, symbol_):
                self.emit(
                    Compare(
                        self.span(node), node, (), self.guards, self.scope(), self.name, self.operand(nodes[index], left),
                        self.operand(nodes[index + 1], right), symbol_,
                    )
                )  # fmt: skip
            if left.is_tensor and len(node.ops) == 1:
                return replace(left, made=left.made) if left.kind != "tensors" else left
            if guesses.is_guess(left) and len(node.ops) == 1 and not symbol_.endswith("in"):
                return left
        return BOOL

    def compares_devices(
        self, left_node: ast.expr, left: Value, right_node: ast.expr, right: Value, operator: str
    ) -> bool:
        """Whether a comparison is about devices: one side is one, or calls `.device()` and meets a device's name."""
        if operator.endswith("in"):
            return left.kind == "device"
        if "device" in (left.kind, right.kind):
            return True
        for node, value, other in ((left_node, left, right), (right_node, right, left)):
            if value.kind == "unknown" and other.kind == "string" and other.device and isinstance(node, ast.Call):
                return isinstance(node.func, ast.Attribute) and node.func.attr == "device" and not node.args
        return False

    def told_by_turn(self, test: ast.expr) -> bool | None:
        """Whether a condition asks for the turn of the loop that is run here, and holds."""
        if self.turn is None or self.turn[0] is not self.function:
            return None
        return turns.decide(test, self.turn[1], self.state.env)

    def conditional(self, node: ast.IfExp) -> Value:
        taken = self.told_by_turn(node.test)
        if taken is not None:
            return self.evaluate(node.body if taken else node.orelse)
        condition = conditions.read(node.test, self.qualify, self.asked, self.text)
        test = self.evaluate(node.test)
        note_truth(self, node.test)
        saved, negated = self.guards, condition.negated()
        state, splits = self.state, condition.key in self.split_keys or negated.key in self.split_keys
        self.guards = self.under(condition)
        told = condition.on_cpu or condition.else_on_cpu or condition.no_tensor or condition.else_no_tensor
        if splits or told:
            self.state = state.copy()
            self.refine(condition.key)
            self.place(condition.on_cpu, condition.has_device)
            self.no_tensors(condition.no_tensor)
        body = self.evaluate(node.body)
        self.guards = saved
        self.guards = self.under(negated)
        if splits or told:
            self.state = state.copy()
            self.refine(negated.key)
            self.place(condition.else_on_cpu, condition.has_device)
            self.no_tensors(condition.else_no_tensor)
        orelse = self.evaluate(node.orelse)
        self.guards, self.state = saved, state
        if test.constant is True and test.kind == "bool":
            return body
        if body.kind != "string" and is_told_string(node.test, node.body):
            body = Value("string")
        if condition.no_tensor or condition.else_no_tensor:
            kept = converted.of_choice(self, node, condition, body, orelse)
            if kept is not None:
                return merge(kept, body if converted.is_new(body) else orelse)
        chosen = self.choose(body, orelse, condition)
        taken = chosen.is_tensor and body.device != orelse.device and (body.moved or orelse.moved)
        if taken and self.remember(condition.key, node.test):  # `x.cuda() if use_cuda else x`
            chosen = replace(chosen, split=(condition.key, replace(body, split=None), replace(orelse, split=None)))
        return self.along(chosen, body, orelse, condition)

    def remember(self, key: str, test: ast.expr) -> bool:
        """Whether an equal condition later has the same answer as long as its names are not rebound."""
        for child in walk(test):
            if isinstance(child, ast.Call) and not (self.qualify(child.func) or "").endswith(
                ("is_available", "isinstance")
            ):
                return False
            if isinstance(child, ast.Name):
                self.split_names.add(child.id)
        self.split_keys.add(key)
        return True

    def along(self, joined: Value, then: Value, otherwise: Value, condition: conditions.Condition) -> Value:
        """A value that is moved only where another one `is_cuda` is on that one's device: `y.cuda() if x.is_cuda else y`."""
        moved = joined.is_tensor and is_surely_accelerator(then.device) and otherwise.device == CPU
        if not moved or not condition.else_on_cpu:
            return joined
        tested = [self.state.env.get(path) for path in condition.else_on_cpu]
        known = tested[0] if len(tested) == 1 else None
        if known is None or not known.is_tensor:
            return replace(joined, device=UNKNOWN)
        return replace(joined, device=known.device, because=known.because)

    def refine(self, key: str) -> None:
        """Values that an earlier equal condition told apart are told apart again."""
        base, holds = (key[4:], False) if key.startswith("not ") else (key, True)
        if not self.muted and base not in self.split_keys and f"not {base}" not in self.split_keys:
            return  # in another file the module level may have told values apart, by an interpreter of its own
        for path, value in self.state.env.items():
            if value.split is not None and value.split[0] in (base, f"not {base}"):
                first = value.split[1] if (value.split[0] == base) == holds else value.split[2]
                self.state.env[path] = first
        if self.function is not None:
            for scope in (self.globals, self.function.closure):
                for path, value in scope.items():
                    if value.split is not None and value.split[0] in (base, f"not {base}"):
                        first = value.split[1] if (value.split[0] == base) == holds else value.split[2]
                        self.state.env.setdefault(path, first)

    def place(self, on_cpu: set[str], has_device: set[str]) -> dict[str, tuple[Value, Value]]:
        """Values that a condition tells to be on the CPU here: before and after. A device takes what is on it along.

        What is asked for its device, and of which nothing else is known, is a tensor.
        """
        changed: dict[str, tuple[Value, Value]] = {}
        for path in on_cpu:
            value = self.lookup(path)
            if value is not None and not value.device and path in has_device and path in self.state.env:
                if value.kind != "unknown" and not value.is_tensor:
                    continue
                told = Value("tensor", CPU, value.zero_dim)
                self.state.env[path] = told
                changed[path] = (value, told)
                continue
            if value is None or not (value.is_tensor or value.kind in ("device", "string")):
                continue
            if value.device == CPU or not any(isinstance(p, Symbol) or p.type == "cpu" for p in value.device):
                continue
            same = {path: value}
            if value.kind != "tensor" and len(value.device) == 1:
                same = {p: v for p, v in self.state.env.items() if v.device == value.device}
            for other, known in same.items():
                told = replace(known, device=CPU, made=(), split=None)
                self.state.env[other] = told
                changed[other] = (known, told)
        return changed

    def no_tensors(self, paths: set[str]) -> dict[str, tuple[Value, Value]]:
        """Values that a condition tells to be no tensors here: nothing is known of them."""
        changed: dict[str, tuple[Value, Value]] = {}
        for path in paths:
            value = self.lookup(path)
            if value is not None and (value.is_tensor or guesses.is_guess(value)):
                told = Value("unknown", type_name=NO_TENSOR)
                self.state.env[path] = told
                changed[path] = (value, told)
        return changed

    def tensors_here(self, paths: set[str]) -> None:
        """Values that a condition tells to be tensors here: guesses become tensors."""
        for path in paths:
            value = self.lookup(path)
            if value is not None and guesses.is_guess(value):
                self.state.env[path] = guesses.tensor(value)

    def choose(self, body: Value, orelse: Value, condition: conditions.Condition) -> Value:
        """The value of a choice. A choice of devices is one device that the code does not name."""
        kinds = {body.kind, orelse.kind}
        if kinds <= {"string", "device"} and body.device and orelse.device and body.device != orelse.device:
            available = [t for t in condition.when if t in ACCELERATORS or t == "accelerator"]
            chosen = None
            if len(body.device) == 1 and orelse.device == CPU:
                (place,) = body.device
                plain = isinstance(place, Place) and place.card is None
                if isinstance(place, Place) and plain and place.type in available and _only_availability(condition):
                    chosen = f"chosen:{place.type}"
            return Value(
                "device" if "device" in kinds else "string",
                join(body.device, orelse.device),
                because=body.because,
                type_name=chosen or "chosen",
            )
        if {"device", "none"} == kinds:
            return body if body.kind == "device" else orelse
        return merge(body, orelse)

    def under(self, condition: conditions.Condition) -> Guards:
        """The guards inside a branch where the condition holds."""
        guards = self.guards
        holds, fails = guards.holds | condition.when, guards.fails | condition.when_not
        return Guards(frozenset(holds), frozenset(fails), (*guards.tests, condition.key), guards.excepts)

    # -- the rest -----------------------------------------------------------------------------------------------------

    def walrus(self, node: ast.NamedExpr) -> Value:
        value = self.evaluate(node.value)
        self.assign_target(node.target, value, node.value)
        return value

    def joined(self, node: ast.JoinedStr) -> Value:
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                value = self.evaluate(part.value)
                if value.is_tensor or value.kind == "unknown":
                    self.wait_for(value)
        first = node.values[0] if node.values else None
        if (
            isinstance(first, ast.Constant)
            and isinstance(first.value, str)
            and first.value in ("cuda:", "xpu:", "npu:")
        ):
            return Value("device", symbol(self.text(node), self.scope_id("f")), type_name=f"index:{first.value[:-1]}")
        return STRING

    def await_(self, node: ast.Await) -> Value:
        return self.evaluate(node.value)

    def yield_(self, node: ast.Yield) -> Value:
        self.yields = True
        if node.value is not None:
            self.returns.append(self.evaluate(node.value))
        return NOTHING

    def lambda_(self, node: ast.Lambda) -> Value:
        name = f"lambda:{self.span(node).start}"
        self.lambdas[name] = (node, self.function)
        return Value("function", type_name=name)

    def starred(self, node: ast.Starred) -> Value:
        return self.evaluate(node.value)

    def elapsed(self, node: ast.expr, stop: Value, start: Value) -> None:
        """`stop - start`, both clock readings: is device work between them that nobody waited for?"""
        first, second = start.reading, stop.reading
        if first is None or second is None or second.last is None or second.works <= first.works:
            return
        if first.clock.split(".")[0] != second.clock.split(".")[0] or id(node) in self.compared:
            return  # `if time.time() - start > limit:` measures nothing
        because = (Origin(first.span, "the clock starts here"), second.last)
        self.emit(
            Clock(
                second.span, node, because, self.guards, self.scope(), self.name, second.clock, first.span, second.last,
                second.pending is None, first.pending is None, second.level, second.device_type,
            )
        )  # fmt: skip
        if not first.works:
            self.emit(
                ColdTimer(second.span, node, because, self.guards, {}, self.name, second.clock, first.span)
            )  # fmt: skip

    def call(self, node: ast.Call) -> Value:
        function = node.func
        if isinstance(function, ast.Name) and function.id == "reveal_device" and len(node.args) == 1:
            value = self.evaluate(node.args[0])
            self.probe(node, value)
            return value
        if isinstance(function, ast.Attribute):
            path = self.path(function)
            callee = self.lookup(path) if path is not None and (self.owner or "." in path) else None
            if callee is None:
                receiver = self.evaluate(function.value)
                if receiver.kind == "namespace":
                    qualname = f"{receiver.type_name}.{function.attr}"
                    return self.call_namespace(node, qualname, self.arguments(node))
                return self.call_on(node, receiver, function, self.arguments(node))
        else:
            callee = self.evaluate(function)
        arguments = self.arguments(node)
        return self.call_value(node, callee, arguments)

    def probe(self, node: ast.Call, value: Value) -> None:
        span = self.span(node)
        for index, (known, before) in enumerate(self.facts.probes):
            if known == span:
                self.facts.probes[index] = (span, merge(before, value))
                return
        self.facts.probes.append((span, value))

    def call_on(self, node: ast.Call, receiver: Value, function: ast.Attribute, arguments: object) -> Value:
        raise NotImplementedError

    def call_value(self, node: ast.Call, callee: Value, arguments: object) -> Value:
        raise NotImplementedError


def _only_availability(condition: conditions.Condition) -> bool:
    return condition.key.startswith("torch.") and condition.key.endswith("()")


_HANDLERS: dict[type[ast.expr], Callable[[Expressions, Any], Value]] = {
    ast.Constant: Expressions.constant,
    ast.Name: Expressions.name_,
    ast.Attribute: Expressions.attribute,
    ast.Subscript: Expressions.subscript,
    ast.Slice: Expressions.slice_,
    ast.List: Expressions.list_,
    ast.Tuple: Expressions.list_,
    ast.Dict: Expressions.dict_,
    ast.ListComp: Expressions.comprehension,
    ast.SetComp: Expressions.comprehension,
    ast.GeneratorExp: Expressions.comprehension,
    ast.DictComp: Expressions.comprehension,
    ast.BinOp: Expressions.binary,
    ast.UnaryOp: Expressions.unary,
    ast.BoolOp: Expressions.boolean,
    ast.Compare: Expressions.compare,
    ast.IfExp: Expressions.conditional,
    ast.NamedExpr: Expressions.walrus,
    ast.JoinedStr: Expressions.joined,
    ast.Await: Expressions.await_,
    ast.Yield: Expressions.yield_,
    ast.Lambda: Expressions.lambda_,
    ast.Starred: Expressions.starred,
    ast.Call: Expressions.call,
}


def is_told_string(test: ast.expr, node: ast.expr) -> bool:
    """Whether a condition, or a part of it that must hold, asks whether a name is a string."""
    parts = test.values if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And) else [test]
    return isinstance(node, ast.Name) and any(
        isinstance(part, ast.Call)
        and isinstance(part.func, ast.Name)
        and part.func.id == "isinstance"
        and len(part.args) == 2
        and all(isinstance(a, ast.Name) for a in part.args)
        and [getattr(a, "id", "") for a in part.args] == [node.id, "str"]
        for part in parts
    )
