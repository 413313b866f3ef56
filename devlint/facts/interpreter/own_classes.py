"""Objects of the file's own classes: where they are when they are made, and which devices their constructors were given."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from functools import lru_cache

from devlint import knowledge
from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses, records, rows_of_datasets
from devlint.facts.idioms.devices import parse_device
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.definitions import Definitions
from devlint.facts.interpreter.expressions import literal
from devlint.facts.project.adopted import AdoptedClass
from devlint.facts.text.classes import MODULE, ClassFacts, lineage
from devlint.facts.text.method_names import OFF_HOST
from devlint.facts.text.nodes import statements, walk
from devlint.facts.text.parameters import root_name
from devlint.facts.text.references import is_self_attribute, last_name
from devlint.facts.text.signatures import Plain, default_of, named_parameters, parameter_of, positional_names
from devlint.facts.values import CPU, NOTHING, UNKNOWN, Device, Symbol, Value, join
from devlint.model import Origin

CREATED = "created here"  # the origin of an object
#: Classes of modules without parameters beside those of `torch.nn` [torchvision/ops/stochastic_depth.py; timm/layers/drop.py].
_WITHOUT_STATE = frozenset({"StochasticDepth", "DropPath"})
#: Calls in a constructor that make no part of the object.
_MAKES_NO_PART = frozenset(
    {
        "super", "__init__", "isinstance", "hasattr", "getattr", "callable", "len", "int", "float", "bool", "str", "max", "min",
        "range", "partial", "parameters", "print", "format", "ValueError", "TypeError",
    }
)  # fmt: skip


class OwnClasses(Definitions):
    """Adds `construct_own`."""

    def construct_own(self, node: ast.Call, class_: ClassFacts, arguments: Arguments) -> Value:
        """An instance of a class of this file."""
        self.prepare(class_)
        because = (Origin(self.span(node), CREATED),)
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
            given = list(guesses.opened(value for _, value in arguments.every()))
            parts = {value.device for value in given if value.kind == "module"}
            if (
                len(parts) == 1
                and keeps_given(class_, arguments)
                and device in (UNKNOWN, *parts)
                and (device or not devices)
            ):
                device = parts.pop()  # what it is made of is one of its parts
            elif parts or gets_unknown_module(class_, arguments):
                device = UNKNOWN
            if any(value.is_tensor and value.device != CPU for value in given):
                device = UNKNOWN  # it may be placed where that is
            if device and self.is_made_by_told(class_, arguments):
                device = UNKNOWN
            holds = any(value.kind == "module" for value in given)  # which may be moved by themselves
            return Value("module", device, type_name=class_.name, because=because, ident=because[0].span, shared=holds)
        if class_.family == "Dataset":
            # one of another file has bases there, and transforms, that may move what it gives
            places = class_.abroad or mentions_devices(class_.node) or self.gets_placing_function(arguments)
            # it may keep what it is given, and give parts of that
            places = places or any(map(rows_of_datasets.is_placed, guesses.opened(v for _, v in arguments.every())))
            device = UNKNOWN if places else CPU
            return Value("dataset", device, type_name=class_.name, because=because)
        if class_.family == "Optimizer":
            return Value("optimizer", UNKNOWN, type_name=class_.name, because=because)
        stated = {k: v for k, (_, v) in arguments.keywords.items() if v.kind in ("string", "device") and v.device}
        plain = "__init__" not in class_.method_names and stated and not arguments.star
        # a dataclass: what it is given is what its fields hold
        held = {**(stated if plain else {}), **records.made(class_, arguments)}
        return Value("object", elements=held or None, type_name=class_.name, because=because)

    def gets_placing_function(self, arguments: Arguments) -> bool:
        """Whether something that a data set is given may place its items, such as a transform: it names a device or a move,
        or takes a method of a module: `ProteinSet(path, transform=model.prepare)`."""
        for argument, _ in arguments.every():
            if mentions_devices(argument):
                return True
            for part in walk(argument):
                if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
                    holder = self.lookup(part.value.id)
                    if holder is not None and holder.kind == "module":
                        return True
        return False

    def is_made_by_told(self, class_: ClassFacts, arguments: Arguments) -> bool:
        """Whether a constructor makes all parts with state by functions that it is given, and each knows a device."""
        told = {id(node) for node, value in arguments.every() if self.is_told_a_device(node, value)}
        found = class_.method("__init__") if told and not arguments.star else None
        if found is None or any("__init__" in each.methods for each in lineage(class_) if each is not found[0]):
            return False
        names = positional_names(found[1].args)[1:]
        nodes = dict(zip(names, arguments.nodes, strict=False))
        nodes.update((name, node) for name, (node, _) in arguments.keywords.items())
        return makes_all_by(found[1], {name: id(node) in told for name, node in nodes.items()})

    def is_told_a_device(self, node: ast.expr, function: Value) -> bool:
        """Whether a function knows a device to make things on: `partial(nn.Linear, 8, device=device)`, a lambda likewise.

        One with options that are spread out, `partial(nn.Linear, **options)`, may know one.
        """
        if function.kind != "function":
            spread_out = isinstance(node, ast.Call) and any(keyword.arg is None for keyword in node.keywords)
            return spread_out and isinstance(node, ast.Call) and last_name(node.func) == "partial"
        name = function.type_name or ""
        if name in self.partials:
            first = self.partials[name][1]
            assert isinstance(first, Arguments)
            named = (value for keyword, value in first.named().items() if "device" in keyword)
            if any(value.device != CPU and value.kind != "none" for value in named):
                return True
            return any(v.kind in ("device", "string") and v.device not in (UNKNOWN, CPU) for v in first.values)
        made = self.functions[name].node if name in self.functions else None
        if isinstance(made, ast.FunctionDef) and len(made.body) == 1:
            return is_told(made.args, made.body[0])  # a function of one line
        return name in self.lambdas and is_told(self.lambdas[name][0].args, self.lambdas[name][0].body)

    def built_devices(self, class_: ClassFacts) -> list[Device] | None:
        if isinstance(class_, AdoptedClass):
            return list(class_.devices) if class_.devices is not None else None
        devices = list(self.built.get(class_.name, ()))
        for base in class_.local_bases:
            inherited = self.built_devices(base)
            if inherited is None:
                return None
            devices += inherited
        if any(b not in MODULE for b in class_.bases if b not in self.classes and b not in class_.followed):
            return None
        return devices

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
        names = positional_names(spec)
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

    def of_made(self, value: Value, owner: Value) -> Value:
        """Of an object that nobody is seen to make, an argument say, its tensors may be on an accelerator.

        One that is made in view has those of its constructor's arguments, where these are all on the same known device.
        """
        if not owner.because or owner.because[0].text != CREATED:
            return value
        made = self.constructions.get(owner.because[0].span) if owner.because[0].path is None else None
        found = made[0].method("__init__") if made is not None else None
        if made is None or found is None:
            return replace(value, device=UNKNOWN)
        arguments: Arguments = made[1]
        assumed = self.assumed.get(value.because[0].span) if value.because else None
        if assumed is not None and assumed[0].node is found[1] and not arguments.star:
            names = positional_names(found[1].args)
            taken = arguments.get(assumed[1], names.index(assumed[1]) - 1 if assumed[1] in names else None)
            given = [taken[1]] if taken is not None else []
        else:
            given = [each for each in guesses.opened(v for _, v in arguments.every()) if each.is_tensor]
        devices = {each.device for each in given}
        if len(devices) != 1:
            return replace(value, device=UNKNOWN)
        return replace(value, device=devices.pop(), because=given[0].because or value.because)

    def default_given(self, constant: ast.Constant) -> Value:
        """A default of a constructor, which may stand in another file: its place says nothing here."""
        if constant.value is None:
            return Value("none")
        return literal(constant.value) if isinstance(constant.value, (str, int)) else NOTHING


def keeps_given(class_: ClassFacts, arguments: Arguments) -> bool:
    """Whether the constructor keeps the modules that it is given as attributes, as they are: `self.net = net`."""
    found = class_.method("__init__")
    if found is None or arguments.star or arguments.double_star:
        return False
    names = positional_names(found[1].args)[1:]
    given = [name for name, value in zip(names, arguments.values, strict=False) if value.kind == "module"]
    given += [name for name, (_, value) in arguments.keywords.items() if value.kind == "module"]
    kept = {
        node.value.id
        for node in statements(found[1])
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Name)
        and any(isinstance(target, ast.Attribute) for target in node.targets)
    }
    return bool(given) and kept.issuperset(given)


def gets_unknown_module(class_: ClassFacts, arguments: Arguments) -> bool:
    """Whether an argument of the constructor that is a module is given something of which nothing is known.

    One that is annotated as a module, or of which the class calls what it keeps of it.
    """
    found = class_.method("__init__")
    spec = found[1].args if found is not None else None
    given = arguments.by_name(positional_names(spec)[1:]) if spec is not None else {}
    noted = named_parameters(spec) if spec is not None else []
    unknown = {a.arg for a in noted if a.arg in given and given[a.arg].kind == "unknown"}
    if any(a.arg in unknown and a.annotation is not None and last_name(a.annotation) == "Module" for a in noted):
        return True
    return found is not None and bool(unknown) and calls_kept(class_, found[1], unknown)


def calls_kept(class_: ClassFacts, init: ast.AST, names: set[str]) -> bool:
    """Whether a class calls an attribute that its constructor takes from an argument: `self.head = net.decoder.head`."""
    roots = set(names)  # what stands for the arguments or their parts
    attributes: set[str] = set()
    for node in statements(init):
        if isinstance(node, ast.Assign) and isinstance(node.value, (ast.Name, ast.Attribute)):
            if root_name(node.value) in roots:
                roots |= {t.id for t in node.targets if isinstance(t, ast.Name)}
                attributes |= {t.attr for t in node.targets if isinstance(t, ast.Attribute) and is_self_attribute(t)}
    return bool(attributes) and any(not attributes.isdisjoint(called_on_self(each.node)) for each in lineage(class_))


@lru_cache(256)
def called_on_self(class_: ast.AST) -> frozenset[str]:
    """The attributes of `self` that the code of a class calls."""
    calls = (node.func for node in walk(class_) if isinstance(node, ast.Call))
    return frozenset(func.attr for func in calls if isinstance(func, ast.Attribute) and is_self_attribute(func))


def makes_all_by(init: Plain, told: Mapping[str, bool]) -> bool:
    """Whether a constructor makes a part by a parameter that is told a device, and nothing that may have state otherwise.

    `told`: whether what is given for a parameter is told one, for those that are given.
    """
    made = False
    for call in (node for node in walk(init) if isinstance(node, ast.Call)):
        name = last_name(call.func)
        if isinstance(call.func, ast.Name) and parameter_of(init.args, name) is not None:
            if name in told:
                made = True
                if not told[name]:
                    return False
                continue
            default = default_of(init.args, name)
            name = last_name(default) if default is not None else ""
        if name not in _MAKES_NO_PART and not is_without_state(name):
            return False
    return made


def is_without_state(name: str) -> bool:
    """Whether a class of modules has no parameters, by its last name."""
    holds_them = name.startswith(("Parameter", "Buffer"))
    known = knowledge.cls(f"torch.nn.{name}") if name[:1].isupper() and not holds_them else None
    return name in _WITHOUT_STATE or (known is not None and not known.takes_device)


def is_told(arguments: ast.arguments, body: ast.AST) -> bool:
    """Whether a function makes something on a device, or moves it there, which it does not read off its own arguments."""
    own = {node.arg for node in walk(arguments) if isinstance(node, ast.arg)}
    for node in walk(body):
        given = [k.value for k in node.keywords if k.arg == "device"] if isinstance(node, ast.Call) else []
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "to":
            given += (each for each in node.args if mentions_devices(each) or "device" in last_name(each))
        for each in given:
            parts = list(walk(each))
            host = any(isinstance(part, ast.Constant) and part.value in ("cpu", None) for part in parts)
            if not host and not any(isinstance(part, ast.Name) and part.id in own for part in parts):
                return True
    return False


def mentions_devices(node: ast.AST) -> bool:
    """Whether the text of a class, a data set mostly, or of what it is given, names devices or moves anything."""
    for child in walk(node):
        if isinstance(child, ast.Attribute) and (child.attr in OFF_HOST or child.attr == "device"):
            return True
        if isinstance(child, ast.Constant) and isinstance(child.value, str) and parse_device(child.value):
            return True
        if isinstance(child, (ast.arg, ast.keyword)) and "device" in (child.arg or ""):
            return True
    return False
