"""What a function starts with: its parameters, as annotations, uses and calls show them, and whether it runs on the host."""

from __future__ import annotations

import ast
import keyword
import re
from functools import cached_property, partial

from devlint import knowledge
from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses, library_modules, parts_of_batches, records
from devlint.facts.interpreter.operations import CPU_PLACE, HOST_BATCH
from devlint.facts.interpreter.registration import Registration
from devlint.facts.interpreter.torch_classes import FAMILY_KIND
from devlint.facts.text.annotations import is_tensor_annotation
from devlint.facts.text.classes import ClassFacts
from devlint.facts.text.defined import Function
from devlint.facts.text.kept_arguments import kept_sequences
from devlint.facts.text.parameters import Evidence
from devlint.facts.text.references import is_static, last_name
from devlint.facts.text.scan import FunctionScan
from devlint.facts.text.signatures import named_parameters, parameter_names
from devlint.facts.text.signs import is_loader_name, is_loss_name
from devlint.facts.values import (
    BATCH,
    CPU,
    HOME,
    NOTHING,
    NUMBER,
    UNKNOWN,
    Device,
    Kind,
    Value,
    symbol,
)
from devlint.model import Origin

_PLACING_LOADER = re.compile(r"BucketIterator|loaders?\b[^=\n]*=\s*[\w.]+\((?:[^()]|\([^()]*\))*\bdevice\b")
#: Names of methods of modules that try them as they were built, or ask for the shape of what they give.
_SELF_TEST = re.compile(
    r"(self_?)?test|demo|(check|verify|test)_(equi|in)variance|_?((get|infer|compute|calc)_)?(conv_)?out(put)?_(shape|size)s?"
)
#: A name with its attributes, in the text of a condition.
_NAMES = re.compile(r"(?<![\w.\"'])[A-Za-z_][\w.]*")
_HOOKS = ("register_hook", "register_post_accumulate_grad_hook")  # of tensors
_OPERATIONS = frozenset({"torch.autograd.Function", "torch.autograd.function.Function"})


class Entry(Registration):
    """Adds `bind_parameters` and `evidence_of`."""

    def self_value(self, owner: ClassFacts) -> Value:
        if owner.is_module:
            return Value("module", CPU if self.host else HOME, type_name=owner.name)
        return Value("object", type_name=owner.name)

    def own_object(self, function: Function, owner: ClassFacts, bound: dict[str, Value] | None, name: str) -> Value:
        """What `self` is in a method: of a record, what holds the tensors that its fields are said to hold, or those of the
        object on which it is called."""
        value = self.self_value(owner)
        if owner.is_module:
            return value
        if bound is not None:
            given = bound.get(name, NOTHING)
            held = given.kind == "object" and isinstance(given.elements, dict)
            return replace(value, elements=given.elements) if held else value
        if self.host or not self.assume or not self.callers.is_plausible(function, False):
            return value
        origin = Origin(self.span(owner.node), f"`{owner.name}` holds tensors, which may be on an accelerator")
        return records.on_device(self, owner, HOME, origin) or value

    def runs_on_host(self, function: Function) -> bool:
        owner = function.owner
        if owner is not None and owner.on_host:
            return True
        name = function.name.rsplit(".", 1)[-1]
        if name.startswith("collate") or name in self.collators or name == "__getitem__":
            return True
        if "cpu" in name.lower().split("_"):
            return True  # what it is for stands in its name
        if owner is not None and owner.is_module and _SELF_TEST.fullmatch(name) is not None:
            return True  # it tries the module as it was built
        return self.callers.on_host(function)

    def under_construction(self, function: Function) -> bool:
        """Whether a method runs inside `__init__` of its own class: the module has not moved yet."""
        return function.owner is not None and any(
            f.owner is function.owner and f.name.endswith(".__init__") for f in self.stack
        )

    @cached_property
    def gets_host_batches(self) -> bool:
        """Whether a loader that a function is given has its batches on the host: no loader of the file is told a device."""
        return self.knows_torch and _PLACING_LOADER.search(self.source.text) is None

    def bind_parameters(self, function: Function, bound: dict[str, Value] | None) -> None:
        node = function.node
        assert not isinstance(node, ast.Lambda)
        spec = node.args
        every = named_parameters(spec)
        owner, of_class, static = function.owner, function.is_method, is_static(node)
        evidence = self.evidence_of(function)
        # a module is built on the host; that other code prepares data does not say where it is given its arguments
        built = self.in_init and owner is not None and owner.is_module
        home = HOME if not self.host else CPU if built else UNKNOWN
        on_host = any(v is not None and CPU_PLACE in v.device for v in function.seen.values())
        for index, argument in enumerate(every):
            name = argument.arg
            if index == 0 and of_class and not static and owner is not None:
                is_class = name == "cls" or any(getattr(d, "id", "") == "classmethod" for d in node.decorator_list)
                self.state.env[name] = (
                    Value("class", type_name=owner.name) if is_class else self.own_object(function, owner, bound, name)
                )
                continue
            given = bound.get(name) if bound is not None else function.seen.get(name)
            if given is None and bound is None and on_host and name in function.seen:
                given = NOTHING  # the calls of this file hand it what is on the host
            if given is not None:
                # an argument that is given is never assumed to be somewhere, known or not
                if given.type_name in ("size", "extent"):
                    # a function that is given a size and no tensor leaves it to its caller where the result belongs
                    self.state.env[name] = replace(given, device=UNKNOWN)
                    continue
                given = without_sizes(given)
                if guesses.is_guess(given):
                    self.state.env[name] = self.as_tensor(given) if name in evidence.tensors else given
                    continue
                told = given.split if given.split is not None and self.is_told_here(given.split[0]) else None
                self.state.env[name] = replace(given, split=told) if given.kind != "unknown" else NOTHING
                continue
            passed = function.given.get(name)
            if passed is not None and passed.device == CPU and passed.is_tensor and of_class:
                # every call on the object itself brings a tensor of the CPU: nothing is assumed against that
                self.state.env[name] = replace(passed, split=None)
                continue
            annotated = self.annotated_value(node, argument, home) if argument.annotation is not None else None
            if annotated is None:
                self.state.env[name] = self.plain_argument(function, argument, index, evidence, home)
                continue
            if annotated.kind == "module" and is_loss_name(name):
                annotated = replace(annotated, device=UNKNOWN)  # a loss rarely holds tensors, and is then nowhere
            self.state.env[name] = annotated
            if annotated.kind in ("object", "tuple"):
                self.assumed[self.span(argument)] = (function, name)
            if annotated.kind == "module":
                self.assumed_modules[self.span(argument)] = function, name
        for extra in (spec.vararg, spec.kwarg):
            if extra is not None:
                given = self.annotated_extra(function, extra) if bound is None else None
                self.state.env[extra.arg] = given or (bound or {}).get(extra.arg, NOTHING)

    def plain_argument(
        self, function: Function, argument: ast.arg, index: int, evidence: Evidence, home: Device
    ) -> Value:
        """What an argument is that nothing is seen to be given for, and whose annotation is no class of torch.

        `index`: its place among all, `self` included. `home`: where tensors are.
        """
        name = argument.arg
        if (
            (name in evidence.tensors or name in evidence.containers)
            and not self.host
            and not self.callers.is_plausible(
                function,
                name in evidence.annotated | evidence.several | evidence.documented | evidence.replaced,
            )
        ):
            return NOTHING
        assumes = self.assume and not self.host
        if name in evidence.tensors and (self.assume or self.host) and self.knows_torch:
            return self.assumed_to_be("tensor", home, function, argument)
        if (name in evidence.containers or name in evidence.several) and assumes and self.knows_torch:
            return self.assumed_to_be("tensors", home, function, argument)
        if name in evidence.maybe and assumes and self.knows_torch:
            return self.assumed_to_be("unknown", home, function, argument)
        if name in evidence.devices:
            return Value("device", symbol(name, self.span(function.node).start), type_name="argument")
        if (name in evidence.modules or name in evidence.annotated_modules) and self.assume:
            place = UNKNOWN if is_loss_name(name) else home
            origin = self.origin_of(argument)
            self.assumed_modules[origin.span] = function, name
            return Value("module", place, type_name=f"argument {name}", because=(origin,))
        if argument.annotation is None and is_loader_name(name) and self.assume and self.gets_host_batches:
            return Value("loader", CPU, type_name=BATCH, because=(self.origin(argument, HOST_BATCH),))
        if self.is_batch(function, argument, evidence):
            own = self.scan.functions.get(id(function.node))
            for key in parts_of_batches.carried(own, name) if own is not None else ():
                self.state.env[f"{name}[{key}]"] = NOTHING
            origin = self.origin(argument, HOST_BATCH + "; a part of each batch is moved in this function")
            return Value("tensors", CPU, False, type_name=BATCH, because=(origin,))
        if assumes and index > 0 and is_gradient_of(function):
            return self.assumed_to_be("tensor", home, function, argument)
        if assumes and index == function.is_method and self.is_hook(function):
            return self.assumed_to_be("tensor", home, function, argument)
        if index == 1 and self.is_input(function, argument, evidence):
            return self.assumed_to_be("unknown", home, function, argument)
        return NOTHING

    def assumed_to_be(self, kind: Kind, home: Device, function: Function, argument: ast.arg) -> Value:
        """An argument that is taken to be a tensor, or several; of kind "unknown" it may be one."""
        origin = self.origin_of(argument)
        self.assumed[origin.span] = (function, argument.arg)
        return guesses.guess(home, origin) if kind == "unknown" else Value(kind, home, None, because=(origin,))

    def origin_of(self, argument: ast.arg) -> Origin:
        """What explains where an argument is that is assumed to be somewhere."""
        return self.origin(argument, f"`{argument.arg}` is an argument, which may be on an accelerator")

    def is_told_here(self, key: str) -> bool:
        """Whether a condition of the caller is the same in the function: it asks for what the module level binds, and no local
        of either.

        `if args.cuda: model.cuda()` before `describe(model)`, which asks for `args.cuda` as well.
        """
        names = {name.partition(".")[0] for name in _NAMES.findall(key)}.difference(keyword.kwlist)
        if not names or "(" in key or "@" in key or not names <= self.globals.keys():
            return False
        owns = [self.scan.functions.get(id(function.node)) for function in self.stack[-2:]]
        local = [{*own.bound, *parameter_names(own.node)} if own is not None else names for own in owns]
        return not any(names & each for each in local)

    def annotated_extra(self, function: Function, argument: ast.arg) -> Value | None:
        """What `*tensors: Tensor` and `**tensors: Tensor` hold, where their annotation says that it is tensors."""
        if not is_tensor_annotation(argument.annotation, self.imports.names) or not self.assume or self.host:
            return None
        return self.assumed_to_be("tensors", HOME, function, argument)

    def is_hook(self, function: Function) -> bool:
        """Whether the file hands a function to `register_hook` of a tensor, which gives it the gradient."""
        name = function.name.rpartition(".")[2]
        sites = [s.call for h in _HOOKS for s in self.scan.calls.get(h, ())]
        return any(call.args and last_name(call.args[0]) == name for call in sites)

    def is_batch(self, function: Function, argument: ast.arg, evidence: Evidence) -> bool:
        """Whether an argument is a batch of the host: the function moves a part of it; frameworks move whole batches first."""
        if argument.annotation is not None or argument.arg not in evidence.parted or argument.arg in evidence.narrowed:
            return False
        return self.assume and self.knows_torch and not self.host and not function.name.endswith(("_step", ".forward"))

    def is_input(self, function: Function, argument: ast.arg, evidence: Evidence) -> bool:
        """Whether an argument is the input of a module's `forward`, or the batch of a step of Lightning.

        It is a tensor, or a structure of tensors, wherever the module is.
        """
        step = library_modules.is_step(function.owner, function.name)
        if not self.callers.is_method_of_module(function) or not (step or function.name.endswith(".forward")):
            return False
        spec, name = function.node.args, argument.arg
        needed = len(spec.posonlyargs) + len(spec.args) - len(spec.defaults) > 1
        named = name in evidence.narrowed | evidence.converted | evidence.modules
        return (
            needed and argument.annotation is None and not named and self.assume and self.knows_torch and not self.host
        )

    def evidence_of(self, function: Function) -> Evidence:
        """The uses of a function's parameters, read once."""
        node, owner = function.node, function.owner
        evidence = self.evidence.get(id(node))
        if evidence is None:
            forward = owner is not None and owner.is_module and function.is_method
            forward = forward and not function.name.endswith(".__init__")
            own = self.scan.functions.get(id(node))
            evidence = self.evidence[id(node)] = Evidence(
                node, own if own is not None else FunctionScan(node), self.imports.names, forward,
                self.method_names(owner) if forward else (), owner is not None and owner.is_module,
            )  # fmt: skip
            if (
                own is not None
                and owner is not None
                and function.name == f"{owner.name}.__init__"
                and not owner.is_module
            ):
                annotated = {a.arg for a in named_parameters(function.node.args) if a.annotation is not None}
                evidence.containers |= kept_sequences(own, owner, partial(self.read_method, owner)) - annotated
        return evidence

    def read_method(
        self, class_: ClassFacts, name: str, method: ast.FunctionDef | ast.AsyncFunctionDef
    ) -> tuple[FunctionScan, Evidence] | None:
        """What was collected of a method, and what it uses as tensors."""
        own, qualname = self.scan.functions.get(id(method)), f"{class_.name}.{name}"
        function = self.functions.get(qualname) or Function(method, qualname, class_)
        return (own, self.evidence_of(function)) if own is not None else None

    def method_names(self, owner: ClassFacts | None) -> set[str]:
        """The methods of a class and of its bases in this file."""
        if owner is None:
            return set()
        return set(owner.method_names).union(*(self.method_names(base) for base in owner.local_bases))

    def annotated_parts(self, node: ast.Subscript, argument: ast.arg, home: Device) -> Value | None:
        """What `Tuple[Tensor, int]` says: a tuple of which some parts are tensors; None for other structures."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else []
        if last_name(node.value) not in ("tuple", "Tuple") or not self.assume or self.host:
            return None
        shown = [is_tensor_annotation(part, self.imports.names) for part in parts]
        if all(shown) or not any(shown) or any(isinstance(part, ast.Constant) for part in parts):
            return None
        tensor = Value("tensor", home, None, because=(self.origin_of(argument),))
        return Value("tuple", elements=tuple(tensor if is_one else NOTHING for is_one in shown))

    def annotated_value(self, function: ast.AST, argument: ast.arg, home: Device) -> Value | None:
        """What an annotation with a class of torch says: a module, a loader, an optimizer, a device, a dtype."""
        node = argument.annotation
        if node is None or is_tensor_annotation(node, self.imports.names):
            return None
        while isinstance(node, ast.Subscript):
            name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
            if name != "Optional":
                break
            node = node.slice
        if isinstance(node, ast.BinOp):
            sides = [s for s in (node.left, node.right) if not (isinstance(s, ast.Constant) and s.value is None)]
            if len(sides) != 1:
                return None
            node = sides[0]
        if says_numbers(node):
            return NUMBER if isinstance(node, ast.Name) else Value("list")
        if isinstance(node, ast.Subscript):
            parts = self.annotated_parts(node, argument, home)
            if parts is not None:
                return parts
            node = node.value
        if not isinstance(node, (ast.Name, ast.Attribute)):
            return None
        qualname = self.qualify(node)
        if qualname is None:
            return None
        if qualname in self.classes and self.assume and not self.host:
            return records.on_device(self, self.classes[qualname], home, self.origin_of(argument))
        if qualname == "torch.device":
            # callers hand over texts as well
            return Value("device", symbol(argument.arg, self.span(function).start), type_name="argument")
        if qualname == "torch.dtype":
            return Value("dtype")
        known = knowledge.cls(qualname)
        kind = FAMILY_KIND.get(known.family) if known is not None else None
        if kind == "module":
            because = (self.origin_of(argument),)
            return Value("module", home if self.assume else UNKNOWN, type_name="torch.nn.Module", because=because)
        if kind == "loader":
            return Value("loader", CPU, type_name=BATCH, because=(self.origin(argument, HOST_BATCH),))
        if kind in ("optimizer", "scheduler", "dataset", "generator", "scaler", "distribution"):
            return Value(kind, UNKNOWN, type_name=qualname)
        return None


def is_gradient_of(function: Function) -> bool:
    """Whether a function is the `backward` of an operation: what it gets beside its context are gradients."""
    owner = function.owner
    of_torch = owner is not None and any(base in _OPERATIONS for base in owner.bases)
    return of_torch and function.name.endswith(".backward")


def says_numbers(node: ast.expr) -> bool:
    """Whether an annotation says a number, or a list or tuple of numbers: `float`, `List[int]`, `Tuple[float, float]`."""
    if isinstance(node, ast.Name):
        return node.id in ("int", "float", "bool")
    if not isinstance(node, ast.Subscript):
        return False
    name = node.value.id if isinstance(node.value, ast.Name) else getattr(node.value, "attr", "")
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    parts = [p for p in parts if not (isinstance(p, ast.Constant) and p.value is ...)]
    return name in ("List", "list", "Tuple", "tuple", "Sequence") and bool(parts) and all(map(says_numbers, parts))


def without_sizes(value: Value) -> Value:
    """A tuple or list of numbers without the tensors whose sizes they are, see `bind_parameters`."""
    if value.kind not in ("tuple", "list") or not isinstance(value.elements, tuple):
        return value
    if not any(e.type_name in ("size", "extent") for e in value.elements):
        return value
    return replace(
        value,
        elements=tuple(replace(e, device=UNKNOWN) if e.type_name in ("size", "extent") else e for e in value.elements),
    )
