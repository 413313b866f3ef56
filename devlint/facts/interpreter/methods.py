"""Calls of methods: by what their object is, and on objects that have no such method, or of which nothing is known."""

from __future__ import annotations

import ast

from devlint import knowledge
from devlint.facts.events import Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import (
    arrays,
    as_text,
    called_devices,
    converted,
    detached,
    distributions,
    guesses,
    immovable,
    moved_item_by_item,
    ordering,
    randomness,
    safe_files,
    said_elsewhere,
    sized_by_module,
    unknown_devices,
)
from devlint.facts.idioms.placeholders import is_void
from devlint.facts.idioms.randomness import CHECKPOINT
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.attributes import sets
from devlint.facts.interpreter.container_methods import ContainerMethods
from devlint.facts.interpreter.host_reads import drawn
from devlint.facts.interpreter.tensor_methods import SYNCING
from devlint.facts.text.defined import Function
from devlint.facts.text.method_names import MOVES, PLACES
from devlint.facts.text.parameters import Evidence, reads_like_device
from devlint.facts.text.references import last_name
from devlint.facts.values import CPU, HOME, NONE, NOTHING, NUMBER, ONE_TENSOR, Value, symbol

#: Kinds whose classes have no device methods, by the family name that events carry.
LACKING = {
    "optimizer": "Optimizer",
    "scheduler": "LRScheduler",
    "loader": "DataLoader",
    "dataset": "Dataset",
    "sampler": "Sampler",
    "scaler": "GradScaler",
    "distribution": "Distribution",
    "generator": "Generator",
    "autocast": "autocast",
    "device": "device",
    "list": "list",
    "tuple": "tuple",
    "dict": "dict",
    "ndarray": "ndarray",
}
#: Methods that say something whatever they are called on.
_LOOKED_AT = frozenset({"device", "load_state_dict"}) | MOVES | called_devices.FLAGS
#: Methods of estimators that turn their data into arrays [sklearn/utils/validation.py, check_array].
_FITS = frozenset(
    {
        "fit", "fit_predict", "fit_transform", "partial_fit", "predict", "predict_proba", "transform", "score",
        "inverse_transform",
    }
)  # fmt: skip
#: Methods of matplotlib's axes that turn their data into arrays.
_PLOTS = frozenset(
    {
        "imshow", "plot", "scatter", "hist", "bar", "barh", "fill_between", "errorbar", "matshow", "contour", "contourf",
        "pcolor", "pcolormesh", "stem", "boxplot", "violinplot", "hist2d", "hexbin", "quiver", "semilogx", "semilogy",
        "loglog", "plot_surface", "plot_wireframe", "scatter3D", "plot3D",
    }
)  # fmt: skip
#: Methods by which a container gets more items.
_GROWS = frozenset({"append", "appendleft", "extend", "insert", "update", "setdefault"})
#: First words in the names of losses that an object keeps: `trainer._criterion(output, target)`.
_LOSSES = frozenset({"criterion", "crit", "loss"})


class Methods(ContainerMethods):
    """Adds `call_method`."""

    def call_method(self, node: ast.Call, receiver: Value, name: str, arguments: Arguments) -> Value:
        function = node.func
        assert isinstance(function, ast.Attribute)
        target = function.value
        dropped = self.statement_value is node  # what modules have as well works in place, then
        if guesses.is_guess(receiver) and guesses.shows_tensor(name) and not (dropped and guesses.is_of_modules(name)):
            receiver = self.as_tensor(receiver)
            if isinstance(target, ast.Name) and target.id in self.state.env:
                self.state.env[target.id] = receiver
        if name == "detach" and receiver.kind == "unknown" and self.of_submodule(target):
            origin = self.origin(target, f"`{self.text(target)}` is a part of the module")
            receiver = Value("tensor", HOME, None, because=(origin,))
        if receiver.kind == "unknown":
            receiver = converted.beside_conversion(self, target, name, receiver) or receiver
        read = safe_files.tensor(receiver, name)
        if read is not None:
            return read
        if receiver.kind == "unknown" and name not in _LOOKED_AT:
            return self.call_other_method(node, receiver, name, arguments)
        operand = self.operand(target, receiver)
        if name == "to" and len(node.args) == 1 and isinstance(target, (ast.Name, ast.Attribute)):
            if type(node.args[0]) is type(target) and self.text(node.args[0]) == operand.text:
                self.emit_call(node, "Tensor.to", operand, arguments)  # it moves to where it is
        if name == "to" and not self.is_own_method(receiver, name):
            given = arguments.get("device", 0)
            made_by = last_name(target.func) if isinstance(target, ast.Call) else ""
            if given is not None and made_by != "bind":  # `binder.bind(...).to(torch.device)`
                unknown_devices.note_class(self, *given, "Tensor.to")
        if name == "load_state_dict" and arguments.keywords:
            unknown_devices.note_state(self, node, receiver, arguments)
        if name == "load_state_dict" and receiver.kind in ("unknown", "object"):
            ordering.note_restored(self, node, target)
        if name in PLACES:
            family = immovable.family(target, receiver)
            if family is not None:
                self.emit_call(node, f"{family}.{name}", operand, arguments, exists=False)
                return replace(receiver)
        if name in MOVES and not (receiver.kind in LACKING and name in PLACES):
            moved = self.call_move(node, operand, name, arguments)
            if moved is not None:
                return moved
        if receiver.kind in LACKING and name in PLACES:
            return self.call_lacking(node, operand, name, arguments)
        if (name == "device" or name in called_devices.FLAGS) and self.note_called_device(node, operand, arguments):
            return NOTHING
        if receiver.kind == "tensors" and self.statement_value is node and name not in MOVES:
            path = self.path(target)
            if path is not None and any(
                v.kind == "device" or reads_like_device(last_name(a)) for a, v in arguments.every()
            ):
                self.bind(path, NOTHING)  # a batch of the project's own that moves in place: `batch.to_tensor(device)`
                return NOTHING
            if path is not None and name in _GROWS and moved_item_by_item.is_another(receiver, arguments.values):
                self.bind(path, NOTHING)  # a list or a dict whose items were moved gets one that was not
                return NONE
        if receiver.is_tensor:
            return self.call_tensor_method(node, operand, name, arguments)
        if receiver.kind == "module":
            return self.call_module_method(node, operand, name, arguments)
        if receiver.kind == "distribution":
            return distributions.call_method(self, node, operand, name, arguments)
        if receiver.kind == "event":
            return self.call_event_method(node, operand, name, arguments)
        if receiver.kind == "generator":
            return randomness.call_generator(self, node, operand, name, arguments)
        if receiver.kind == "optimizer":
            known = name in ("load_state_dict", "step") and ordering.note_state(self, node, receiver, name)
            if name == "load_state_dict" and not known:
                ordering.note_restored(self, node, target)
            if name == "step":
                self.work(node, "the optimizer's step is queued here", receiver.device)
            return NOTHING
        if receiver.kind in ("list", "dict"):
            return self.call_container_method(node, operand, name, arguments)
        if receiver.kind == "device" or receiver.kind == "string":
            if receiver.kind == "device":
                as_text.note_method(self, node, receiver, name)
            return Value("bool") if name.startswith("is") or name.endswith("with") else NOTHING
        if receiver.kind == "packed":
            return NOTHING
        if receiver.kind == "clock" and name == "total_seconds":
            return NUMBER
        return self.call_other_method(node, receiver, name, arguments)

    def call_other_method(self, node: ast.Call, receiver: Value, name: str, arguments: Arguments) -> Value:
        """Call a method of an object of which little or nothing is known."""
        assert isinstance(node.func, ast.Attribute)
        target = node.func.value
        if name in ("synchronize", "barrier", "block_until_ready", "wait_for_everyone"):
            self.wait()
            return NONE
        if name == "enter_context" and any(v.kind == "device" for v in arguments.values):
            self.state.default = Value("device")
        if name == "numpy" and receiver.kind == "unknown" and not guesses.is_guess(receiver):
            if not said_elsewhere.note(self, node, target):
                detached.note(self, node, target)
        if name in SYNCING and receiver.kind == "unknown":
            self.wait()  # it may read a tensor
        if name == "item" and receiver.kind == "unknown" and not node.args:
            return NUMBER  # of an array, too: `np.finfo(np.float32).eps.item()`
        if name in _FITS and receiver.kind == "object" and (receiver.type_name or "").startswith("sklearn."):
            self.note_use(node, f"{receiver.type_name}.{name}", self.tensors(arguments))
            if name in ("fit", "partial_fit"):
                return receiver
        data = arguments.keywords.get("data")
        if name == "create_dataset" and data is not None and "h5py" in self.imports.names.values():
            values = Arguments()
            values.nodes, values.values = [data[0]], [data[1]]
            self.note_use(node, "h5py.Group.create_dataset", self.tensors(values))
        if name in _PLOTS and receiver.kind == "unknown" and self.plots:
            self.note_use(node, f"matplotlib.axes.Axes.{name}", drawn(self.tensors(arguments), arguments))
        if name == "items" and receiver.kind == "dict":
            return NOTHING
        if receiver.kind in ("unknown", "object"):
            on_host = self.encoded(node, arguments) or self.predicted(node)
            if on_host is not None:
                return on_host
        if receiver.kind == "unknown" and self.assume and name.strip("_").split("_")[0] in _LOSSES:
            self.note_loss(node, arguments)
        if name == "add_graph" and receiver.kind in ("unknown", "object"):
            self.note_graph(node, arguments)
        if name == "forward" and receiver.kind == "unknown" and self.assume:
            sized_by_module.note(self, node, arguments)
        self.escape(node, arguments)
        if name == "get" and len(arguments.values) == 2 and receiver.kind == "unknown":
            return self.or_default(node, arguments.values[1])
        if guesses.is_guess(receiver):
            return receiver if name in ("get", "pop") else NOTHING
        if name in ("get", "pop") and receiver.type_name == CHECKPOINT:
            return guesses.of_checkpoint(receiver)
        return self.guessed(node, arguments) if receiver.kind in ("unknown", "object") else NOTHING

    def is_own_method(self, receiver: Value, name: str) -> bool:
        """Whether a method of an object is one that this file defines."""
        class_ = self.classes.get(receiver.type_name or "")
        return class_ is not None and class_.method(name) is not None

    def is_used_as_module(self, node: ast.expr) -> bool:
        """Whether an expression is an argument of the function under analysis that it uses as a module: `model.eval()`."""
        if not isinstance(node, ast.Name) or self.function is None:
            return False
        return node.id in self.evidence_of(self.function).modules

    def evidence_of(self, function: Function) -> Evidence:
        raise NotImplementedError

    def note_loss(self, node: ast.Call, arguments: Arguments) -> None:
        raise NotImplementedError

    def note_called_device(self, node: ast.Call, operand: Operand, arguments: Arguments) -> bool:
        """Emit `Call` where `x.device()` or `x.is_cuda()` calls what is no function; whether it is that."""
        if not isinstance(node.func, ast.Attribute) or arguments.every():
            return False
        if node.func.attr in called_devices.FLAGS and operand.value.kind in ONE_TENSOR:
            if called_devices.family(self, operand, False) is None:
                return False
            self.emit_call(node, f"{called_devices.NO_FUNCTION}.{node.func.attr}", operand, arguments, exists=False)
            return True
        if node.func.attr != "device":
            return False
        if operand.value.kind == "unknown" and self.is_used_as_module(operand.node):
            given = Value("module", HOME, type_name=f"argument {operand.text}")
            operand = self.operand(operand.node, given)
        class_ = self.classes.get(operand.value.type_name or "")
        found = called_devices.family(self, operand, class_ is not None and sets(class_, "device"))
        if found is not None:
            self.emit_call(node, f"{found}.device", operand, arguments, exists=False)
        return found is not None

    def predicted(self, node: ast.Call) -> Value | None:
        """`trainer.predict(model, loader)`: Lightning keeps predictions in host memory; None for any other call.

        [lightning/pytorch/loops/prediction_loop.py]
        """
        target = node.func
        if not isinstance(target, ast.Attribute) or target.attr != "predict":
            return None
        of_lightning = any(n.split(".")[0] in ("lightning", "pytorch_lightning") for n in self.imports.names.values())
        if not last_name(target.value).lower().endswith("trainer") or not of_lightning:
            return None
        return Value("tensors", CPU, False, because=(self.origin(node, "kept in host memory by Lightning's trainer"),))

    def of_submodule(self, node: ast.expr) -> bool:
        """Whether an expression reads something of a module that `self` has: `self.crf.transitions`."""
        if self.owner is None or not self.owner.is_module or self.host or self.in_init or not self.assume:
            return False
        return (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Attribute)
            and isinstance(node.value.value, ast.Name)
            and node.value.value.id == "self"
        )

    def or_default(self, node: ast.Call, default: Value) -> Value:
        """`stored.get(key, torch.tensor([]))`: what is stored, which is somewhere, or the new tensor."""
        if not (default.is_tensor and default.made and default.device == CPU) or not self.assume or self.host:
            return NOTHING
        if all(map(is_void, default.made)):
            return NOTHING  # it stands for nothing: who reads it asks for its size
        return replace(default, device=CPU | symbol(self.text(node.func), self.span(node).start))

    def call_lacking(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
        """A device method on an object whose class has none."""
        value = operand.value
        family = LACKING[value.kind]
        if value.type_name is not None and value.type_name in self.classes:
            if self.classes[value.type_name].method(name) is not None:
                return NOTHING
        elif value.kind in ("list", "tuple", "dict"):
            if value.elements is None and not isinstance(operand.node, (ast.List, ast.Tuple, ast.Dict, ast.ListComp)):
                return NOTHING
        elif value.kind == "ndarray":
            if name == "cpu" or value == arrays.OF_SOMETHING:
                return NOTHING
        elif value.type_name is None:
            return NOTHING
        else:
            known = knowledge.cls(value.type_name)
            if known is None or name in known.methods or name in known.attributes:
                return NOTHING
        for argument, given in arguments.every():
            self.note_literal(argument, given, "argument", f"{family}.{name}", "device")
        self.emit_call(node, f"{family}.{name}", operand, arguments, exists=False)
        return replace(value)
