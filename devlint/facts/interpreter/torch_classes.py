"""Classes of torch: where a module, an optimizer, a loader or another object is that their constructors make."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

from devlint import knowledge
from devlint.facts.frozen import replace
from devlint.facts.idioms import distributions, leaves, ordering, randomness, rows_of_datasets
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.torch_functions import TorchFunctions
from devlint.facts.text.parameters import reads_like_device
from devlint.facts.values import BATCH, CPU, UNKNOWN, Device, Kind, Value, merge, on
from devlint.model import Origin

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
#: Calls that wrap a module and put it where it was; inputs may come from anywhere and are scattered.
_SCATTERING = frozenset({"torch.nn.DataParallel", "torch.nn.parallel.DataParallel"})
#: Losses whose first argument is the weight of each class [torch/nn/modules/loss.py].
_WEIGHTED = frozenset({"CrossEntropyLoss", "NLLLoss", "NLLLoss2d", "BCELoss", "BCEWithLogitsLoss"})
#: Losses whose weights always have one dimension [aten/src/ATen/native/LossNLL.cpp].
_ONE_WEIGHT_EACH = ("CrossEntropyLoss", "NLLLoss")
#: Where normalizations take whether they have weights; the others take it as their fourth argument.
_AFFINE = {"LayerNorm": 2, "RMSNorm": 2}
_CONTAINERS = frozenset({"torch.nn.Sequential", "torch.nn.ModuleList", "torch.nn.ModuleDict"})


_PLACES_GRAPHS = re.compile(r"device|cuda|gpu|\.to\(")


class TorchClasses(TorchFunctions):
    """Adds `construct`."""

    def construct(self, node: ast.Call, qualname: str, class_: knowledge.Class, arguments: Arguments) -> Value:
        """An object of a class that torch defines."""
        kind = FAMILY_KIND.get(class_.family, "object")
        home = class_.qualname
        origin = Origin(self.span(node), "created here")
        if kind == "loader" or home.endswith("DataParallel"):
            self.watched[node] = {str(i): v for i, v in enumerate(arguments.values)}
            self.watched[node].update(arguments.named())
        if kind == "module":
            return self.construct_module(node, qualname, class_, arguments)
        if kind == "optimizer":
            made = Value("optimizer", self.parameters_device(arguments), type_name=home, because=(origin,))
            tensors = arguments.get("params", 0)
            if tensors is not None:
                leaves.note_optimizer(self, node, tensors[1])
            return ordering.note_optimizer(self, node, qualname, arguments, made)
        if kind == "loader":
            collate = arguments.get("collate_fn", 6)
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
                elif rows_of_datasets.may_be_elsewhere(self, dataset[0]):
                    device = UNKNOWN
            graphs = not qualname.startswith("torch.")  # whose batches are graphs, which move in place
            if graphs and dataset is not None and may_be_placed(dataset[0], self.source.text):
                device = UNKNOWN
            return Value("loader", device, type_name=BATCH if graphs else home, because=(origin,))
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

    def positional_device(self, arguments: Arguments) -> tuple[ast.expr, Value] | None:
        """The device that a module is given by position, as in `nn.Linear(n, m, False, device)`."""
        for node, value in zip(arguments.nodes, arguments.values, strict=True):
            named = isinstance(node, (ast.Name, ast.Attribute)) and reads_like_device(
                self.text(node).rsplit(".", 1)[-1]
            )
            if value.kind == "device" or named:
                return node, value
        return None


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


def may_be_placed(dataset: ast.expr, text: str) -> bool:
    """Whether graphs may be on a device before a loader batches them, as sets that fit there often are: what gives them says
    something of one, or the file moves them, or loops over them."""
    if "ToDevice" in text or _PLACES_GRAPHS.search(ast.unparse(dataset)) is not None:
        return True
    if not isinstance(dataset, ast.Name):
        return False
    name = re.escape(dataset.id)
    return (
        re.search(
            rf"(?m)\b{name}\b[^\n=]*=[^\n]*({_PLACES_GRAPHS.pattern})|\b{name}\b[\w.]*\.(to|cuda)\(|\bin {name}\b", text
        )
        is not None
    )
