"""Everything one wheel says: public names, functions, methods and classes, as records without version facts."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from devlint.dev.torchapi import schemas, signatures
from devlint.dev.torchapi.schemas import Schema
from devlint.dev.torchapi.signatures import Shape
from devlint.dev.torchapi.source import Definition, FunctionNode, Wheel, dotted
from devlint.knowledge.records import ACCEPTS, Class, Function

# Namespaces whose functions and classes get records; every other public namespace has its names only.
RECORDED = (
    "torch", "torch.accelerator", "torch.amp", "torch.autograd", "torch.backends", "torch.compiler", "torch.cpu",
    "torch.cuda", "torch.distributed", "torch.distributions", "torch.fft", "torch.func", "torch.functional",
    "torch.futures", "torch.hub", "torch.jit", "torch.linalg", "torch.masked", "torch.mps", "torch.mtia",
    "torch.multiprocessing", "torch.nested", "torch.nn", "torch.optim", "torch.overrides", "torch.profiler",
    "torch.quasirandom", "torch.random", "torch.return_types", "torch.serialization", "torch.signal", "torch.sparse",
    "torch.special", "torch.storage", "torch.testing", "torch.types", "torch.utils", "torch.xpu",
)  # fmt: skip
_SKIPPED = (
    "torch.nn.intrinsic", "torch.nn.qat", "torch.nn.quantizable", "torch.nn.quantized", "torch.distributed.elastic",
    "torch.distributed.benchmarks", "torch.distributed.launcher", "torch.distributed.checkpoint",
    "torch.distributed.pipelining", "torch.distributed.rpc", "torch.utils.hipify", "torch.utils.jit",
    "torch.utils.bottleneck", "torch.utils.viz", "torch.utils.data.datapipes", "torch.utils.benchmark.examples",
    "torch.utils.benchmark.op_fuzzers", "torch.jit.frontend", "torch.jit.annotations",
    "torch.jit.unsupported_tensor_ops",
)  # fmt: skip

# The classes whose methods are listed one by one, by family; the first class wins for a name that several have.
FAMILIES: dict[str, tuple[str, ...]] = {
    "Tensor": ("torch.Tensor",),
    "Module": ("torch.nn.Module",),
    "Optimizer": ("torch.optim.Optimizer",),
    "LRScheduler": ("torch.optim.lr_scheduler.LRScheduler", "torch.optim.lr_scheduler.ReduceLROnPlateau"),
    "DataLoader": ("torch.utils.data.DataLoader",),
    "Dataset": ("torch.utils.data.Dataset",),
    "Sampler": ("torch.utils.data.Sampler",),
    "Generator": ("torch.Generator",),
    "Stream": ("torch.Stream", "torch.cuda.Stream"),
    "Event": ("torch.Event", "torch.cuda.Event"),
    "GradScaler": ("torch.amp.GradScaler",),
    "PackedSequence": ("torch.nn.utils.rnn.PackedSequence",),
    "Distribution": ("torch.distributions.Distribution",),
    "Transform": ("torch.distributions.Transform",),
    "Storage": ("torch.UntypedStorage", "torch.TypedStorage"),
    "autocast": ("torch.amp.autocast",),
    "device": ("torch.device",),
    "dtype": ("torch.dtype",),
    "Size": ("torch.Size",),
}

_DUNDERS = {
    "add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "floordiv": "floor_divide", "mod": "remainder",
    "pow": "pow", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or", "xor": "bitwise_xor",
    "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "eq": "eq", "ne": "ne", "lt": "lt", "le": "le",
    "gt": "gt", "ge": "ge", "neg": "neg", "pos": "positive", "invert": "bitwise_not", "abs": "abs", "div": "div",
}  # fmt: skip
_NAMESPACE_OPERATORS = {"torch.linalg": "linalg_", "torch.fft": "fft_", "torch.special": "special_"}
_SYNC_TAGS = {"data_dependent_output", "dynamic_output_shape"}
_INSTEAD = re.compile(
    r"(?:please use|use|in favor of|switch to|replaced by|instead use)\s+[`'\"]+([\w.]+)(?:\([^`]*\))?[`'\"]+", re.I
)


@dataclass(slots=True)
class Facts:
    """What was read from one wheel, by qualified public name; an alias maps to the name that holds the record."""

    version: tuple[int, int]
    names: dict[str, frozenset[str]] = field(default_factory=dict)
    open_namespaces: set[str] = field(default_factory=set)
    functions: dict[str, Function] = field(default_factory=dict)
    methods: dict[str, dict[str, Function]] = field(default_factory=dict)
    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    classes: dict[str, Class] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    deprecated: dict[str, str | None] = field(default_factory=dict)
    keywords: dict[str, frozenset[str]] = field(default_factory=dict)


def is_recorded(namespace: str) -> bool:
    """Whether the functions and classes of a public namespace get records."""
    top = ".".join(namespace.split(".")[:2])
    return top in RECORDED and not any(namespace == s or namespace.startswith(s + ".") for s in _SKIPPED)


def _deprecation(node: ast.AST) -> tuple[bool, str | None]:
    """Whether a definition always warns that it is deprecated, and the name it recommends.

    Counts a `@deprecated` decorator and an unconditional `warnings.warn` with the word in a statement of the body
    itself.
    """
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return False, None
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and (dotted(decorator.func) or "").rpartition(".")[2] == "deprecated":
            return True, _recommended(decorator)
    body = node.body
    if isinstance(node, ast.ClassDef):
        init = next((n for n in node.body if isinstance(n, ast.FunctionDef) and n.name == "__init__"), None)
        if init is None:
            return False, None
        for decorator in init.decorator_list:
            if isinstance(decorator, ast.Call) and (dotted(decorator.func) or "").rpartition(".")[2] == "deprecated":
                return True, _recommended(decorator)
        body = init.body
    for statement in body:
        call = statement.value if isinstance(statement, ast.Expr) else None
        if isinstance(call, ast.Call) and dotted(call.func) in ("warnings.warn", "warn") and call.args:
            text = _text(call.args[0]).lower()
            if "deprecated" in text and "argument" not in text and "parameter" not in text:
                return True, _recommended(call)
    return False, None


def _text(node: ast.AST) -> str:
    return "".join(n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def _recommended(call: ast.Call) -> str | None:
    if not call.args:
        return None
    found = _INSTEAD.search(" ".join(_text(call.args[0]).split()))
    if found is None or "." not in found.group(1):
        return None
    name = found.group(1).rstrip(".")
    return name if name.startswith("torch.") else None


class Extractor:
    """Reads one wheel; `run` gives its Facts."""

    def __init__(self, wheel: Wheel) -> None:
        self.wheel = wheel
        self.operators = schemas.read(wheel.root)
        self.facts = Facts(wheel.version)
        self.canonical: dict[str, str] = {}
        self.constructors = self._default_device_constructors()

    def _default_device_constructors(self) -> frozenset[str]:
        """The functions that follow the default device: the set written down in torch/utils/_device.py."""
        module = self.wheel.module("torch.utils._device")
        found: set[str] = set()
        for node in ast.walk(module.tree) if module else ():
            if isinstance(node, ast.FunctionDef) and node.name == "_device_constructors":
                for element in (e for s in ast.walk(node) if isinstance(s, ast.Set) for e in s.elts):
                    name = dotted(element)
                    if name:
                        found.add(name)
        return frozenset(found)

    def run(self) -> Facts:
        modules = self.wheel.public_modules()
        pending: dict[str, list[tuple[int, int, str]]] = {}
        definitions: dict[str, Definition] = {}
        for name in modules:
            names = self.wheel.names(name)
            self.facts.names[name] = frozenset(n for n in names if not n.startswith("_"))
            module = self.wheel.module(name)
            if module is not None and name != "torch" and (module.has_getattr or self.wheel.opaque_stars(module)):
                self.facts.open_namespaces.add(name)
            if not is_recorded(name):
                continue
            for attr in sorted(names):
                private = attr.startswith("_")
                if attr.startswith("__") or (private and name != "torch" and not self._defines_class(name, attr)):
                    continue
                definition = self.wheel.resolve(name, attr)
                if definition is None or definition.kind == "module" or not definition.module.startswith("torch"):
                    continue
                if definition.kind == "value" and not self._is_operator(name, attr):
                    continue
                if private and definition.kind == "class" and definition.module != name:
                    continue
                if not self._belongs(name, attr, definition):
                    continue
                key = definition.qualname if definition.kind != "value" else f"{name}.{attr}"
                rank = 0 if module is not None and module.exported and attr in module.exported else 1
                pending.setdefault(key, []).append((name.count("."), rank, f"{name}.{attr}"))
                definitions[key] = definition
        for key, places in pending.items():
            places.sort()
            home = places[0][2]
            self.canonical[key] = home
            for _, _, place in places:
                if place != home:
                    self.facts.aliases[place] = home
        for key, definition in definitions.items():
            self._record(self.canonical[key], definition)
        self._private_bases()
        for family, roots in FAMILIES.items():
            self._family(family, roots)
        return self.facts

    def _defines_class(self, namespace: str, attr: str) -> bool:
        """Private classes are recorded where they are defined: people subclass some (`_LRScheduler`, `_Loss`)."""
        module = self.wheel.module(namespace)
        return module is not None and any(b.kind == "class" for b in module.bindings.get(attr, ()))

    def _belongs(self, namespace: str, attr: str, definition: Definition) -> bool:
        """Whether a name is offered by the namespace, not just imported for its own use."""
        module = self.wheel.module(namespace)
        if module is None or definition.module == namespace or namespace == "torch":
            return True
        if module.exported is not None and attr in module.exported:
            return True
        if any(b.kind == "value" for b in module.bindings.get(attr, ())):
            return True
        if module.exported is not None and module.exported_complete:
            return False
        return (module.is_package and definition.module.startswith(namespace + ".")) or definition.module.startswith(
            "torch._C"
        )

    def _is_operator(self, namespace: str, attr: str) -> bool:
        prefix = _NAMESPACE_OPERATORS.get(namespace)
        return prefix is not None and prefix + attr in self.operators

    def _record(self, qualname: str, definition: Definition) -> None:
        if definition.kind == "class":
            self.facts.classes[qualname] = self._class(qualname, definition)
        else:
            self.facts.functions[qualname] = self._function(qualname, definition)
        for node in definition.nodes:
            warns, instead = _deprecation(node)
            if warns:
                self.facts.deprecated[qualname] = instead

    # -- functions ---------------------------------------------------------------------------------------------------

    def _overloads(self, qualname: str, definition: Definition) -> list[signatures.Overload]:
        name = qualname.rpartition(".")[2]
        found = signatures.of_nodes(definition.nodes)
        if definition.kind == "function" and not definition.module.startswith("torch._C"):
            stub = self.wheel.stub(definition.module)
            typed = [b.node for b in stub.bindings.get(name, ()) if b.kind == "function" and b.node] if stub else []
            if typed:
                better = signatures.of_nodes(typed)
                if any(o.result != "unknown" for o in better):
                    found = better
        if not found:
            operator = self._operator_name(qualname, definition)
            found = [signatures.of_schema(s, False) for s in self.operators.get(operator, ())]
        return found

    def _operator_name(self, qualname: str, definition: Definition | None = None) -> str:
        """The ATen operator behind a public function, by name; "" when there is none."""
        namespace, _, name = qualname.rpartition(".")
        compiled = definition is not None and definition.module.startswith("torch._C")
        if definition is not None and compiled and definition.name in self.operators:
            return definition.name
        prefix = _NAMESPACE_OPERATORS.get(namespace, "")
        if prefix and prefix + name in self.operators:
            return prefix + name
        if namespace in ("torch", "torch.nn.functional", "torch.functional", "torch.sparse", "torch.Tensor"):
            return name if name in self.operators else ""
        return ""

    def _function(self, qualname: str, definition: Definition) -> Function:
        overloads = self._overloads(qualname, definition)
        shape = signatures.fold(overloads)
        operator = self._operator_name(qualname, definition)
        self.facts.keywords[qualname] = shape.names
        record = self._from_shape(qualname, shape, self.operators.get(operator, ()), method=False)
        sync = self._sync_note(qualname)
        return record._replace(sync=sync) if sync else record

    def _sync_note(self, qualname: str) -> str | None:
        """torch.linalg's docstrings insert their notes on synchronisation by name: `{sync_note}`."""
        namespace, _, name = qualname.rpartition(".")
        module = self.wheel.module(namespace) if namespace == "torch.linalg" else None
        if module is None:
            return None
        nodes = [n for b in module.bindings.get(name, ()) if b.node is not None for n in ast.walk(b.node)]
        text = "".join(n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str))
        keys = {n.slice.value for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.slice, ast.Constant)}
        notes = {m for m in ("sync_note", "sync_note_has_ex", "sync_note_ex") if m in keys or f"{{{m}}}" in text}
        if not notes:
            return None
        return "maybe" if notes == {"sync_note_ex"} else "always"

    def _from_shape(self, qualname: str, shape: Shape, operators: tuple[Schema, ...], method: bool) -> Function:
        name = qualname.rpartition(".")[2]
        operator = re.fullmatch(r"__i([a-z]+)__", name)
        inplace = (name.endswith("_") and not name.endswith("__")) or (
            operator is not None and operator.group(1) in _DUNDERS
        )
        accepts = frozenset(a for a in ACCEPTS if a in shape.names)
        result = shape.result
        if inplace and result in ("tensor", "unknown"):
            result = "same"
        tags = {t for s in operators for t in s.tags}
        return Function(
            qualname,
            result,
            self._device_from(qualname, shape, result, accepts, method),
            accepts,
            shape.params,
            shape.tensor_params,
            mixing=self._mixing(operators),
            sync="always" if tags & _SYNC_TAGS else "never",
            inplace=inplace,
            random="nondeterministic_seeded" in tags or "generator" in accepts,
            zero_dim=self._zero_dim(shape, operators, result),
            elementwise=result in ("tensor", "tensors", "same") and "pointwise" in tags,
            sequence_params=shape.sequence_params,
            keyword_only=shape.keyword_only,
            variants=(("dim", shape.with_dim),) if shape.with_dim else (),
        )

    def _device_from(self, qualname: str, shape: Shape, result: str, accepts: frozenset[str], method: bool) -> str:
        if result not in ("tensor", "tensors", "same", "unknown"):
            return "none"
        takes_tensor = method or shape.takes_tensor
        if "device" in accepts:
            return "like" if takes_tensor else "argument"
        if qualname in self.constructors:
            return "default"
        return "first_tensor" if takes_tensor and result != "unknown" else "none"

    def _mixing(self, operators: tuple[Schema, ...]) -> str | None:
        """The most permissive rule among the overloads that take several tensors."""
        checks = {s.check for s in operators if s.tensor_inputs >= 2 and not s.is_out}
        for check, word in (("T", "scalar"), ("E", "exact"), ("N", "none")):
            if check in checks:
                return word
        return None

    def _zero_dim(self, shape: Shape, operators: tuple[Schema, ...], result: str) -> str:
        if result not in ("tensor", "tensors"):
            return "unknown"
        names = dict(shape.defaults)
        if "reduction" in names:
            return (
                "reduces"
                if names["reduction"].strip("'\"") in ("mean", "sum", "Mean", "...", "batchmean")
                else "unknown"
            )
        plain = [s for s in operators if not s.is_out]
        if any("reduction" in s.tags for s in plain):
            whole = [
                s for s in plain
                if (s.tensor_inputs == 1 and not {"dim", "dims"} & {a.name for a in s.arguments})
                or any(a.name in ("dim", "dims") and a.default in ("None", "[]") for a in s.arguments)
            ]  # fmt: skip
            if whole and not any("keepdim" in {a.name for a in s.arguments if a.default == "True"} for s in whole):
                return "reduces"
        return "unknown"

    # -- classes -----------------------------------------------------------------------------------------------------

    def _class(self, qualname: str, definition: Definition) -> Class:
        node = next(n for n in definition.nodes if isinstance(n, ast.ClassDef))
        methods: set[str] = set()
        attributes: set[str] = set()
        constructors: list[FunctionNode] = []
        for item in _class_items(node.body):
            if isinstance(item, FunctionNode):
                if _is_property(item):
                    attributes.add(item.name)
                else:
                    methods.add(item.name)
                if item.name in ("__init__", "__new__"):
                    constructors.append(item)
                attributes |= _set_on_self(item)
            elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                attributes.add(item.target.id)
            elif isinstance(item, ast.Assign):
                for target in item.targets:
                    if isinstance(target, ast.Name):
                        is_method = isinstance(item.value, ast.Name) and item.value.id in methods
                        (methods if is_method or _wraps_method(item.value) else attributes).add(target.id)
        bases = []
        for base in node.bases:
            path = dotted(base.value if isinstance(base, ast.Subscript) else base)
            parent = self.wheel.resolve_path(definition.module, path) if path else None
            if parent is not None and parent.kind == "class":
                bases.append(self.canonical.get(parent.qualname, parent.qualname))
            elif path:
                bases.append(path)
        shape = signatures.fold(signatures.of_nodes(constructors, method=True)) if constructors else None
        params = (*shape.params, *(k for k in shape.keyword_only if k != "**")) if shape else ()
        if not constructors and any((dotted(d.func if isinstance(d, ast.Call) else d) or "").endswith("dataclass")
                                    for d in node.decorator_list):  # fmt: skip
            fields = [i.target for i in node.body if isinstance(i, ast.AnnAssign)]
            params = tuple(f.id for f in fields if isinstance(f, ast.Name))
        return Class(
            qualname,
            bases=tuple(bases),
            methods=frozenset(methods),
            attributes=frozenset(attributes - methods),
            takes_device="device" in params,
            params=params,
        )

    def _private_bases(self) -> None:
        """Bases that no public name leads to get records too, under the name of their definition."""
        waiting = [b for c in self.facts.classes.values() for b in c.bases]
        while waiting:
            base = waiting.pop()
            if base in self.facts.classes or not base.startswith("torch"):
                continue
            module, _, name = base.rpartition(".")
            definition = self.wheel.resolve(module, name)
            if definition is None or definition.kind != "class":
                continue
            record = self._class(base, definition)
            self.facts.classes[base] = record
            waiting.extend(record.bases)

    def _family(self, family: str, roots: tuple[str, ...]) -> None:
        methods: dict[str, Function] = {}
        attributes: dict[str, str] = {}
        for root in roots:
            namespace, _, name = root.rpartition(".")
            root = self.facts.aliases.get(root, root)
            self._members(root, self.wheel.resolve(namespace, name), methods, attributes, family, 0)
        self.facts.methods[family] = methods
        self.facts.attributes[family] = attributes

    def _members(
        self,
        root: str,
        definition: Definition | None,
        methods: dict[str, Function],
        attributes: dict[str, str],
        family: str,
        depth: int,
    ) -> None:
        if definition is None or definition.kind != "class" or depth > 6:
            return
        node = next(n for n in definition.nodes if isinstance(n, ast.ClassDef))
        grouped: dict[str, list[FunctionNode]] = {}
        for item in _class_items(node.body):
            if isinstance(item, FunctionNode):
                if _is_property(item):
                    attributes.setdefault(item.name, signatures.result_type(item.returns))
                else:
                    grouped.setdefault(item.name, []).append(item)
            elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                attributes.setdefault(item.target.id, signatures.result_type(item.annotation))
        for name, nodes in grouped.items():
            if name in methods:
                continue
            overloads = signatures.of_nodes(nodes, method=True)
            operators: tuple[Schema, ...] = ()
            if family == "Tensor":
                operators = self._method_operators(name)
                if all(o.result == "unknown" for o in overloads) and operators:
                    declared = [signatures.of_schema(s, True) for s in operators if not s.is_out]
                    overloads = declared if name in self.operators else overloads
            shape = signatures.fold(overloads)
            qualname = f"{root}.{name}"
            record = self._from_shape(
                qualname, shape, operators, method=family in ("Tensor", "Distribution", "PackedSequence")
            )
            methods[name] = record
            self.facts.keywords[f"{family}::{name}"] = shape.names
            for n in nodes:
                warns, instead = _deprecation(n)
                if warns:
                    self.facts.deprecated[f"{family}::{name}"] = instead
        for base in node.bases:
            path = dotted(base.value if isinstance(base, ast.Subscript) else base)
            target = self.wheel.resolve_path(definition.module, path) if path else None
            self._members(root, target, methods, attributes, family, depth + 1)

    def _method_operators(self, name: str) -> tuple[Schema, ...]:
        found = re.fullmatch(r"__([ir]?)([a-z]+)__", name)
        if found:
            prefix, stem = found.groups()
            if prefix + stem in _DUNDERS:
                prefix, stem = "", prefix + stem
            if stem in _DUNDERS:
                operator = _DUNDERS[stem] + ("_" if prefix == "i" else "")
                return self.operators.get(operator) or self.operators.get(_DUNDERS[stem], ())
        return tuple(s for s in self.operators.get(name, ()) if "method" in s.variants)


def _is_property(function: FunctionNode) -> bool:
    """Whether a decorator turns the method into an attribute."""
    names = {(dotted(d) or "").rpartition(".")[2] for d in function.decorator_list}
    return bool(names & {"property", "cached_property", "lazy_property", "setter"})


def _class_items(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements of a class body, those in branches included."""
    found: list[ast.stmt] = []
    for statement in body:
        if isinstance(statement, ast.If):
            found += _class_items(statement.body) + _class_items(statement.orelse)
        elif isinstance(statement, ast.Try):
            found += _class_items(statement.body) + [s for h in statement.handlers for s in _class_items(h.body)]
        else:
            found.append(statement)
    return found


def _set_on_self(function: FunctionNode) -> set[str]:
    """Attributes that a method sets on its first parameter, by assignment or by the registration calls of nn.Module."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    if not arguments:
        return set()
    me = arguments[0].arg
    found: set[str] = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if isinstance(node.value, ast.Name) and node.value.id == me:
                found.add(node.attr)
        elif isinstance(node, ast.Call) and node.args:
            registers = dotted(node.func) in (f"{me}.register_buffer", f"{me}.register_parameter", f"{me}.add_module")
            first = node.args[0]
            if registers and isinstance(first, ast.Constant) and isinstance(first.value, str):
                found.add(first.value)
    return found


def _wraps_method(value: ast.AST) -> bool:
    """`x = _add_docstr(...)`, `x = some_module.function` and the like put a callable in the class."""
    if isinstance(value, ast.Call):
        return (dotted(value.func) or "").rpartition(".")[2] in (
            "_add_docstr",
            "_handle_torch_function_and_wrap_type_error_to_not_implemented",
            "staticmethod",
            "classmethod",
            "partialmethod",
        )
    return isinstance(value, ast.Attribute) and (dotted(value) or "").startswith(("_C.", "torch._C."))
