"""Calls of imported names: of torch, of other libraries, of other files. What each kind means stands in the module for it."""

from __future__ import annotations

import ast
import re
from functools import lru_cache

from devlint import knowledge
from devlint.facts.events import Load, Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import (
    functional_calls,
    guesses,
    immovable,
    library_modules,
    lists_in_dicts,
    never_moved,
    no_movers,
    randomness,
)
from devlint.facts.idioms.api_calls import note_api
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.builtin_calls import BuiltinCalls
from devlint.facts.interpreter.operations import short
from devlint.facts.interpreter.special_calls import SPECIAL
from devlint.facts.text.process_groups import MAKES_GROUP, takes_host_tensors
from devlint.facts.values import CPU, HOME, MAYBE_CPU, NONE, NOTHING, UNKNOWN, Kind, Value, describe, on
from devlint.model import Origin
from devlint.settings import MovingFunction

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
        "torch.hub.model_zoo.load_url", "torch.jit.load", "torchvision.models.utils.load_state_dict_from_url",
        "torchvision._internally_replaced_utils.load_state_dict_from_url",
    }
)  # fmt: skip
#: Those that take `map_location` second: `torch.load(f, map_location)` [torch/serialization.py, torch/jit/_serialization.py].
_PLACED_SECOND = frozenset({"torch.load", "torch.jit.load"})
#: Functions of numpy that call the method of a tensor they are given, and make an array of a list of tensors, which
#: torch refuses for those of an accelerator [numpy/_core/fromnumeric.py, `_wrapreduction`].
_LIST_READERS = frozenset(f"numpy.{name}" for name in ("mean", "sum", "std", "var", "max", "min", "prod", "any", "all"))
_LEGACY = frozenset(
    f"torch.{name}Tensor"
    for name in ("", "Float", "Double", "Half", "Long", "Int", "Short", "Byte", "Bool", "BFloat16")
)
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
_EXPORTS = re.compile(r"export|onnx|ncnn|coreml|tflite|openvino|torchscript|jit|convert|deploy", re.IGNORECASE)
#: Loaders of other libraries that are those of torch with another collator, whose batches are on the host as well
#: [torch_geometric/loader/dataloader.py, dgl/dataloading/dataloader.py]
_LOADERS = dict.fromkeys(
    (
        "torch_geometric.loader.DataLoader", "torch_geometric.loader.dataloader.DataLoader",
        "torch_geometric.data.DataLoader", "torch_geometric.loader.DenseDataLoader", "dgl.dataloading.GraphDataLoader",
    ),
    "torch.utils.data.DataLoader",
)  # fmt: skip
_WAITERS = ("synchronize", "barrier", "block_until_ready")


class Calls(BuiltinCalls):
    """Adds what calling a namespace (an imported function or class) means."""

    def call_namespace(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """Call an imported name."""
        return immovable.made_by(self, node, qualname, self.call_name(node, qualname, arguments))

    def call_name(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        if qualname.startswith("builtins."):
            return self.call_builtin(node, qualname[9:], arguments)
        if qualname.startswith("torch."):
            note_api(self, node, qualname, arguments)
        if is_special(qualname):
            given = self.call_special(node, qualname, arguments)
            if given is not None:
                return given
        class_ = knowledge.cls(_LOADERS.get(qualname, qualname))
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
        guessed = guesses.of_import(qualname, self.guessed(node, arguments))
        return no_movers.note(self, node, qualname, arguments, guessed)

    def call_special(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value | None:
        """Call a name for which `is_special` holds; None for one that is looked at and then called as others are."""
        if qualname in randomness.SAMPLING:
            randomness.note_sampling(self, node, qualname, arguments)
        if qualname in _RUNNERS or qualname.rpartition(".")[2] in _COUNTERS:
            self.note_run(node, arguments)
        if qualname in never_moved.ENGINES:
            never_moved.note_engine(self, node, qualname, arguments)  # type: ignore[arg-type]
        special = SPECIAL.get(qualname)
        if special is not None:
            return special(self, node, qualname, arguments)
        if qualname in CLOCKS:
            return Value("clock", reading=self.current_reading(node, qualname))
        if qualname in LOADERS:
            return self.call_load(node, qualname, arguments)
        if qualname in _LEGACY:
            return self.call_legacy(node, qualname, arguments)
        if is_legacy_of_cuda(qualname):
            return Value("tensor", self.resolve(on("cuda")), zero_dim=False)
        if qualname.rpartition(".")[2] in _WAITERS:
            self.wait()
            return NONE
        if qualname in functional_calls.NAMES:
            return functional_calls.call(self, node, arguments)  # type: ignore[arg-type]
        if qualname == lists_in_dicts.MAKER:
            return lists_in_dicts.made(self, node)
        return library_modules.make(self, node, qualname, arguments) if library_modules.is_known(qualname) else None

    def note_run(self, node: ast.Call, arguments: Arguments) -> None:
        """A tracer, an exporter or a profiler calls the module it is given with the inputs it is given."""
        given = next(
            (
                arguments.get(k)
                for k in ("inputs", "input_data", "example_inputs", "input_to_model")
                if arguments.get(k)
            ),
            None,
        )
        given = given or arguments.get("args", 1)
        module = arguments.get("model", 0)
        if self.name.endswith("__init__"):
            return  # what an object is made of moves later
        if given is None or module is None or module[1].kind != "module" or not module[1].device:
            return
        inputs = Arguments()
        inputs.nodes, inputs.values = [given[0]], [given[1]]
        operands = self.tensors(inputs)
        if module[1].device == HOME and _EXPORTS.search(f"{self.source.path.rpartition('/')[2]}.{self.name}"):
            # code that is there to export gets a module that was just loaded, on the host; what comes after it needs it there
            path = self.path(module[0])
            if path is not None and any(operand.value.device == CPU for operand in operands):
                self.state.env[path] = replace(module[1], device=UNKNOWN)
            return
        for operand in operands:
            if operand.value.device == CPU or (operand.value.made and operand.value.device == MAYBE_CPU):
                self.meet(node, [self.operand(*module), operand], "module", "module", "exact")

    def note_graph(self, node: ast.Call, arguments: Arguments) -> None:
        """`writer.add_graph(model, inputs)` traces a model [torch/utils/tensorboard/_pytorch_graph.py, `graph`].

        One that is an argument may not have been moved yet, where its graph is written.
        """
        model = arguments.get("model", 0)
        if model is not None and model[1].kind == "module" and not model[1].is_assumed:
            self.note_run(node, arguments)

    def note_collective(self, node: ast.Call, qualname: str, arguments: Arguments) -> None:
        """Emit `Meet` for a new CPU tensor in a collective of the default process group, whose backend may be NCCL."""
        name = qualname.rsplit(".", 1)[-1]
        if name not in _COLLECTIVES or "group" in arguments.keywords or not self.assume or self.host:
            return
        text = self.source.text
        if "gloo" in text or ("new_group(" in text and "nccl" in text):
            return  # groups of its own are for the cards, and the default one is not
        if takes_host_tensors((site.call for site in self.scan.calls.get(MAKES_GROUP, ())), text):
            return
        if "cuda" in self.guards.fails or "accelerator" in self.guards.fails:
            return
        for operand in self.tensors(arguments):
            if operand.value.made and operand.value.device == CPU:
                there = Value("tensor", HOME, False)
                other = Operand(self.span(node.func), node.func, self.text(node.func), there)
                because = (*operand.value.because[:1], Origin(self.span(node), "NCCL accepts no CPU tensors here"))
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

    def call_load(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        place = arguments.get("map_location", 1 if qualname in _PLACED_SECOND else 2)
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
        if qualname == "torch.jit.load":
            return Value("module", because=(Origin(self.span(node), "loaded here"),))
        return randomness.loaded(self, place)


def is_legacy_of_cuda(qualname: str) -> bool:
    """Whether a name is a class of tensors of CUDA by dtype: `torch.cuda.FloatTensor`."""
    return qualname.startswith("torch.cuda.") and qualname.endswith("Tensor")


@lru_cache(4096)
def is_special(qualname: str) -> bool:
    """Whether a call of a name means something of its own: most names are in none of the tables."""
    name = qualname.rpartition(".")[2]
    tables = (
        _RUNNERS, never_moved.ENGINES, SPECIAL, CLOCKS, LOADERS, _LEGACY, functional_calls.NAMES, randomness.SAMPLING
    )  # fmt: skip
    if name in _COUNTERS or name in _WAITERS or is_legacy_of_cuda(qualname) or qualname == lists_in_dicts.MAKER:
        return True
    return any(qualname in table for table in tables) or library_modules.is_known(qualname)
