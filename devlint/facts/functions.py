"""The functions and classes of the file: defining them, calling them with known arguments, running them by themselves."""

from __future__ import annotations

import ast
import re
from functools import cached_property

from devlint.facts import guesses, handed
from devlint.facts.adopted import AdoptedClass
from devlint.facts.api_calls import note_api
from devlint.facts.arguments import Arguments
from devlint.facts.callers import is_static, last_name, lineage
from devlint.facts.classes import ClassFacts
from devlint.facts.collect import collect_class
from devlint.facts.devices import parse_device
from devlint.facts.entry import is_gradient_of
from devlint.facts.events import Creation, Guards
from devlint.facts.expressions import literal
from devlint.facts.factories import FROM_DATA
from devlint.facts.frozen import replace
from devlint.facts.machine import Function, Machine, State, Summary, root
from devlint.facts.nodes import statements, walk
from devlint.facts.objects import SET_BY_NAME
from devlint.facts.operations import CPU_PLACE
from devlint.facts.parameters import is_tensor_annotation
from devlint.facts.placed import placed_models
from devlint.facts.signatures import lacks_arguments
from devlint.facts.special_calls import TO_TENSOR
from devlint.facts.unread_calls import UnreadCalls
from devlint.facts.values import (
    COMPUTED,
    CPU,
    HOME,
    NONE,
    NOTHING,
    SOMEWHERE,
    UNKNOWN,
    Device,
    Place,
    Symbol,
    Value,
    join,
    merge,
)
from devlint.model import Origin, Span

_REGISTERS = frozenset({"add_module", "register_module", "register_parameter", "register_buffer", "__setattr__"})
DEPTH = 4  # calls of the file's own functions followed into each other
_ASKS = re.compile(r"\bNone\b|cpu|cuda|gpu|device|available")  # a default for nothing, or a branch for one device
#: How a mark asks for a card of some kind: `compute_capability < (8, 0)`.
_CAPABILITY = re.compile(r"(?i)\w*capability\w*|\bsm_?\d\d\b|nccl|triton|cusparse\w*")
#: Names of what holds the settings of a run, and of devices.
_SETTINGS = re.compile(
    r"^(self\.)?(args?|opts?|options?|cfg|config|conf|hparams|hps|flags|params|settings)\b|device$", re.IGNORECASE
)
#: Names of helpers that move what is in a container, where their result is dropped.
_MOVES_IN_PLACE = re.compile(r"(?:^|_)(?:cuda|gpu|(?:to|move)_(?:\w+_)?(?:device|cuda|gpu))(?:_|$)", re.IGNORECASE)
MAPPED = 8  # elements for which a mapped function is called one by one
SIGNATURES = 8  # different arguments for which one function is run


class Functions(UnreadCalls):
    """Adds `call_function` and `run`."""

    def define(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """A nested `def`, or one at module level (registered before, bound here)."""
        self.defaults(node)
        self.decorators(node)
        if self.function is None:
            self.bind(node.name, Value("function", type_name=self.defined.get(id(node), node.name)))
            return
        name = f"{self.name}.{node.name}"
        known = self.functions.get(name)
        if known is None:
            known = self.functions[name] = Function(node, name, self.owner)
        known.closure = self.closure_here()
        self.bind(node.name, Value("function", type_name=name))

    def closure_here(self) -> dict[str, Value]:
        """What a function that is defined here finds in the ones around it."""
        assert self.function is not None
        outer = self.scan.functions.get(id(self.function.node))
        closure = {**self.function.closure, **self.state.env}
        for path, value in closure.items():
            if outer is not None and outer.bound.get(path, 0) > 1:
                closure[path] = NOTHING  # what it holds when the function is called is not known
            elif value.kind == "module" and value.shared:
                closure[path] = replace(value, device=UNKNOWN)  # whoever holds it moves it before the call
        return closure

    def decorators(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        """Decorators run where the function or class is defined."""
        for decorator in node.decorator_list:
            self.decorating = True
            value = self.evaluate(decorator)
            self.decorating = False
            if isinstance(decorator, ast.Name) and (value.type_name or "").startswith("torch."):
                note_api(self, decorator, value.type_name or "", None)

    def defaults(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        """Defaults such as `device="cuda"` are noted as defaults, whoever uses the parameter."""
        arguments = node.args
        for default in (*arguments.defaults, *arguments.kw_defaults):
            if default is not None:
                self.note_default(default)

    def note_default(self, node: ast.expr) -> None:
        self.in_default = True
        value = self.evaluate(node)
        self.in_default = False
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            self._emit_literal(node, parse_device(node.value), "default", None, "device")
        elif value.kind == "string":
            self.note_literal(node, value, "default", None, "device")

    def define_class(self, node: ast.ClassDef) -> None:
        self.decorators(node)
        self.bind(node.name, Value("class", type_name=node.name))
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                self.note_default(statement.value)
            elif isinstance(statement, ast.Assign):
                self.note_class_attribute(node, statement, self.evaluate(statement.value))
            elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
                self.defaults(statement)
                self.decorators(statement)
        if self.function is not None:
            self.define_local_class(node)

    def note_class_attribute(self, node: ast.ClassDef, statement: ast.Assign, value: Value) -> None:
        """`STD = torch.tensor([0.2, 0.3])` in the body of a module's class: one tensor for all, which moves with none."""
        class_ = self.classes.get(node.name)
        target = statement.targets[0]
        if class_ is None or class_.node is not node or not class_.is_module or not isinstance(target, ast.Name):
            return
        if value.is_tensor and value.made:
            class_.attributes.setdefault(target.id, value)

    def define_local_class(self, node: ast.ClassDef) -> None:
        """A class that a function makes: its methods see the names of the function, and are run like all others."""
        known = self.classes.get(node.name)
        if known is not None and known.node is not node:
            self.bind(node.name, NOTHING)  # two classes of one name, told apart by where they are defined
            return
        if known is not None:
            return
        class_ = self.classes[node.name] = collect_class(node, self.classes, self.imports)
        for name, method in class_.methods.items():
            self.method_function(class_, name, method).closure = self.closure_here()
        self.prepare(class_)

    def prepare(self, class_: ClassFacts) -> None:
        """Run `__init__` once, so that the attributes are known."""
        if class_.name in self.ready:
            return
        self.ready.add(class_.name)
        for base in class_.local_bases:
            self.prepare(base)
        init = class_.methods.get("__init__")
        if init is None:
            self.place_models(class_)
            return
        saved, self.in_init = self.in_init, True
        host, self.host = self.host, class_.is_module  # a module is built on one device
        try:
            self.run(self.method_function(class_, "__init__", init), None)
            self.settle_attributes(class_, self.ended.env)
        finally:
            self.in_init, self.host = saved, host
        self.spoil_reassigned(class_)
        self.place_models(class_)

    def place_models(self, class_: ClassFacts) -> None:
        """What any method of a plain class puts on a device, the others find there."""
        if class_.abroad or class_.is_module or class_.on_host or not self.assume:
            return
        for name, value in placed_models(self, class_):
            class_.attributes[name] = value

    def method_function(self, class_: ClassFacts, name: str, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Function:
        qualname = f"{class_.name}.{name}"
        known = self.functions.get(qualname)
        if known is None:
            known = self.functions[qualname] = Function(node, qualname, class_)
        return known

    def call_on(self, node: ast.Call, receiver: Value, function: ast.Attribute, arguments: object) -> Value:
        assert isinstance(arguments, Arguments)
        name = function.attr
        if isinstance(function.value, ast.Name) and function.value.id == "self" and self.owner is not None:
            if name in _REGISTERS and self.in_init:
                if arguments.nodes and not isinstance(arguments.nodes[0], ast.Constant):
                    for entry in self.owner.unregistered.values():
                        entry.wrapped = True  # registered one by one, under computed names
            if name in ("register_buffer", "register_parameter"):
                return self.call_register(node, name, arguments)
            if name == "add_state" and self.in_init and self.owner.method(name) is None:
                return self.call_add_state(arguments)
            found = self.owner.method(name)
            if found is not None:
                static = is_static(found[1])
                target = self.method_function(found[0], name, found[1])
                values = arguments.values if static else [self.self_value(self.owner), *arguments.values]
                keywords = {k: v for k, (_, v) in arguments.keywords.items()}
                if arguments.star:
                    self.forget_self()
                    return NOTHING
                return self.call_function(target, values, keywords, node, on_self=True)
        if name == "add_argument":
            default = arguments.keywords.get("default")
            if default is not None:
                self.note_default(default[0])
        if receiver.kind == "object" and receiver.type_name in self.classes:
            found = self.classes[receiver.type_name].method(name)
            if found is not None:
                result = self.call_other(node, function, receiver, found, arguments)
                self.escape(node, arguments)
                return result
        return self.call_method(node, receiver, name, arguments)

    def read_attribute(self, node: ast.Attribute, base: Value) -> Value:
        found = self.read_property(node) or self.saved(node) or self.groups(node)
        return found if found is not None else super().read_attribute(node, base)

    def groups(self, node: ast.Attribute) -> Value | None:
        """`self.param_groups` of an optimizer: parameters, which are where their modules are."""
        owner = self.owner
        if node.attr != "param_groups" or owner is None or owner.family != "Optimizer" or not self.assume or self.host:
            return None
        if not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            return None
        parameter = Value(
            "parameter", HOME, type_name="borrowed", because=(self.origin(node, "parameters of modules"),)
        )
        parameters = Value("list", type_name="comprehension", elements=(parameter,))
        return Value("list", type_name="comprehension", elements=(Value("dict", elements={"params": parameters}),))

    def saved(self, node: ast.Attribute) -> Value | None:
        """`ctx.saved_tensors` in the `backward` of an operation."""
        function = self.function
        if node.attr != "saved_tensors" or function is None or not is_gradient_of(function) or not self.assume:
            return None
        if self.host:
            return None
        return Value("tensors", HOME, None, because=(self.origin(node, "saved by `forward`"),))

    def read_property(self, node: ast.Attribute) -> Value | None:
        """`self.prior` that is a property of the class: what its function gives, where that is made of tensors."""
        if self.owner is None or not (isinstance(node.value, ast.Name) and node.value.id == "self"):
            return None
        found = self.owner.method(node.attr)
        if found is None or found[0].abroad or node.attr not in found[0].properties or "device" in node.attr:
            return None
        function = self.method_function(found[0], node.attr, found[1])
        value = self.call_function(function, [self.self_value(self.owner)], {}, on_self=True)
        return value if value.is_tensor or value.kind in ("tuple", "distribution") else None

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
        if SET_BY_NAME.search(self.text(class_.node)) is not None:
            return NOTHING
        self.prepare(self.classes[receiver.type_name or ""])
        target = self.method_function(class_, method.name, method)
        keywords = {k: v for k, (_, v) in arguments.keywords.items()}
        whole = ast.copy_location(ast.Call(node.func, [function.value, *node.args], node.keywords), node)
        called, seen = target.called, dict(target.seen)
        result = self.call_function(target, [receiver, *arguments.values], keywords, whole)
        if self.function is None:
            target.called, target.seen = called, seen  # made-up data, for the most part: others may call it too
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

    def forget_self(self) -> None:
        """A method that is not followed may have changed any attribute."""
        for path in [p for p in self.state.env if p.startswith("self.")]:
            del self.state.env[path]

    def call_self(self, node: ast.Call, arguments: Arguments) -> Value | None:
        """`self(...)` calls the class's own `__call__`; None where that is a module's or not in this file."""
        if self.owner is None or self.owner.is_module or arguments.star:
            return None
        found = self.owner.method("__call__")
        if found is None:
            return None
        target = self.method_function(found[0], "__call__", found[1])
        keywords = {k: v for k, (_, v) in arguments.keywords.items()}
        return self.call_function(
            target, [self.self_value(self.owner), *arguments.values], keywords, node, on_self=True
        )

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
        if callee.kind == "namespace":
            return self.call_namespace(node, callee.type_name or "", arguments)
        if self.function is not None and callee.kind == "function":
            if (callee.type_name or "").split("@", 1)[0] in self.redefined:
                return NOTHING  # which of them there is when this runs is not known
        if callee.kind == "function" and callee.type_name in self.functions and not arguments.star:
            for argument, given in arguments.every():
                if given.kind in ("list", "dict"):
                    self.give(argument, given)
            keywords = {k: v for k, (_, v) in arguments.keywords.items()}
            return self.call_function(self.functions[callee.type_name], arguments.values, keywords, node)
        if callee.kind == "function" and callee.type_name in self.lambdas and not arguments.star:
            made = self.call_lambda(*self.lambdas[callee.type_name], arguments)
            if made is not None:
                return made
        if callee.kind == "function" and callee.type_name in self.partials:
            inner, first = self.partials[callee.type_name]
            assert isinstance(first, Arguments)
            # the arguments of a function of this file are told apart by their places in the call
            if inner.kind == "namespace" or (inner.type_name in self.functions and not first.values):
                whole = Arguments()
                whole.nodes, whole.values = [*first.nodes, *arguments.nodes], [*first.values, *arguments.values]
                whole.keywords = {**first.keywords, **arguments.keywords}
                whole.star, whole.double_star = arguments.star, arguments.double_star
                return self.call_value(node, inner, whole)
        if callee.kind == "class" and callee.type_name in self.classes:
            return self.construct_own(node, self.classes[callee.type_name], arguments)
        if callee.kind == "module":
            return self.call_module(node, self.operand(node.func, callee), arguments)
        if callee.kind == "tensors" and callee.moved and "output_type" in arguments.keywords:
            return NOTHING  # a pipeline, which gives arrays, images or tensors as it is asked
        if callee.kind == "tensors" and callee.moved:
            # something that was moved and is now called: a module
            module = self.operand(node.func, replace(callee, kind="module", type_name="moved"))
            return self.call_module(node, module, arguments)
        if callee.kind == "function" and callee.type_name == TO_TENSOR:
            return Value("tensor", CPU, False, because=(self.origin(node, "made of a picture in host memory here"),))
        if callee.kind in ("unknown", "object"):
            encoded = self.encoded(node, arguments)
            if encoded is not None:
                return encoded
        if callee.kind == "unknown":
            self.note_unread(node, arguments)
            self.note_sized(node, arguments)
        self.escape(node, arguments)
        return self.guessed(node, arguments) if callee.kind == "unknown" else NOTHING

    def call_lambda(self, node: ast.Lambda, home: Function | None, arguments: Arguments) -> Value | None:
        """The result of a lambda that is called in the function that made it; None when it is called elsewhere."""
        spec = node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
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
        if name == "map" and len(arguments.values) == 2 and not arguments.keywords and not arguments.star:
            mapped = self.call_map(node, arguments)
            if mapped is not None:
                return mapped
        return super().call_builtin(node, name, arguments)

    def call_map(self, node: ast.Call, arguments: Arguments) -> Value | None:
        """`q, k, v = map(lambda t: rearrange(t, pattern), (q, k, v))`: what the function gives for each; None: not known."""
        function, iterated = arguments.values
        several = isinstance(iterated.elements, tuple) and iterated.kind in ("tuple", "list")
        parts = iterated.elements if several and isinstance(iterated.elements, tuple) else (self.element(iterated),)
        if len(parts) > MAPPED:
            return None
        results: list[Value] = []
        for part in parts:
            given = Arguments()
            given.nodes, given.values = [arguments.nodes[1]], [part]
            if function.kind == "function" and function.type_name in self.lambdas:
                made = self.call_lambda(*self.lambdas[function.type_name], given)
            elif function.kind == "function" and function.type_name in self.functions:
                made = self.call_function(self.functions[function.type_name], [part], {})
            elif function.kind == "unknown" and self.assume:
                made = guesses.result(arguments.nodes[0], [part], lambda: self.origin(node, COMPUTED))
            else:
                made = None
            if made is None:
                return None
            results.append(made)
        return Value("list", type_name=None if several else "comprehension", elements=tuple(results))

    depth = 0  # calls of lambdas followed into each other

    def construct_own(self, node: ast.Call, class_: ClassFacts, arguments: Arguments) -> Value:
        """An instance of a class of this file."""
        self.prepare(class_)
        because = (Origin(self.span(node), "created here"),)
        self.constructions[because[0].span] = class_, arguments, self.default_device()
        self.share(arguments)
        if self.moves_anything(class_):
            for argument, value in arguments.every():
                path = self.path(argument)
                if value.kind == "module" and path is not None:
                    self.move_in_place(path, replace(value, device=UNKNOWN))
        if class_.is_module:
            devices = self.built_devices(class_)
            device = UNKNOWN
            known = [d for d in devices or () if d or self.in_init or self.moves_anything(class_)]
            if known and all(d == CPU for d in known):
                device = self.default_device().device  # one part there is enough to be called in vain
            for value in guesses.opened(value for _, value in arguments.every()):
                if value.kind == "module" or (value.is_tensor and value.device != CPU):
                    device = UNKNOWN  # what it is made of may be elsewhere, or hold no tensor
            return Value("module", device, type_name=class_.name, because=because, ident=because[0].span)
        if class_.family == "Dataset":
            # one of another file has bases there, and transforms, that may move what it gives
            device = UNKNOWN if class_.abroad or mentions_devices(class_) else CPU
            return Value("dataset", device, type_name=class_.name, because=because)
        if class_.family == "Optimizer":
            return Value("optimizer", UNKNOWN, type_name=class_.name, because=because)
        stated = {k: v for k, (_, v) in arguments.keywords.items() if v.kind in ("string", "device") and v.device}
        plain = "__init__" not in class_.method_names and stated and not arguments.star
        # a dataclass: what it is given is what its fields hold
        return Value("object", elements=stated if plain else None, type_name=class_.name, because=because)

    @cached_property
    def constructions(self) -> dict[Span, tuple[ClassFacts, Arguments, Value]]:
        """The calls that made objects, by their place: the class, the arguments, the default device there."""
        return {}

    def stated(self, owner: Value, name: str, called: str) -> Value | None:
        made = self.constructions.get(owner.because[0].span) if owner.because else None
        found = made[0].method("__init__") if made is not None else None
        if made is None or found is None or made[1].star or made[1].double_star:
            return None
        stored: list[ast.expr] = []
        for class_ in lineage(made[0]):
            for method in class_.methods.values():
                values = [
                    n.value
                    for n in statements(method)
                    if isinstance(n, ast.Assign)
                    and any(isinstance(t, ast.Attribute) and t.attr == name for t in n.targets)
                ]
                if method is found[1] or (values and self.is_called_on(method.name, {called, "self"})):
                    stored += values
                elif values and method.name == "__init__":
                    return None
        if len(stored) != 1 or not isinstance(stored[0], ast.Name):
            return None
        kept = Value("device", frozenset({Symbol(stored[0].id, 1)}))
        given = self.as_given(kept, owner)
        return given if given != kept and given.device else None

    def is_called_on(self, method: str, names: set[str]) -> bool:
        """Whether the file calls a method on what has one of some last names: `self.buffer.to(device)`."""
        calls = (site.call.func for site in self.scan.calls.get(method, ()))
        return any(isinstance(function, ast.Attribute) and last_name(function.value) in names for function in calls)

    def as_given(self, value: Value, owner: Value) -> Value:
        span = owner.ident or (owner.because[0].span if owner.because else None)
        made = self.constructions.get(span) if span is not None else None
        found = made[0].method("__init__") if made is not None else None
        if made is None or found is None or made[1].star or made[1].double_star:
            return value
        spec = found[1].args
        _, arguments, default = made
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        constants = {
            **dict(zip(names[len(names) - len(spec.defaults) :], spec.defaults, strict=True)),
            **{a.arg: d for a, d in zip(spec.kwonlyargs, spec.kw_defaults, strict=True) if d is not None},
        }
        places: list[Device] = []
        for place in value.device:
            if isinstance(place, Symbol) and place.scope and place.name in {*names, *constants}:
                given = arguments.get(place.name, names.index(place.name) - 1 if place.name in names else None)
                constant = constants.get(place.name)
                if given is None and isinstance(constant, ast.Constant):
                    given = constant, self.default_given(constant)
                if given is None or given[1].kind not in ("none", "string", "device"):
                    return replace(value, device=UNKNOWN, split=None)
                places.append(default.device if given[1].kind == "none" else self.device_of_argument(*given).device)
            else:
                places.append(frozenset({place}))
        device = places[0]
        for other in places[1:]:
            device = join(device, other)
        return replace(value, device=device, split=None)

    def default_given(self, constant: ast.Constant) -> Value:
        """A default of a constructor, which may stand in another file: its place says nothing here."""
        if constant.value is None:
            return Value("none")
        return literal(constant.value) if isinstance(constant.value, (str, int)) else NOTHING

    def hand_over(self, node: ast.expr, value: Value) -> None:
        function: Function | None = None
        if value.kind == "function" and value.type_name is not None:
            function = self.functions.get(value.type_name)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in ("self", "cls"):
            method = self.owner.methods.get(node.attr) if self.owner is not None else None
            if self.owner is not None and method is not None:
                function = self.method_function(self.owner, node.attr, method)
        if function is not None:
            function.callers.append(self.guards)

    def built_devices(self, class_: ClassFacts) -> list[Device] | None:
        if isinstance(class_, AdoptedClass):
            return list(class_.devices) if class_.devices is not None else None
        devices = list(self.built.get(class_.name, ()))
        for base in class_.local_bases:
            inherited = self.built_devices(base)
            if inherited is None:
                return None
            devices += inherited
        if any(
            b not in ("torch.nn.Module", "torch.nn.modules.module.Module")
            for b in class_.bases
            if b not in self.classes and b not in class_.followed
        ):
            return None
        return devices

    def call_function(
        self,
        function: Function,
        arguments: list[Value],
        keywords: dict[str, Value],
        node: ast.Call | None = None,
        on_self: bool = False,
    ) -> Value:
        """Call a function of this file with known arguments: it is run with them, once per kind of arguments."""
        if isinstance(function.node, ast.Lambda):
            return NOTHING
        if is_stub(function.node):
            in_module = function.owner is not None and function.owner.is_module
            returns = function.node.returns
            gives = returns is None or is_tensor_annotation(returns, self.imports.names)
            if not (in_module and gives and self.assume) or node is None:
                return NOTHING
            return self.of_subclass(node, arguments)
        if node is not None and len(arguments) in (len(node.args), len(node.args) + 1):
            if lacks_arguments(function.node, node, len(arguments) - len(node.args), keywords):
                return NOTHING  # it raises
        function.callers.append(self.guards)
        attributes = {p: v for p, v in self.state.env.items() if p.startswith("self.")} if on_self else {}
        key, summary = self.known_call(function, arguments, keywords, attributes)
        bound = self.bound_arguments(function, arguments, keywords)
        if on_self and not self.host:  # while it is made, an object is where its `__init__` makes it
            for name, value in bound.items():
                known = function.given.get(name)
                function.given[name] = value if known is None else merge(known, value)
        if summary is None:
            if function in self.stack or len(self.stack) >= DEPTH or len(function.summaries) >= SIGNATURES:
                self.not_followed(function, bound, node, on_self)
                if node is None or not self.assume:
                    return NOTHING
                return guesses.result(node.func, arguments, lambda: self.origin(node, COMPUTED))
            if any(informs(v) for v in bound.values()) and not self.under_construction(function):
                evidence = self.evidence_of(function)
                wanted = evidence.tensors | evidence.several
                for name in wanted:
                    self.note_given(function, name, bound.get(name, NOTHING))
                if all(name in bound and (bound[name].device or not tensor_like(bound[name])) for name in wanted):
                    function.called += 1  # nothing is left to assume
            return self.follow(function, key, bound, attributes, node, on_self)
        if summary.waits:
            self.wait()
            self.state.count += summary.works
        elif summary.works and node is not None:
            self.queue(node, f"`{function.node.name}` queues device work", "assume", None)
        self.apply(summary, function, node, on_self)
        result = self.without_symbols(summary.result, function, node, on_self)
        return handed.received(self, result, function, node, bound)

    def of_subclass(self, node: ast.Call, arguments: list[Value]) -> Value:
        """What a module's method without a body is guessed to give; it rests on what was assumed of the tensors it is given."""
        found = guesses.result(node.func, arguments, lambda: self.origin(node, COMPUTED))
        first = next((v for v in arguments if v.kind != "module" and v.device == found.device), NOTHING)
        return replace(found, because=first.because[:1] or found.because) if guesses.is_guess(found) else found

    def known_call(
        self, function: Function, arguments: list[Value], keywords: dict[str, Value], attributes: dict[str, Value]
    ) -> tuple[object, Summary | None]:
        """The key of a call, and what an equal one did: one with the same new tensors, as long as there are not too many."""
        coarse = signature(arguments, keywords, self.state, attributes)
        values = (*arguments, *keywords.values())
        made = tuple(c.span for v in guesses.opened(values) for c in v.made)
        key = (coarse, made)
        summary = function.summaries.get(key)
        if summary is None and made and len(function.summaries) >= SIGNATURES // 2:
            summary = next((s for k, s in function.summaries.items() if isinstance(k, tuple) and k[0] == coarse), None)
        return key, summary

    def note_given(self, function: Function, name: str, given: Value) -> None:
        """What a parameter is given by the calls of this file: all of them must know it."""
        known = given if given.is_tensor and given.device and not guesses.is_guess(given) else None
        before = function.seen.get(name, known)
        function.seen[name] = merge(before, known) if before is not None and known is not None else None

    def follow(
        self,
        function: Function,
        key: object,
        bound: dict[str, Value],
        attributes: dict[str, Value],
        node: ast.Call | None,
        on_self: bool,
    ) -> Value:
        """Run a function for one signature, and remember what it does."""
        before = self.state.count
        result = self.run(function, bound, attributes)
        end = self.ended
        summary = function.summaries[key] = Summary(result, card=end.card, default=end.default)
        summary.works = self.state.count > before
        summary.waits = summary.works and self.state.work is None
        for name, given in bound.items():
            now = end.env.get(name)
            if given.kind == "module" and now is not None and now.ident == given.ident and now.device != given.device:
                summary.moved[name] = now
        if on_self:
            summary.attributes = {p: v for p, v in end.env.items() if p.startswith("self.")}
        self.apply(summary, function, node, on_self)
        result = self.without_symbols(result, function, node, on_self)
        return handed.received(self, result, function, node, bound)

    def without_symbols(
        self, value: Value, function: Function, node: ast.Call | None, on_self: bool, home: Machine | None = None
    ) -> Value:
        """A result without the devices that only its function has a name for: those of arguments the call says nothing of.

        The `args.device` of a function that is given `options` is the caller's `options.device`. `home`: the interpreter
        of the file that defines the function.
        """
        if not value.device and value.elements is None:
            return value
        start = (home or self).span(function.node).start
        if not names_scope(value, start):
            return value
        spec = function.node.args
        names = {a.arg for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs)}
        given: dict[str, str] | None = None

        def here(place: Place | Symbol) -> Place | Symbol | None:
            nonlocal given
            if not isinstance(place, Symbol) or place.scope != start or root(place.name) not in names:
                return place
            if given is None:
                pairs = self.argument_nodes(function, node, on_self) if node is not None else []
                given = {name: path for name, argument in pairs if (path := self.path(argument)) is not None}
            outer = given.get(root(place.name))
            if outer is None or "[" in outer or _SETTINGS.search(outer) is None:
                return None  # what else has a device may be anywhere
            path = outer + place.name[len(root(place.name)) :]
            return Symbol(path, self.scope_id(path))

        def known(value: Value) -> Value:
            elements = value.elements
            if isinstance(elements, tuple):
                elements = tuple(map(known, elements))
            elif elements is not None:
                elements = {key: known(element) for key, element in elements.items()}
            device = value.device
            if any(isinstance(p, Symbol) and p.scope == start for p in device):
                places = [here(p) for p in device]
                device = UNKNOWN if None in places else frozenset(p for p in places if p is not None)
            if device != value.device or elements != value.elements:
                return replace(value, elements=elements, device=device)
            return value

        return known(value)

    def apply(self, summary: Summary, function: Function, node: ast.Call | None, on_self: bool) -> None:
        """What a call leaves behind in the caller: moved modules, attributes of `self`, the current card."""
        self.state.card, self.state.default = summary.card, summary.default
        if on_self:
            self.state.env.update(summary.attributes)
        if summary.moved and node is not None:
            for name, argument in self.argument_nodes(function, node, on_self):
                path = self.path(argument)
                if name in summary.moved and path is not None:
                    self.move_in_place(path, summary.moved[name])

    def argument_nodes(self, function: Function, node: ast.Call, on_self: bool) -> list[tuple[str, ast.expr]]:
        spec = function.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)][on_self:]
        pairs = list(zip(names, node.args, strict=False))
        return pairs + [(k.arg, k.value) for k in node.keywords if k.arg is not None]

    def not_followed(self, function: Function, bound: dict[str, Value], node: ast.Call | None, on_self: bool) -> None:
        """A call of the file's own function that is not looked into: it may do anything to what it is given."""
        if on_self:
            self.forget_self()
        if node is not None:
            for _, argument in self.argument_nodes(function, node, on_self):
                path = self.path(argument)
                value = self.lookup(path) if path is not None else None
                if path is not None and value is not None and value.kind == "module":
                    self.move_in_place(path, replace(value, device=UNKNOWN))
        self.state.work = None

    def bound_arguments(
        self, function: Function, arguments: list[Value], keywords: dict[str, Value]
    ) -> dict[str, Value]:
        spec = function.node.args
        names = [a.arg for a in (*spec.posonlyargs, *spec.args)]
        bound: dict[str, Value] = dict(zip(names, arguments, strict=False))
        if spec.vararg is not None:
            bound[spec.vararg.arg] = Value("tuple", elements=tuple(arguments[len(names) :]))
        known = {*names, *(a.arg for a in spec.kwonlyargs)}
        bound.update({k: v for k, v in keywords.items() if k in known})
        positional = spec.defaults
        for name, default in zip(names[len(names) - len(positional) :], positional, strict=True):
            if name not in bound:
                bound[name] = self.default_value(default)
        for argument, keyword_default in zip(spec.kwonlyargs, spec.kw_defaults, strict=True):
            if argument.arg not in bound and keyword_default is not None:
                bound[argument.arg] = self.default_value(keyword_default)
        return bound

    def default_value(self, node: ast.expr) -> Value:
        """A default was evaluated at the `def`: only what cannot change since is known at the call."""
        value = self.evaluate(node)
        return value if isinstance(node, ast.Constant) or value.kind in ("namespace", "function", "class") else NOTHING

    def run(
        self, function: Function, bound: dict[str, Value] | None, attributes: dict[str, Value] | None = None
    ) -> Value:
        """Interpret a function. `bound=None`: nothing is known of its arguments but what its own code shows."""
        node = function.node
        assert not isinstance(node, ast.Lambda)
        saved = (
            self.state, self.guards, self.function, self.name, self.owner, self.loops, self.returns, self.yields,
            self.statement_value, self.breaks, self.continues, self.host, self.globals, self.in_init, self.nonlocals,
            self.snapshots, self.event_names, self.loop_names, self.state_of_run,
        )  # fmt: skip
        caller = self.state
        if self.function is None and self.module_level:
            self.globals = self.state.env
        self.function, self.name, self.owner = function, function.name, function.owner
        self.loops, self.returns, self.yields, self.statement_value = 0, [], False, None
        self.breaks, self.continues = [], []
        if node.name != "__init__" and not self.under_construction(function):
            self.in_init = False
        self.host = self.host or self.runs_on_host(function) or self.under_construction(function)
        default = caller.default if bound is not None else self.default_at_start(function, caller.default)
        self.state = State(dict(attributes or {}), card=caller.card, default=default)
        own = self.scan.functions.get(id(node))
        self.nonlocals = frozenset(own.nonlocals) if own is not None else frozenset()
        self.snapshots, self.event_names, self.loop_names, self.state_of_run = 0, set(), {}, object()
        if bound is not None:
            self.state.work, self.state.last, self.state.count = caller.work, caller.last, caller.count
        else:
            self.guards = self.decorated(node)
        self.stack.append(function)
        try:
            self.bind_parameters(function, bound)
            self.block(node.body)
            result: Value | None = None
            for value in self.returns:
                result = value if result is None else merge(result, value)
            if result is not None and len(node.name.strip("_")) and not self.yields:
                self.note_paths(function, result)
            if result is None:
                result = NONE
            if self.yields:
                result = Value("object", elements=(result,))
            end = self.ended = self.state
            if not self.muted:
                self.facts.note_variables(function.name, end.env)
        finally:
            self.stack.pop()
            (
                self.state, self.guards, self.function, self.name, self.owner, self.loops, self.returns, self.yields,
                self.statement_value, self.breaks, self.continues, self.host, self.globals, self.in_init,
                self.nonlocals, self.snapshots, self.event_names, self.loop_names, self.state_of_run,
            ) = saved  # fmt: skip
        if bound is not None:
            self.state.work, self.state.last, self.state.count = end.work, end.last, end.count
        if isinstance(node, ast.AsyncFunctionDef):
            return NOTHING
        return replace(result, split=None) if result.split else result

    def default_at_start(self, function: Function, default: Value | None) -> Value | None:
        """The default device when nobody is seen to call a function: torch's, when it alone changes that."""
        if default is None or default.device:
            return default
        text = self.text(function.node)
        alone = all(text.count(n) == self.source.text.count(n) for n in ("set_default_device", "set_default_tensor"))
        return None if alone else default

    def note_paths(self, function: Function, result: Value) -> None:
        """Emit `Meet` for a tensor made on the CPU that one path returns where others return an accelerator's."""
        if self.host or is_host_name(function.node.name):  # type: ignore[union-attr]
            return
        results = result.elements if result.kind == "tuple" and isinstance(result.elements, tuple) else (result,)
        for position, value in enumerate(results):
            if value.kind not in ("tensor", "list") or not value.is_tensor or not value.made or value.device == CPU:
                continue
            if CPU_PLACE not in value.device:
                continue
            elsewhere = frozenset(p for p in value.device if p != CPU_PLACE)
            if any(isinstance(p, Place) or p == SOMEWHERE for p in elsewhere):
                continue  # a branch asked for that device
            level = self.conflict(CPU, elsewhere)
            given = [v for r in self.returns if (v := component(r, position)) is not None]
            rest = [side for v in given for side in by_path(v, elsewhere) if not side.made]
            computed = [
                v for v in rest if v.is_tensor and v.device == elsewhere and not (v.moved and not is_created(v))
            ]
            if level is None or not computed or len(computed) < len(rest):
                continue
            around = self.span(function.node)
            for creation in value.made:
                if not around.start <= creation.span.start < around.end:
                    continue  # an item of a table that the object keeps, or what a caller made
                if not is_literal(creation) or is_empty(creation):
                    continue
                sized = creation.span in self.sized or self.depends_on_tensors(function, creation.place)
                if elsewhere == HOME and not sized:
                    continue  # an option of the function has something else made, which is for another use
                if creation.zero_dim or any(
                    creation in side.made and side.zero_dim
                    for v in given
                    for side in by_path(v, frozenset({CPU_PLACE}))
                ):
                    continue  # a scalar on the CPU combines with whatever the others give
                off = self.operand(creation.place, replace(value, device=CPU, made=(creation,)))
                because = (Origin(creation.span, "created on the CPU here"), *computed[0].because[:2])
                other = replace(off, value=computed[0], text="what other paths return")
                self.emit_meet(creation.place, "paths", "returned", off, other, level, because)

    def depends_on_tensors(self, function: Function, place: ast.AST) -> bool:
        """Whether a condition around a place in a function asks for a tensor: `if values.numel() == 0:`."""
        evidence = self.evidence.get(id(function.node))
        tensors = {name for name, value in self.state.env.items() if value.is_tensor}
        if evidence is not None:
            tensors |= evidence.tensors | evidence.annotated
        for node in walk(function.node):
            if isinstance(node, (ast.If, ast.IfExp)) and place in walk(node) and place not in walk(node.test):
                if any(isinstance(n, ast.Name) and n.id in tensors for n in walk(node.test)):
                    return True
        return False

    ended = State({})  # the state in which the last function that was run ended

    def decorated(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Guards:
        """The guards that a decorator puts on a function: `skipif(not torch.cuda.is_available())`, `@require_cuda`."""
        holds = set(self.guards.holds) | self.file_holds
        owner = self.function.owner if self.function is not None else None
        for decorator in (*node.decorator_list, *(owner.node.decorator_list if owner is not None else ())):
            text = self.marked(decorator).lower()
            if "amp" in text or "autocast" in text:
                continue  # it switches a mode, it skips nothing
            for type in ("cuda", "gpu", "xpu", "mps", "npu"):
                if type in text:
                    holds.add("cuda" if type == "gpu" else type)
        excepts = self.guards.excepts or id(node) in self.substitutes
        return Guards(frozenset(holds), self.guards.fails, self.guards.tests, excepts)

    def marked(self, decorator: ast.expr) -> str:
        """The text of a decorator, with that of the mark which the module binds to its name: `sm80 = skipif(...)`."""
        text = self.text(decorator)
        skips = self.skips.get(text) if isinstance(decorator, ast.Name) else None
        return text if skips is None else f"{text} {_CAPABILITY.sub('cuda', skips)}"

    @cached_property
    def skips(self) -> dict[str, str]:
        """The marks that the module level binds to names, with the text of each: `sm80 = pytest.mark.skipif(...)`."""
        found: dict[str, str] = {}
        for node in self.scan.tree.body if self.scan.tree is not None and "skip" in self.source.text else ():
            bound = self.text(node.value) if isinstance(node, ast.Assign) else ""
            for target in node.targets if isinstance(node, ast.Assign) and "skip" in bound else ():
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, bound)
        return found


def is_created(value: Value) -> bool:
    """Whether a tensor is where it is since it was made there: `torch.zeros(3, device=x.device)`."""
    return bool(value.because) and value.because[0].text.startswith("created on `")


def names_scope(value: Value, start: int) -> bool:
    """Whether a value, or something in it, is where a variable of the scope that begins at `start` says."""
    if any(isinstance(place, Symbol) and place.scope == start for place in value.device):
        return True
    if value.elements is None:
        return False
    elements = value.elements if isinstance(value.elements, tuple) else value.elements.values()
    return any(names_scope(element, start) for element in elements)


def component(value: Value, position: int) -> Value | None:
    """An element of a returned tuple, or the value itself."""
    if value.kind == "tuple" and isinstance(value.elements, tuple):
        return value.elements[position] if position < len(value.elements) else None
    return value


def by_path(value: Value, elsewhere: Device) -> list[Value]:
    """What a returned value is on the paths of the last condition that tells it apart; a default for None is no such path.

    `if worst > 1: loss = torch.tensor([1.0])` returns what was computed, or what is made there.
    """
    if value.split is None or not value.made or _ASKS.search(value.split[0]) is not None:
        return [value]
    sides = value.split[1:]
    if not any(side.made and CPU <= side.device <= elsewhere | CPU for side in sides):
        return [value]
    return [
        replace(side, device=elsewhere, made=()) if side.device == elsewhere | CPU and side.made else side
        for side in sides
    ]


def is_empty(creation: Creation) -> bool:
    """Whether a tensor is made without elements, to stand for nothing: `torch.empty(0)`, `torch.tensor([])`."""
    if len(creation.node.args) != 1:
        return False
    size = creation.node.args[0]
    if isinstance(size, (ast.List, ast.Tuple)):
        return not size.elts
    return isinstance(size, ast.Constant) and size.value == 0 and creation.function not in FROM_DATA


def is_literal(creation: Creation) -> bool:
    """Whether a tensor is made of what its code shows (sizes and constants), not converted from host data."""
    if creation.function not in FROM_DATA and not creation.function.endswith("Tensor"):
        return True
    first = creation.node.args[0] if creation.node.args else None
    while isinstance(first, (ast.List, ast.Tuple)):
        first = first.elts[0] if first.elts else ast.Constant(0)
    return isinstance(first, (ast.Constant, ast.UnaryOp))


def is_host_name(name: str) -> bool:
    """Whether a function's name says that what it gives is on the host."""
    return any(word in name.lower() for word in ("cpu", "numpy", "host", "dummy", "example"))


def is_stub(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Whether a function has nothing in it but a docstring and its refusal to run: a subclass says what it gives."""
    return all(
        isinstance(s, ast.Pass)
        or (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))
        or (isinstance(s, ast.Raise) and s.exc is not None and _says_abstract(s.exc))
        for s in node.body
    )


def _says_abstract(error: ast.expr) -> bool:
    error = error.func if isinstance(error, ast.Call) else error
    return isinstance(error, ast.Name) and error.id == "NotImplementedError"


def tensor_like(value: Value) -> bool:
    """Whether a value is, or may be, a tensor."""
    return value.is_tensor or value.kind == "unknown"


def informs(value: Value) -> bool:
    """Whether an argument tells a function something about devices."""
    return value.kind not in ("unknown", "number", "string", "bool", "none")


def mentions_devices(class_: ClassFacts) -> bool:
    """Whether the text of a class, a data set mostly, names devices or moves anything."""
    for child in walk(class_.node):
        if isinstance(child, ast.Attribute) and child.attr in ("to", "cuda", "device", "xpu", "mps", "npu"):
            return True
        if isinstance(child, ast.Constant) and isinstance(child.value, str) and parse_device(child.value):
            return True
        if isinstance(child, ast.arg) and "device" in child.arg:
            return True
    return False


def signature(arguments: list[Value], keywords: dict[str, Value], state: State, attributes: dict[str, Value]) -> object:
    """What tells two calls apart as far as devices go."""
    return (
        tuple(map(brief, arguments)),
        tuple((k, brief(v)) for k, v in sorted(keywords.items())),
        tuple((p, brief(attributes[p])) for p in sorted(attributes)),
        state.card,
        state.default.device if state.default is not None else None,
    )


def brief(value: Value) -> object:
    """What tells an argument apart from another one as far as devices go."""
    device = value.device
    return (
        value.kind,
        tuple(sorted(map(str, device))) if device else (),
        value.zero_dim,
        value.type_name or "",
        tuple(map(brief, value.elements[:4])) if isinstance(value.elements, tuple) else None,
        value.ident,
        value.constant if value.kind == "bool" else None,
    )
