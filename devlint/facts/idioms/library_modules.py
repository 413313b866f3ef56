"""Modules of other libraries that hold tensors: new ones are on the CPU, and stay there unless they are moved.

`mel = MelSpectrogram()` and `mel(waves.to(device))`; `accuracy.update(scores, labels)`. Only what the code itself puts on
another device is held against them: where an argument is, the caller of the module's owner knows. A metric that a
step of a `LightningModule` makes is an exception, since the trainer has moved the batch of that step.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses
from devlint.facts.text.classes import ClassFacts, lineage
from devlint.facts.text.nodes import walk
from devlint.facts.text.signatures import positional_names
from devlint.facts.values import CPU, GUESS, HOME, OUTPUT, UNKNOWN, Value, is_assumed, may_be_accelerator
from devlint.knowledge import library_modules
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.facts.events import Operand
    from devlint.facts.interpreter.arguments import Arguments
    from devlint.facts.interpreter.module_calls import ModuleCalls
    from devlint.facts.interpreter.torch_classes import TorchClasses

#: Both frequencies the same, and a `Resample` holds nothing.
_RESAMPLE = "torchaudio.transforms.Resample"
_METRICS = ("torchmetrics.", "pytorch_lightning.metrics.")
_COLLECTION = "torchmetrics.MetricCollection"
_EXPLAINER = "torch_geometric.explain.Explainer"
#: What a trainer of Lightning calls with a batch that it moved [lightning/pytorch/strategies/strategy.py, batch_to_device].
_STEPS = frozenset({"training_step", "validation_step", "test_step", "predict_step"})


def is_known(qualname: str) -> bool:
    """Whether `make` may know what a call of a name makes."""
    return qualname in (_EXPLAINER, _COLLECTION) or library_modules.holds_tensors(qualname) is not None


def make(machine: TorchClasses, node: ast.Call, qualname: str, arguments: Arguments) -> Value | None:
    """A new module of another library that holds tensors; None for anything else."""
    if qualname == _EXPLAINER:
        return explainer(machine, arguments)
    if qualname == _COLLECTION:
        return collection(machine, node, arguments)
    needs = library_modules.holds_tensors(qualname)
    if needs is None:
        return None
    machine.share(arguments)
    because = (Origin(machine.span(node), "created here"),)
    device = machine.default_device().device
    given = list(guesses.opened(value for _, value in arguments.every()))
    if arguments.double_star or arguments.star or not needs.isdisjoint(arguments.keywords):
        device = UNKNOWN
    elif any(v.kind in ("module", "device") or (v.is_tensor and v.device != CPU) for v in given):
        device = UNKNOWN  # what it is made of may be elsewhere
    elif qualname == _RESAMPLE and is_idle(arguments):
        device = UNKNOWN
    return Value("module", device, type_name=qualname, because=because, ident=because[0].span)


def collection(machine: TorchClasses, node: ast.Call, arguments: Arguments) -> Value | None:
    """`MetricCollection([Accuracy(...), F1Score(...)])`: its metrics are where they were [torchmetrics/collections.py]."""
    inside = guesses.opened(v for n, v in arguments.every() if v.kind not in ("string", "none", "bool"))
    new = bool(inside) and all(map(is_new, inside)) and not (arguments.star or arguments.double_star)
    machine.share(arguments)
    if not new:
        return None
    because = (Origin(machine.span(node), "created here"),)
    return Value("module", CPU, type_name=_COLLECTION, because=because, ident=because[0].span)


def copied(machine: ModuleCalls, node: ast.Call, module: Value) -> Value:
    """`metrics.clone(prefix="val_")`: a new one, where the other is [torchmetrics/metric.py, `clone`]."""
    return replace(module, ident=machine.span(node), shared=False)


def is_copied(module: Value, method: str) -> bool:
    """Whether a method of a metric gives a copy of it."""
    return method == "clone" and is_new(module) and (module.type_name or "").startswith(_METRICS)


def explainer(machine: TorchClasses, arguments: Arguments) -> Value:
    """`Explainer(model, algorithm=PGExplainer(...))`: its algorithm is the one that it is given.

    [torch_geometric/explain/explainer.py]
    """
    algorithm = arguments.get("algorithm", 1)
    kept = {"algorithm": algorithm[1]} if algorithm is not None and algorithm[1].kind == "module" else None
    machine.share(arguments)
    return Value("object", elements=kept, type_name=_EXPLAINER)


def is_idle(arguments: Arguments) -> bool:
    """Whether a `Resample` leaves everything as it is."""
    before, after = arguments.get("orig_freq", 0), arguments.get("new_freq", 1)
    if before is None or after is None:
        return before is None and after is None
    same = ast.dump(before[0]) == ast.dump(after[0])
    return same or (before[1].constant is not None and before[1].constant == after[1].constant)


def is_new(module: Value) -> bool:
    """Whether a value is such a module, on the CPU, that nothing has moved."""
    named = module.type_name or ""
    holds = named == _COLLECTION or library_modules.holds_tensors(named) is not None
    return holds and module.kind == "module" and module.device == CPU and not module.moved


def is_run(module: Value, method: str, arguments: Arguments) -> bool:
    """Whether a method of such a module computes with what it holds; `train` alone does so with arguments."""
    return library_modules.runs(module.type_name or "", method) and len(arguments.every()) > 1


def computed(machine: ModuleCalls, module: Value, method: str) -> Value | None:
    """`metric.compute()`: a tensor where the metric is, or a dict of such, by a collection.

    None for any other method, and where a metric may keep its state in host memory. [torchmetrics/metric.py, `_wrap_compute`]
    """
    if method != "compute" or not module.device or "compute_on_cpu" in machine.source.text:
        return None
    named = (
        [module.type_name or ""] if module.kind == "module" else machine.imports.names.values() if module.moved else ()
    )
    if not any(name.startswith(_METRICS) or name == "torchmetrics" for name in named):
        return None
    known = OUTPUT if module.moved and not is_assumed(module.device) else None
    return Value("tensors", module.device, None, type_name=known, because=module.because)


def call(machine: ModuleCalls, node: ast.Call, module: Operand, arguments: Arguments) -> Value | None:
    """A call of such a module: the first tensor that the code has put somewhere else meets it; None for any other module.

    A metric that is a part of a module, and so may be on an accelerator, takes what is on the CPU where it reduces that to
    numbers before it adds them to its state.
    """
    if not is_new(module.value):
        if module.value.device != HOME or not (module.value.type_name or "").startswith(_METRICS):
            return None
        machine.escape(node, arguments)
        return machine.guessed(node, arguments)
    explained = arguments.keywords.get("model")
    for operand in machine.tensors(arguments):
        if explained is not None and operand.node is explained[0]:
            continue
        value = operand.value
        if value.kind not in ("tensor", "tensors") or not may_be_accelerator(value.device):
            continue
        if value.type_name != GUESS and (not value.is_assumed or is_of_step(machine, module.value)):
            name = (module.value.type_name or "").rpartition(".")[2]
            machine.meet(node, [module, operand], "module", name, "exact")
            break
    else:
        part = part_of_batch(machine, arguments) if is_of_step(machine, module.value) else None
        if part is not None:
            machine.meet(node, [module, part], "module", (module.value.type_name or "").rpartition(".")[2], "exact")
    machine.escape(node, arguments)
    return machine.guessed(node, arguments)


def is_of_step(machine: ModuleCalls, module: Value) -> bool:
    """Whether a module was made in the step of a `LightningModule` that runs now."""
    function, made = machine.function, module.ident
    if function is None or made is None or getattr(function.node, "name", "") not in _STEPS:
        return False
    around = machine.span(function.node)
    return around.start <= made.start < around.end


def is_step(owner: ClassFacts | None, name: str) -> bool:
    """Whether a method, by its qualified name, is one that the trainer of Lightning calls with a batch that it moved."""
    if owner is None or name.rpartition(".")[2] not in _STEPS:
        return False
    return any(base.endswith("LightningModule") for each in lineage(owner) for base in each.bases)


def part_of_batch(machine: ModuleCalls, arguments: Arguments) -> Operand | None:
    """An argument that is a part of the batch that a step is given, of which nothing else is known: `x, y = batch`."""
    assert machine.function is not None
    own = machine.scan.functions.get(id(machine.function.node))
    names = positional_names(machine.function.node.args)
    if own is None or names[:1] != ["self"] or len(names) < 2:
        return None
    for argument, value in arguments.every():
        known = bool(value.device) and not guesses.is_guess(value)
        if not isinstance(argument, ast.Name) or known or value.kind not in ("unknown", "tensor"):
            continue
        bound = [
            each.value
            for each in own.assigns
            if isinstance(each, ast.Assign)
            and any(isinstance(n, ast.Name) and n.id == argument.id for target in each.targets for n in walk(target))
        ]
        parts = [each.value if isinstance(each, ast.Subscript) else each for each in bound]
        if len(parts) == 1 and isinstance(parts[0], ast.Name) and parts[0].id == names[1]:
            because = (
                Origin(
                    machine.span(bound[0]), "this is a part of the batch, and the trainer moves the batch to its device"
                ),
            )
            return machine.operand(argument, Value("tensor", HOME, None, because=because))
    return None
