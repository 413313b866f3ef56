"""Methods and attributes: of tensors, modules, optimizers, device events and plain containers; and calling a module."""

from __future__ import annotations

import ast
import re
from typing import Literal

from devlint import knowledge
from devlint.facts import (
    aliases,
    attribute_lists,
    batches,
    detached,
    distributions,
    grown_lists,
    guesses,
    ordering,
    randomness,
)
from devlint.facts.arguments import Arguments
from devlint.facts.callers import is_model_call, is_model_name, is_static, last_name
from devlint.facts.calls import Calls
from devlint.facts.classes import ClassFacts
from devlint.facts.devices import OF_TENSOR
from devlint.facts.events import CudaMethod, EventTimer, Move, Operand
from devlint.facts.factories import FILLED, is_void
from devlint.facts.frozen import replace
from devlint.facts.host_reads import drawn
from devlint.facts.nodes import walk
from devlint.facts.operations import BATCH, CPU_PLACE, STATE, is_encoded, short, symbol
from devlint.facts.parameters import TENSOR_ONLY, fits_others, knows_other_tensors, reads_like_device
from devlint.facts.returned import as_returned
from devlint.facts.scan import Scan
from devlint.facts.signatures import lacks_arguments
from devlint.facts.uses import holds_nothing, reads_state
from devlint.facts.values import (
    ACCELERATORS,
    CPU,
    GUESS,
    HOME,
    NONE,
    NOTHING,
    NUMBER,
    TENSOR_KINDS,
    UNKNOWN,
    Device,
    Kind,
    Place,
    Symbol,
    Value,
    describe,
    extent,
    may_be_accelerator,
    merge,
    on,
)
from devlint.model import Origin

Problem = Literal["unsynchronized", "no-timing", "never-recorded"]
ELEMENTS = 64  # elements of a container that are known one by one
#: What the results of pipelines hold: pictures and sounds on the host, unless they are asked for as tensors.
_MEDIA = frozenset({"images", "videos", "frames", "audios", "text", "texts"})
MOVES = frozenset({"to", "cpu", "type"}) | ACCELERATORS
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
_OF_MODULES_TOO = frozenset({"requires_grad_", "backward"})  # modules, and engines around them, have these as well
_DEVICE_METHODS = frozenset({"to", "cuda", "cpu", "xpu", "mps", "npu"})
_SAME_MODULE = frozenset(
    {
        "train", "eval", "requires_grad_", "half", "float", "double", "bfloat16", "apply", "share_memory", "compile",
        "type",
    }
)  # fmt: skip
_SAME_TENSOR = frozenset({"data", "T", "mT", "H", "real", "imag", "grad", "mH"})
_SYNCING = frozenset({"item", "tolist", "nonzero", "cpu", "numpy", "is_nonzero"})
_LOSSES_END = "Loss"
#: Names of tensors, not of modules or of batches that may move in place.
_INPUT = re.compile(
    r"[xyz]|[xy]_\w+|(in_)?(images?|imgs?|pictures?|targets?|labels?|masks?|noise|audios?|videos?|frames?|states?)"
)
#: What reads lengths on the host, or wants them there.
_ON_HOST = frozenset({"pack_padded_sequence", "tolist", "item", "int", "cpu", "numpy", "range", "max", "split", "zip"})
_OF_DISTRIBUTIONS = frozenset({"sample", "rsample", "log_prob", "entropy"})
#: What a model takes by these names is an input that it computes with; no length, and nothing for the host.
_MODEL_INPUTS = frozenset(
    {
        "input_ids", "attention_mask", "token_type_ids", "position_ids", "inputs_embeds", "labels", "pixel_values",
        "decoder_input_ids", "decoder_attention_mask", "start_positions", "end_positions", "input_values",
        "input_features", "pixel_mask", "encoder_hidden_states",
    }
)  # fmt: skip
#: Methods of estimators that turn their data into arrays [sklearn/utils/validation.py, check_array].
_FITS = frozenset(
    {"fit", "fit_predict", "fit_transform", "partial_fit", "predict", "predict_proba", "transform", "score"}
)
#: Methods of matplotlib's axes that turn their data into arrays.
_PLOTS = frozenset(
    {
        "imshow", "plot", "scatter", "hist", "bar", "barh", "fill_between", "errorbar", "matshow", "contour", "contourf",
        "pcolor", "pcolormesh", "stem", "boxplot", "violinplot", "hist2d", "hexbin", "quiver", "semilogx", "semilogy",
        "loglog", "plot_surface", "plot_wireframe", "scatter3D", "plot3D",
    }
)  # fmt: skip


#: What puts a tensor somewhere, or on the device of another one.
_PUTS = frozenset({"to", "cuda", "cpu", "type_as", "to_device"})


class Methods(Calls):
    """Adds what calling a method, reading an attribute or calling a module means."""

    # -- attributes ---------------------------------------------------------------------------------------------------

    def read_attribute(self, node: ast.Attribute, base: Value) -> Value:
        name = node.attr
        if name == "batch_sizes" and self.may_be_packed(base):
            # [torch/nn/utils/rnn.py: the constructor refuses others, and `to` leaves them where they are]
            return Value("tensor", CPU, False, because=(self.origin(node, "on the CPU in every packed sequence"),))
        if base.is_tensor:
            return self.tensor_attribute(node, base, name)
        if base.kind == "module":
            return self.module_attribute(node, base, name)
        if base.kind == "distribution":
            return distributions.attribute(base, name)
        if base.kind == "packed" and name == "data":
            return Value("tensor", base.device, False, because=base.because)
        if base.kind == "device" and name == "type":
            # the type as a string follows the device it came from
            device = frozenset(Place(p.type) if isinstance(p, Place) else p for p in base.device)
            return Value("string", device, because=base.because, type_name=base.type_name)
        if base.kind == "device" and name == "index":
            return NUMBER
        if base.kind == "object" and isinstance(base.elements, dict) and name in base.elements:
            return base.elements[name]
        if base.kind == "object" and base.type_name in self.classes:
            found = self.classes[base.type_name].attribute(name)
            if name == "device" and (found is None or found.kind == "unknown"):
                stated = self.stated(base, name, last_name(node.value))
                if stated is not None:
                    return stated
            return self.at_home(found, base) if found is not None and found.device != HOME else found or NOTHING
        if base.kind == "optimizer" and name == "param_groups":
            return NOTHING
        if (
            name == "grad"
            and base.kind == "unknown"
            and self.assume
            and self.knows_torch
            and not self.is_typed(node.value)
        ):
            device = CPU if self.host else HOME
            return Value("tensor", device, None, because=(Origin(self.span(node), "a gradient"),))
        if name == "device" and base.kind == "unknown":
            path = self.path(node)
            if path is not None:
                return Value("device", symbol(path, self.scope_id(path)))
        return NOTHING

    def may_be_packed(self, value: Value) -> bool:
        """Whether a value is a `PackedSequence`, or an argument or object of a file that speaks of them."""
        if value.kind == "packed":
            return True
        return (value.is_tensor or value.kind == "unknown") and "PackedSequence" in self.source.text

    def is_typed(self, node: ast.expr) -> bool:
        """Whether an expression is a parameter that an annotation says to be of a type of another package: `wp.array`."""
        spec = self.function.node.args if self.function is not None else None
        if spec is None or not isinstance(node, ast.Name):
            return False
        said = next((a.annotation for a in (*spec.posonlyargs, *spec.args, *spec.kwonlyargs) if a.arg == node.id), None)
        qualname = self.qualify(said) if isinstance(said, (ast.Name, ast.Attribute)) else None
        return qualname is not None and "." in qualname and not qualname.startswith(("torch.", "typing.", "."))

    def tensor_attribute(self, node: ast.Attribute, base: Value, name: str) -> Value:
        if name == "device":
            return Value("device", base.device, type_name=OF_TENSOR, because=base.because, made=base.made)
        if name in _SAME_TENSOR:
            return base if base.kind == "tensors" else replace(base, kind="tensor")
        if name == "shape":
            text = self.text(node.value)
            if base.type_name == GUESS:
                return Value("object")
            return Value("object", base.device, base.zero_dim, type_name="size", because=base.because, constant=text)
        if name in ("ndim", "requires_grad", "is_leaf"):
            return NUMBER
        if name in ("is_cuda", "is_cpu"):
            return Value("bool")
        if name == "dtype":
            return Value("dtype")
        if base.kind == "tensors":
            if base.ident is not None or name.isupper() or name in _MEDIA or is_model_name(last_name(node.value)):
                return NOTHING  # an object of an imported class: what it holds may be a number
            if guesses.is_number_name(name):
                return NOTHING
            return base if base.device else NOTHING
        return NOTHING

    def module_attribute(self, node: ast.Attribute, base: Value, name: str) -> Value:
        class_ = self.classes.get(base.type_name) if base.type_name else None
        if class_ is not None:
            found = class_.attribute(name)
            if found is not None:
                return aliases.taken(self, node, self.at_home(found, base), base)
            if class_.method(name) is not None:
                return of_parameters(base) if name == "device" else NOTHING
            if name == "device" and class_.bases == ("torch.nn.Module",) and not sets(class_, name):
                self.emit_call(node, "Module.device", self.operand(node.value, base), None, exists=False, is_call=False)
            return of_parameters(base) if name == "device" else NOTHING
        if base.type_name is not None:
            known = knowledge.cls(base.type_name)
            if known is not None and known.family == "Module":
                if name in ("weight", "bias"):
                    return Value("parameter", base.device, False, because=base.because)
                if name in ("running_mean", "running_var") and "BatchNorm" in base.type_name:
                    return aliases.taken(self, node, Value("buffer", base.device, False), base)
                if name == "device" and name not in known.attributes:
                    self.emit_call(
                        node, "Module.device", self.operand(node.value, base), None, exists=False, is_call=False
                    )
                if name == "module":
                    return replace(base, type_name=None)
        if name in ("weight", "bias") and base.device and not base.type_name:
            return Value("parameter", base.device, None, because=base.because)
        return NOTHING

    def at_home(self, value: Value, owner: Value) -> Value:
        """An attribute of a module, seen from outside: what shares the module's device is where the module is."""
        if value.device == HOME:
            return replace(value, device=owner.device, because=owner.because)
        if any(isinstance(p, Symbol) and p.scope for p in value.device):
            if owner.kind == "module" and owner.moved and value.kind in ("parameter", "buffer", "module"):
                return replace(value, device=owner.device, because=owner.because)
            return self.as_given(value, owner) if not owner.shared else replace(value, device=UNKNOWN, split=None)
        return value

    def as_given(self, value: Value, owner: Value) -> Value:
        """An attribute that is where an argument of its object's constructor says."""
        return value

    def stated(self, owner: Value, name: str, called: str) -> Value | None:
        """The device that an object keeps from its constructor: a constant that it was given, or a default. Else None.

        `called`: the last name that the object has here.
        """
        return None

    # -- method calls -------------------------------------------------------------------------------------------------

    def call_method(self, node: ast.Call, receiver: Value, name: str, arguments: Arguments) -> Value:
        function = node.func
        assert isinstance(function, ast.Attribute)
        target = function.value
        if guesses.is_guess(receiver) and guesses.shows_tensor(name):
            receiver = self.as_tensor(receiver)
            if isinstance(target, ast.Name) and target.id in self.state.env:
                self.state.env[target.id] = receiver
        if name == "detach" and receiver.kind == "unknown" and self.of_submodule(target):
            origin = self.origin(target, f"`{self.text(target)}` is a part of the module")
            receiver = Value("tensor", HOME, None, because=(origin,))
        operand = self.operand(target, receiver)
        if name == "to" and len(node.args) == 1 and isinstance(target, (ast.Name, ast.Attribute)):
            if type(node.args[0]) is type(target) and self.text(node.args[0]) == operand.text:
                self.emit_call(node, "Tensor.to", operand, arguments)  # it moves to where it is
        if name in MOVES and not (receiver.kind in LACKING and name in _DEVICE_METHODS):
            moved = self.call_move(node, operand, name, arguments)
            if moved is not None:
                return moved
        if receiver.kind in LACKING and name in _DEVICE_METHODS:
            return self.call_lacking(node, operand, name, arguments)
        if receiver.kind == "tensors" and self.statement_value is node and name not in MOVES:
            path = self.path(target)
            if path is not None and any(
                v.kind == "device" or reads_like_device(last_name(a)) for a, v in arguments.every()
            ):
                self.bind(path, NOTHING)  # a batch of the project's own that moves in place: `batch.to_tensor(device)`
                return NOTHING
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
            if name in ("load_state_dict", "step"):
                ordering.note_state(self, node, receiver, name)
            if name == "step":
                self.work(node, "the optimizer's step is queued here", receiver.device)
            return NOTHING
        if receiver.kind in ("list", "dict"):
            return self.call_container_method(node, operand, name, arguments)
        if receiver.kind == "device" or receiver.kind == "string":
            return Value("bool") if name.startswith("is") or name.endswith("with") else NOTHING
        if receiver.kind == "packed":
            return NOTHING
        if receiver.kind == "clock" and name == "total_seconds":
            return NUMBER
        if name in ("synchronize", "barrier", "block_until_ready", "wait_for_everyone"):
            self.wait()
            return NONE
        if name == "enter_context" and any(v.kind == "device" for v in arguments.values):
            self.state.default = Value("device")
        if name == "numpy" and receiver.kind == "unknown" and not guesses.is_guess(receiver):
            detached.note(self, node, target)
        if name in _SYNCING and receiver.kind == "unknown":
            self.wait()  # it may read a tensor
        if name in _FITS and receiver.kind == "object" and (receiver.type_name or "").startswith("sklearn."):
            self.note_use(node, f"{receiver.type_name}.{name}", self.tensors(arguments))
        if name in _PLOTS and receiver.kind == "unknown" and self.plots:
            self.note_use(node, f"matplotlib.axes.Axes.{name}", drawn(self.tensors(arguments), arguments))
        if name == "items" and receiver.kind == "dict":
            return NOTHING
        if receiver.kind in ("unknown", "object"):
            on_host = self.encoded(node, arguments) or self.predicted(node)
            if on_host is not None:
                return on_host
        self.escape(node, arguments)
        if name == "get" and len(arguments.values) == 2 and receiver.kind == "unknown":
            return self.or_default(node, arguments.values[1])
        if guesses.is_guess(receiver):
            return receiver if name in ("get", "pop") else NOTHING
        return self.guessed(node, arguments) if receiver.kind in ("unknown", "object") else NOTHING

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
            if name == "cpu":
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

    # -- moves --------------------------------------------------------------------------------------------------------

    def call_move(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value | None:
        """`.to`, `.cuda`, `.cpu`, `.type` ...; None when the receiver makes it something else."""
        receiver = operand.value
        kind = receiver.kind
        if kind in ("namespace", "string", "number", "none", "function", "class", "bool", "clock"):
            return None
        if kind == "object" and receiver.type_name not in (None, "super"):
            class_ = self.classes.get(receiver.type_name or "")
            if class_ is not None and class_.method(name) is not None:
                return NOTHING
        if kind == "unknown" and self.statement_value is node and self.reads_like_input(operand.node):
            receiver, kind = Value("tensor", UNKNOWN), "tensor"
            operand = replace(operand, value=receiver)
        target, node_of, only = self.move_target(node, operand, name, arguments)
        ordering.note_move(self, node, operand, target)
        if name == "type" and target is None:
            if kind == "module" or not receiver.is_tensor:
                return receiver if kind == "module" else NOTHING
            return receiver if only else self.unknown_move(receiver)
        discarded = self.statement_value is node
        if target is None:
            if receiver.is_tensor or kind == "module":
                return receiver if only else self.unknown_move(receiver)
            result = guesses.part(receiver)  # a dtype, most likely
        else:
            result = self.moved(operand, target, node)
        if name in ACCELERATORS:
            self.note_cuda_method(node, operand, name, arguments)
        path = self.path(operand.node)
        if kind == "module" and target is not None:
            self.move_in_place(path, result)
            if self.in_init and self.owner is not None and path is not None and path.split(".", 1)[0] == "self":
                self.built.setdefault(self.owner.name, []).append(target.device)
        if discarded and path is not None and result.type_name == "moved" and receiver.kind == "unknown":
            if self.is_called(path) or is_model_name(path.rsplit(".", 1)[-1]):  # a module, which moves in place
                self.state.env[path] = replace(result, kind="module")
        if receiver.type_name == "moved" and discarded:
            # it moved before and may be a module, which moves in place
            if path is not None:
                self.state.env[path] = result
            return result
        if discarded and receiver.kind == "tensors" and receiver.type_name == BATCH and not self.is_part(operand.node):
            if path is not None:
                self.state.env[path] = replace(result, type_name=BATCH)  # a batch of its own class may move in place
            return result
        if discarded and receiver.is_tensor and path is not None and target is not None:
            self.state.env[path] = replace(receiver, discarded=self.span(node))
        if target is not None and target.device == CPU and may_be_accelerator(receiver.device):
            non_blocking = arguments.get("non_blocking", 1)
            if non_blocking is None or non_blocking[1].constant is not True:
                self.wait()
        self.emit(
            Move(
                self.span(node), node, receiver.because, self.guards, self.scope() if discarded else {}, self.name,
                name, operand, target, node_of, only, discarded, result, self.loops > 0,
                only_step=discarded and self.is_only_step(node),
            )
        )  # fmt: skip
        return result

    def is_part(self, node: ast.expr) -> bool:
        """Whether a name is bound to parts of batches alone: `for x, y in loader`, `for key, part in batch.items()`."""
        if not isinstance(node, ast.Name) or batches.is_whole(node.id):
            return False
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        found = [part for a in (own.assigns if own is not None else ()) for part in batches.bindings(a, node.id)]
        return bool(found) and all(found)

    def reads_like_input(self, node: ast.expr) -> bool:
        """Whether the function under analysis uses a name as tensors alone are used: by its methods, or as a model's input.

        Not where it is called, too: a module moves in place.
        """
        if not isinstance(node, ast.Name) or self.function is None:
            return False
        own = self.scan.functions.get(id(self.function.node))
        calls = own.calls if own is not None else []
        methods = [c for c in calls if isinstance(c.func, ast.Attribute) and getattr(c.func.value, "id", "") == node.id]
        names = {getattr(c.func, "attr", "") for c in methods if not fits_others(c)} - _OF_MODULES_TOO
        if not TENSOR_ONLY.isdisjoint(names):
            return not any(isinstance(call.func, ast.Name) and call.func.id == node.id for call in calls)
        return _INPUT.fullmatch(node.id) is not None and any(
            is_model_call(call) and any(isinstance(a, ast.Name) and a.id == node.id for a in call.args)
            for call in calls
        )

    def is_only_step(self, node: ast.Call) -> bool:
        """Whether a `for` loop of the function under analysis has nothing in it but this call."""
        own = self.scan.functions.get(id(self.function.node)) if self.function is not None else None
        loops = [a for a in own.assigns if isinstance(a, ast.For)] if own is not None else []
        return any(len(loop.body) == 1 and getattr(loop.body[0], "value", None) is node for loop in loops)

    def is_called(self, path: str) -> bool:
        """Whether the function under analysis, or the file at its module level, calls what stands at an access path."""
        name = path.rsplit(".", 1)[-1]
        around = self.function.node if self.function is not None else None
        return any(
            self.path(site.call.func) == path
            and (around is None or (site.caller is not None and site.caller.node is around))
            for site in self.scan.calls.get(name, ())
        )

    def unknown_move(self, receiver: Value) -> Value:
        return replace(receiver, device=UNKNOWN, made=(), attribute=None)

    def move_target(
        self, node: ast.Call, operand: Operand, name: str, arguments: Arguments
    ) -> tuple[Value | None, ast.expr | None, bool]:
        """Where a move goes (kind "device"), the expression that says so, and whether it changes nothing else.

        The target is None for a dtype, and for what is not known; then the flag tells: True, the device stays.
        """
        if name in ACCELERATORS:
            first = arguments.get("device", 0)
            if first is None or first[1].kind == "none":
                return Value("device", self.resolve(on(name))), None, only_waits(arguments, first is not None)
            value = first[1]
            if isinstance(value.constant, bool):
                return Value("device", self.resolve(on(name))), None, False
            if value.kind == "index":
                self.emit_call(node, f"Tensor.{name}", operand, arguments)
            there = self.device_of_argument(*first)
            self.card_symbols |= {place for place in there.device if isinstance(place, Symbol)}
            return there, first[0], only_waits(arguments, True)
        if name == "cpu":
            return Value("device", CPU), None, not arguments.every()
        if name == "type":
            first = arguments.get("dtype", 0)
            if first is None:
                return None, None, True
            text = first[1].constant
            if isinstance(text, str) and text.startswith("torch.cuda."):
                return Value("device", on("cuda")), first[0], False
            if first[1].type_name is not None and first[1].type_name.startswith("torch.cuda."):
                return Value("device", on("cuda")), first[0], False
            # a dtype leaves the tensor where it is; a type chosen elsewhere may be one of another device
            return None, None, first[1].kind == "dtype" or is_dtype(first[1]) or isinstance(text, str)
        device = arguments.keywords.get("device") or arguments.keywords.get("other")
        extra = len(arguments.every())
        if device is None and arguments.values and not arguments.star:
            node_of, value = arguments.nodes[0], arguments.values[0]
            if value.kind == "dtype" or is_dtype(value):
                return None, None, True
            device = (node_of, value)
        if device is None:
            if "dtype" in arguments.keywords and not arguments.star:
                return None, None, True
            if not extra:
                return None, None, True
            return None, None, False
        self.note_literal(device[0], device[1], "argument", "Tensor.to", "device")
        if device[1].kind == "index":
            self.emit_call(node, "Tensor.to", operand, arguments)
            return device[1], device[0], only_waits(arguments, True)
        if device[1].is_tensor:
            return self.device_of_argument(*device), device[0], False
        if device[1].kind == "unknown" and not looks_like_device(device[0]):
            return None, None, looks_like_dtype(device[0])
        found = self.device_of_argument(*device)
        if not found.device:
            return None, device[0], False
        return found, device[0], only_waits(arguments, True)

    def moved(self, operand: Operand, target: Value, node: ast.Call) -> Value:
        receiver = operand.value
        origin = Origin(self.span(node), f"moved to {describe(target.device)} here")
        if receiver.is_tensor:
            kind: Kind = "tensors" if receiver.kind == "tensors" else "tensor"
            name = receiver.type_name if receiver.type_name == "moved" else None
            return Value(kind, target.device, receiver.zero_dim, type_name=name, because=(origin,), moved=True)
        if receiver.kind in ("module", "packed"):
            return replace(receiver, device=target.device, because=(origin,), moved=True, split=None)
        if receiver.kind == "unknown":
            function = operand.node.func if isinstance(operand.node, ast.Call) else None
            if isinstance(function, ast.Attribute) and function.attr in ("eval", "train"):
                return Value("module", target.device, type_name="moved", because=(origin,), moved=True)
            made = self.span(operand.node) if is_construction(operand.node) else None
            return Value("tensors", target.device, None, type_name="moved", because=(origin,), moved=True, ident=made)
        return replace(receiver, moved=True)

    def move_in_place(self, path: str | None, value: Value) -> None:
        """A module moved: so did every other name of it; what may be part of it, or hold it, is no longer known."""
        if path is not None:
            aliases.leave_behind(self, path, value)
        env = self.state.env
        for other, known in env.items():
            if known.kind == "parameter" and known.device != value.device and not other.startswith("self."):
                env[other] = replace(known, device=UNKNOWN, made=())  # it may be one of the module's
            if known.kind != "module" or other == path:
                continue
            if known.ident is not None and known.ident == value.ident:
                env[other] = replace(known, device=value.device, because=value.because)
            elif known.device != value.device and (
                known.shared
                or known.ident is None
                or (path is not None and (path.startswith(other + ".") or other.startswith(path + ".")))
            ):
                env[other] = replace(known, device=UNKNOWN)
        if path is not None:
            env[path] = replace(value, split=None)

    def spoil_owners(self, path: str, value: Value) -> None:
        """A part of a module is replaced: the module is no longer wholly where it was."""
        while "." in path:
            path = path.rsplit(".", 1)[0]
            owner = self.state.env.get(path)
            if owner is not None and owner.kind == "module" and owner.device != value.device:
                self.state.env[path] = replace(owner, device=UNKNOWN)

    def note_cuda_method(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> None:
        first = arguments.get("device", 0)
        index = first[1].constant if first is not None else None
        expression, proved = self.run_device(name)
        number = index if isinstance(index, int) and not isinstance(index, bool) else None
        self.emit(
            CudaMethod(
                self.span(node), node, (), self.guards, self.scope(), self.name, name, operand,
                first[0] if first is not None else None, number, len(arguments.every()) > (first is not None),
                expression, proved,
            )
        )  # fmt: skip

    # -- tensors ------------------------------------------------------------------------------------------------------

    def call_tensor_method(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
        receiver = operand.value
        if name == "numpy":
            force = arguments.get("force", 0)
            if force is None or force[1].constant is not True:
                detached = isinstance(operand.node, ast.Call) and short(operand.text).endswith(".detach()")
                self.use(node, "numpy", operand, detached)
            self.wait_for(receiver)
            return Value("ndarray")
        if name == "get_device":
            return self.index_of(node, receiver)
        if name == "backward":
            gradient = arguments.get("gradient", 0)
            if gradient is not None and gradient[1].is_tensor:
                self.meet(node, [operand, self.operand(*gradient)], "method", name, "exact")
            self.work(node, "the backward pass is queued here", receiver.device)
            return NONE
        if name in _SYNCING:
            self.wait_for(receiver)
        if name == "type_as":
            # the other's type names its device too [aten/src/ATen/native/TensorConversions.cpp: to(other.options())]
            other = arguments.get("other", 0)
            if other is None or not other[1].is_tensor or not other[1].device:
                return self.unknown_move(receiver)
            return self.moved(operand, Value("device", other[1].device), node)
        if name == "pin_memory":
            self.watched[node] = {"self": receiver}
            if CPU_PLACE not in receiver.device:
                return receiver  # of an accelerator's it raises: where this runs, it is on the CPU all the same
        if name == "size" and receiver.type_name == GUESS:
            return NUMBER if arguments.values else Value("object")
        if name == "size":
            if arguments.values:
                return extent(receiver, operand.text)
            return Value(
                "object", receiver.device, receiver.zero_dim, type_name="size", because=receiver.because,
                constant=operand.text,
            )  # fmt: skip
        if name in ("new_zeros", "new_ones", "new_empty", "new_full", "new_tensor", "new"):
            device = arguments.get("device")
            zero_dim = self.made_zero_dim("torch.tensor" if name == "new_tensor" else f"Tensor.{name}", arguments)
            if device is None:
                return Value("tensor", receiver.device, zero_dim, because=receiver.because)
            self.note_literal(*device, "argument", f"Tensor.{name}", "device")
            self.note_index_device(node, f"Tensor.{name}", arguments)
            return Value("tensor", self.device_of_argument(*device).device, zero_dim)
        if (
            name in ("eval", "train", "parameters", "state_dict", "modules", "load_state_dict")
            and receiver.kind == "tensors"
        ):
            # something that was moved turns out to be a module
            return replace(receiver, kind="module", type_name="moved") if name in _SAME_MODULE else NOTHING
        if name == "float" and receiver.kind == "parameter" and "dtype" not in operand.text:
            if "set_default_dtype" not in self.source.text:
                return receiver  # it is of that type already, and `float` gives back what it is called on
        record = knowledge.method("Tensor", name)
        if record is None:
            if receiver.kind == "tensors" and name == "generate" and receiver.moved and receiver.type_name == "moved":
                return self.generate(node, operand, arguments)
            if receiver.kind == "tensors":
                if name in _OF_DISTRIBUTIONS and receiver.type_name is None:
                    return replace(receiver, kind="tensor")  # what a policy gives may be a distribution
                return receiver if name in ("items", "values", "pop", "get", "copy") else Value("tensors", UNKNOWN)
            return NOTHING
        value = self.call_record(node, record, arguments, "method", name, operand)
        if value.type_name == GUESS and value.kind == "tensor" and name in TENSOR_ONLY:
            return replace(value, type_name=None)  # no array has such a method
        return value

    def wait_for(self, value: Value) -> None:
        if may_be_accelerator(value.device) or not value.device:
            self.wait()

    # -- modules ------------------------------------------------------------------------------------------------------

    def moves_inputs(self, class_: ClassFacts, method: str = "forward") -> bool:
        """Whether a module's method puts its inputs on a device itself."""
        known = class_.moving.get(method)
        if known is None:
            found = class_.method(method)
            own = self.scan_of(found[0]).functions.get(id(found[1])) if found is not None else None
            known = class_.moving[method] = own is None or any(child.attr in _PUTS for child in own.attributes)
        return known

    def scan_of(self, class_: ClassFacts) -> Scan:
        """The scan of the file that defines a class."""
        return self.scan

    def call_module_method(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
        receiver = operand.value
        class_ = self.classes.get(receiver.type_name) if receiver.type_name else None
        if class_ is not None:
            found = class_.method(name)
            if found is not None and name != "forward":
                if lacks_arguments(found[1], node, 0 if is_static(found[1]) else 1):
                    return NOTHING
                if not reads_state(*found):
                    return self.guessed(node, arguments)
                if not class_.abroad and not self.moves_inputs(class_, name):
                    for given in self.tensors(arguments):
                        if receiver.device:
                            self.meet(node, [operand, given], "module", name, "exact")
                self.work(node, f"`{name}` runs on the module's device", receiver.device)
                made = self.made_by(node, receiver, found, arguments)
                if made is not None:
                    return made
                return as_returned(
                    class_.returned_by(name), self.guessed(node, arguments)
                )  # only `forward` gives what is known to be where the module is
        if name == "apply" and any(".cuda(" in self.text(n) or ".to(" in self.text(n) for n in arguments.nodes):
            self.move_in_place(self.path(operand.node), replace(receiver, device=UNKNOWN))
            return replace(receiver, device=UNKNOWN)
        if name in _SAME_MODULE:
            return receiver
        if name == "to_empty":
            return replace(receiver, device=UNKNOWN)
        if name in ("parameters", "buffers"):
            borrowed = replace(parameter_of(receiver), type_name="borrowed")
            return Value("object", receiver.device, elements=(borrowed,))
        if name in ("named_parameters", "named_buffers"):
            borrowed = replace(parameter_of(receiver), type_name="borrowed")
            pair = Value("tuple", elements=(Value("string"), borrowed))
            return Value("object", receiver.device, elements=(pair,))
        if name == "state_dict" and not arguments.every():
            held = Value("tensor", receiver.device, False, type_name=STATE, because=receiver.because)
            return Value("dict", type_name="comprehension", elements={"*": held}) if receiver.device else NOTHING
        if name == "forward":
            return self.call_module(node, operand, arguments)
        if name in ("append", "extend", "insert", "add_module", "register_module"):
            path = self.path(operand.node)
            for part in arguments.values:
                if part.kind == "module" and path is not None:
                    self.spoil_owners(f"{path}.*", part)
            return receiver
        if name == "generate" and class_ is None:
            return self.generate(node, operand, arguments)
        if name == "cuda_":
            return receiver
        return self.guessed(node, arguments)

    def made_by(
        self,
        node: ast.Call,
        module: Value,
        found: tuple[ClassFacts, ast.FunctionDef | ast.AsyncFunctionDef],
        arguments: Arguments,
    ) -> Value | None:
        """What a method of a module of this file makes of numbers alone: `model.init_hidden(32)`."""
        raise NotImplementedError

    def generate(self, node: ast.Call, model: Operand, arguments: Arguments) -> Value:
        """`model.generate(**inputs)`: the prompt must be where the model is [transformers/generation/utils.py]."""
        operands = self.tensors(arguments)
        lead = leading(arguments, operands, model.value)
        if lead is None:
            prompts = [n for k, (n, _) in arguments.keywords.items() if k in ("inputs", "input_ids", "inputs_embeds")]
            lead = next((o for o in operands if o.node in prompts), None)
        if lead is not None and model.value.device and lead.value.kind in TENSOR_KINDS:
            self.meet(node, [model, lead], "module", "generate", "exact")
        return self.guessed(node, arguments, model.value)

    def call_module(self, node: ast.Call, module: Operand, arguments: Arguments) -> Value:
        """`module(x, y)`: inputs meet the parameters; a loss's inputs meet each other."""
        value = module.value
        home = value.type_name or ""
        if home.endswith(_LOSSES_END) and home.startswith("torch.nn."):
            arguments.values = [guesses.tensor(given) for given in arguments.values]
        operands = self.tensors(arguments)
        name = home.rsplit(".", 1)[-1] or "module"
        if home == "torch.nn.CTCLoss":
            operands = operands[:1]  # targets are brought along, lengths read on the host [aten/.../LossCTC.cpp]
        class_ = self.classes.get(home)
        forward = class_.method("forward") if class_ is not None else None
        if class_ is not None and forward is not None and class_.method("__call__") is None:
            if lacks_arguments(forward[1], node, 1):
                return NOTHING
            if value.device and holds_nothing(class_):
                value = replace(value, device=UNKNOWN)
        scatters = home.endswith("DataParallel") and not self.is_any_accelerator(value.device)
        if class_ is None or not self.moves_inputs(class_):
            checked = operands
            if class_ is not None:
                packed = [n for n in arguments.nodes if isinstance(n, (ast.Tuple, ast.List, ast.Dict))]
                inside = {id(child) for n in packed for child in walk(n)}
                reads = reads_lengths(class_)
                checked = [
                    o
                    for o in operands
                    if not ("len" in o.text and (reads or o.value.moved)) and id(o.node) not in inside
                ]
            if not scatters:
                participants = [module, *checked] if value.device else checked
                if home.endswith(_LOSSES_END) and value.device:
                    weighted = value.device == CPU and value.made
                    participants = [module, *checked] if weighted else checked
                if class_ is not None or not home.startswith("torch.nn.") or home == "torch.nn.Module":
                    # what an unknown forward does with its inputs together is not known: each meets the module alone
                    lead = leading(arguments, checked, value)
                    inputs = {id(n) for k, (n, _) in arguments.keywords.items() if k in _MODEL_INPUTS}
                    placed = value.device != HOME or (lead is not None and lead.value.moved)
                    for operand in checked:
                        if operand is not lead and operand.value.zero_dim is True:
                            continue  # a scalar combines with tensors anywhere
                        known = id(operand.node) in inputs and (placed or is_encoded(operand.value))
                        other = lead is None or lead.value.device != operand.value.device
                        if class_ is None and other and not known:
                            made = operand.value.made
                            new = made and made[0].function in FILLED and operand.value.zero_dim is False
                            if not (new or (placed and batches.is_left_behind(lead, operand))):
                                continue  # a further argument may be for the host: lengths, places
                        if value.device:
                            self.meet(node, [module, operand], "module", name, "exact")
                else:
                    self.meet(node, participants, "module", name, "exact")
        device: Device = value.device
        if not device:
            self.meet_left_parts(node, operands)
        if not device and operands:
            device = self.combine([o for o in operands if o.value.device != CPU] or operands).device
        elif device == HOME and class_ is None and operands and operands[0].value.moved:
            if may_be_accelerator(operands[0].value.device):
                device = operands[0].value.device  # where the first input is put, the module of a caller must be
        if value.device == HOME and operands and operands[0].value.device == CPU and not home.startswith("torch.nn."):
            device = UNKNOWN  # it gives something only where it takes that: on the CPU, or it moves its inputs
        if value.device == HOME and not operands and arguments.nodes and knows_other_tensors(self.imports.names):
            device = UNKNOWN  # it may be a model of another framework
        self.work(node, f"`{short(self.text(node.func))}` runs on the device", device)
        if home.endswith(_LOSSES_END) and home.startswith("torch.nn."):
            reduced = "reduction" not in self.text(node)
            chosen = self.combine([o for o in operands if o.value.device != CPU] or operands)
            return Value("tensor", chosen.device, True if reduced else None, because=chosen.because)
        because = value.because if value.device else (operands[0].value.because if operands else ())
        if home.startswith("torch.nn.") and home != "torch.nn.Module" and class_ is None and not scatters:
            if name in ("LSTM", "GRU", "RNN"):
                out = Value("tensor", device, False, because=because)
                hidden = Value("tuple", elements=(out, out)) if name == "LSTM" else out
                return Value("tuple", elements=(out, hidden))
            if name in ("LSTMCell", "MultiheadAttention"):
                out = Value("tensor", device, False, because=because)
                return Value("tuple", elements=(out, out))
            return Value("tensor", device, False if operands else None, because=because)
        on_host = class_.returned_by("forward") if class_ is not None else None
        if class_ is not None and self.moves_inputs(class_):
            return as_returned(on_host, NOTHING)  # what else it returns may be anywhere
        whole = Value("tensors", device, None, because=because) if value.device else self.guessed(node, arguments)
        return as_returned(on_host, whole)

    def meet_left_parts(self, node: ast.Call, inputs: list[Operand]) -> None:
        """`model.head = nn.Linear(8, 2)` after `model.to(device)`: the new part is on the CPU when the model is called."""
        path = self.path(node.func)
        if path is None or self.in_init:
            return
        known = self.state.env if path in self.state.env else self.globals
        for name, part in list(known.items()):
            if name.startswith(path + ".") and part.kind == "module" and part.device == CPU and not part.shared:
                if part.ident is not None and part.because and part.because[0].span == part.ident:
                    left = replace(self.operand(node.func, part), text=name)
                    for given in inputs:
                        self.meet(node, [left, given], "module", "module", "exact")

    def is_any_accelerator(self, device: Device) -> bool:
        """Whether it is a device that the file chooses among all accelerators: with MPS nothing is scattered."""
        symbols = [place for place in device if isinstance(place, Symbol)]
        if len(device) != 1 or not symbols:
            return False
        chosen = self.lookup(symbols[0].name) or self.globals.get(symbols[0].name)
        return chosen is not None and chosen.type_name == "chosen:accelerator"

    # -- device events ------------------------------------------------------------------------------------------------

    def call_event_method(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
        path = self.path(operand.node)
        if name == "record" and path is not None:
            self.state.recorded[path] = (self.span(node), False)
            return NONE
        if name in ("synchronize", "query", "wait"):
            if name == "synchronize":
                self.wait()
            return Value("bool") if name == "query" else NONE
        if name == "elapsed_time" and arguments.values:
            self.check_elapsed(node, operand, self.operand(arguments.nodes[0], arguments.values[0]))
            return NUMBER
        return NOTHING

    def check_elapsed(self, node: ast.Call, start: Operand, end: Operand) -> None:
        if end.value.kind != "event":
            return
        recorded = self.state.recorded
        for operand in (start, end):
            if operand.value.constant is False:
                self._elapsed(node, "no-timing", start, end, operand)
                return
        for operand in (start, end):
            path = self.path(operand.node)
            if path is not None and path not in recorded and path in self.event_names and operand.value.because:
                if path in self.state.env:
                    self._elapsed(node, "never-recorded", start, end, operand)
                    return
        path = self.path(end.node)
        if path is not None and path in recorded and not recorded[path][1]:
            self._elapsed(node, "unsynchronized", start, end, end)

    def _elapsed(self, node: ast.Call, problem: Problem, start: Operand, end: Operand, blamed: Operand) -> None:
        made = blamed.value.because[0].span if blamed.value.because else None
        path = self.path(end.node) or ""
        last = self.state.recorded.get(path)
        because = [Origin(made, "the event is made here")] if made is not None else []
        if last is not None:
            because.append(Origin(last[0], "recorded here"))
        self.emit(
            EventTimer(
                self.span(node), node, tuple(because), self.guards, self.scope(), self.name,
                problem, start, end, tuple(self.state.recorded), made, last[0] if last else None,
            )
        )  # fmt: skip

    # -- containers ---------------------------------------------------------------------------------------------------

    def call_container_method(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
        value = operand.value
        path = self.path(operand.node)
        if value.kind == "list" and self.in_init:
            grown_lists.note(self, path, name, arguments.nodes, arguments.values)
        if value.kind == "list":
            attribute_lists.note(self, path, node, name, arguments.values)
        if value.kind == "list" and name in ("append", "extend") and arguments.values:
            given = arguments.values[-1]
            if path is not None:
                if name == "extend":
                    named = isinstance(arguments.nodes[-1], ast.Attribute) and given.kind == "tensors" and given.moved
                    # a field of a batch that was moved as a whole may hold texts and numbers: `names.extend(batch.name)`
                    given = self.element(given) if not named else NOTHING
                self.append(path, value, given)
            return NONE
        if value.kind == "dict" and name in ("get", "pop", "setdefault"):
            key = arguments.values[0].constant if arguments.values else None
            if isinstance(value.elements, dict) and isinstance(key, str) and name == "get":
                stored = self.state.env.get(f"{path}[{key!r}]") if path is not None else None
                return stored or value.elements.get(key) or value.elements.get("*", NOTHING)
            if isinstance(value.elements, dict) and isinstance(key, str):
                return value.elements.get(key, NOTHING)
            return NOTHING
        if value.kind == "dict" and name in ("values", "items") and isinstance(value.elements, dict):
            inner = self.values_of(path, value)
            if name == "items":
                inner = Value("tuple", elements=(Value("string"), inner))
            return Value("object", elements=(inner,))
        if path is not None and name not in ("append", "extend", "copy", "index", "count", "keys", "values", "items"):
            self.state.env[path] = replace(value, elements=None)  # the order, or what is in it, changes
            self.bind(path, self.state.env[path])
        if name == "pop" and value.kind == "list":
            return self.element(value)
        return NOTHING

    def values_of(self, path: str | None, container: Value) -> Value:
        """Any value of a dict: those it was made with, and those stored in it since."""
        assert isinstance(container.elements, dict)
        found = dict(container.elements)
        if path is not None:
            below = f"{path}["
            for known, value in self.state.env.items():
                if known.startswith(below):
                    key = known[len(below) : -1]
                    if known.count("[") > path.count("[") + 1 or not known.endswith("]"):
                        continue
                    found[key[1:-1] if key[:1] in "'\"" else key] = value
        result: Value | None = None
        for value in found.values():
            result = value if result is None else merge(result, value)
        return result if result is not None else NOTHING

    def append(self, path: str, container: Value, given: Value) -> None:
        """A list grows: its elements are as many as before, or one more, of one of these values."""
        known = container.elements
        if not isinstance(known, tuple):
            return
        if len(known) >= ELEMENTS or (self.loops and len(known) >= 8):
            self.state.env[path] = replace(container, elements=None)
        elif not self.loops or given not in known:
            self.state.env[path] = replace(container, elements=(*known, given))


def parameter_of(module: Value) -> Value:
    """A parameter of a module: where the module is."""
    return Value("parameter", module.device, None, because=module.because)


def is_dtype(value: Value) -> bool:
    """Whether a value is a dtype: `torch.float32` and friends are namespaces of their own name."""
    if value.kind == "namespace" and value.type_name is not None and value.type_name.startswith("torch."):
        return value.type_name[6:] in _DTYPES
    return False


_DTYPES = frozenset(
    {
        "float", "float16", "float32", "float64", "double", "half", "bfloat16", "int", "int8", "int16", "int32",
        "int64", "long", "short", "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128", "cfloat",
        "cdouble", "float8_e4m3fn", "float8_e5m2",
    }
)  # fmt: skip


def looks_like_device(node: ast.expr) -> bool:
    """Whether an argument of `.to` whose value is not known reads like a device rather than a dtype or a tensor."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return reads_like_device(name)


def looks_like_dtype(node: ast.expr) -> bool:
    """Whether an argument of `.to` whose value is not known says by its name that it is a dtype: `self.dtype`."""
    name = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    return name.lower().endswith("dtype")


def sets(class_: ClassFacts, name: str) -> bool:
    """Whether a class binds an attribute in any way that its text shows, or answers for names that it does not bind."""
    if "__getattr__" in class_.methods or "__getattribute__" in class_.methods:
        return True
    for child in walk(class_.node):
        if isinstance(child, ast.Attribute) and child.attr == name and isinstance(child.ctx, ast.Store):
            return True
        if isinstance(child, ast.Name) and (child.id == "setattr" or (child.id == name and child.ctx is not None)):
            if child.id == "setattr" or isinstance(child.ctx, ast.Store):
                return True
        if isinstance(child, ast.Constant) and child.value == name:
            return True
        if isinstance(child, ast.Attribute) and child.attr == "__dict__":
            return True
    return False


def is_construction(node: ast.expr) -> bool:
    """Whether an expression reads like the call of a class: `Net(3)`, `models.Net()`."""
    function = node.func if isinstance(node, ast.Call) else None
    name = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
    return name[:1].isupper() and not name.isupper()


def leading(arguments: Arguments, operands: list[Operand], module: Value) -> Operand | None:
    """The first tensor that a module is called with; None when it is not known, or there are keywords alone.

    A module that is assumed to be on an accelerator may well get whole batches from a loader that puts them there.
    """
    whole = arguments.keywords.get("**0")
    if not arguments.nodes and whole is not None and (module.device != HOME or is_encoded(whole[1])):
        return next((operand for operand in operands if operand.node is whole[0]), None)  # `model(**inputs)`
    first = arguments.nodes[0] if arguments.nodes else None
    while isinstance(first, (ast.Tuple, ast.List)) and first.elts:
        first = first.elts[0]
    return next((operand for operand in operands if operand.node is first), None)


def only_waits(arguments: Arguments, with_device: bool) -> bool:
    """Whether a move is given nothing beside its device but `non_blocking`, which changes no value."""
    others = len(arguments.every()) - with_device
    return others == 0 or (others == 1 and "non_blocking" in arguments.keywords)


def of_parameters(module: Value) -> Value:
    """What a module that stayed on the CPU says its device is."""
    return Value("device", CPU, type_name=OF_TENSOR, because=module.because) if module.device == CPU else NOTHING


def reads_lengths(class_: ClassFacts) -> bool:
    """Whether the `forward` of a module may read lengths on the host: it does not compare them with anything."""
    found = class_.method("forward")
    if found is None or class_.abroad or found[0].abroad:
        return True
    nodes = list(walk(found[1]))
    if any(getattr(n, "attr", getattr(n, "id", "")) in _ON_HOST for n in nodes):
        return True
    compared = (part for n in nodes if isinstance(n, ast.Compare) for part in walk(n))
    return not any(isinstance(n, ast.Name) and "len" in n.id for n in compared)
