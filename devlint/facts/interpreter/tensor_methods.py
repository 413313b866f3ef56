"""Methods of tensors: those that read on the host, those that make new tensors, and the rest by their knowledge record."""

from __future__ import annotations

import ast

from devlint import knowledge
from devlint.facts.events import Move, Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import arrays, guesses, library_modules, said_elsewhere, unknown_devices
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.module_calls import RUNS_MODEL, ModuleCalls
from devlint.facts.interpreter.operations import CPU_PLACE, short
from devlint.facts.text.method_names import GIVES_MODULE, OF_DISTRIBUTIONS, TO_HOST
from devlint.facts.text.parameters import TENSOR_ONLY
from devlint.facts.values import (
    CPU,
    GUESS,
    NONE,
    NOTHING,
    NUMBER,
    ONE_TENSOR,
    OUTPUT,
    UNKNOWN,
    Value,
    extent,
    may_be_accelerator,
)

#: Methods that wait for the device: the host reads what they give.
SYNCING = TO_HOST | {"nonzero", "is_nonzero"}
#: What gives the tensors that a module holds.
_HELD = frozenset({"state_dict", "parameters", "named_parameters", "named_buffers"})


class TensorMethods(ModuleCalls):
    """Adds `call_tensor_method`."""

    def call_tensor_method(self, node: ast.Call, operand: Operand, name: str, arguments: Arguments) -> Value:
        receiver = operand.value
        if name == "numpy":
            force = arguments.get("force", 0)
            if force is None or force[1].constant is not True:
                detached = isinstance(operand.node, ast.Call) and short(operand.text).endswith(".detach()")
                if receiver.device or not said_elsewhere.note(self, node, operand.node):
                    self.use(node, "numpy", operand, detached)
            self.wait_for(receiver)
            something = receiver.type_name == "moved" and not isinstance(start_of(operand.node), ast.Call)
            return arrays.OF_SOMETHING if something else Value("ndarray")
        if name == "get_device":
            return self.index_of(node, receiver)
        if name == "backward":
            gradient = arguments.get("gradient", 0)
            if gradient is not None and gradient[1].is_tensor:
                self.meet(node, [operand, self.operand(*gradient)], "method", name, "exact")
            self.work(node, "the backward pass is queued here", receiver.device)
            return NONE
        if name in SYNCING:
            self.wait_for(receiver)
        if name == "type_as":
            # the other's type names its device too [aten/src/ATen/native/TensorConversions.cpp: to(other.options())]
            other = arguments.get("other", 0)
            if other is None or not other[1].is_tensor or not other[1].device:
                return self.unknown_move(receiver)
            return self.moved(operand, Value("device", other[1].device), node)
        if name == "pin_memory":
            self.watched[node] = {"self": receiver}
            if self.statement_value is node and receiver.kind in ONE_TENSOR:
                self.note_pinned(node, operand)
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
                record = knowledge.method("Tensor", name)
                if record is not None:
                    unknown_devices.note_place(self, node, record, arguments)
                return Value("tensor", receiver.device, zero_dim, because=receiver.because)
            self.note_literal(*device, "argument", f"Tensor.{name}", "device")
            self.note_index_device(node, f"Tensor.{name}", arguments)
            return Value("tensor", self.device_of_argument(*device).device, zero_dim)
        if name in _HELD and receiver.kind == "tensors" and receiver.moved and not arguments.every():
            module = replace(operand, value=replace(receiver, kind="module", type_name="moved"))
            return self.call_module_method(node, module, name, arguments)
        if (
            name in ("eval", "train", "parameters", "state_dict", "modules", "load_state_dict")
            and receiver.kind == "tensors"
        ):
            # something that was moved turns out to be a module
            return replace(receiver, kind="module", type_name="moved") if name in GIVES_MODULE else NOTHING
        if name == "float" and receiver.kind == "parameter" and "dtype" not in operand.text:
            if "set_default_dtype" not in self.source.text:
                return receiver  # it is of that type already, and `float` gives back what it is called on
        record = knowledge.method("Tensor", name)
        if record is None:
            if receiver.kind == "tensors" and name in RUNS_MODEL and receiver.moved and receiver.type_name == "moved":
                return self.generate(node, operand, arguments)
            if receiver.kind == "tensors":
                if name in OF_DISTRIBUTIONS and receiver.type_name in (None, OUTPUT):
                    return replace(receiver, kind="tensor")  # what a policy gives may be a distribution
                if name in ("items", "values", "pop", "get", "copy"):
                    return receiver
                of_metric = library_modules.computed(self, receiver, name)
                if of_metric is not None:
                    return of_metric
                computed = self.guessed(node, arguments) if receiver.moved else NOTHING  # by a model
                return computed if guesses.is_guess(computed) else Value("tensors", UNKNOWN)
            return NOTHING
        value = self.call_record(node, record, arguments, "method", name, operand)
        if value.type_name == GUESS and value.kind == "tensor" and name in TENSOR_ONLY:
            return replace(value, type_name=None)  # no array has such a method
        return value

    def note_pinned(self, node: ast.Call, operand: Operand) -> None:
        """`x.pin_memory()` as a statement: its pinned copy is dropped."""
        here = Value("device", CPU)
        self.emit(
            Move(
                self.span(node), node, operand.value.because, self.guards, self.scope(), self.name, "pin_memory", operand,
                here, None, True, True, operand.value, self.loops > 0,
            )
        )  # fmt: skip

    def wait_for(self, value: Value) -> None:
        if may_be_accelerator(value.device) or not value.device:
            self.wait()


def start_of(node: ast.AST) -> ast.AST:
    """What a chain of `detach` and `cpu` begins with: `model(x)` of `model(x).detach().cpu()`, which computes a tensor."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("detach", "cpu"):
        node = node.func.value
    return node
