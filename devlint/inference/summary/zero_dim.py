"""Whether the result of a call is 0-dim: a tensor without dimensions, which torch lets meet others on any device."""

from __future__ import annotations

import ast
from typing import Final

from devlint.inference.summary.arguments import Argument, Arguments
from devlint.inference.terms.places import zero_dim_of
from devlint.knowledge.records import Function

#: Factories that take their shape as their first arguments [torch documentation, "Creation Ops"].
SHAPED: Final = frozenset(
    f"torch.{name}"
    for name in [
        "zeros",
        "ones",
        "rand",
        "randn",
        "empty",
        "full",
        "normal",
        "Tensor",
        "FloatTensor",
        "LongTensor",
        "ByteTensor",
        "BoolTensor",
        "IntTensor",
        "DoubleTensor",
    ]
)
#: Functions whose result has at least one dimension.
_HAS_DIMENSIONS: Final = frozenset(
    f"torch.{name}"
    for name in [
        "arange",
        "linspace",
        "eye",
        "randperm",
        "logspace",
        "hann_window",
        "hamming_window",
        "tril_indices",
        "triu_indices",
        "randint",
        "cat",
        "stack",
        "concat",
        "meshgrid",
        "unsqueeze",
        "range",
        "combinations",
        "cartesian_prod",
    ]
)
#: Methods after which a tensor has as many dimensions as before.
_KEEPS: Final = frozenset(
    [
        "float",
        "long",
        "int",
        "bool",
        "half",
        "double",
        "bfloat16",
        "byte",
        "short",
        "char",
        "type",
        "clone",
        "detach",
        "detach_",
        "contiguous",
        "requires_grad_",
        "fill_",
        "zero_",
        "clamp",
        "clamp_",
        "softmax",
        "log_softmax",
        "copy_",
        "normal_",
        "uniform_",
        "random_",
        "bernoulli_",
        "pin_memory",
        "share_memory_",
        "to",
        "cuda",
        "cpu",
    ]
)
#: Methods after which a tensor with dimensions still has some.
_STAYS: Final = frozenset(
    [
        "repeat",
        "expand",
        "expand_as",
        "view_as",
        "reshape",
        "permute",
        "transpose",
        "t",
        "flatten",
        "cumsum",
        "cumprod",
        "movedim",
        "tile",
        "flip",
        "roll",
        "sort",
        "triu",
        "tril",
        "view",
        "scatter_",
        "scatter",
        "index_fill_",
        "masked_fill_",
        "masked_fill",
        "squeeze_",
        "gather",
        "index_select",
        "chunk",
        "split",
        "type_as",
    ]
)
_ADDS: Final = frozenset(
    {"repeat", "expand", "unsqueeze", "unsqueeze_", "reshape", "view", "new_zeros", "new_ones", "new_empty", "new_full"}
)


def zero_dim(record: Function, arguments: Arguments, operands: list[Argument]) -> bool | str | None:
    """True, False, or None where it is not known; "keep" and "stays" as in `factories.with_dims`."""
    name = record.qualname
    if name in SHAPED:
        return _of_shape(arguments)
    if record.params[:1] == ("data",):
        return _of_data(arguments)
    if name in _HAS_DIMENSIONS:
        return False
    if record.zero_dim == "reduces":
        whole = record.reduces_to_scalar(len(arguments.positional), [*arguments.named])
        return "stays" if whole is None and (arguments.positional or "dim" in arguments.named) else whole
    if record.zero_dim in ("yes", "no"):
        return record.zero_dim == "yes"
    if record.elementwise and operands:
        return _elementwise(operands)
    last = name.rpartition(".")[2]
    if record.is_tensor_method:
        return _of_method(last, arguments)
    return "stays" if operands and last in _STAYS else None


def _of_shape(arguments: Arguments) -> bool | None:
    given = arguments.get(0, "size")
    if given is None:
        return False if len(arguments.positional) > 1 else None
    at, first = given
    if isinstance(at, (ast.Tuple, ast.List)) and not at.elts:
        return True
    if first.kind == "tuple":
        return first.parts == ()
    return None if first.kind == "size" and zero_dim_of(first.places) is True else False


def _of_data(arguments: Arguments) -> bool | None:
    first = arguments.value(0, "data")
    if first is None:
        return None
    if first.kind in ("list", "tuple", "string", "array"):
        return False if first.kind != "array" or first.proved else None
    if first.kind in ("number", "bool"):
        return True
    return zero_dim_of(first.places) if first.is_tensor else None


def _elementwise(operands: list[Argument]) -> bool | str | None:
    if len(operands) == 1:
        return "keep"
    found = [zero_dim_of(value.places) for _, value in operands]
    if False in found:
        return False
    return True if all(each is True for each in found) else "stays"


def _of_method(name: str, arguments: Arguments) -> bool | str | None:
    if name in _KEEPS:
        return "keep"
    if name in _ADDS and arguments.positional:
        return False
    return "stays" if name in _STAYS else None
