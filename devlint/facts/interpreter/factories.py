"""Factory functions, `torch.zeros` and its kind: on which device a new tensor is, and whether it has dimensions."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from devlint.facts.events import Create, Creation, Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import guesses, spread
from devlint.facts.idioms.loss_sizes import is_size_of_loss
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.host_reads import HostReads
from devlint.facts.interpreter.operations import short
from devlint.facts.text.factory_names import CONVERSIONS, COPIES
from devlint.facts.text.references import last_name
from devlint.facts.text.signatures import default_of, parameter_of
from devlint.facts.values import CPU, MADE_ON_CPU, UNKNOWN, Kind, Value, may_be_accelerator
from devlint.model import Origin

if TYPE_CHECKING:
    from devlint.knowledge import Function as Record

#: Functions that give a number for a number.
_OF_NUMBERS = frozenset({"cos", "sin", "tan", "exp", "log", "sqrt", "log2", "log10", "tanh", "float", "int"})
#: Constructors that take data or a scalar: the number of dimensions follows from the argument.
FROM_DATA = CONVERSIONS | {"torch.scalar_tensor"}
#: What fills a new tensor that takes part in the computation of a model: states, noise, masks; no lengths or places.
FILLED = frozenset({"torch.zeros", "torch.ones", "torch.randn", "torch.rand", "torch.normal"})
#: Factories of made-up data: at module level their results show how something is used, not what it gets in use.
MADE_UP = frozenset(
    f"torch.{name}" for name in ("rand", "randn", "randint", "zeros", "ones", "empty", "full", "arange")
)


def is_made_up(values: Iterable[Value]) -> bool:
    """Whether there are tensors among some values, and each of them is made-up data on the CPU."""
    tensors = [value for value in values if value.is_tensor and value.device]
    return bool(tensors) and all(
        value.device == CPU and bool(value.made) and all(c.function in MADE_UP for c in value.made) for value in tensors
    )


class Factories(HostReads):
    """Adds `create` and the constructors of tensor types."""

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
        self.settle_sized(arguments)
        out = arguments.get("out")
        if out is not None and out[1].kind != "none":
            return out[1]
        if zero_dim is None:
            zero_dim = self.made_zero_dim(qualname, arguments)
        elif qualname == "torch.from_numpy" and arguments.nodes and is_array_of_one(arguments.nodes[0]):
            zero_dim = None
        span = self.span(node)
        if device is not None and device[1].kind != "none":
            target = self.device_of_argument(*device)
            named = "the CPU" if target.made else f"`{short(spread.text(self, node, device[0]))}`"
            origin = Origin(span, f"created on {named} here")
            result = Value(kind, target.device, zero_dim, because=(origin,), made=target.made, moved=not target.made)
            given: Value | None = device[1] if device[1].kind == "index" else target
            result = self.on_either(result, device[1], node, qualname, takes_device)
        elif any(v.kind == "device" for v in arguments.values) or (
            "device" in arguments.keywords and "device" not in record.accepts and qualname in FROM_DATA
        ):
            return Value(kind, UNKNOWN, zero_dim)  # a device among the sizes, or one it does not take: the call fails
        elif self.is_copy_of_input(qualname, arguments) or (
            takes_device and (arguments.double_star or self.draws_from(arguments) or writes_elsewhere(arguments))
        ):
            result = Value(kind, UNKNOWN, zero_dim)
            given = None
        else:
            default = self.default_device() if takes_device and not record.ignores_default else Value("device", CPU)
            origin = Origin(span, MADE_ON_CPU if default.device == CPU else "created here")
            made: tuple[Creation, ...] = ()
            if default.device == CPU and not self.draws_on_host(arguments):
                made = (Creation(span, qualname, node, self.scope(), zero_dim, takes_device),)
            result = Value(kind, default.device, zero_dim, because=(origin,), made=made)
            given = None
            if made and device is None and not arguments.keywords.keys() & {"pin_memory"}:  # on the host on purpose
                self.note_size(made[0], arguments)
        self.emit(Create(span, node, result.because, self.guards, {}, self.name, qualname, given, result))
        return result

    def on_either(self, made: Value, device: Value, node: ast.Call, qualname: str, takes_device: bool) -> Value:
        """A new tensor on a device that is None on one path: there it is on the default device, and the same condition
        tells so. `made`: as the device says that is none."""
        if device.split is None or "none" not in (device.split[1].kind, device.split[2].kind):
            return made
        key, *sides = device.split
        if self.default_device().device != CPU:
            return made
        creation = Creation(self.span(node), qualname, node, self.scope(), made.zero_dim, takes_device)
        new = replace(made, device=CPU, because=(Origin(self.span(node), MADE_ON_CPU),), made=(creation,))
        first, second = (new if side.kind == "none" else replace(made, device=side.device) for side in sides)
        return replace(made, split=(key, first, second))

    def is_copy_of_input(self, qualname: str, arguments: Arguments) -> bool:
        """Whether `torch.tensor(x)` gets an argument that may be a tensor, or an entry of one: a tensor is copied where it is.

        An input of `forward` of which nothing is known, or an argument whose annotation speaks of tensors.
        [torch.tensor: "If None and data is a tensor then the device of data is used"]
        """
        node = arguments.nodes[0] if qualname in COPIES and len(arguments.nodes) == 1 else None
        while isinstance(node, ast.Subscript):
            node = node.value
        if not isinstance(node, ast.Name) or arguments.values[0].kind != "unknown" or self.function is None:
            return False
        found = parameter_of(self.function.node.args, node.id)
        if found is None or any(tells_type(test, node.id) for test in self.guards.tests):
            return False  # a condition tells the one from the other
        if found.annotation is not None:
            return any(last_name(n) == "Tensor" for n in ast.walk(found.annotation) if isinstance(n, ast.expr))
        if self.owner is None or not self.owner.is_module:
            return False
        return self.function.name.rpartition(".")[2] == "forward"

    def draws_from(self, arguments: Arguments) -> bool:
        """Whether a `generator=` is given: the tensor must be on the generator's device, which is not known here."""
        generator = arguments.get("generator")
        return generator is not None and generator[1].kind != "none" and generator[1].device != CPU

    def draws_on_host(self, arguments: Arguments) -> bool:
        """Whether a generator of the CPU is given: it can draw nowhere else, so that the draw is moved where it is used."""
        generator = arguments.get("generator")
        return generator is not None and generator[1].kind == "generator" and generator[1].device == CPU

    def note_size(self, creation: Creation, arguments: Arguments) -> None:
        """Remember the tensor in whose size this one is made, for when it is returned or kept."""
        for node, value in arguments.every():
            for part in (value, *(value.elements if isinstance(value.elements, tuple) else ())):
                if part.type_name in ("size", "extent") and may_be_accelerator(part.device):  # of no guess
                    tensor = Value("tensor", part.device, False, because=part.because)
                    text = part.constant if isinstance(part.constant, str) else self.text(node)
                    self.sized[creation.span] = Operand(self.span(node), node, text, tensor)
                    return

    def settle_sized(self, arguments: Arguments) -> None:
        """`torch.randn(action.shape)`: what a new tensor takes its shape from is a tensor, where a guess says so far."""
        for node in arguments.nodes:
            name = node.value if isinstance(node, ast.Attribute) and node.attr == "shape" else None
            known = self.state.env.get(name.id) if isinstance(name, ast.Name) else None
            if known is None or not guesses.is_guess(known) or not known.because:
                continue
            if known.because[0].span not in self.assumed and isinstance(name, ast.Name):
                self.state.env[name.id] = guesses.tensor(known)

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
            if first.is_tensor or first.kind == "ndarray":
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
        size = arguments.get("size", 0)
        if size is not None and is_size_of_loss(self, size[0]):
            return None
        if first is None or node is None:
            return False
        if first.type_name == "size" and first.zero_dim is not None:
            return first.zero_dim
        if isinstance(node, ast.Call) and last_name(node.func) == "Size":
            return not node.args or (isinstance(node.args[0], (ast.Tuple, ast.List)) and not node.args[0].elts)
        return None if isinstance(node, ast.Name) and self.is_nothing_by_default(node.id) else False

    def is_nothing_by_default(self, name: str) -> bool:
        """Whether a parameter stands for no dimensions where nobody gives it: `def draw(self, shape=()):`."""
        spec = self.function.node.args if self.function is not None else None
        default = default_of(spec, name) if spec is not None else None
        if isinstance(default, ast.Call) and last_name(default.func) == "Size":
            default = default.args[0] if default.args else ast.Tuple([])
        return isinstance(default, (ast.Tuple, ast.List)) and not default.elts

    @property
    def default_type_changes(self) -> bool:
        """Whether the file sets another default tensor type, and what is made here may come after that."""
        return self.state.default is not None and "set_default_tensor_type" in self.source.text

    def call_legacy(self, node: ast.Call, qualname: str, arguments: Arguments) -> Value:
        """`torch.Tensor(...)`, `torch.FloatTensor(...)`: a CPU tensor [torch/_tensor_docs.py].

        `torch.Tensor` stands for the default tensor type, and follows that, but no default device. Of one tensor it makes an
        alias, wherever that is; its siblings refuse a tensor of another device [torch/csrc/utils/tensor_new.cpp,
        `legacy_tensor_generic_ctor_new`].
        """
        span = self.span(node)
        given = arguments.values[0] if len(arguments.values) == 1 and not arguments.star else None
        if given is not None and given.is_tensor and qualname == "torch.Tensor" and not self.in_init:
            # an object, for its part, is given what is on the host when it is made
            return replace(given, kind="tensor", attribute=None)
        if given is not None and given.is_tensor and may_be_accelerator(given.device):
            # who hands on a name holds it on the host, as far as anybody can tell
            if not isinstance(arguments.nodes[0], ast.Name) and qualname != "torch.Tensor":
                self.note_use(node, qualname, [self.operand(arguments.nodes[0], given)])
            return Value("tensor", UNKNOWN, given.zero_dim)
        default = self.state.default
        by_type = qualname == "torch.Tensor" and "set_default_tensor_type" in self.source.text
        if by_type and default is not None and default.device != CPU:
            return Value("tensor", UNKNOWN, False)  # the one class that follows `set_default_tensor_type`
        made = (Creation(span, qualname, node, self.scope(), False, False),)
        because = (Origin(span, MADE_ON_CPU),)
        device = arguments.get("device")
        if device is not None:
            self.note_literal(device[0], device[1], "argument", qualname, "device")
            self.emit_call(node, qualname, None, arguments, exists=True)
            return Value("tensor", UNKNOWN, False)
        if not node.args and not node.keywords:
            return Value("tensor", UNKNOWN)  # without elements: a placeholder
        if qualname == "torch.Tensor" and self.default_type_changes:
            return Value("tensor", UNKNOWN, False)
        result = Value("tensor", CPU, False, because=because, made=made)
        self.emit(Create(span, node, because, self.guards, {}, self.name, qualname, None, result))
        return result


def tells_type(test: str, name: str) -> bool:
    """Whether a condition asks whether a name, or an entry of it, is a tensor, or something else: `not is_tensor(x)`."""
    return re.search(rf"\b(?:isinstance|is_tensor)\(\s*{name}\b", test) is not None


def writes_elsewhere(arguments: Arguments) -> bool:
    """Whether `out=` is given: the result is that tensor, wherever it is."""
    out = arguments.get("out")
    return out is not None and not (isinstance(out[0], ast.Constant) and out[0].value is None)


def is_array_of_one(node: ast.expr) -> bool:
    """Whether an expression may be an array without dimensions: `np.asarray(np.cos(margin))`."""
    if not isinstance(node, ast.Call) or last_name(node.func) not in ("asarray", "array") or not node.args:
        return False
    given = node.args[0]
    return isinstance(given, ast.Call) and last_name(given.func) in _OF_NUMBERS
