"""Functions of torch and methods of tensors: checked and evaluated by their knowledge record."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from devlint.facts.events import How, Operand
from devlint.facts.frozen import replace
from devlint.facts.idioms import arrays, beside_new, device_maps, guesses, randomness, tables, unknown_devices, unplaced
from devlint.facts.idioms.device_maps import PLACED
from devlint.facts.interpreter.arguments import Arguments
from devlint.facts.interpreter.factories import FROM_DATA
from devlint.facts.interpreter.host_reads import drawn
from devlint.facts.interpreter.operations import CPU_PLACE, TURN
from devlint.facts.interpreter.sized_tensors import SizedTensors
from devlint.facts.text.nodes import walk
from devlint.facts.text.signatures import default_of
from devlint.facts.values import CPU, NO_TENSOR, NOTHING, UNKNOWN, Kind, Value, may_be_accelerator

if TYPE_CHECKING:
    from devlint.knowledge import Function as Record

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
_LOOKS = frozenset({"max", "min", "argmax", "argmin", "median", "nanmedian", "mode", "kthvalue"})
#: Operations whose result may have no dimension left though the operand has one.
_DROPS_DIMENSIONS = frozenset(
    {
        "squeeze", "squeeze_", "select", "trace", "diagonal", "unbind", "index", "dot", "vdot", "inner", "vecdot", "det",
        "logdet", "slogdet", "cond", "matrix_rank", "matrix_norm", "nuclear_norm", "frobenius_norm", "trapz", "trapezoid",
        "logsumexp", "kthvalue", "mode", "cosine_similarity", "pairwise_distance", "cov", "corrcoef", "take",
    }
)  # fmt: skip
#: Those with several results, each of which has as many dimensions as the operand, or as the one with most of them.
_KEEPS_DIMENSIONS = frozenset(
    {"chunk", "split", "tensor_split", "split_with_sizes", "sort", "topk", "cummax", "cummin", "broadcast_tensors"}
)
#: Functions whose further tensors are lengths [torch/nn/utils/rnn.py].
_OF_FIRST = frozenset({"torch.nn.utils.rnn.unpad_sequence", "torch.nn.utils.rnn.pack_padded_sequence"})
#: Operations that give indices of what they are given.
_GIVE_INDICES = frozenset({"multinomial", "argsort", "argmax", "argmin", "nonzero", "topk", "sort"})
_SIZED = frozenset(
    {"expand", "view", "reshape", "repeat", "permute", "narrow", "tile", "unfold", "unflatten", "new_zeros", "roll"}
)
#: What gives a tensor the shape in its arguments.
_SHAPED = frozenset({"view", "reshape", "expand", "repeat", "tile", "broadcast_to"})
#: Parameters that are numbers in every operator that has them, where no tensor is wanted; a 0-dim tensor is read as one.
#: [native_functions.yaml: `Scalar`, `float`]
NUMBERS = frozenset({"alpha", "beta", "delta", "eps", "fill_value", "lambd", "negative_slope", "threshold", "value"})
_BOUNDS = frozenset({"clamp", "clip", "clamp_", "clip_"})
#: What is differentiated, and its gradients: they are where it is [torch/csrc/autograd/engine.cpp, validate_outputs].
_ROOTS = {
    "torch.autograd.grad": (("outputs", 0), ("grad_outputs", 2)),
    "torch.autograd.backward": (("tensors", 0), ("grad_tensors", 1)),
}
#: Factories whose first arguments are numbers, or tensors by which they are placed.
_SPACED = frozenset({"torch.linspace", "torch.logspace"})
#: What constructors call the ends of a range, which are numbers there: `beta_start`, `max_value`.
_END = re.compile(r"(?:\A|_)(?:start|end|begin|stop|min|max|low|high)(?:_|\Z)")


class TorchFunctions(SizedTensors):
    """Adds `call_record`."""

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
            direct = set(map(id, arguments.given()))
            to_write = arguments.get("out")
            if to_write is not None and isinstance(to_write[1].elements, tuple):
                direct.update(map(id, to_write[1].elements))
            operands = [o for o in operands if id(o.value) in direct]  # a list holds sizes, as numbers or 0-dim tensors
        if record.qualname in _SPACED:
            count = arguments.get("steps", 2)  # a number, whatever gives it; the ends may be tensors
            operands = [o for o in operands if count is None or o.node is not count[0]]
        if receiver is not None:
            if operation in _SIZED:
                operands = []  # sizes, as 0-dim tensors, are read as numbers
            operands.insert(0, receiver)
        if "generator" in record.accepts:
            randomness.note_draw(self, node, record, arguments, operands)
        if record.host_only:
            held = (*self.columns(record, arguments), *self.positions(record, arguments))
            self.note_use(node, record.qualname, [*drawn(operands, arguments), *held])
            self.wait()
        out = arguments.get("out")
        device = arguments.get("device") if "device" in record.accepts else None
        if device is not None:
            self.note_literal(device[0], device[1], "argument", record.qualname, "device")
        elif receiver is None:
            unknown_devices.note_argument(self, node, record, arguments)
        if device is None:
            unknown_devices.note_place(self, node, record, arguments)
        self.note_index_device(node, record.qualname, arguments)
        dtype = arguments.keywords.get("dtype")
        if dtype is not None and dtype[1].kind in ("device", "index"):
            self.emit_call(node, record.qualname, None, arguments, exists=True)
        written = 0 if record.inplace and operands else None
        if out is not None and how == "function":
            # `tensors` put the operand of `out=` last; it is written to
            outs = out[1].elements if isinstance(out[1].elements, tuple) else (out[1],)
            for index, operand in enumerate(operands):
                if operand.node is out[0] or any(operand.value is o for o in outs):
                    written = index
        name = record.qualname.rpartition(".")[2]
        if name in _BOUNDS and any(v.kind in ("number", "extent") for v in arguments.values):
            # a number beside it makes a 0-dim bound a number too [torch's argument parser: clamp(Tensor, Number, Number)]
            operands = [o for i, o in enumerate(operands) if i == 0 or o.value.zero_dim is False]
        if operands and (numbers := set(map(id, given_as_numbers(record, arguments)))):
            operands = [o for i, o in enumerate(operands) if i == written or id(o.node) not in numbers]
        mixing = record.mixing
        if mixing is None and written is not None and out is not None:
            mixing = "exact"  # what is written to is where the operand is [c10's structured kernels: `set_output`]
        if (
            mixing is not None
            and operands
            and (record.device_from not in ("argument", "like") or (device is None and not arguments.star))
        ):
            met = [*unplaced.beside(self, operands), *beside_new.others(self, record, arguments, operands)]
            self.meet(node, met, "inplace" if record.inplace else how, operation, mixing, written)
        if record.qualname in _ROOTS:
            roots = [arguments.get(name, position) for name, position in _ROOTS[record.qualname]]
            parts = Arguments()
            parts.nodes, parts.values = (
                [g[0] for g in roots if g is not None],
                [guesses.tensor(g[1]) for g in roots if g is not None],
            )
            self.meet(node, self.tensors(parts), "function", operation, "exact")
        if name in _GIVE_INDICES:
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

    def starts_at_number(self, arguments: Arguments) -> bool:
        """Whether the first end of a range is a number: of parameters alone whose defaults are numbers (`beta_start=1e-4`), of
        which the number of steps is computed as well (`torch.linspace(-n + 0.5, n - 0.5, 2 * n)`), or that a constructor
        calls an end."""
        count = arguments.get("steps", 2)
        counted = {part.id for part in walk(count[0]) if isinstance(part, ast.Name)} if count is not None else set()
        parts = list(walk(arguments.nodes[0])) if arguments.nodes and self.function is not None else []
        names = [part.id for part in parts if isinstance(part, ast.Name)]
        if not names or any(isinstance(part, (ast.Call, ast.Attribute, ast.Subscript)) for part in parts):
            return False
        defaults = [default_of(self.function.node.args, name) for name in names] if self.function is not None else []
        constructs = self.name.endswith(".__init__")
        return all(
            name in counted
            or (isinstance(default, ast.Constant) and isinstance(default.value, (int, float)))
            or (constructs and default is None and _END.search(name) is not None)
            for name, default in zip(names, defaults, strict=True)
        )

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
        if kind is None or kind == "ndarray":
            return arrays.result(record, arguments) or (NOTHING if kind is None else Value(kind))
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
                and not (record.qualname in _SPACED and self.starts_at_number(arguments))
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
            if zero_dim is None and (
                record.zero_dim == "no"
                or is_given_a_shape(node, record, arguments)
                or is_along_another(record, arguments)
            ):
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
            if record.mixing in ("scalar", "expanded") and all(o.value.zero_dim is True for o in deciding):
                if any(v.kind == "unknown" for v in arguments.values):
                    return Value(kind, UNKNOWN, zero_dim)  # a scalar beside what may be a tensor anywhere
            combined = self.combine(deciding, zero_dim)
            if len(deciding) == 2 and record.qualname.rsplit(".", 1)[-1] in ("matmul", "inner"):
                one, other = deciding
                if tables.may_have_no_dimension(self, node, one, other):
                    return replace(combined, zero_dim=None, split=None)
            if len(deciding) == 1 and is_along_another(record, arguments):
                combined = with_dimensions(combined, deciding[0].value)
            if zero_dim is None and combined.type_name is None and reduces_first(record.qualname, arguments):
                combined = replace(combined, type_name=TURN)  # nothing is left of one dimension
            if kind == "tensors":
                kept = record.qualname.rsplit(".", 1)[-1] in _KEEPS_DIMENSIONS
                whole = kept and any(o.value.zero_dim is False for o in deciding)
                return replace(combined, kind="tensors", zero_dim=False if whole else combined.zero_dim)
            if zero_dim is None and len(operands) == 1 and record.mixing == "scalar":
                return replace(combined, zero_dim=operands[0].value.zero_dim)
            name = record.qualname.rsplit(".", 1)[-1]
            if zero_dim is None and record.zero_dim == "unknown":
                if may_drop_dimensions(name, record, arguments):
                    return replace(combined, zero_dim=None) if combined.zero_dim is False else combined
                if all(o.value.zero_dim is False for o in deciding):
                    return replace(combined, zero_dim=False)
            return combined
        builds = record.qualname.startswith(("torchvision.", "timm.", "transformers.")) and not operands
        if kind == "module" and builds and "device_map" in arguments.keywords:
            return device_maps.placed(self, node, arguments) or Value(kind, UNKNOWN, zero_dim)
        if kind == "module" and builds and not arguments.star and not PLACED.intersection(arguments.keywords):
            # it builds a module, or loads one into host memory
            origin = self.origin(node, "created here")
            return Value("module", self.default_device().device, because=(origin,), ident=origin.span)
        return Value(kind, UNKNOWN, zero_dim)


@lru_cache(1024)
def number_params(params: tuple[str, ...], tensors: tuple[int, ...]) -> frozenset[str]:
    """The names of `NUMBERS`, without those of parameters of a function that are tensors."""
    return NUMBERS.difference(params[i] for i in tensors)


def given_as_numbers(record: Record, arguments: Arguments) -> Iterator[ast.expr]:
    """The arguments of a call that the operator takes for numbers, see `NUMBERS`."""
    wanted = number_params(record.params, record.tensor_params)
    for name, (node, _) in arguments.keywords.items():
        if name in wanted:
            yield node
    if not wanted.isdisjoint(record.params[:1]):
        return  # a deprecated order of the arguments: `addmm(beta, input, alpha, mat1, mat2)`
    for name, node in zip(record.params, arguments.nodes, strict=False):
        if name in wanted:
            yield node


def reduces_first(qualname: str, arguments: Arguments) -> bool:
    """Whether a call looks for something along the first dimension: `scores.max(dim=0)`, `torch.argmax(scores, 0)`."""
    home, _, name = qualname.rpartition(".")
    along = arguments.get("dim", 0 if home.endswith("Tensor") else 1)
    return name in _LOOKS and along is not None and along[1].constant == 0


def is_along_another(record: Record, arguments: Arguments) -> bool:
    """Whether a call works along a dimension that only a tensor of two or more has: `scores.argmax(1)`, `x.sum(dim=-2)`.

    At most that one is dropped.
    """
    if "dim" not in record.params:
        return False
    along = arguments.get("dim", record.params.index("dim"))
    number = along[1].constant if along is not None else None
    if along is not None and isinstance(along[0], ast.UnaryOp) and isinstance(along[0].op, ast.USub):
        operand = along[0].operand
        number = -operand.value if isinstance(operand, ast.Constant) and isinstance(operand.value, int) else None
    return isinstance(number, int) and not isinstance(number, bool) and not -1 <= number <= 0


def with_dimensions(result: Value, operand: Value) -> Value:
    """What an operation gives that torch refuses for a 0-dim tensor, `torch.tensor(1.0).unsqueeze(1)`: no such placeholder
    comes out of it."""
    if operand.zero_dim is True:
        return replace(result, device=UNKNOWN, made=())
    placeholders = bool(operand.made) and all(creation.zero_dim is True for creation in operand.made)
    if placeholders and operand.zero_dim is None and CPU_PLACE in operand.device and len(operand.device) > 1:
        return replace(result, device=operand.device - CPU, made=(), split=None)
    return result


def is_given_a_shape(node: ast.Call, record: Record, arguments: Arguments) -> bool:
    """Whether a call gives its result a shape of one dimension at least: `x.view(1, -1)`, `torch.reshape(x, (n, 3))`, or
    that of another tensor, as a factory does: `torch.broadcast_to(x, y.shape)`."""
    namespace, _, name = record.qualname.rpartition(".")
    if name not in _SHAPED:
        return False
    if arguments.values and arguments.values[-1].type_name == "size" and arguments.values[-1].zero_dim is not True:
        return len(arguments.values) == (1 if namespace.endswith("Tensor") else 2)
    sizes = node.args if namespace.endswith("Tensor") else node.args[1:]
    if len(sizes) == 1:
        only = sizes[0]
        if isinstance(only, (ast.Tuple, ast.List)):
            return bool(only.elts) and not isinstance(only.elts[0], ast.Starred)
        return isinstance(only, ast.UnaryOp) or (isinstance(only, ast.Constant) and isinstance(only.value, int))
    return len(sizes) > 1 and not isinstance(sizes[0], ast.Starred)


def may_drop_dimensions(name: str, record: Record, arguments: Arguments) -> bool:
    """Whether nothing may be left of the dimensions of what an operation is given: a norm, a product of rows, a quantile."""
    if name in ("quantile", "nanquantile"):
        q = arguments.get("q", record.params.index("q") - record.is_tensor_method)
        return q is None or q[1].kind in ("number", "unknown") or q[1].zero_dim is True
    if name == "einsum":
        equation = arguments.nodes[0] if arguments.nodes else None
        if not isinstance(equation, ast.Constant) or not isinstance(equation.value, str):
            return True
        inputs, arrow, output = equation.value.partition("->")
        return not (output.strip() if arrow else any(inputs.count(c) == 1 for c in inputs if c.isalpha()))
    return name in _DROPS_DIMENSIONS


def given_keywords(arguments: Arguments) -> list[str]:
    """The keywords of a call without those that are literally False or None."""
    return [k for k, (_, v) in arguments.keywords.items() if v.kind != "none" and v.constant is not False]


def numbers_of(arguments: Arguments) -> list[int]:
    """Positions of the arguments that are surely numbers."""
    return [i for i, v in enumerate(arguments.values) if v.kind == "number"]
