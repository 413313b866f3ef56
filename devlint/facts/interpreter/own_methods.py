"""Methods and properties of the file's own classes: run for `self`, and for the objects that the file makes."""

from __future__ import annotations

import ast
from functools import reduce

from devlint.facts.events import Move
from devlint.facts.frozen import replace
from devlint.facts.idioms import dropped, guesses, ordering, records
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.entry import is_gradient_of
from devlint.facts.interpreter.objects import sets_by_name
from devlint.facts.interpreter.own_classes import OwnClasses
from devlint.facts.interpreter.summaries import informs
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.method_names import MOVES, REGISTERS
from devlint.facts.text.named_methods import named_methods
from devlint.facts.text.nodes import statements
from devlint.facts.text.references import is_static, last_name
from devlint.facts.text.signatures import Plain, named_parameters, parameter_of, positional_names
from devlint.facts.values import CPU, HOME, NOTHING, Value, merge
from devlint.model import Origin

_REGISTERS = REGISTERS | {"set_submodule", "register_parameter", "register_buffer"}


def registers_by_keyword(name: str, arguments: Arguments) -> bool:
    """Whether a call registers, under a computed name, a part that was made elsewhere: `add_module(name=n, module=m)`."""
    named = arguments.keywords.get("name")
    part = arguments.keywords.get("module") or arguments.keywords.get("param")
    return (
        name in ("add_module", "register_module", "register_parameter")
        and named is not None
        and not isinstance(named[0], ast.Constant)
        and part is not None
        and not isinstance(part[0], ast.Call)
    )


class OwnMethods(OwnClasses):
    """Adds `call_on` (calls of methods) and what properties give."""

    def call_on(self, node: ast.Call, receiver: Value, function: ast.Attribute, arguments: object) -> Value:
        assert isinstance(arguments, Arguments)
        name = function.attr
        if isinstance(function.value, ast.Name) and function.value.id == "self" and self.owner is not None:
            if name in _REGISTERS and self.in_init:
                by_place = arguments.nodes and not isinstance(arguments.nodes[0], ast.Constant)
                if by_place or registers_by_keyword(name, arguments):
                    for entry in self.owner.unregistered.values():
                        entry.wrapped = True  # registered one by one, under computed names
            if name in ("register_buffer", "register_parameter"):
                return self.call_register(node, name, arguments)
            if name == "add_state" and self.in_init and self.owner.method(name) is None:
                return self.call_add_state(arguments)
            given = self.call_own(node, receiver, function, name, arguments)
            if given is not None:
                return given
        if self.owner is not None and is_super(function.value):
            given = self.call_of_base(node, name, arguments)
            if given is not None:
                return given
        if name == "add_argument":
            default = arguments.keywords.get("default")
            if default is not None:
                self.note_default(default[0])
        if name in MOVES and self.statement_value is node:
            if self.note_dropped(node, receiver, function, arguments) and receiver.kind == "unknown":
                return NOTHING
        if receiver.kind == "object" and receiver.type_name in self.classes:
            found = self.classes[receiver.type_name].method(name)
            if found is not None:
                result = self.call_other(node, function, receiver, found, arguments)
                self.escape(node, arguments)
                if receiver.elements is not None and records.binds_fields(self.scan_of(found[0]), found[1]):
                    self.give(function.value, receiver)
                return result
            self.give(function.value, receiver)
        if receiver.kind == "class" and receiver.type_name in self.classes:
            class_ = self.classes[receiver.type_name]
            found = class_.method(name) if class_.is_module else None
            if found is not None and gives_own_object(found[0].name, found[1]):
                self.escape(node, arguments)
                origin = Origin(self.span(node), "created here")
                # where its parts are, the method decides
                return Value("module", type_name=class_.name, because=(origin,), ident=origin.span, shared=True)
            given = self.call_of_class(node, receiver, class_, name, arguments)
            if given is not None:
                return given
        return self.call_method(node, receiver, name, arguments)

    def call_own(
        self, node: ast.Call, receiver: Value, function: ast.Attribute, name: str, arguments: Arguments
    ) -> Value | None:
        """What a method of the class itself gives, called on `self`; None where there is none of that name."""
        assert self.owner is not None
        found = self.owner.method(name)
        if found is None:
            results = []
            for each in named_methods(self.owner, name):
                method = self.owner.method(each)
                target = self.method_function(method[0], each, method[1]) if method is not None else None
                called = target.called if target is not None else 0
                results.append(self.call_own(node, receiver, function, each, arguments))
                if target is not None:
                    target.called = called  # which of several is called is not known: it is also run by itself
            return reduce(merge, filter(None, results)) if results else None
        if name in found[0].properties:
            self.note_called_device(node, self.operand(function.value, receiver), arguments)
            return self.call_value(node, self.evaluate(function), arguments)  # what the property gives is called
        static = is_static(found[1])
        target = self.method_function(found[0], name, found[1])
        own = receiver if receiver.elements is not None else self.self_value(self.owner)
        values = arguments.values if static else [own, *arguments.values]
        keywords = arguments.named()
        if arguments.star:
            rest = left_open(node, found[1], 1 - static)
            if rest is None or len(arguments.values) != len(node.args):
                self.forget_self()
                return NOTHING
            values = values[: len(values) - sum(isinstance(a, ast.Starred) for a in node.args)]
            keywords = {n: v for n, v in keywords.items() if not n.startswith("**")}
            keywords.update((n, NOTHING) for n in rest[len(values) :] if n not in keywords)
        elif not static:
            ordering.note_helper(self, node, found[1], arguments, own=True)
        return self.call_function(target, values, keywords, node, on_self=True)

    def call_of_base(self, node: ast.Call, name: str, arguments: Arguments) -> Value | None:
        """What a method of a base in this file gives: `super().forward(x)`. What `__init__` does is known of the class."""
        assert self.owner is not None
        found = next((f for base in self.owner.local_bases if (f := base.method(name)) is not None), None)
        if found is None or found[0].abroad or arguments.star or found[1].decorator_list or name.startswith("__"):
            return None
        values = [self.self_value(self.owner), *arguments.values]
        keywords = arguments.named()
        return self.call_function(self.method_function(found[0], name, found[1]), values, keywords, node, on_self=True)

    def call_of_class(
        self, node: ast.Call, receiver: Value, class_: ClassFacts, name: str, arguments: Arguments
    ) -> Value | None:
        """What a static method or a class method of the file gives that is called on its class: `Sampler.noise(x.shape)`."""
        found = class_.method(name)
        marks = {last_name(mark) for mark in found[1].decorator_list} if found is not None else set()
        if found is None or found[0].abroad or arguments.star or marks not in ({"staticmethod"}, {"classmethod"}):
            return None
        values = arguments.values if marks == {"staticmethod"} else [receiver, *arguments.values]
        keywords = arguments.named()
        return self.call_function(self.method_function(found[0], name, found[1]), values, keywords, node)

    def note_dropped(self, node: ast.Call, receiver: Value, function: ast.Attribute, arguments: Arguments) -> bool:
        """Emit `Move` where a class of the file gives another object, and nobody takes it: `rollout.to(device)`."""
        class_ = self.classes.get(receiver.type_name or "") if receiver.kind == "object" else None
        spec = getattr(self.function.node, "args", None) if self.function is not None else None
        if class_ is None and receiver.kind == "unknown" and isinstance(function.value, ast.Name) and spec is not None:
            parameter = parameter_of(spec, function.value.id)
            own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
            if parameter is not None and parameter.annotation is not None and own is not None:
                bound = function.value.id in own.bound
                class_ = None if bound else self.classes.get(last_name(parameter.annotation))
        found = class_.method(function.attr) if class_ is not None and not class_.abroad else None
        if found is None or not dropped.gives_another(found[0].node, found[1]):
            return False
        operand = self.operand(function.value, receiver)
        target, node_of, only = self.move_target(node, operand, function.attr, arguments)
        head = self.span(node), node, receiver.because, self.guards, self.scope(), self.name
        loops = self.loops > 0
        self.emit(Move(*head, function.attr, operand, target, node_of, only, True, NOTHING, loops, of_class=True))
        return True

    def call_self(self, node: ast.Call, arguments: Arguments) -> Value | None:
        """`self(...)` calls the class's own `__call__`; None where that is a module's or not in this file."""
        if self.owner is None or self.owner.is_module or arguments.star:
            return None
        found = self.owner.method("__call__")
        if found is None:
            return None
        target = self.method_function(found[0], "__call__", found[1])
        keywords = arguments.named()
        return self.call_function(
            target, [self.self_value(self.owner), *arguments.values], keywords, node, on_self=True
        )

    def call_other(
        self,
        node: ast.Call,
        function: ast.Attribute,
        receiver: Value,
        found: tuple[ClassFacts, ast.FunctionDef | ast.AsyncFunctionDef],
        arguments: Arguments,
    ) -> Value:
        """A method of an object that a class of this file made: run with what it is given."""
        class_, method = found
        plain = not method.decorator_list and method.args.args
        if class_.abroad or arguments.star or not plain or self.in_init or method.name.startswith("__"):
            return NOTHING
        if sets_by_name(self.text(class_.node)):
            return NOTHING
        self.prepare(self.classes[receiver.type_name or ""])
        target = self.method_function(class_, method.name, method)
        keywords = arguments.named()
        whole = ast.copy_location(ast.Call(node.func, [function.value, *node.args], node.keywords), node)
        called, seen = target.called, dict(target.seen)
        host, self.host = self.host, self.host or (receiver.kind == "module" and receiver.device == CPU)
        result = self.call_function(target, [receiver, *arguments.values], keywords, whole)
        self.host = host
        if self.function is None:
            target.called, target.seen = called, seen  # made-up data, for the most part: others may call it too
        if receiver.kind == "object" and result.device == HOME:
            if not any(each.device == HOME for each in guesses.opened(v for _, v in arguments.every())):
                return self.of_made(result, receiver)  # it is where the object's own tensors are
        return result

    def made_by(
        self,
        node: ast.Call,
        module: Value,
        found: tuple[ClassFacts, ast.FunctionDef | ast.AsyncFunctionDef],
        arguments: Arguments,
    ) -> Value | None:
        if self.in_init or any(informs(v) or (v.kind == "unknown" and v.device) for _, v in arguments.every()):
            return None
        function = node.func
        assert isinstance(function, ast.Attribute)
        result = self.call_other(node, function, module, found, arguments)
        parts = result.elements if isinstance(result.elements, tuple) else (result,)
        return self.outside(result, module) if parts and all(v.is_tensor and v.made for v in parts) else None

    def outside(self, value: Value, module: Value) -> Value:
        """What a module's method gives, seen from outside."""
        if isinstance(value.elements, tuple):
            value = replace(value, elements=tuple(self.outside(e, module) for e in value.elements))
        return self.at_home(value, module)

    def read_attribute(self, node: ast.Attribute, base: Value) -> Value:
        found = self.read_property(node) or self.saved(node) or self.groups(node)
        return found if found is not None else super().read_attribute(node, base)

    def read_property(self, node: ast.Attribute) -> Value | None:
        """`self.prior` that is a property of the class: what its function gives, where that is made of tensors."""
        if self.owner is None or not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            return None
        found = self.owner.method(node.attr)
        if found is None or found[0].abroad or node.attr not in found[0].properties or "device" in node.attr:
            return None
        function = self.method_function(found[0], node.attr, found[1])
        own = self.lookup("self")
        if own is None or own.elements is None:
            own = self.self_value(self.owner)
        value = self.call_function(function, [own], {}, on_self=True)
        return value if value.is_tensor or value.kind in ("tuple", "distribution") else None

    def groups(self, node: ast.Attribute) -> Value | None:
        """`self.param_groups` of an optimizer: parameters, which are where their modules are."""
        owner = self.owner
        if node.attr != "param_groups" or owner is None or owner.family != "Optimizer" or not self.assume or self.host:
            return None
        if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            return None
        parameter = Value(
            "parameter", HOME, type_name="borrowed", because=(self.origin(node, "these are parameters of modules"),)
        )
        parameters = Value("list", type_name="comprehension", elements=(parameter,))
        group = Value("dict", elements={"params": parameters, "lr": NOTHING})  # and further options
        return Value("list", type_name="comprehension", elements=(group,))

    def saved(self, node: ast.Attribute) -> Value | None:
        """`ctx.saved_tensors` in the `backward` of an operation."""
        function = self.function
        if node.attr != "saved_tensors" or function is None or not is_gradient_of(function) or not self.assume:
            return None
        if self.host:
            return None
        return Value("tensors", HOME, None, because=(self.origin(node, "saved by `forward`"),))


def is_super(node: ast.expr) -> bool:
    """Whether an expression is `super()`."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args


def gives_own_object(name: str, method: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a method of a class makes one of its objects and gives it back: `return cls(width)`."""
    marks = {last_name(mark) for mark in method.decorator_list}
    returned = [node.value for node in statements(method) if isinstance(node, ast.Return)]
    return (
        marks in ({"classmethod"}, {"staticmethod"})
        and bool(returned)
        and all(isinstance(value, ast.Call) and last_name(value.func) in ("cls", name) for value in returned)
    )


def left_open(call: ast.Call, method: Plain, own: int) -> list[str] | None:
    """The parameters of a method, where a call gives the first of them and passes on the rest as they came.

    `self.losses(x, t, *args, **kwargs)`; None for any other call with stars. `own`: 1 where the object itself comes first.
    """
    first = [argument for argument in call.args if not isinstance(argument, ast.Starred)]
    stars = [argument.value for argument in call.args if isinstance(argument, ast.Starred)]
    stars += [keyword.value for keyword in call.keywords if keyword.arg is None]
    if call.args[: len(first)] != first or len(stars) > 2 or not all(isinstance(star, ast.Name) for star in stars):
        return None
    names = [argument.arg for argument in named_parameters(method.args)]
    return names if len(first) + own <= len(positional_names(method.args)) else None
