"""CUDA's autocast policy on CPU tensors.

``autocast("cuda")`` casts by the AutocastCUDA kernels, which C++ never chooses for tensors it takes for
CPU ones.  So a simulated region also switches AutocastCPU on, and the operators that only CUDA's policy
names (aten/src/ATen/autocast_mode.h) get Python kernels on that key while a simulation lasts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._pytree import tree_leaves, tree_map

# Computed in single precision.
_SINGLE = [
    "acos",
    "asin",
    "cosh",
    "cosine_similarity",
    "dist",
    "erfinv",
    "exp",
    "expm1",
    "group_norm",
    "layer_norm",
    "native_layer_norm",
    "log",
    "log10",
    "log1p",
    "log2",
    "logsumexp",
    "pdist",
    "pow.Scalar",
    "pow.Tensor_Scalar",
    "pow.Tensor_Tensor",
    "reciprocal",
    "renorm",
    "rms_norm",
    "rsqrt",
    "sinh",
    "softplus",
    "tan",
    "frobenius_norm.dim",
    "nuclear_norm",
    "nuclear_norm.dim",
    "norm.Scalar",
    "norm.ScalarOpt_dim",
]
# The same, unless the caller names a dtype.
_SINGLE_BY_DEFAULT = ["cumprod", "cumsum", "log_softmax.int", "softmax.int", "sum", "sum.dim_IntList"]
# Computed in the region's low precision.
_LOW = [
    "addmv",
    "addr",
    "chain_matmul",
    "einsum",
    "gru_cell",
    "linalg_multi_dot",
    "lstm_cell",
    "mv",
    "rnn_relu_cell",
    "rnn_tanh_cell",
]
# Computed in the widest type among the inputs.
_WIDEST = ["addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "index_put", "scatter_add", "tensordot", "vdot"]

_AUTOCAST = torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)


class AutocastPolicy:
    """Registers the kernels at the first simulated region and removes them at the end."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._library: Any = None

    def install(self) -> None:
        """Register the kernels, once."""
        if self._library is not None:
            return
        self._library = torch.library.Library("aten", "IMPL")
        for names, target in (
            (_SINGLE, _to_single),
            (_SINGLE_BY_DEFAULT, _to_single_by_default),
            (_LOW, _to_low),
            (_WIDEST, _to_widest),
        ):
            for name in names:
                self._register(name, target)

    def _register(self, name: str, target: Callable[[Any], torch.dtype | None]) -> None:
        base, _, overload = name.partition(".")
        packet = getattr(torch.ops.aten, base, None)
        operator = getattr(packet, overload or "default", None)
        has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
        if operator is None or has_kernel(operator.name(), "AutocastCPU"):
            return
        self._library.impl(name, self._kernel(operator, target), "AutocastCPU")

    def _kernel(self, operator: Any, target: Callable[[Any], torch.dtype | None]) -> Any:
        kind = self._kind

        def kernel(*args: Any, **kwargs: Any) -> Any:
            with torch._C._ExcludeDispatchKeyGuard(_AUTOCAST):
                if torch.is_autocast_enabled(kind):
                    dtype = target((args, kwargs))
                    if dtype is not None:
                        args, kwargs = tree_map(_caster(dtype), (args, kwargs))
                return operator(*args, **kwargs)

        return kernel

    def remove(self) -> None:
        """Take the kernels away."""
        if self._library is not None:
            self._library._destroy()
            self._library = None


def _caster(dtype: torch.dtype) -> Callable[[Any], Any]:
    def cast(value: Any) -> Any:
        eligible = isinstance(value, torch.Tensor) and value.is_floating_point() and value.dtype != torch.float64
        return value.to(dtype) if eligible and value.dtype != dtype else value

    return cast


def _to_single(values: Any) -> torch.dtype | None:
    return torch.float32


def _to_single_by_default(values: Any) -> torch.dtype | None:
    named = any(isinstance(value, torch.dtype) for value in tree_leaves(values))
    return None if named else torch.float32


def _to_low(values: Any) -> torch.dtype | None:
    return torch.get_autocast_dtype("cpu")


def _to_widest(values: Any) -> torch.dtype | None:
    dtypes = {value.dtype for value in tree_leaves(values) if isinstance(value, torch.Tensor)}
    return torch.float32 if torch.float32 in dtypes else torch.get_autocast_dtype("cpu")
