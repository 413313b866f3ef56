"""Functions whose meaning no knowledge record states: `torch.device`, `copy.deepcopy`, `functools.partial` and others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from devlint import knowledge
from devlint.facts.frozen import replace
from devlint.facts.idioms import distributions, randomness, safe_files, said, sequences, unknown_devices
from devlint.facts.idioms.devices import MADE
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.operations import short
from devlint.facts.interpreter.torch_classes import TorchClasses
from devlint.facts.values import CPU, MADE_ON_CPU, NONE, NOTHING, NUMBER, UNKNOWN, Value, extent, on, symbol
from devlint.model import Origin

_TRANSFORMS = "torchvision.transforms"
TO_TENSOR = f"{_TRANSFORMS}.ToTensor"

#: What `checkpoint` takes for itself [torch/utils/checkpoint.py].
_OF_CHECKPOINT = frozenset(
    {"use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state"}
)


class SpecialCalls(TorchClasses):
    """Adds a method for each function in `SPECIAL`."""

    # -- the run's device ------------------------------------------------------------------------------------------------

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
        else:
            unknown_devices.note(self, expression, qualname)
        if index is not None and isinstance(index[0], ast.Constant) and isinstance(expression, ast.Constant):
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
        elif found.type_name in (None, "argument") and found.device:
            found = replace(found, type_name=MADE)
        return found

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

    def call_get_default_device(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """The device on which whatever names none is made, samplers' draws as well; who imports the file may change it."""
        if self.state.default is not None:
            return self.state.default
        return Value(
            "device", symbol(randomness.DEFAULT, 0), because=(self.origin(node, "this is the default device"),)
        )

    def call_default_tensor_type(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        text = self.text(arguments.nodes[0]) if arguments.nodes else ""
        self.state.default = Value("device", on("cuda")) if "cuda" in text else None
        return NONE

    def call_available(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`torch.cuda.is_available()`: the flag remembers the question."""
        return Value("bool", type_name=qualname)

    def call_count(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`torch.cuda.device_count()`: the number remembers what it counts."""
        return replace(NUMBER, type_name=qualname)

    def call_get_device(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`torch.get_device(t)`; without an argument it raises."""
        self.emit_call(node, qualname, None, arguments, exists=True)
        return self.index_of(node, arguments.values[0] if arguments.values else NOTHING)

    def call_current_accelerator(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        return Value("device", type_name="chosen:accelerator")

    def call_wait(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        self.wait()
        return NONE

    # -- torch -----------------------------------------------------------------------------------------------------------

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

    def call_parameter(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        first = arguments.get("data", 0)
        if first is None or not first[1].is_tensor:
            return Value("parameter", UNKNOWN)
        return replace(first[1], kind="parameter", attribute=None)

    def call_checkpoint(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`checkpoint(block, x)` calls the block, and again in the backward pass [torch/utils/checkpoint.py]."""
        if not node.args or arguments.star:
            return NOTHING
        inner = Arguments()
        inner.nodes, inner.values = arguments.nodes[1:], arguments.values[1:]
        inner.keywords = {name: each for name, each in arguments.keywords.items() if name not in _OF_CHECKPOINT}
        keywords = [k for k in node.keywords if k.arg not in _OF_CHECKPOINT]
        return self.call(ast.copy_location(ast.Call(node.args[0], node.args[1:], keywords), node), inner)

    def call(self, node: ast.Call, given: Arguments | None = None) -> Value:
        raise NotImplementedError

    def called_with(
        self, node: ast.Call, named: ast.expr, function: Value, nodes: Sequence[ast.expr], given: Sequence[Value]
    ) -> Value | None:
        raise NotImplementedError

    def call_reduce(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`functools.reduce(torch.add, xs)`: what the function gives for two of the items, or for the start and one."""
        if not 2 <= len(arguments.values) <= 3 or arguments.star or arguments.keywords:
            self.escape(node, arguments)
            return NOTHING
        item = self.element(arguments.values[1])
        nodes = [arguments.nodes[-1], arguments.nodes[1]]
        first = arguments.values[2] if len(arguments.values) == 3 else item
        return self.called_with(node, arguments.nodes[0], arguments.values[0], nodes, [first, item]) or NOTHING

    def call_same(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """A call that gives its first argument back, as far as devices go: `copy.deepcopy`, `torch.compile`."""
        return arguments.values[0] if arguments.values else NOTHING

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

    # -- the standard library --------------------------------------------------------------------------------------------

    def call_deepcopy(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """A copy of its own: what moves the original leaves it where it is."""
        first = arguments.values[0] if arguments.values else NOTHING
        return replace(first, ident=self.span(node), shared=False, split=None) if first.kind == "module" else first

    def call_copy(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """A shallow copy: a module's parameters are those of the original."""
        first = arguments.values[0] if arguments.values else NOTHING
        return replace(first, device=UNKNOWN, ident=None, shared=True) if first.kind == "module" else first

    def call_chain(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`itertools.chain(model.parameters(), model.buffers())`: the items of each."""
        parts = tuple(map(self.element, arguments.values))
        if parts and not arguments.star and all(part.is_tensor for part in parts):
            return Value("object", elements=parts)
        self.escape(node, arguments)
        return NOTHING

    def call_pairs(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`OrderedDict(model.named_parameters())`: a dict of what the pairs hold; `OrderedDict()` is empty."""
        if not arguments.every() and not arguments.star:
            return Value("dict", elements={})
        held = (
            held_by(self.element(arguments.values[0])) if len(arguments.every()) == 1 and arguments.values else NOTHING
        )
        if held is NOTHING:
            self.escape(node, arguments)
        return held

    def call_cast(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`cast(nn.Linear, self.head)` gives its second argument, of the type that the first one says."""
        type_, given = arguments.get("typ", 0), arguments.get("val", 1)
        return said.cast(self, type_[0], *given) if type_ is not None and given is not None else NOTHING

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

    def call_product(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`math.prod(x.shape[:-1])`"""
        first = arguments.values[0] if arguments.values else NOTHING
        return extent(first, str(first.constant)) if first.type_name == "size" else NOTHING

    # -- data ------------------------------------------------------------------------------------------------------------

    def call_audio(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`waveform, rate = torchaudio.load(path)`: the second is a number."""
        waveform = Value("tensor", CPU, False, because=(Origin(self.span(node), MADE_ON_CPU),))
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


def held_by(pair: Value) -> Value:
    """The dict that is made of many pairs like one: `dict(model.named_parameters())`."""
    parts = pair.elements
    if not isinstance(parts, tuple) or len(parts) != 2 or not parts[1].is_tensor:
        return NOTHING
    return Value("dict", type_name="comprehension", elements={"*": parts[1]})


Special = Callable[[SpecialCalls, ast.Call, str, Arguments], Value]


SPECIAL: dict[str, Special] = {
    "torch.device": SpecialCalls.call_device,
    "torch.cuda.set_device": SpecialCalls.call_set_device,
    "torch.accelerator.set_device_index": SpecialCalls.call_set_device,
    "torch.set_default_device": SpecialCalls.call_set_default_device,
    "torch.get_default_device": SpecialCalls.call_get_default_device,
    "torch.set_default_tensor_type": SpecialCalls.call_default_tensor_type,
    "torch.cuda.is_available": SpecialCalls.call_available,
    "torch.xpu.is_available": SpecialCalls.call_available,
    "torch.backends.mps.is_available": SpecialCalls.call_available,
    "torch.mps.is_available": SpecialCalls.call_available,
    "torch.accelerator.is_available": SpecialCalls.call_available,
    **dict.fromkeys((f"torch.{kind}.device_count" for kind in ("cuda", "xpu", "accelerator")), SpecialCalls.call_count),
    "torch.get_device": SpecialCalls.call_get_device,
    "torch.accelerator.current_accelerator": SpecialCalls.call_current_accelerator,
    "torch.nn.Parameter": SpecialCalls.call_parameter,
    "torch.nn.parameter.Parameter": SpecialCalls.call_parameter,
    "torch.cuda.synchronize": SpecialCalls.call_wait,
    "torch.accelerator.synchronize": SpecialCalls.call_wait,
    "torch.xpu.synchronize": SpecialCalls.call_wait,
    "torch.mps.synchronize": SpecialCalls.call_wait,
    "torch.npu.synchronize": SpecialCalls.call_wait,
    "torch.compile": SpecialCalls.call_same,
    "torch.utils.checkpoint.checkpoint": SpecialCalls.call_checkpoint,
    "torch.autograd.Variable": SpecialCalls.call_same,
    "torch.nn.utils.clip_grad_norm_": SpecialCalls.call_clip,
    "torch.distributions.kl_divergence": SpecialCalls.call_divergence,
    "torch.distributions.kl.kl_divergence": SpecialCalls.call_divergence,
    "copy.deepcopy": SpecialCalls.call_deepcopy,
    "copy.copy": SpecialCalls.call_copy,
    "functools.reduce": SpecialCalls.call_reduce,
    **dict.fromkeys(("torch.vmap", "torch.func.vmap", "functorch.vmap"), SpecialCalls.call_same),
    "functools.partial": SpecialCalls.call_partial,
    "typing.cast": SpecialCalls.call_cast,
    "typing_extensions.cast": SpecialCalls.call_cast,
    "itertools.chain": SpecialCalls.call_chain,
    "collections.OrderedDict": SpecialCalls.call_pairs,
    "typing.OrderedDict": SpecialCalls.call_pairs,
    "math.prod": SpecialCalls.call_product,
    "torch.utils.data.random_split": SpecialCalls.call_random_split,
    "torchaudio.load": SpecialCalls.call_audio,
    **{f"{_TRANSFORMS}.{name}": SpecialCalls.call_to_tensor for name in ("ToTensor", "PILToTensor")},
    f"{_TRANSFORMS}.Compose": SpecialCalls.call_compose,
    "torch.nn.utils.rnn.pack_padded_sequence": SpecialCalls.call_pack,
    "torch.nn.utils.rnn.pad_packed_sequence": SpecialCalls.call_unpack,
    **randomness.CALLS,
    **safe_files.CALLS,
}
