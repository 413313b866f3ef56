"""Calls: torch functions by their knowledge record, and the few whose meaning is special."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from devlint import knowledge
from devlint.facts import callers, distributions, guesses, ordering, randomness, rows, sequences
from devlint.facts.api_calls import note_api
from devlint.facts.classes import ClassFacts
from devlint.facts.devices import Devices
from devlint.facts.events import Call, Create, Creation, How, Load, Operand, Use
from devlint.facts.frozen import replace
from devlint.facts.operations import BATCH, CPU_PLACE, ENCODED, TURN, short
from devlint.facts.parameters import knows_other_tensors, reads_like_device
from devlint.facts.placed import classes_of, is_left_on_host
from devlint.facts.uses import all_make_their_input
from devlint.facts.values import (
    COMPUTED,
    CPU,
    GUESS,
    HOME,
    MAYBE_CPU,
    NO_TENSOR,
    NONE,
    NOTHING,
    NUMBER,
    TENSOR_KINDS,
    UNKNOWN,
    Conflict,
    Device,
    Kind,
    Value,
    describe,
    extent,
    is_surely_accelerator,
    may_be_accelerator,
    merge,
    on,
)
from devlint.model import Origin
from devlint.settings import MovingFunction

if TYPE_CHECKING:
    from devlint.facts.machine import Function
    from devlint.knowledge import Function as Record

BY_MODEL = "given by a model, which may be on an accelerator"
FAMILY_KIND: Mapping[str, Kind] = {
    "Tensor": "tensor",
    "Module": "module",
    "Optimizer": "optimizer",
    "LRScheduler": "scheduler",
    "DataLoader": "loader",
    "Dataset": "dataset",
    "Sampler": "sampler",
    "Generator": "generator",
    "Stream": "stream",
    "Event": "event",
    "GradScaler": "scaler",
    "PackedSequence": "packed",
    "Distribution": "distribution",
    "Storage": "storage",
    "autocast": "autocast",
    "device": "device",
    "dtype": "dtype",
}
RESULT_KIND: Mapping[str, Kind] = {
    "tensor": "tensor",
    "tensors": "tensors",
    "bool": "bool",
    "number": "number",
    "none": "none",
    "device": "device",
    "dtype": "dtype",
    "size": "object",
    "str": "string",
    "module": "module",
    "optimizer": "optimizer",
    "stream": "stream",
    "event": "event",
    "generator": "generator",
    "ndarray": "ndarray",
    "storage": "storage",
}
CLOCKS = frozenset(
    {
        "time.time", "time.perf_counter", "time.monotonic", "time.process_time", "time.time_ns",
        "time.perf_counter_ns", "time.monotonic_ns", "timeit.default_timer", "datetime.datetime.now",
        "datetime.datetime.utcnow",
    }
)  # fmt: skip
LOADERS = frozenset(
    {
        "torch.load", "torch.hub.load_state_dict_from_url", "torch.utils.model_zoo.load_url",
        "torch.hub.model_zoo.load_url",
    }
)  # fmt: skip
#: Constructors that take data or a scalar: the number of dimensions follows from the argument.
FROM_DATA = frozenset({"torch.tensor", "torch.as_tensor", "torch.asarray", "torch.scalar_tensor", "torch.from_numpy"})
#: Operations whose result may have no dimension left though the operand has one.
_LOOKS = frozenset({"max", "min", "argmax", "argmin", "median", "nanmedian", "mode", "kthvalue"})
_DROPS_DIMENSIONS = frozenset({"squeeze", "squeeze_", "select", "trace", "diagonal", "unbind", "index", "dot", "vdot"})
#: Functions whose further tensors are lengths [torch/nn/utils/rnn.py].
_OF_FIRST = frozenset({"torch.nn.utils.rnn.unpad_sequence", "torch.nn.utils.rnn.pack_padded_sequence"})
#: Factories whose results are mostly indices, which may stay on the CPU.
_INDICES = frozenset(
    {
        "torch.arange", "torch.randperm", "torch.randint", "torch.tril_indices", "torch.triu_indices", "torch.range",
        "torch.combinations",
    }
)  # fmt: skip
#: Operations that give indices of what they are given.
_GIVE_INDICES = frozenset({"multinomial", "argsort", "argmax", "argmin", "nonzero", "topk", "sort"})
_SIZED = frozenset(
    {"expand", "view", "reshape", "repeat", "permute", "narrow", "tile", "unfold", "unflatten", "new_zeros", "roll"}
)
#: Options of `from_pretrained` by which a model is placed while it is loaded [transformers/modeling_utils.py].
_PLACED = frozenset({"device_map", "device", "load_in_8bit", "load_in_4bit", "quantization_config", "tp_plan"})
#: Functions of numpy that call the method of a tensor they are given, and make an array of a list of tensors, which
#: torch refuses for those of an accelerator [numpy/_core/fromnumeric.py, `_wrapreduction`].
_LIST_READERS = frozenset(f"numpy.{name}" for name in ("mean", "sum", "std", "var", "max", "min", "prod", "any", "all"))
#: Type name of the tensors in a `state_dict`.
STATE = "state"
_TRANSFORMS = "torchvision.transforms"
TO_TENSOR = f"{_TRANSFORMS}.ToTensor"
#: What gives a tensor the shape in its arguments.
_SHAPED = frozenset({"view", "reshape", "expand", "repeat", "tile", "broadcast_to"})
#: Factories whose results have one dimension: what a loop takes from them has none.
_ONE_DIMENSION = frozenset(
    {"torch.arange", "torch.randperm", "torch.range", "torch.linspace", "torch.logspace", "torch.hann_window"}
)
_BOUNDS = frozenset({"clamp", "clip", "clamp_", "clip_"})
_INTEGERS = frozenset({"int", "int8", "int16", "int32", "int64", "long", "short", "uint8", "bool"})
#: Calls that wrap a module and put it where it was; inputs may come from anywhere and are scattered.
_SCATTERING = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})
_LEGACY = frozenset(
    f"torch.{name}Tensor"
    for name in ("", "Float", "Double", "Half", "Long", "Int", "Short", "Byte", "Bool", "BFloat16")
)
_BUILTINS_QUIET = frozenset(
    {
        "print", "len", "isinstance", "range", "str", "repr", "type", "id", "hash", "hasattr", "getattr", "issubclass",
        "callable", "format", "vars", "dir", "super", "next", "iter", "enumerate", "zip", "list", "tuple", "dict",
        "set", "sorted", "reversed", "map", "filter", "sum", "min", "max", "abs", "round", "float", "int", "bool",
        "any", "all", "setattr", "open", "slice", "object", "property",
    }
)  # fmt: skip
#: Functions that call the module they are given: the inputs are their second argument, or one named so.
_RUNNERS = frozenset(
    {
        "thop.profile", "torch.jit.trace", "torch.onnx.export", "torch.export.export", "fvcore.nn.FlopCountAnalysis",
        "torchinfo.summary", "torch.fx.experimental.proxy_tensor.make_fx", "torch._dynamo.export",
    }
)  # fmt: skip
#: Classes that do so when they count, and that projects have copies of [fvcore/nn/jit_analysis.py].
_COUNTERS = frozenset({"FlopCountAnalysis", "ActivationCountAnalysis", "FlopAnalyzer", "ActivationAnalyzer"})
_COLLECTIVES = frozenset(
    {
        "all_reduce", "broadcast", "reduce", "all_gather", "gather", "scatter", "reduce_scatter", "all_to_all",
        "all_gather_into_tensor", "reduce_scatter_tensor", "all_to_all_single",
    }
)  # fmt: skip
#: Words in the name of a function that reads, shows or stores what it is given, on the host for the most part.
READERS = re.compile(
    r"(^|_)(cpu|numpy|plot|draw|show|save|write|log|print|dataset|dataloader|load|assert|check|test|format|append|update|collate)"
)
_EXPORTS = re.compile(r"export|onnx|ncnn|coreml|tflite|openvino|torchscript|jit|convert|deploy", re.IGNORECASE)
_WAITERS = ("synchronize", "barrier", "block_until_ready")
#: Losses whose first argument is the weight of each class [torch/nn/modules/loss.py].
_WEIGHTED = frozenset({"CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "BCELoss", "BCEWithLogitsLoss"})
#: Losses whose weights always have one dimension [aten/src/ATen/native/LossNLL.cpp].
_ONE_WEIGHT_EACH = ("CrossEntropyLoss", "NLLLoss")
#: What fills a new tensor that takes part in the computation of a model: states, noise, masks; no lengths or places.
#: Where normalizations take whether they have weights; the others take it as their fourth argument.
_AFFINE = {"LayerNorm": 2, "RMSNorm": 2}
_FOR_HOST = re.compile(r"len|size|idx|index|num|count|mask|label|target")
FILLED = frozenset({"torch.zeros", "torch.ones", "torch.randn", "torch.rand", "torch.normal"})
#: What is differentiated, and its gradients: they are where it is [torch/csrc/autograd/engine.cpp, validate_outputs].
_ROOTS = {
    "torch.autograd.grad": (("outputs", 0), ("grad_outputs", 2)),
    "torch.autograd.backward": (("tensors", 0), ("grad_tensors", 1)),
}
_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})


class Arguments:
    """The evaluated arguments of one call."""

    __slots__ = ("double_star", "keywords", "nodes", "star", "values")

    def __init__(self) -> None:
        self.nodes: list[ast.expr] = []
        self.values: list[Value] = []
        self.keywords: dict[str, tuple[ast.expr, Value]] = {}
        self.star = False  # `*args` or `**kwargs` of unknown length
        self.double_star = False  # `**kwargs`

    def get(self, name: str, position: int | None = None) -> tuple[ast.expr, Value] | None:
        found = self.keywords.get(name)
        if found is None and position is not None and position < len(self.values) and not self.star:
            return self.nodes[position], self.values[position]
        return found

    def every(self) -> list[tuple[ast.expr, Value]]:
        return [*zip(self.nodes, self.values, strict=True), *self.keywords.values()]


def is_bare(home: str, arguments: Arguments) -> bool:
    """Whether a normalization is made without parameters and running statistics [torch/nn/modules/normalization.py,
    instancenorm.py, batchnorm.py]: it has no device."""
    name = home.rsplit(".", 1)[-1].removeprefix("Lazy")
    if not home.startswith("torch.nn.") or "Norm" not in name:
        return False
    affine = arguments.get("elementwise_affine" if name in ("LayerNorm", "RMSNorm") else "affine", _AFFINE.get(name, 3))
    tracked = arguments.get("track_running_stats", 4)
    if name.startswith("InstanceNorm"):
        return (affine is None or affine[1].constant is False) and (tracked is None or tracked[1].constant is False)
    bare = affine is not None and affine[1].constant is False
    if "BatchNorm" in name:
        return bare and tracked is not None and tracked[1].constant is False
    return bare


class Calls(Devices):
    """Adds what calling a namespace (an imported function or class) means."""

    def arguments(self, node: ast.Call) -> Arguments:
        found = Arguments()
        for argument in node.args:
            if isinstance(argument, ast.Starred):
                value = self.evaluate(argument.value)
                if isinstance(value.elements, tuple):
                    for element in value.elements:
                        found.nodes.append(argument.value)
                        found.values.append(element)
                else:
                    found.star = True
                    found.nodes.append(argument.value)
                    found.values.append(element_of(value))
            else:
                value = self.evaluate(argument)
                found.nodes.append(argument)
                found.values.append(value)
                if value.kind == "function" or isinstance(argument, ast.Attribute):
                    self.hand_over(argument, value)
        for keyword in node.keywords:
            value = self.evaluate(keyword.value)
            if keyword.arg is None:
                found.star = found.double_star = True
                if value.kind == "tensors":
                    found.keywords[f"**{len(found.keywords)}"] = (keyword.value, value)
            else:
                found.keywords[keyword.arg] = (keyword.value, value)
                if value.kind == "function" or isinstance(keyword.value, ast.Attribute):
                    self.hand_over(keyword.value, value)
                if keyword.arg == "device" and not self.is_of_torch(node.func):
                    is_default = isinstance(node.func, ast.Attribute) and node.func.attr == "set_defaults"
                    self.note_named(keyword.value, "default" if is_default else "argument")
        return found

    def is_of_torch(self, function: ast.expr) -> bool:
        """Whether a function is written as one of torch: `torch.zeros`, `nn.Linear`."""
        while isinstance(function, ast.Attribute):
            function = function.value
        target = self.imports.names.get(function.id, "") if isinstance(function, ast.Name) else ""
        return target == "torch" or target.startswith("torch.")

    def tensors(self, arguments: Arguments) -> list[Operand]:
        """The tensor operands among the arguments, lists and tuples of tensors opened one level."""
        found: list[Operand] = []
        for node, value in arguments.every():
            if value.is_tensor:
                found.append(self.operand(node, value))
            elif isinstance(value.elements, tuple) and value.kind in ("list", "tuple"):
                nodes = node.elts if isinstance(node, (ast.List, ast.Tuple)) else None
                for index, element in enumerate(value.elements):
                    if element.is_tensor:
                        inner = nodes[index] if nodes is not None and len(nodes) == len(value.elements) else node
                        found.append(self.operand(inner, element))
        return found

    # -- dispatch ---------------------------------------------------------------------------------------------------

    def call_namespace(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """Call an imported name."""
        if qualname.startswith("torch."):
            note_api(self, node, qualname, arguments)
        randomness.note_sampling(self, node, qualname, arguments)
        if qualname in _RUNNERS or qualname.rpartition(".")[2] in _COUNTERS:
            self.note_run(node, arguments)
        special = SPECIAL.get(qualname)
        if special is not None:
            return special(self, node, qualname, arguments)
        if qualname in CLOCKS:
            return Value("clock", reading=self.current_reading(node, qualname))
        if qualname in LOADERS:
            return self.call_load(node, qualname, arguments)
        if qualname in _LEGACY:
            return self.call_legacy(node, qualname, arguments)
        if qualname.startswith("builtins."):
            return self.call_builtin(node, qualname[9:], arguments)
        if qualname.startswith("torch.cuda.") and qualname.endswith("Tensor"):
            return Value("tensor", self.resolve(on("cuda")), zero_dim=False)
        if qualname.rsplit(".", 1)[-1] in _WAITERS:
            self.wait()
            return NONE
        class_ = knowledge.cls(qualname)
        if class_ is not None and class_.family != "object":
            return self.construct(node, qualname, class_, arguments)
        record = knowledge.function(qualname)
        if qualname in _LIST_READERS and arguments.values and arguments.values[0].kind in ("list", "tuple"):
            self.note_use(node, qualname, self.tensors(arguments)[:1])
        if qualname.startswith("torch.distributed."):
            self.note_collective(node, qualname, arguments)
        if record is not None:
            return self.call_record(node, record, arguments, "function", short(qualname))
        helper = self.helpers.get(qualname)
        if helper is not None:
            return self.call_helper(node, helper, arguments)
        followed = self.call_imported(node, qualname, arguments)
        if followed is not None:
            return followed
        if qualname.startswith("sklearn.") and qualname.rsplit(".", 1)[-1][:1].isupper():
            return Value("object", type_name=qualname)
        self.note_sized(node, arguments)
        self.escape(node, arguments)
        if qualname.startswith("torch.") and class_ is None:
            root, _, name = qualname.rpartition(".")
            if knowledge.known_namespace(root) and knowledge.is_public_name(root, name) is False:
                self.emit_call(node, qualname, None, arguments, exists=False)
        return guesses.of_import(qualname, self.guessed(node, arguments))

    def class_named(self, node: ast.expr) -> ClassFacts | None:
        """The class that an expression names; None for one that is not known."""
        return self.classes.get(node.id) if isinstance(node, ast.Name) else None

    def makes_its_input(self, node: ast.expr) -> bool:
        """Whether an expression is of `self.model`, a module that makes its input of host data and computes with it there."""
        *_, model, _ = (None, *callers.chain(node))
        return model is not None and all_make_their_input(map(self.class_named, classes_of(self, model)))

    def guessed(self, node: ast.Call, arguments: Arguments, receiver: Value = NOTHING) -> Value:
        """What a call of something unknown is guessed to give, see `guesses`."""
        if not self.assume:
            return NOTHING
        given = [receiver, *arguments.values, *(v for _, v in arguments.keywords.values())]
        found = guesses.result(node.func, given, lambda: self.origin(node, COMPUTED))
        if found is NOTHING and not self.host and callers.is_model_call(node) and callers.uses_cards(self.source.text):
            elsewhere = knows_other_tensors(self.imports.names) or is_left_on_host(self, node.func)
            elsewhere = elsewhere or self.makes_its_input(node.func)
            if not elsewhere and not any(v.is_tensor or v.kind in ("loader", "ndarray") for v in guesses.opened(given)):
                return guesses.guess(HOME, self.origin(node, BY_MODEL))
        return found

    def encoded(self, node: ast.Call, arguments: Arguments) -> Value | None:
        """`tokenizer(text, return_tensors="pt")`: tensors of the CPU, in a batch that has `to`; None for any other call.

        [transformers/tokenization_utils_base.py, `BatchEncoding.convert_to_tensors`]
        """
        form = arguments.keywords.get("return_tensors")
        if form is None or form[1].constant != "pt" or arguments.star or "device" in arguments.keywords:
            return None
        if any(v.is_tensor and v.device != CPU for v in guesses.opened(v for _, v in arguments.every())):
            return None  # some processors keep what they are given where it is
        origin = self.origin(node, ENCODED)
        return Value("tensors", CPU, False, type_name=BATCH, because=(origin,))

    def as_tensor(self, value: Value) -> Value:
        """A guess that turns out to be a tensor; of an argument nothing is guessed any longer then."""
        found = guesses.tensor(value)
        if found is not value and value.because and value.because[0].span in self.assumed:
            return replace(found, type_name=None)
        return found

    def note_sized(self, node: ast.Call, arguments: Arguments) -> None:
        """`scatter(torch.ones(index.size(0)), index)`: an unknown function gets a tensor, and a new one of its size."""
        if arguments.star or len(arguments.values) + len(arguments.keywords) < 2:
            return
        name = self.text(node.func).rsplit(".", 1)[-1]
        if name[:1].isupper() or name == "apply" or READERS.search(name.lower()) is not None:
            return  # `Function.apply` hands on what it is given
        operands = self.tensors(arguments)
        for operand in operands:
            value = operand.value
            if value.device != CPU or value.zero_dim is not False or len(value.made) != 1:
                continue
            known = self.sized.get(value.made[0].span)
            if known is None:
                self.note_beside(node, name, operand, operands)
                continue
            beside = [o for o in operands if o.value.device == known.value.device]
            if any(o.text == known.text.split(".", 1)[0] for o in beside):
                self.meet(node, [operand, next(o for o in beside)], "function", name, "exact")
            elif value.made[0].function in FILLED and self.is_part_of_module(node.func):
                given = [self.operand(n, guesses.tensor(v)) for n, v in arguments.every() if guesses.is_guess(v)]
                beside += [o for o in given if o.value.device == known.value.device]
                if beside:
                    self.meet(node, [operand, beside[0]], "function", name, "exact")
            else:
                self.note_beside(node, name, operand, operands)

    def note_beside(self, node: ast.Call, name: str, new: Operand, operands: list[Operand]) -> None:
        """`emd(torch.ones(n), cost)`: a function that cannot be read gets new weights or noise beside an argument."""
        if (
            not isinstance(new.node, ast.Name)
            or new.value.made[0].function not in FILLED
            or _FOR_HOST.search(new.text.lower()) is not None
        ):
            return
        if any(k.arg == "dtype" and "float" not in self.text(k.value) for k in new.value.made[0].node.keywords):
            return
        beside = [
            o for o in operands if o.value.device == HOME and o.value.kind == "tensor" and o.value.type_name is None
        ]
        if beside:
            self.meet(node, [new, beside[0]], "function", name, "exact")

    def is_part_of_module(self, function: ast.expr) -> bool:
        """Whether what is called is an attribute of the module whose method this is, and no method: `self.decoder(z)`."""
        if not isinstance(function, ast.Attribute) or self.owner is None or not self.owner.is_module:
            return False
        is_own = isinstance(function.value, ast.Name) and function.value.id == "self"
        return is_own and self.owner.method(function.attr) is None

    def note_run(self, node: ast.Call, arguments: Arguments) -> None:
        """A tracer, an exporter or a profiler calls the module it is given with the inputs it is given."""
        given = next((arguments.get(k) for k in ("inputs", "input_data", "example_inputs") if arguments.get(k)), None)
        given = given or arguments.get("args", 1)
        module = arguments.get("model", 0)
        if self.name.endswith("__init__"):
            return  # what an object is made of moves later
        if given is None or module is None or module[1].kind != "module" or not module[1].device:
            return
        if module[1].device == HOME and _EXPORTS.search(f"{self.source.path.rpartition('/')[2]}.{self.name}"):
            return  # code that is there to export gets a module that was just loaded, on the host
        inputs = Arguments()
        inputs.nodes, inputs.values = [given[0]], [given[1]]
        for operand in self.tensors(inputs):
            if operand.value.device == CPU or (operand.value.made and operand.value.device == MAYBE_CPU):
                self.meet(node, [self.operand(*module), operand], "module", "module", "exact")

    def note_collective(self, node: ast.Call, qualname: str, arguments: Arguments) -> None:
        """Emit `Meet` for a new CPU tensor in a collective of the default process group, whose backend may be NCCL."""
        name = qualname.rsplit(".", 1)[-1]
        if name not in _COLLECTIVES or "group" in arguments.keywords or not self.assume or self.host:
            return
        text = self.source.text
        if "gloo" in text or ("new_group(" in text and "nccl" in text):
            return  # groups of its own are for the cards, and the default one is not
        if "cuda" in self.guards.fails or "accelerator" in self.guards.fails:
            return
        for operand in self.tensors(arguments):
            if operand.value.made and operand.value.device == CPU:
                there = Value("tensor", HOME, False)
                other = Operand(self.span(node.func), node.func, self.text(node.func), there)
                because = (*operand.value.because[:1], Origin(self.span(node), "NCCL takes no CPU tensor here"))
                self.emit_meet(node, "collective", self.text(node.func), operand, other, "assume", because)
                return

    def call_helper(self, node: ast.Call, helper: MovingFunction, arguments: Arguments) -> Value:
        """A function that the settings say moves what it is given."""
        if arguments.star or helper.moves >= len(arguments.values):
            return NOTHING
        given = arguments.values[helper.moves]
        device = UNKNOWN
        if helper.to is not None and helper.to < len(arguments.values):
            device = self.device_of_argument(arguments.nodes[helper.to], arguments.values[helper.to]).device
        origin = Origin(self.span(node), f"moved to {describe(device)} here")
        kind: Kind = given.kind if given.is_tensor or given.kind == "module" else "tensors"
        return replace(given, kind=kind, device=device, because=(origin,), made=(), moved=True, elements=None)

    def share(self, arguments: Arguments) -> None:
        """Another object got these modules and may move them with itself; containers may change in its hands."""
        for argument, value in arguments.every():
            self.give(argument, value)

    def give(self, node: ast.expr, value: Value) -> None:
        """A value is handed to something that may move it, or change what is in it."""
        if value.kind != "module" and value.elements is None:
            return
        path = self.path(node)
        if path is None or path not in self.state.env:
            return
        if value.kind == "module" and not value.shared:
            self.state.env[path] = replace(value, shared=True)
        elif value.elements is not None and (value.kind in ("list", "dict") or isinstance(value.elements, dict)):
            self.bind(path, replace(value, elements=None))

    def may_move(self, node: ast.expr) -> None:
        """Something unknown has got hold of what an expression names: a module may be anywhere from now on."""
        path = self.path(node)
        value = self.state.env.get(path) if path is not None else None
        if path is not None and value is not None and value.kind == "module" and value.device and not value.moved:
            self.state.env[path] = replace(value, device=UNKNOWN)

    def escape(self, node: ast.Call, arguments: Arguments) -> None:
        """An unknown function got these arguments: it may move a module in place, or wait for the device."""
        for argument, value in arguments.every():
            self.give(argument, value)
            for part in held(argument):
                self.may_move(part)
            if value.kind == "tensors" and value.type_name == BATCH and self.statement_value is node:
                path = self.path(argument)
                if path is not None and path in self.state.env:
                    self.bind(path, NOTHING)  # `to_device(batch, device)`: it may move what is in it
            if value.kind == "module":
                self.may_move(argument)
            elif value.kind == "event":
                path = self.path(argument)
                if path is not None:
                    self.state.recorded[path] = (self.span(node), True)
            if value.is_tensor and may_be_accelerator(value.device):
                self.state.work = None

    def emit_call(
        self,
        node: ast.expr,
        qualname: str,
        receiver: Operand | None,
        arguments: Arguments | None,
        exists: bool | None = None,
        result: Value = NOTHING,
        is_call: bool = True,
    ) -> None:
        named: dict[str, Operand] = {}
        if arguments is not None:
            for index, (argument, value) in enumerate(zip(arguments.nodes, arguments.values, strict=True)):
                named[str(index)] = self.operand(argument, value)
            for name, (argument, value) in arguments.keywords.items():
                named[name] = self.operand(argument, value)
        because = receiver.value.because if receiver is not None else ()
        discarded = self.statement_value is node
        self.emit(
            Call(
                self.span(node), node, because, self.guards, self.scope(), self.name, qualname, receiver, named,
                is_call, exists, discarded, result,
            )
        )  # fmt: skip

    # -- functions with a record ----------------------------------------------------------------------------------

    def call_record(
        self,
        node: ast.Call,
        record: Record,
        arguments: Arguments,
        how: How,
        operation: str,
        receiver: Operand | None = None,
    ) -> Value:
        """A torch function or tensor method, by what the knowledge says of it."""
        guesses.settle(record, arguments.values)
        operands = self.tensors(arguments)
        if record.qualname in FROM_DATA and not (arguments.values and arguments.values[0].is_tensor):
            operands = []  # a list of tensors is read value by value
        elif record.tensor_params and not record.sequence_params:
            direct = {id(value) for _, value in arguments.every()}
            to_write = arguments.get("out")
            if to_write is not None and isinstance(to_write[1].elements, tuple):
                direct.update(map(id, to_write[1].elements))
            operands = [o for o in operands if id(o.value) in direct]  # a list holds sizes, as numbers or 0-dim tensors
        if record.qualname in ("torch.linspace", "torch.logspace"):
            count = arguments.get("steps", 2)  # a number, whatever gives it; the ends may be tensors
            operands = [o for o in operands if count is None or o.node is not count[0]]
        if receiver is not None:
            if operation in _SIZED:
                operands = []  # sizes, as 0-dim tensors, are read as numbers
            operands.insert(0, receiver)
        if "generator" in record.accepts:
            randomness.note_draw(self, node, record, arguments, operands)
        if record.host_only:
            self.note_use(node, record.qualname, [*drawn(operands, arguments), *self.columns(record, arguments)])
            self.wait()
        out = arguments.get("out")
        device = arguments.get("device") if "device" in record.accepts else None
        if device is not None:
            self.note_literal(device[0], device[1], "argument", record.qualname, "device")
        self.note_index_device(node, record.qualname, arguments)
        written = 0 if record.inplace and operands else None
        if out is not None and how == "function":
            # `tensors` put the operand of `out=` last; it is written to
            outs = out[1].elements if isinstance(out[1].elements, tuple) else (out[1],)
            for index, operand in enumerate(operands):
                if operand.node is out[0] or any(operand.value is o for o in outs):
                    written = index
        if record.qualname.rsplit(".", 1)[-1] in _BOUNDS and any(
            v.kind in ("number", "extent") for v in arguments.values
        ):
            # a number beside it makes a 0-dim bound a number too [torch's argument parser: clamp(Tensor, Number, Number)]
            operands = [o for i, o in enumerate(operands) if i == 0 or o.value.zero_dim is False]
        mixing = record.mixing
        if mixing is None and written is not None and out is not None:
            mixing = "exact"  # what is written to is where the operand is [c10's structured kernels: `set_output`]
        if mixing is not None and len(operands) > 1 and record.device_from not in ("argument", "like"):
            self.meet(node, operands, "inplace" if record.inplace else how, operation, mixing, written)
        if record.qualname in _ROOTS:
            roots = [arguments.get(name, position) for name, position in _ROOTS[record.qualname]]
            parts = Arguments()
            parts.nodes, parts.values = (
                [g[0] for g in roots if g is not None],
                [guesses.tensor(g[1]) for g in roots if g is not None],
            )
            self.meet(node, self.tensors(parts), "function", operation, "exact")
        if record.qualname.rsplit(".", 1)[-1] in _GIVE_INDICES:
            for operand in operands:
                for creation in operand.value.made:
                    self.sized.pop(creation.span, None)  # indices may stay on the CPU
        if record.sync in ("always", "maybe") and any(may_be_accelerator(o.value.device) for o in operands):
            self.wait()
        if record.qualname in ("torch.cuda.synchronize", "torch.accelerator.synchronize"):
            self.wait()
        value = self.result_of(node, record, arguments, operands, device)
        if operands and value.is_tensor and record.mixing not in (None, "none", "copy") and not record.inplace:
            self.work(node, f"`{operation}` is queued here", value.device)
        if out is not None and out[1].is_tensor:
            return out[1]
        return value

    def columns(self, record: Record, arguments: Arguments) -> Iterator[Operand]:
        """The tensors of `pd.DataFrame({"x": x})`: each column becomes an array."""
        first = arguments.get("data", 0) if record.qualname == "pandas.DataFrame" else None
        if first is None or not isinstance(first[0], ast.Dict) or not isinstance(first[1].elements, dict):
            return
        for key, column in zip(first[0].keys, first[0].values, strict=True):
            value = first[1].elements.get(str(key.value)) if isinstance(key, ast.Constant) else None
            if value is not None and value.is_tensor:
                yield self.operand(column, value)

    def result_of(
        self,
        node: ast.Call,
        record: Record,
        arguments: Arguments,
        operands: list[Operand],
        device: tuple[ast.expr, Value] | None,
    ) -> Value:
        positional = len(arguments.values)
        tensors = [i for i, v in enumerate(arguments.values) if v.is_tensor and v.zero_dim is not True]
        result = record.result_of(positional, given_keywords(arguments), numbers_of(arguments), tensors)
        if result == "same":
            if operands and operands[0].node not in arguments.nodes:
                return operands[0].value  # the receiver
            return arguments.values[0] if arguments.values else NOTHING
        kind = RESULT_KIND.get(result)
        if kind is None:
            return NOTHING
        if kind not in ("tensor", "tensors", "module"):
            return Value(kind, type_name=record.qualname if kind == "bool" else None)
        reduction = arguments.keywords.get("reduction")
        literal = reduction[1].constant if reduction is not None else None
        zero_dim = record.reduces_to_scalar(
            positional, arguments.keywords, literal if isinstance(literal, str) else None
        )
        source = record.device_from
        if source == "like" and device is None:
            first = arguments.values[0] if arguments.values else None
            if operands:
                source, operands = "first_tensor", operands[:1]  # a tensor to fill with does not decide
            elif record.qualname.startswith("torch.nested.") or record.qualname.endswith("_like"):
                return Value(kind, UNKNOWN, zero_dim)  # where a tensor is that it is given, or the first of a list
            elif first is None or (
                first.kind in ("unknown", "object", "none")
                and record.qualname != "torch.tensor"
                and first.type_name != NO_TENSOR
            ):
                return Value(kind, UNKNOWN, zero_dim)  # what it takes after is not known
        if source in ("argument", "like", "default"):
            return self.create(node, record, arguments, kind, zero_dim, device)
        if source == "cpu":
            return self.create(node, record, arguments, kind, zero_dim, None, takes_device=False)
        if source == "first_tensor":
            if record.inplace and operands:
                return operands[0].value
            if not operands:
                return Value(kind, UNKNOWN, zero_dim)
            if zero_dim is None and (record.zero_dim == "no" or is_given_a_shape(node, record)):
                zero_dim = False
            # without a check between them the first operand alone decides: `expand_as`, `view_as`, `reshape_as`
            deciding = operands[:1] if record.mixing == "none" else operands
            if record.qualname in _OF_FIRST:
                deciding = [o for o in operands if o.node in arguments.nodes[:1]]
                if not deciding:
                    return Value(kind, UNKNOWN, zero_dim)
            if record.qualname == "torch.autograd.grad":  # a gradient is where that is to which it belongs
                inputs = arguments.get("inputs", 1)
                deciding = [self.operand(*inputs)] if inputs is not None and inputs[1].is_tensor else deciding
            if record.mixing == "scalar" and all(o.value.zero_dim is True for o in deciding):
                if any(v.kind == "unknown" for v in arguments.values):
                    return Value(kind, UNKNOWN, zero_dim)  # a scalar beside what may be a tensor anywhere
            combined = self.combine(deciding, zero_dim)
            if zero_dim is None and combined.type_name is None and reduces_first(record.qualname, arguments):
                combined = replace(combined, type_name=TURN)  # nothing is left of one dimension
            if kind == "tensors":
                return replace(combined, kind="tensors")
            if zero_dim is None and len(operands) == 1 and record.mixing == "scalar":
                return replace(combined, zero_dim=operands[0].value.zero_dim)
            name = record.qualname.rsplit(".", 1)[-1]
            if zero_dim is None and record.zero_dim == "unknown" and name not in _DROPS_DIMENSIONS:
                if all(o.value.zero_dim is False for o in deciding):
                    return replace(combined, zero_dim=False)
            return combined
        builds = record.qualname.startswith(("torchvision.", "timm.", "transformers.")) and not operands
        if kind == "module" and builds and not arguments.star and not _PLACED.intersection(arguments.keywords):
            # it builds a module, or loads one into host memory
            origin = self.origin(node, "created here")
            return Value("module", self.default_device().device, because=(origin,), ident=origin.span)
        return Value(kind, UNKNOWN, zero_dim)

    def create(
        self,
        node: ast.Call,
        record: Record,
        arguments: Arguments,
        kind: Kind,
        zero_dim: bool | None,
        device: tuple[ast.expr, Value] | None,
        takes_device: bool = True,
    ) -> Value:
        """A tensor comes into being. Without a device it is on the default one, and the call is remembered in `made`."""
        qualname = record.qualname
        out = arguments.get("out")
        if out is not None and out[1].kind != "none":
            return out[1]
        if zero_dim is None:
            zero_dim = self.made_zero_dim(qualname, arguments)
        span = self.span(node)
        if device is not None and device[1].kind != "none":
            target = self.device_of_argument(*device)
            named = "the CPU" if target.made else f"`{short(self.text(device[0]))}`"
            origin = Origin(span, f"created on {named} here")
            result = Value(kind, target.device, zero_dim, because=(origin,), made=target.made, moved=not target.made)
            given: Value | None = device[1] if device[1].kind == "index" else target
        elif any(v.kind == "device" for v in arguments.values):
            return Value(kind, UNKNOWN, zero_dim)  # a device among the sizes: the call fails
        elif takes_device and (arguments.double_star or self.draws_from(arguments) or writes_elsewhere(arguments)):
            result = Value(kind, UNKNOWN, zero_dim)
            given = None
        else:
            default = self.default_device() if takes_device and not record.ignores_default else Value("device", CPU)
            origin = Origin(span, "created on the CPU here" if default.device == CPU else "created here")
            made: tuple[Creation, ...] = ()
            if default.device == CPU:
                made = (Creation(span, qualname, node, self.scope(), zero_dim, takes_device),)
            result = Value(kind, default.device, zero_dim, because=(origin,), made=made)
            given = None
            if made and device is None and not arguments.keywords.keys() & {"pin_memory"}:  # on the host on purpose
                self.note_size(made[0], arguments)
        self.emit(Create(span, node, result.because, self.guards, {}, self.name, qualname, given, result))
        return result

    def draws_from(self, arguments: Arguments) -> bool:
        """Whether a `generator=` is given: the tensor must be on the generator's device, which is not known here."""
        generator = arguments.get("generator")
        return generator is not None and generator[1].kind != "none" and generator[1].device != CPU

    def note_size(self, creation: Creation, arguments: Arguments) -> None:
        """Remember the tensor in whose size this one is made, for when it is returned or kept."""
        for node, value in arguments.every():
            for part in (value, *(value.elements if isinstance(value.elements, tuple) else ())):
                if part.type_name in ("size", "extent") and may_be_accelerator(part.device):  # of no guess
                    tensor = Value("tensor", part.device, False, because=part.because)
                    text = part.constant if isinstance(part.constant, str) else self.text(node)
                    self.sized[creation.span] = Operand(self.span(node), node, text, tensor)
                    return

    @property
    def in_forward(self) -> bool:
        return self.name.rpartition(".")[2] == "forward"

    def leave(self, node: ast.expr, value: Value, how: str) -> None:
        """A value is returned or kept: emit `Meet` when it was made on the CPU in the size of an accelerator's tensor."""
        if value.kind != "tensor" or CPU_PLACE not in value.device:
            return
        if value.zero_dim is not False and not (len(value.device) > 1 and all(m.zero_dim is False for m in value.made)):
            return
        if self.owner is not None and self.owner.family not in ("Module", "Optimizer"):
            return  # elsewhere a tensor of a size may well be a count, a mask or a statistic that stays on the host
        for creation in value.made:
            other = self.sized.get(creation.span)
            if self.is_of_caller(creation):
                continue  # it goes back to the function that made it
            if other is not None and not self.stays_behind(other.value):
                continue
            if other is None or creation.function in _INDICES or creation.function in FROM_DATA:
                continue
            if self.counted.get(creation.span) or (creation.span in self.itemized and not self.in_forward):
                continue  # a table of numbers that the host computes, or fills item by item for who moves it
            if any(k.arg == "dtype" and "float" not in self.text(k.value) for k in creation.node.keywords):
                dtype = next(k.value for k in creation.node.keywords if k.arg == "dtype")
                if self.text(dtype).rsplit(".", 1)[-1] in _INTEGERS:
                    continue
            level = self.conflict(CPU, other.value.device)
            if level is not None:
                off = self.operand(creation.place, replace(value, made=(creation,)))
                because = (
                    Origin(creation.span, "created on the CPU here"),
                    Origin(self.span(node), f"{how} here"),
                    *other.value.because[:1],
                )
                self.emit_meet(node, "size", how, off, other, level, because)

    def stays_behind(self, other: Value) -> bool:
        """Whether a tensor of the CPU that takes on what an accelerator's tensor is, or its size, is likely a mistake."""
        if self.function is None:
            return True
        if self.callers.result_is_moved(self.function):
            return False
        if self.is_of_demo(self.function):
            return False
        assumed = self.assumed.get(other.because[0].span) if other.because else None
        if assumed is None:
            return True
        function, name = assumed
        evidence = self.evidence.get(id(function.node))
        annotated = evidence is None or name in evidence.annotated | evidence.several | evidence.documented
        if not self.callers.sites(function) and (annotated or not self.callers.is_method_of_module(function)):
            return annotated
        return self.callers.may_pass_device_data(function, name, annotated)

    def is_of_demo(self, function: Function) -> bool:
        """Whether a function stands under `if __name__ == "__main__"`, where a file tries out what it defines."""
        for node in self.scan.tree.body if self.scan.tree is not None else ():
            if isinstance(node, ast.If) and node.lineno < function.node.lineno <= (node.end_lineno or 0):
                return any(getattr(n, "id", "") == "__name__" for n in ast.walk(node.test))
        return False

    def made_zero_dim(self, qualname: str, arguments: Arguments) -> bool | None:
        """Whether a factory call makes a 0-dim tensor, from its first argument."""
        first = arguments.values[0] if arguments.values else None
        node = arguments.nodes[0] if arguments.nodes else None
        if qualname in FROM_DATA:
            if first is None:
                return None
            if first.kind in ("number", "bool", "index", "clock"):
                return True
            if first.kind in ("list", "tuple") or isinstance(node, (ast.List, ast.ListComp, ast.Tuple)):
                return False
            if qualname == "torch.from_numpy":
                return False
            if first.is_tensor:
                return first.zero_dim
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "get" and len(node.args) == 2:
                default = node.args[1]  # an option: `kwargs.get("rate", 20.0)`
                return True if isinstance(default, ast.Constant) and isinstance(default.value, (int, float)) else None
            return None
        if node is not None and isinstance(node, (ast.Tuple, ast.List)) and not node.elts:
            return True
        if first is None and not arguments.keywords:
            return True
        if qualname == "torch.normal" and arguments.get("size", 2) is None:
            return None  # as the means and deviations are
        return bool(first is not None and first.type_name == "size" and first.zero_dim is True)

    @property
    def default_type_changes(self) -> bool:
        """Whether the file sets another default tensor type, and what is made here may come after that."""
        return self.state.default is not None and "set_default_tensor_type" in self.source.text

    def call_legacy(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`torch.Tensor(...)`, `torch.FloatTensor(...)`: a CPU tensor [torch/_tensor_docs.py].

        `torch.Tensor` stands for the default tensor type, and follows that, but no default device.
        """
        span = self.span(node)
        default = self.state.default
        by_type = qualname == "torch.Tensor" and "set_default_tensor_type" in self.source.text
        if by_type and default is not None and default.device != CPU:
            return Value("tensor", UNKNOWN, False)  # the one class that follows `set_default_tensor_type`
        made = (Creation(span, qualname, node, self.scope(), False, False),)
        because = (Origin(span, "created on the CPU here"),)
        device = arguments.get("device")
        if device is not None:
            self.note_literal(device[0], device[1], "argument", qualname, "device")
            self.emit_call(node, qualname, None, arguments, exists=True)
            return Value("tensor", UNKNOWN, False)
        bare = not node.args or (isinstance(node.args[0], (ast.List, ast.Tuple)) and not node.args[0].elts)
        if bare and not node.keywords:
            return Value("tensor", UNKNOWN)  # without elements: a placeholder
        if qualname == "torch.Tensor" and self.default_type_changes:
            return Value("tensor", UNKNOWN, False)
        result = Value("tensor", CPU, False, because=because, made=made)
        self.emit(Create(span, node, because, self.guards, {}, self.name, qualname, None, result))
        return result

    def positional_device(self, arguments: Arguments) -> tuple[ast.expr, Value] | None:
        """The device that a module is given by position, as in `nn.Linear(n, m, False, device)`."""
        for node, value in zip(arguments.nodes, arguments.values, strict=True):
            named = isinstance(node, (ast.Name, ast.Attribute)) and reads_like_device(
                self.text(node).rsplit(".", 1)[-1]
            )
            if value.kind == "device" or named:
                return node, value
        return None

    def note_index_device(self, node: ast.Call, qualname: str, arguments: Arguments) -> None:
        """`device=x.get_device()`: an index where a device belongs; -1 for a CPU tensor."""
        device = arguments.get("device")
        if device is not None and device[1].kind == "index":
            self.emit_call(node, qualname, None, arguments, exists=True)

    def note_use(self, node: ast.expr, consumer: str, operands: list[Operand]) -> None:
        """Emit `Use` for the first operand that may be on an accelerator."""
        for operand in operands:
            self.use(node, consumer, operand, detached=False)

    def use(self, node: ast.expr, consumer: str, operand: Operand, detached: bool) -> None:
        device, also_arrays = operand.value.device, False
        unmoved = CPU_PLACE in device and not is_moved_here(operand.value)
        if (self.host and not self.is_placed_in_init(device)) or not may_be_accelerator(device) or unmoved:
            return
        if operand.value.type_name == STATE and device == HOME:
            return  # programs that convert weights load them into host memory
        if operand.value.type_name == GUESS and consumer != "numpy":
            return  # it may be an array
        if any(origin.text == BY_MODEL for origin in operand.value.because[:1]):
            return  # who reads it so knows of a model on the host, as far as anybody can tell
        if self.function is not None:
            evidence = self.evidence.get(id(self.function.node))
            roots = {operand.text.split(".", 1)[0].split("[", 1)[0]}
            assumed = self.assumed.get(operand.value.because[0].span) if operand.value.because else None
            if assumed is not None and assumed[0] is self.function:
                roots.add(assumed[1])
            given = assumed is None and bool(operand.value.because) and not guesses.is_guess(operand.value)
            if evidence is not None and not roots.isdisjoint(evidence.narrowed):
                if not given or not roots.isdisjoint(evidence.asked):
                    return  # the code asks what it is, so it may be an array here
                also_arrays = True
        if "accelerator" in self.guards.fails or "cuda" in self.guards.fails:
            return
        level: Conflict = "certain" if is_surely_accelerator(device) else "assume"
        if level == "assume" and (not self.assume or not self.may_be_read_wrongly(operand.value, consumer)):
            return
        self.emit(
            Use(
                self.span(node), node, operand.value.because, self.guards, self.scope(), self.name, consumer, operand,
                level, detached, also_arrays,
            ),
            operand.span,
        )  # fmt: skip

    def may_be_read_wrongly(self, value: Value, consumer: str) -> bool:
        """Whether what rests on an assumption about an argument is likely enough a tensor of an accelerator here."""
        origin = value.because[0] if value.because else None
        if consumer != "numpy" and value.kind == "tensors" and not value.moved and origin is not None:
            # what a function that is not known gives may be arrays; a model that was moved gives tensors to fit
            return consumer.startswith("sklearn.") and origin.text.startswith("moved to")
        if origin is not None and origin.text == COMPUTED and consumer != "numpy":
            origin = value.because[-1]  # what it was computed from
        assumed = self.assumed.get(origin.span) if origin is not None else None
        if assumed is None:
            return True
        function, name = assumed
        evidence = self.evidence.get(id(function.node))
        if evidence is not None and consumer != "numpy" and name in evidence.weak:
            return False  # what has a shape may be an array
        shown = consumer != "numpy" and evidence is not None  # that it has `numpy` shows a tensor of the host as well
        sure = shown and evidence is not None and name in (evidence.tensors | evidence.containers) - evidence.weak
        annotated = evidence is None or name in evidence.annotated
        by_method = consumer == "numpy"
        return self.callers.may_pass_device_data(function, name, annotated, is_sure=sure, by_method=by_method)

    # -- constructors -------------------------------------------------------------------------------------------------

    def construct(self, node: ast.Call, qualname: str, class_: knowledge.Class, arguments: Arguments) -> Value:
        """An object of a class that torch defines."""
        kind = FAMILY_KIND.get(class_.family, "object")
        home = class_.qualname
        origin = Origin(self.span(node), "created here")
        if kind == "loader" or home.endswith("DataParallel"):
            self.watched[node] = {str(i): v for i, v in enumerate(arguments.values)}
            self.watched[node].update({k: v for k, (_, v) in arguments.keywords.items()})
        if kind == "module":
            return self.construct_module(node, qualname, class_, arguments)
        if kind == "optimizer":
            made = Value("optimizer", self.parameters_device(arguments), type_name=home, because=(origin,))
            return ordering.note_optimizer(self, node, qualname, arguments, made)
        if kind == "loader":
            collate = arguments.get("collate_fn")
            dataset = arguments.get("dataset", 0)
            plain = collate is None or collate[1].kind == "none"
            device = CPU if plain else UNKNOWN
            if dataset is not None and device:
                if dataset[1].kind == "dataset":
                    device = dataset[1].device
                elif dataset[1].kind in ("list", "tuple"):
                    item = self.element(dataset[1])
                    device = item.device if item.is_tensor else CPU
                elif dataset[1].is_tensor:  # the collator stacks its rows where they are
                    device = dataset[1].device
            return Value("loader", device, type_name=home, because=(origin,))
        if kind == "dataset":
            parts = [
                v for _, v in arguments.every() if v.kind in ("dataset", "list", "tuple", "unknown") or v.is_tensor
            ]
            given = [(self.element(v) if v.kind in ("list", "tuple") else v).device for v in parts]
            if home.endswith(("Subset", "ConcatDataset")):
                given = given[:1]
            device = given[0] if given and all(d == given[0] for d in given) else UNKNOWN
            return Value("dataset", device, type_name=home, because=(origin,))
        if kind == "tensor":
            if arguments.values and arguments.values[0].is_tensor:
                first = arguments.values[0]
                parameter: Kind = "parameter" if home.endswith("Parameter") else "buffer"
                return replace(first, kind=parameter, attribute=None)
            return Value("tensor", UNKNOWN)
        if kind == "event":
            timing = arguments.get("enable_timing", 0 if qualname != "torch.Event" else None)
            flag = timing[1].constant if timing is not None else False
            unknown = arguments.star or (timing is not None and not isinstance(flag, bool))
            return Value(
                "event", on("cuda") if "cuda" in qualname else UNKNOWN, type_name=home, because=(origin,),
                constant=None if unknown else bool(flag),
            )  # fmt: skip
        if kind in ("autocast", "scaler"):
            type_argument = arguments.get("device_type", 0) or arguments.get("device", 0)
            if type_argument is not None:
                self.note_literal(*type_argument, "autocast", qualname, "type")
        if kind == "distribution":
            return distributions.make(self, node, home, arguments)
        if kind == "generator":
            return randomness.make_generator(self, node, qualname, home, arguments)
        return Value(kind, UNKNOWN, type_name=home, because=(origin,))

    def parameters_device(self, arguments: Arguments) -> Device:
        first = arguments.values[0] if arguments.values else None
        if first is None and "params" in arguments.keywords:
            first = arguments.keywords["params"][1]
        return first.device if first is not None else UNKNOWN

    def construct_module(self, node: ast.Call, qualname: str, class_: knowledge.Class, arguments: Arguments) -> Value:
        """A module: on its `device=` argument, on the default device when it has parameters, else nowhere in particular."""
        home = class_.qualname
        because = (Origin(self.span(node), "created here"),)
        ident = because[0].span
        self.share(arguments)
        device = arguments.get("device")
        if device is not None:
            self.note_literal(device[0], device[1], "argument", qualname, "device")
            self.note_index_device(node, qualname, arguments)
        if home in _SCATTERING or home.endswith("DistributedDataParallel"):
            inner = arguments.get("module", 0)
            ids = arguments.get("device_ids", 1)
            if inner is None:
                return Value("module", UNKNOWN, type_name=home, because=because, ident=ident)
            scatters = home in _SCATTERING or ids is not None
            return Value(
                "module",
                inner[1].device,
                type_name=home if scatters else "torch.nn.Module",
                because=inner[1].because,
                ident=inner[1].ident,
            )
        if home in _CONTAINERS:
            children: list[Value] = []
            for value in arguments.values:
                children += value.elements if isinstance(value.elements, tuple) else [value]
            placed = [c for c in children if c.kind == "module" and c.device]
            if not placed or any(c.kind != "module" for c in children):
                return Value("module", UNKNOWN, type_name=home, because=because, ident=ident)
            result = placed[0]
            for child in placed[1:]:
                result = merge(result, child)
            part = replace(result, ident=None, shared=True, split=None)
            return Value("module", result.device, None, (part,), home, because=because, ident=ident)
        if device is None and class_.takes_device:
            device = self.positional_device(arguments)
        if device is not None and device[1].kind != "none":
            target = self.device_of_argument(*device)
            return Value("module", target.device, type_name=home, because=because, ident=ident)
        if is_bare(home, arguments):
            return Value("module", UNKNOWN, type_name=home, because=because, ident=ident)
        copied = arguments.get("model", 0) if home == "torch.optim.swa_utils.AveragedModel" else None
        if copied is not None:  # a copy of what it is given [torch/optim/swa_utils.py]
            return Value("module", copied[1].device, type_name=home, because=copied[1].because, ident=ident)
        if class_.takes_device and not arguments.double_star:
            default = self.default_device()
            return Value("module", default.device, type_name=home, because=because, ident=ident)
        if home.endswith("Loss"):
            weights = [arguments.get("weight", 0 if home.rsplit(".", 1)[-1] in _WEIGHTED else None)]
            weights.append(arguments.get("pos_weight"))
            for given in weights:
                shaped = given is not None and (given[1].zero_dim is False or home.endswith(_ONE_WEIGHT_EACH))
                if given is not None and given[1].is_tensor and given[1].made and shaped:
                    # a buffer of the loss, which stays where it is until the loss moves
                    value = given[1]
                    return Value(
                        "module", value.device, type_name=home, because=value.because, ident=ident, made=value.made
                    )
        return Value("module", UNKNOWN, type_name=home, because=because, ident=ident)

    # -- loading ------------------------------------------------------------------------------------------------------

    def call_load(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        place = arguments.get("map_location", 1 if qualname == "torch.load" else 2)
        if place is not None:
            self.note_literal(place[0], place[1], "map", qualname, "device")
        expression, _ = self.run_device("cuda")
        operand = self.operand(*place) if place is not None else None
        self.emit(
            Load(
                self.span(node), node, (), self.guards, self.scope(), self.name, qualname, operand, arguments.star,
                expression,
            )
        )  # fmt: skip
        return randomness.loaded(self, place)

    # -- builtins -----------------------------------------------------------------------------------------------------

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
                Value("dict", elements={k: v for k, (_, v) in arguments.keywords.items()})
                if name == "dict"
                else Value("list", elements=())
                if name == "list"
                else NOTHING
            )
        if name in ("list", "tuple"):
            if isinstance(first.elements, tuple):
                return replace(first, kind="list" if name == "list" else "tuple")
            return Value("list" if name == "list" else "tuple")
        if name == "len":
            if first.kind in ("tensor", "parameter", "buffer") and first.device:
                return extent(first, self.text(arguments.nodes[0]))
            return NUMBER
        if name in ("iter", "reversed", "sorted"):
            return first
        if name == "next":
            return self.element(first)
        if name == "enumerate":
            return Value("object", type_name="enumerate", elements=(first,))
        if name == "zip":
            if len(node.args) == 1 and isinstance(node.args[0], ast.Starred) and not arguments.star:
                found = rows.columns(arguments.values)
                if found is not None:
                    return found
            return Value("object", type_name="zip", elements=tuple(arguments.values))
        if name == "range":
            return Value("object", type_name="range")
        if name in ("sum", "max", "min"):
            inner = self.element(first)
            return replace(inner, zero_dim=None, made=()) if inner.is_tensor else NOTHING
        if name == "abs" and first.is_tensor:
            return first
        if name == "setattr" and len(arguments.nodes) == 3 and self.in_init and self.owner is not None:
            if self.path(arguments.nodes[0]) == "self" and arguments.values[2].kind in ("module", "parameter"):
                for entry in self.owner.unregistered.values():
                    entry.wrapped = True  # registered one by one, under computed names
        if name == "setattr" and arguments.nodes:
            path = self.path(arguments.nodes[0])
            if path is not None and path in self.state.env:
                self.bind(path, replace(first, device=UNKNOWN) if first.kind == "module" else first)
        if name == "getattr" and len(arguments.values) >= 2:
            return NOTHING
        if name not in _BUILTINS_QUIET:
            self.escape(node, arguments)
        return NOTHING

    def element(self, value: Value) -> Value:
        """What iterating over a value gives."""
        return element_of(value)

    def turns(self, node: ast.expr, iterated: Value) -> Value:
        """What a loop over an expression gives."""
        element = self.element(iterated)
        if element.is_tensor and isinstance(node, ast.Call) and self.qualify(node.func) in _ONE_DIMENSION:
            return replace(element, zero_dim=True)
        if element.kind == "tensor" and iterated.kind == "tensor" and element.zero_dim is None:
            if "nonzero" in self.text(node):
                return element  # its rows have a dimension
            return replace(element, type_name=element.type_name or TURN)
        return element

    # -- the run's device ---------------------------------------------------------------------------------------------

    def call_device(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`torch.device(...)`."""
        first = arguments.get("type", 0) or arguments.get("device", 0)
        if first is None:
            return Value("device", UNKNOWN)
        index = arguments.get("index", 1)
        expression, value = first
        if index is None or index[1].kind == "none":
            self.note_literal(
                expression, value, "argument", "torch.device", "device" if value.kind == "string" else "index"
            )
        elif isinstance(index[0], ast.Constant) and isinstance(expression, ast.Constant):
            if isinstance(expression.value, str) and isinstance(index[0].value, int):
                device = on(expression.value, index[0].value)
                self._emit_literal(expression, device, "argument", "torch.device", "type")
        if index is not None and value.kind == "string" and isinstance(value.constant, str):
            number = index[1].constant
            if isinstance(number, int) and not isinstance(number, bool):
                return Value("device", on(value.constant, number))
            return Value("device", UNKNOWN)
        if value.kind == "index":
            self.emit_call(node, "torch.device", None, arguments)
            return Value("device", UNKNOWN)
        found = self.device_of_argument(expression, value)
        if value.kind == "string" and value.type_name is not None:
            found = replace(found, type_name=value.type_name)
        return found

    def call_clip(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`clip_grad_norm_(parameters, ...)` gives the norm, a 0-dim tensor where the gradients are."""
        record = knowledge.function(qualname)
        value = (
            self.call_record(node, record, arguments, "function", short(qualname)) if record is not None else NOTHING
        )
        part = self.element(arguments.values[0]) if arguments.values else NOTHING
        return Value("tensor", part.device, True, because=part.because) if part.is_tensor and part.device else value

    def call_divergence(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        return distributions.divergence(self, node, arguments)

    def call_set_device(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`torch.cuda.set_device(i)`: index-free `cuda` means that card from here on."""
        first = arguments.get("device", 0)
        self.state.card = None
        if first is not None:
            value = first[1]
            if isinstance(value.constant, int) and not isinstance(value.constant, bool):
                self.state.card = value.constant
            elif value.kind in ("device", "string") and len(value.device) == 1:
                (place,) = value.device
                self.state.card = getattr(place, "card", None)
        return NONE

    def call_set_default_device(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        first = arguments.get("device", 0)
        if first is not None and first[1].kind == "none":
            self.state.default = None
        elif first is not None:
            self.note_literal(*first, "argument", qualname, "device")
            self.state.default = self.device_of_argument(*first)
            if self.state.default.device == CPU:
                self.state.default = None
        else:
            self.state.default = Value("device", UNKNOWN)
        return NONE

    def call_default_tensor_type(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        text = self.text(arguments.nodes[0]) if arguments.nodes else ""
        self.state.default = Value("device", on("cuda")) if "cuda" in text else None
        return NONE

    def call_available(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`torch.cuda.is_available()`: the flag remembers the question."""
        return Value("bool", type_name=qualname)

    def call_get_device(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`torch.get_device(t)`; without an argument it raises."""
        self.emit_call(node, qualname, None, arguments, exists=True)
        return self.index_of(node, arguments.values[0] if arguments.values else NOTHING)

    def call_current_accelerator(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        return Value("device", type_name="chosen:accelerator")

    def call_parameter(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        first = arguments.get("data", 0)
        if first is None or not first[1].is_tensor:
            return Value("parameter", UNKNOWN)
        return replace(first[1], kind="parameter", attribute=None)

    def call_product(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`math.prod(x.shape[:-1])`"""
        first = arguments.values[0] if arguments.values else NOTHING
        return extent(first, str(first.constant)) if first.type_name == "size" else NOTHING

    def call_wait(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        self.wait()
        return NONE

    def call_same(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """A call that gives its first argument back, as far as devices go: `copy.deepcopy`, `torch.compile`."""
        return arguments.values[0] if arguments.values else NOTHING

    def call_deepcopy(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """A copy of its own: what moves the original leaves it where it is."""
        first = arguments.values[0] if arguments.values else NOTHING
        return replace(first, ident=self.span(node), shared=False, split=None) if first.kind == "module" else first

    def call_copy(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """A shallow copy: a module's parameters are those of the original."""
        first = arguments.values[0] if arguments.values else NOTHING
        return replace(first, device=UNKNOWN, ident=None, shared=True) if first.kind == "module" else first

    def call_partial(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`functools.partial(torch.zeros, device=...)`: a function that knows some of its arguments."""
        if not arguments.values or arguments.star:
            self.escape(node, arguments)
            return NOTHING
        given = Arguments()
        given.nodes, given.values, given.keywords = arguments.nodes[1:], arguments.values[1:], arguments.keywords
        self.share(given)
        name = f"partial:{self.span(node).start}"
        self.partials[name] = (arguments.values[0], given)
        return Value("function", type_name=name)

    def call_audio(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`waveform, rate = torchaudio.load(path)`: the second is a number."""
        waveform = Value("tensor", CPU, False, because=(Origin(self.span(node), "created on the CPU here"),))
        return Value("tuple", elements=(waveform, NUMBER))

    def call_to_tensor(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`transforms.ToTensor()`: makes a tensor of the CPU of a picture [torchvision/transforms/functional.py]."""
        return Value("function", type_name=TO_TENSOR)

    def call_compose(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`transforms.Compose([..., ToTensor(), ...])` makes a tensor of a picture, unless a step is the program's own."""
        steps = arguments.values[0].elements if arguments.values else None
        written = arguments.nodes[0] if arguments.nodes else None
        if not isinstance(steps, tuple) or not isinstance(written, (ast.List, ast.Tuple)):
            return NOTHING
        known = all(
            isinstance(s, ast.Call) and (self.qualify(s.func) or "").startswith("torchvision.") for s in written.elts
        )
        plain = known and "Lambda" not in self.text(node) and "device" not in self.text(node)
        makes = any(step.type_name == TO_TENSOR for step in steps)
        return Value("function", type_name=TO_TENSOR) if plain and makes else NOTHING

    def call_random_split(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        first = arguments.values[0] if arguments.values else NOTHING
        part = first if first.kind == "dataset" else Value("dataset", CPU)
        return Value("list", type_name="comprehension", elements=(part,))

    def call_autocast_module(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        return Value("autocast", type_name=qualname)

    def call_pack(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        sequences.note_lengths(self, node, arguments)
        first = arguments.get("input", 0)
        return Value("packed", first[1].device if first else UNKNOWN, because=first[1].because if first else ())

    def call_unpack(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        first = arguments.values[0] if arguments.values else NOTHING
        sequence = Value("tensor", first.device, False, because=first.because)
        return Value("tuple", elements=(sequence, Value("tensor", CPU, False)))


def is_void(creation: Creation) -> bool:
    """Whether a tensor is made with nothing in any dimension, which joins no other: `torch.empty(0, 0)`."""
    sizes = creation.node.args
    return len(sizes) > 1 and all(isinstance(size, ast.Constant) and size.value == 0 for size in sizes)


def reduces_first(qualname: str, arguments: Arguments) -> bool:
    """Whether a call looks for something along the first dimension: `scores.max(dim=0)`, `torch.argmax(scores, 0)`."""
    home, _, name = qualname.rpartition(".")
    along = arguments.get("dim", 0 if home.endswith("Tensor") else 1)
    return name in _LOOKS and along is not None and along[1].constant == 0


def is_given_a_shape(node: ast.Call, record: Record) -> bool:
    """Whether a call gives its result a shape of one dimension at least: `x.view(1, -1)`, `torch.reshape(x, (n, 3))`."""
    namespace, _, name = record.qualname.rpartition(".")
    if name not in _SHAPED:
        return False
    sizes = node.args if namespace.endswith("Tensor") else node.args[1:]
    if len(sizes) == 1:
        only = sizes[0]
        if isinstance(only, (ast.Tuple, ast.List)):
            return bool(only.elts) and not isinstance(only.elts[0], ast.Starred)
        return isinstance(only, ast.UnaryOp) or (isinstance(only, ast.Constant) and isinstance(only.value, int))
    return len(sizes) > 1 and not isinstance(sizes[0], ast.Starred)


def writes_elsewhere(arguments: Arguments) -> bool:
    """Whether `out=` is given: the result is that tensor, wherever it is."""
    out = arguments.get("out")
    return out is not None and not (isinstance(out[0], ast.Constant) and out[0].value is None)


def drawn(operands: list[Operand], arguments: Arguments) -> list[Operand]:
    """What a function that draws turns into arrays: the limits of its colours are read by `item()` [matplotlib/colors.py]."""
    limits = [arguments.keywords[k][0] for k in ("vmin", "vmax") if k in arguments.keywords]
    return [operand for operand in operands if operand.node not in limits]


def held(node: ast.expr) -> list[ast.expr]:
    """What a dict or list holds that is written out where it is handed on: `Models({"G": G, "D": D})`."""
    if isinstance(node, ast.Dict):
        return list(node.values)
    return list(node.elts) if isinstance(node, (ast.List, ast.Tuple)) else []


def given_keywords(arguments: Arguments) -> list[str]:
    """The keywords of a call without those that are literally False or None."""
    return [k for k, (_, v) in arguments.keywords.items() if v.kind != "none" and v.constant is not False]


def numbers_of(arguments: Arguments) -> list[int]:
    """Positions of the arguments that are surely numbers."""
    return [i for i, v in enumerate(arguments.values) if v.kind == "number"]


Special = Callable[[Calls, ast.Call, str, Arguments], Value]

SPECIAL: dict[str, Special] = {
    "torch.device": Calls.call_device,
    "torch.cuda.set_device": Calls.call_set_device,
    "torch.accelerator.set_device_index": Calls.call_set_device,
    "torch.set_default_device": Calls.call_set_default_device,
    "torch.set_default_tensor_type": Calls.call_default_tensor_type,
    "torch.cuda.is_available": Calls.call_available,
    "torch.xpu.is_available": Calls.call_available,
    "torch.backends.mps.is_available": Calls.call_available,
    "torch.mps.is_available": Calls.call_available,
    "torch.accelerator.is_available": Calls.call_available,
    "torch.get_device": Calls.call_get_device,
    "torch.accelerator.current_accelerator": Calls.call_current_accelerator,
    "torch.nn.Parameter": Calls.call_parameter,
    "torch.nn.parameter.Parameter": Calls.call_parameter,
    "torch.cuda.synchronize": Calls.call_wait,
    "torch.accelerator.synchronize": Calls.call_wait,
    "torch.xpu.synchronize": Calls.call_wait,
    "torch.mps.synchronize": Calls.call_wait,
    "torch.npu.synchronize": Calls.call_wait,
    "torch.compile": Calls.call_same,
    "torch.autograd.Variable": Calls.call_same,
    "torch.nn.utils.clip_grad_norm_": Calls.call_clip,
    "torch.distributions.kl_divergence": Calls.call_divergence,
    "torch.distributions.kl.kl_divergence": Calls.call_divergence,
    "copy.deepcopy": Calls.call_deepcopy,
    "copy.copy": Calls.call_copy,
    "functools.partial": Calls.call_partial,
    "math.prod": Calls.call_product,
    "torch.utils.data.random_split": Calls.call_random_split,
    "torchaudio.load": Calls.call_audio,
    **{f"{_TRANSFORMS}.{name}": Calls.call_to_tensor for name in ("ToTensor", "PILToTensor")},
    f"{_TRANSFORMS}.Compose": Calls.call_compose,
    "torch.nn.utils.rnn.pack_padded_sequence": Calls.call_pack,
    "torch.nn.utils.rnn.pad_packed_sequence": Calls.call_unpack,
    **randomness.CALLS,
}


def element_of(value: Value) -> Value:
    """What iterating over a value, or indexing it with something unknown, gives."""
    if value.kind == "loader":
        if not value.device:
            return NOTHING
        because = (*value.because[:1],)
        text = Origin(because[0].span, "its batches come from host memory") if because else None
        name = BATCH if value.type_name == BATCH else None
        return Value("tensors", value.device, False, type_name=name, because=(text,) if text else ())
    if value.kind == "module" and isinstance(value.elements, tuple):
        part = value.elements[0]
        return replace(part, device=value.device, because=value.because)
    if value.kind == "dict":
        return Value("string") if value.elements else NOTHING
    if value.kind == "tensors" or guesses.is_guess(value):
        return value
    if value.kind in TENSOR_KINDS:
        return Value("tensor", value.device, None, because=value.because, made=value.made)
    if value.kind == "dataset":
        return Value("tensors", value.device, None, because=value.because) if value.device else NOTHING
    if isinstance(value.elements, tuple):
        if value.type_name == "enumerate":
            return Value("tuple", elements=(NUMBER, element_of(value.elements[0])))
        if value.type_name == "zip":
            return Value("tuple", elements=tuple(element_of(v) for v in value.elements))
        if value.elements:
            result = value.elements[0]
            for other in value.elements[1:]:
                result = merge(result, other)
            return result
        return NOTHING
    if value.type_name == "range":
        return NUMBER
    if value.kind == "module":
        return Value("module", value.device, because=value.because)
    return NOTHING


def is_moved_here(value: Value) -> bool:
    """Whether some path moved a value away from the CPU: `if use_cuda: x = x.cuda()`."""
    texts = [origin.text for origin in value.because[:1]]
    return any(text.startswith("moved to") and "the CPU" not in text for text in texts)
