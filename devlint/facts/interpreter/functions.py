"""Calls of values: functions of the file, lambdas, partial functions, classes, modules, and what is not known."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from functools import reduce

from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses, named_functions, ordering
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.iteration import turn_of
from devlint.facts.interpreter.module_calls import KNOWN_LOSSES
from devlint.facts.interpreter.own_methods import OwnMethods
from devlint.facts.interpreter.special_calls import TO_TENSOR
from devlint.facts.interpreter.summaries import DEPTH
from devlint.facts.project.exports import MOVE
from devlint.facts.text.collect import qualified
from devlint.facts.text.defined import Function
from devlint.facts.text.named_methods import named_methods
from devlint.facts.text.read_only import only_reads
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signatures import positional_names
from devlint.facts.values import CHOICE, COMPUTED, CPU, NOTHING, UNKNOWN, Value, merge

#: Names of helpers that move what is in a container, where their result is dropped.
_MOVES_IN_PLACE = re.compile(r"(?:^|_)(?:cuda|gpu|(?:to|move)_(?:\w+_)?(?:device|cuda|gpu))(?:_|$)", re.IGNORECASE)
#: Kinds of what stays where it is while a function has it in a list.
_FIXED = frozenset({"tensor", "tensors", "parameter", "number", "string", "bool", "none", "size"})
MAPPED = 8  # elements for which a mapped function is called one by one


class Functions(OwnMethods):
    """Adds `call_value`."""

    depth = 0  # calls of lambdas followed into each other

    def call_value(self, node: ast.Call, callee: Value, arguments: object) -> Value:
        assert isinstance(arguments, Arguments)
        if isinstance(node.func, ast.Name) and node.func.id == "self":
            given = self.call_self(node, arguments)
            if given is not None:
                return given
        if self.statement_value is node and _MOVES_IN_PLACE.search(last_name(node.func)) is not None:
            for argument, value in arguments.every():
                path = self.path(argument)
                if path in self.state.env and value.kind in ("dict", "list", "tensors", "object"):
                    self.bind(path, NOTHING)  # `batch_to_device(batch)` as a statement: it moves what is in it
        if callee.kind == "unknown" and self.owner is not None and is_self_attribute(node.func):
            assert isinstance(node.func, ast.Attribute)
            if named_methods(self.owner, node.func.attr):  # what it is bound to is a method of the class
                own = self.call_own(node, self.evaluate(node.func.value), node.func, node.func.attr, arguments)
                if own is not None:
                    return own
        if callee.kind == "unknown" and (factory := named_functions.given(self, node.func)) is not None:
            callee = self.namespace(factory)
        if callee.kind == "namespace":
            return self.call_namespace(node, callee.type_name or "", arguments)
        if callee.type_name == CHOICE and isinstance(callee.elements, tuple):
            return reduce(merge, (self.call_value(node, each, arguments) for each in callee.elements))
        if self.function is not None and callee.kind == "function":
            if (callee.type_name or "").split("@", 1)[0] in self.redefined:
                return NOTHING  # which of them there is when this runs is not known
        if callee.kind == "function" and callee.type_name in self.functions and not arguments.star:
            self.give_modules(self.functions[callee.type_name], arguments)
            self.give_containers(self.functions[callee.type_name], node, arguments)
            keywords = arguments.named()
            ordering.note_helper(self, node, self.functions[callee.type_name].node, arguments, own=False)
            return self.call_function(self.functions[callee.type_name], arguments.values, keywords, node)
        if callee.kind == "function" and callee.type_name in self.lambdas and not arguments.star:
            made = self.call_lambda(*self.lambdas[callee.type_name], arguments)
            if made is not None:
                return made
        if callee.kind == "function" and callee.type_name in self.partials:
            inner, first = self.partials[callee.type_name]
            assert isinstance(first, Arguments)
            whole_call = self.whole_call(node, inner, first)
            if whole_call is not None:
                whole = Arguments()
                whole.nodes, whole.values = [*first.nodes, *arguments.nodes], [*first.values, *arguments.values]
                whole.keywords = {**first.keywords, **arguments.keywords}
                whole.star, whole.double_star = arguments.star, arguments.double_star
                return self.call_value(whole_call, inner, whole)
        if callee.kind == "class" and callee.type_name in self.classes:
            return self.construct_own(node, self.classes[callee.type_name], arguments)
        if callee.kind == "module":
            unread = callee.type_name not in self.classes and callee.type_name not in KNOWN_LOSSES
            if self.assume and not callee.device and unread:
                self.note_loss(node, arguments)
            return self.call_module(node, self.operand(node.func, callee), arguments)
        if callee.kind == "tensors" and callee.moved and "output_type" in arguments.keywords:
            return NOTHING  # a pipeline, which gives arrays, images or tensors as it is asked
        if callee.kind == "tensors" and callee.moved:
            # something that was moved and is now called: a module
            module = self.operand(node.func, replace(callee, kind="module", type_name="moved"))
            return self.call_module(node, module, arguments)
        if callee.kind == "function" and callee.type_name == TO_TENSOR:
            return Value("tensor", CPU, False, because=(self.origin(node, "made from an image in CPU memory here"),))
        if callee.kind in ("unknown", "object"):
            encoded = self.encoded(node, arguments)
            if encoded is not None:
                return encoded
        if callee.kind == "unknown":
            self.note_unread(node, arguments)
            self.note_sized(node, arguments)
        self.escape(node, arguments)
        return self.guessed(node, arguments) if callee.kind == "unknown" else NOTHING

    def whole_call(self, node: ast.Call, inner: Value, first: Arguments) -> ast.Call | None:
        """The call of a partial function as one of the function itself; None where that cannot be followed.

        The arguments of a function of this file are told apart by their places in the call.
        """
        if inner.kind == "namespace" or (inner.type_name in self.functions and not first.values):
            return node
        around = self.span(self.function.node) if self.function is not None else None
        spans = list(map(self.span, first.nodes))
        if inner.type_name not in self.functions or around is None or first.star:
            return None
        if any(not around.start <= span.start < around.end for span in spans):
            return None  # made in another function, whose names are others
        named = [ast.keyword(name, each) for name, (each, _) in first.keywords.items()]
        whole = ast.Call(node.func, [*first.nodes, *node.args], [*named, *node.keywords])
        return ast.copy_location(whole, node)

    def give_modules(self, function: Function, arguments: Arguments) -> None:
        """The modules in containers, and those that `*modules` takes, may be anywhere after a function that moves something."""
        inside = [part for value in arguments.given() if value.elements for part in value.parts]
        if function.node.args.vararg is not None:
            inside += arguments.values[len(positional_names(function.node.args)) :]
        modules = [value for value in inside if value.kind == "module" and value.ident is not None]
        if modules and MOVE.search(self.text(function.node)) is not None:
            for module in modules:
                self.move_in_place(None, replace(module, device=UNKNOWN))

    def give_containers(self, function: Function, node: ast.Call, arguments: Arguments) -> None:
        """The lists and dicts that a function of the file gets may be others afterwards, but for those it only reads."""
        if not any(given.kind in ("list", "dict") for given in arguments.given()):
            return
        containers = [(argument, given) for argument, given in arguments.every() if given.kind in ("list", "dict")]
        names = {id(argument): name for name, argument in self.argument_nodes(function, node, False)}
        for argument, given in containers:
            name = names.get(id(argument))
            if (
                name is None
                or any(part.kind not in _FIXED for part in given.parts)
                or not self.is_only_read(function, name)
            ):
                self.give(argument, given)

    def is_only_read(self, function: Function, name: str) -> bool:
        """Whether a function of the file leaves what it is given under a name as it was."""
        key = (id(function.node), name)
        if key not in self.read_only:
            self.read_only[key] = True  # a function that hands it on to itself alone
            self.read_only[key] = only_reads(function.node, name, self.is_read_by)
        return self.read_only[key]

    def is_read_by(self, call: ast.Call, argument: ast.expr) -> bool:
        """Whether what a call calls, a function of torch or of this file, leaves an argument as it was."""
        if (qualified(call.func, self.imports) or "").startswith("torch."):
            return True
        inner = self.functions.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if inner is None:
            return False
        names = [name for name, given in self.argument_nodes(inner, call, False) if given is argument]
        return bool(names) and all(self.is_only_read(inner, name) for name in names)

    def call_lambda(self, node: ast.Lambda, home: Function | None, arguments: Arguments) -> Value | None:
        """The result of a lambda that is called in the function that made it; None when it is called elsewhere."""
        spec = node.args
        names = positional_names(spec)
        plain = not (spec.vararg or spec.kwarg or spec.kwonlyargs or spec.defaults)
        if home is not self.function or not plain or len(names) != len(arguments.values) or arguments.keywords:
            return None
        if len(self.stack) + self.depth >= DEPTH * 2:
            return None
        before = dict(self.state.env)
        self.depth += 1
        for name, value in zip(names, arguments.values, strict=True):
            self.bind(name, value)
        result = self.evaluate(node.body)
        self.depth -= 1
        self.leave_scope(set(names), before)
        return result

    def call_builtin(self, node: ast.Call, name: str, arguments: Arguments) -> Value:
        if name == "map" and len(arguments.values) > 1 and not arguments.keywords and not arguments.star:
            mapped = self.call_map(node, arguments)
            if mapped is not None:
                return mapped
        return OwnMethods.call_builtin(self, node, name, arguments)

    def call_map(self, node: ast.Call, arguments: Arguments) -> Value | None:
        """`q, k, v = map(lambda t: rearrange(t, pattern), (q, k, v))`: what the function gives for each; None: not known."""
        function, *iterated = arguments.values
        several = all(isinstance(each.elements, tuple) and each.kind in ("tuple", "list") for each in iterated)
        several = several and all(each.type_name is None for each in iterated)
        turns = [
            each.elements if several and isinstance(each.elements, tuple) else (turn_of(each),) for each in iterated
        ]
        if any(len(each) > MAPPED for each in turns):
            return None
        results: list[Value] = []
        for parts in zip(*turns, strict=False):
            made = self.called_with(node, arguments.nodes[0], function, arguments.nodes[1:], parts)
            if made is None:
                return None
            results.append(made)
        return Value("list", type_name=None if several else "comprehension", elements=tuple(results))

    def called_with(
        self, node: ast.Call, named: ast.expr, function: Value, nodes: Sequence[ast.expr], given: Sequence[Value]
    ) -> Value | None:
        """What a function gives that a call hands to another one, which calls it: `map(f, xs)`; None: not known.

        `named`: the function as the code writes it.
        """
        arguments = Arguments()
        arguments.nodes, arguments.values = list(nodes), list(given)
        if function.kind == "unknown" and self.assume:
            return guesses.result(named, given, lambda: self.origin(node, COMPUTED))
        if function.kind == "function" and function.type_name in self.lambdas:
            return self.call_lambda(*self.lambdas[function.type_name], arguments)
        if function.kind != "function" and not is_function_of_torch(function):
            return None
        return self.call_value(ast.copy_location(ast.Call(named, list(nodes), []), node), function, arguments)


def is_function_of_torch(value: Value) -> bool:
    """Whether a value is a function of torch, and no class."""
    name = value.type_name or ""
    return value.kind == "namespace" and name.startswith("torch.") and name.rpartition(".")[2][:1].islower()
