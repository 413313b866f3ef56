"""Expressions: what every kind of `ast` expression evaluates to."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from functools import lru_cache, reduce
from typing import Any

from devlint.facts.frozen import replace
from devlint.facts.idioms import attribute_lists, filled_by_hooks, guesses, rows, uncalled
from devlint.facts.idioms.api_calls import note_api
from devlint.facts.idioms.devices import parse_device
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.container_methods import ELEMENTS
from devlint.facts.interpreter.operators import Operators
from devlint.facts.text.classes import lineage
from devlint.facts.text.nodes import walk
from devlint.facts.text.references import chain
from devlint.facts.values import NONE, NOTHING, NUMBER, STRING, UNKNOWN, Kind, Value, grown, merge, symbol
from devlint.model import Origin

_BUILTINS = frozenset(dir(builtins))
_TRUE = Value("bool", constant=True)
_FALSE = Value("bool", constant=False)
_FILLED = ("dict", "list")


@lru_cache(1000)
def literal(value: str | int) -> Value:
    """What is known of a text or a whole number that the code writes down."""
    if isinstance(value, int):
        return Value("number", constant=value)
    return Value("string", parse_device(value) if len(value) <= 12 else UNKNOWN, constant=value)


class Expressions(Operators):
    """Adds `evaluate`."""

    def evaluate(self, node: ast.expr) -> Value:
        self.steps += 1
        if self.steps > self.budget:
            self.step(node)
        return _HANDLERS[type(node)](self, node)

    def other(self, node: ast.expr) -> Value:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.evaluate(child)
        return NOTHING

    # -- atoms -----------------------------------------------------------------------------------------------------------

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
        name = node.id
        found = self.state.env.get(name)
        if found is None:
            found = self.around(name)
        if found is not None:
            return filled_by_hooks.held(self, node, found) if found.kind in _FILLED and self.hooks else found
        target = self.imports.names.get(name)
        if target is not None:
            return self._namespaces.get(target) or self.namespace(target)
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
                if found.kind in _FILLED and self.hooks:
                    found = filled_by_hooks.held(self, node, found)
                return self.used_attribute(path, attribute_lists.filled(self, path, found))
        if node.attr in self.classes and self.is_nested(node):
            return Value("class", type_name=node.attr)
        if node.value.__class__ is ast.Attribute:
            uncalled.note(self, node)
        base = self.evaluate(node.value)
        if base.kind == "object" and base.type_name in self.classes:
            held = attribute_lists.of_object(self, node, self.classes[base.type_name])
            if held is not None:
                return held
        if base.kind == "namespace":
            qualname = f"{base.type_name}.{node.attr}"
            if qualname.startswith("torch."):
                note_api(self, node, qualname, None)
            return self.namespace(qualname)
        sizes = node.attr == "batch_sizes" and self.may_be_packed(base)
        if base.kind == "unknown" and node.attr == "param_groups":
            base = Value("optimizer")  # nothing else has such an attribute
        if base.kind == "unknown" and node.attr not in ("device", "grad") and not sizes:
            return self.parameter_within(node) or guesses.part(base, node.attr)
        found = self.read_attribute(node, base)
        return found if path is None or found.kind != "list" else attribute_lists.filled(self, path, found)

    def is_nested(self, node: ast.Attribute) -> bool:
        """Whether it is a class that stands in the body of another one: `self.Options`, `Sampler.Options`."""
        if not isinstance(node.value, ast.Name):
            return False
        holder = self.owner if node.value.id in ("self", "cls") else self.classes.get(node.value.id)
        inner = self.classes[node.attr].node
        return holder is not None and any(inner in each.node.body for each in lineage(holder))

    def parameter_within(self, node: ast.Attribute) -> Value | None:
        """`model.head.weight` of a model whose class is not known: a parameter, which is where the model is."""
        if node.attr not in ("weight", "bias"):
            return None
        for part in chain(node.value):
            if isinstance(part, ast.Call):
                return None
            path = self.path(part)
            known = self.lookup(path) if path is not None else None
            if known is not None and (known.kind == "module" or (known.kind == "tensors" and known.moved)):
                return Value("parameter", known.device, None, because=known.because) if known.device else None
        return None

    def used_attribute(self, path: str, value: Value) -> Value:
        return value

    # -- containers ------------------------------------------------------------------------------------------------------

    def list_(self, node: ast.List | ast.Tuple) -> Value:
        kind: Kind = "list" if isinstance(node, ast.List) else "tuple"
        if ast.Starred in map(type, node.elts):
            parts: list[Value] | None = []
            counted = True
            for element in node.elts:
                value = self.evaluate(element.value if isinstance(element, ast.Starred) else element)
                opened = rows.starred(value) if isinstance(element, ast.Starred) else (value,)
                if opened is None:
                    counted, opened = False, rows.opened(value)
                parts = [*parts, *opened] if parts is not None and opened is not None else None
            if parts is not None and not counted:
                return grown(parts) if kind == "list" and len(parts) <= ELEMENTS else Value(kind)
            return Value(kind, elements=tuple(parts) if parts is not None and len(parts) <= ELEMENTS else None)
        if len(node.elts) > ELEMENTS:
            for element in node.elts:
                self.evaluate(element)
            return Value(kind)
        values = tuple([self.evaluate(e) for e in node.elts])
        for element, value in zip(node.elts, values, strict=True):
            if value.kind == "module":
                self.give(element, value)
        return Value(kind, elements=values)

    def dict_(self, node: ast.Dict) -> Value:
        elements: dict[str, Value] = {}
        known = len(node.keys) <= ELEMENTS
        spread: list[Value] = []
        values: list[Value] = []
        for key, value in zip(node.keys, node.values, strict=True):
            found = self.evaluate(value)
            values.append(found)
            if found.kind == "module":
                self.give(value, found)
            if isinstance(key, ast.Constant) and key.value == "device":
                self.note_named(value)
            if isinstance(key, ast.Constant) and isinstance(key.value, (str, int)):
                elements[key.value if isinstance(key.value, str) else repr(key.value)] = found
            elif (
                key is None and found.kind == "dict" and isinstance(found.elements, dict) and [*found.elements] == ["*"]
            ):
                spread.append(found.elements["*"])  # `{**dict(model.named_parameters())}`
            else:
                known = False
                if key is not None:
                    self.evaluate(key)
        if known and spread:
            return Value(
                "dict", type_name="comprehension", elements={"*": reduce(merge, (*elements.values(), *spread))}
            )
        if not known and node.keys and len(node.keys) <= ELEMENTS and None not in node.keys:
            any_of = reduce(merge, values)
            if any_of.kind == "function" and any_of.type_name is not None:  # `{nn.Conv1d: conv1d, nn.Conv2d: conv2d}`
                return Value("dict", type_name="comprehension", elements={"*": any_of})
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
                result = Value("list", type_name="comprehension", elements=self.items(node))
        targets = (n for generator in node.generators for n in walk(generator.target))
        self.leave_scope({n.id for n in targets if isinstance(n, ast.Name)}, saved)
        return result

    def items(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> tuple[Value, ...]:
        """What a comprehension gives: one value, or two where a condition on what it goes through decides which of them."""
        value, choice = self.evaluate(node.elt), node.elt
        if not isinstance(choice, ast.IfExp) or not value.made or len(value.device) < 2:
            return (value,)
        names = {n.id for each in node.generators for n in walk(each.target) if isinstance(n, ast.Name)}
        if not rows.asks_turn(self.text(choice.test), names):
            return (value,)
        sides = self.evaluate(choice.body), self.evaluate(choice.orelse)
        return sides if rows.differ_by_making(sides) else (value,)

    def assign_target(self, target: ast.expr, value: Value, source: ast.expr | None) -> None:
        raise NotImplementedError

    # -- the rest --------------------------------------------------------------------------------------------------------

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

    def call(self, node: ast.Call, given: Arguments | None = None) -> Value:
        """What a call gives. `given`: its arguments, where they were evaluated already."""
        function = node.func
        if isinstance(function, ast.Name) and function.id == "reveal_device" and len(node.args) == 1:
            value = self.evaluate(node.args[0])
            self.probe(node, value)
            return value
        if isinstance(function, ast.Attribute):
            path = self.path(function)
            callee = self.lookup(path) if path is not None and (self.owner or "." in path) else None
            if callee is None:
                if function.value.__class__ is ast.Attribute:
                    uncalled.note(self, function, is_called=True)
                receiver = self.evaluate(function.value)
                if receiver.kind == "namespace":
                    qualname = f"{receiver.type_name}.{function.attr}"
                    return self.call_namespace(node, qualname, given or self.arguments(node))
                return self.call_on(node, receiver, function, given or self.arguments(node))
        else:
            callee = self.evaluate(function)
        return self.call_value(node, callee, given or self.arguments(node))

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


_HANDLERS: dict[type[ast.expr], Callable[[Expressions, Any], Value]] = {
    **dict.fromkeys(ast.expr.__subclasses__(), Expressions.other),
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
