"""Python's built-in functions: `len`, `list`, `zip`, `float` and the rest."""

from __future__ import annotations

import ast

from devlint.facts.frozen import replace
from devlint.facts.idioms import named_functions, rows
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.special_calls import SpecialCalls, held_by
from devlint.facts.text.references import is_own_attribute
from devlint.facts.values import (
    GUESS,
    NONE,
    NOTHING,
    NUMBER,
    ONE_TENSOR,
    UNKNOWN,
    Value,
    extent,
    grown,
    may_be_accelerator,
)

_BUILTINS_QUIET = frozenset(
    {
        "print", "len", "isinstance", "range", "str", "repr", "type", "id", "hash", "hasattr", "getattr", "issubclass",
        "callable", "format", "vars", "dir", "super", "next", "iter", "enumerate", "zip", "list", "tuple", "dict",
        "set", "sorted", "reversed", "map", "filter", "sum", "min", "max", "abs", "round", "float", "int", "bool",
        "any", "all", "setattr", "open", "slice", "object", "property",
    }
)  # fmt: skip


class BuiltinCalls(SpecialCalls):
    """Adds `call_builtin`."""

    def call_builtin(self, node: ast.Call, name: str, arguments: Arguments) -> Value:
        first = arguments.values[0] if arguments.values else None
        if name in ("float", "int", "bool", "str", "repr", "print", "format", "round"):
            if any((v.is_tensor and may_be_accelerator(v.device)) or v.kind == "unknown" for v in arguments.values):
                self.wait()
            if name == "str" and first is not None and first.kind in ("device", "string") and first.device:
                return replace(first, kind="string", constant=None)
            return {"float": NUMBER, "int": NUMBER, "round": NUMBER}.get(
                name, Value("string") if name in ("str", "repr") else NONE
            )
        if first is None:
            return (
                Value("dict", elements=arguments.named())
                if name == "dict"
                else Value("list", elements=())
                if name == "list"
                else NOTHING
            )
        if name in ("list", "tuple"):
            if isinstance(first.elements, tuple):
                return replace(first, kind="list" if name == "list" else "tuple")
            whole = first.kind == "tensor" or (first.kind == "tensors" and first.moved)
            if whole and name == "list" and first.type_name != GUESS and first.zero_dim is not True:
                return grown([self.element(first)])
            return rows.listed("list" if name == "list" else "tuple", self.element(first))
        if name == "dict" and len(arguments.every()) == 1:
            return (
                first
                if first.kind == "dict" and isinstance(first.elements, dict) and "*" in first.elements
                else held_by(self.element(first))
            )
        if name == "len":
            if first.kind in ONE_TENSOR and first.device:
                return extent(first, self.text(arguments.nodes[0]))
            return NUMBER
        if name in ("iter", "reversed", "sorted"):
            return first
        if name == "type" and first.kind == "tensor" and len(arguments.values) == 1:
            return self.namespace("torch.Tensor")  # the class of every tensor, wherever it is
        if name == "next":
            return self.element(first)
        if name == "enumerate":
            return Value("object", type_name="enumerate", elements=(first,))
        if name == "zip":
            if len(node.args) == 1 and isinstance(node.args[0], ast.Starred):
                path = self.path(node.args[0].value)
                given = self.lookup(path) if path is not None else None
                if given is not None and given.type_name == "zip":  # what was put together in rows
                    columns = (replace(each, kind="tuple") if each.kind == "list" else each for each in given.parts)
                    return Value("tuple", elements=tuple(columns))
                found = rows.columns(arguments.values) if not arguments.star else None
                if found is not None:
                    return found
            return Value("object", type_name="zip", elements=tuple(arguments.values))
        if name == "range":
            return Value("object", type_name="range")
        if name in ("sum", "max", "min"):
            inner = self.element(first)
            return replace(inner, zero_dim=None) if inner.is_tensor else NOTHING
        if name == "abs" and first.is_tensor:
            return first
        if name == "setattr" and len(arguments.nodes) == 3 and self.in_init and self.owner is not None:
            if self.path(arguments.nodes[0]) == "self":
                one_by_one = arguments.values[2].kind in ("module", "parameter")
                for attribute, entry in self.owner.unregistered.items():
                    # registered one by one, under computed names
                    of_list = entry.what == "modules" and is_item_of(arguments.nodes[2], attribute)
                    computed = not isinstance(arguments.nodes[1], ast.Constant)
                    entry.wrapped = entry.wrapped or one_by_one or (of_list and computed)
        if name == "setattr" and arguments.nodes:
            path = self.path(arguments.nodes[0])
            if path is not None and path in self.state.env:
                self.bind(path, replace(first, device=UNKNOWN) if first.kind == "module" else first)
        if name == "getattr" and len(arguments.values) == 2 and (read := attribute_named(node)) is not None:
            return self.evaluate(read)
        if name == "getattr" and len(arguments.values) >= 2:
            factory = named_functions.named(self, first.type_name or "", arguments.nodes[1])
            return self.namespace(factory) if factory is not None and len(arguments.values) == 2 else NOTHING
        if name not in _BUILTINS_QUIET:
            self.escape(node, arguments)
        return NOTHING


def is_item_of(node: ast.expr, name: str) -> bool:
    """Whether an expression is one item of what `self` keeps by a name: `self.layers[i]`."""
    return (
        isinstance(node, ast.Subscript) and not isinstance(node.slice, ast.Slice) and is_own_attribute(node.value, name)
    )


def attribute_named(node: ast.Call) -> ast.Attribute | None:
    """`x.T` for `getattr(x, "T")`; None for a name that is computed."""
    name = node.args[1] if len(node.args) == 2 else None
    if not isinstance(name, ast.Constant) or not isinstance(name.value, str) or not name.value.isidentifier():
        return None
    return ast.copy_location(ast.Attribute(node.args[0], name.value, ast.Load()), node)
