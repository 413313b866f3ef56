"""What the dispatch mode knows of each operator, worked out once per overload.

Names are those of aten operators.  Which operators make the host wait is taken from the CUDA
kernels (they copy a size or a value back); which launch nothing, from their being views or metadata.
"""

from __future__ import annotations

from typing import Any

import torch

# The host waits: operator -> how a report names it.
SYNCHRONIZING = {
    "_local_scalar_dense": "item",
    "nonzero": "nonzero",
    "masked_select": "masked_select",
    "is_nonzero": "bool",
    "equal": "equal",
    "_unique": "unique",
    "_unique2": "unique",
    "unique_dim": "unique",
    "unique_consecutive": "unique",
    "unique_dim_consecutive": "unique",
    "bincount": "bincount",
    "_linalg_check_errors": "linalg check",
}

# Indexing waits only for a boolean mask, whose number of true values decides the result's size.
INDEXING = frozenset({"index", "_unsafe_index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index_put"})

# Nothing is launched on the card.
LAUNCHLESS = frozenset(
    [
        "view",
        "_unsafe_view",
        "_reshape_alias",
        "as_strided",
        "as_strided_",
        "slice",
        "select",
        "t",
        "t_",
        "transpose",
        "transpose_",
        "permute",
        "expand",
        "unsqueeze",
        "unsqueeze_",
        "squeeze",
        "squeeze_",
        "detach",
        "detach_",
        "alias",
        "unbind",
        "split",
        "split_with_sizes",
        "diagonal",
        "unfold",
        "view_as_real",
        "view_as_complex",
        "real",
        "imag",
        "movedim",
        "narrow",
        "chunk",
        "empty",
        "empty_like",
        "empty_strided",
        "empty_permuted",
        "new_empty",
        "new_empty_strided",
        "set_",
        "resize_",
        "lift_fresh",
        "lift",
        "_local_scalar_dense",
        "is_pinned",
        "is_same_size",
        "size",
        "stride",
        "numel",
        "dim",
        "storage_offset",
        "sym_size",
        "sym_stride",
        "sym_numel",
        "sym_storage_offset",
        "record_stream",
        "_version",
        "_coalesced_",
        "_indices",
        "_values",
        "indices",
        "values",
        "_nested_get_values",
        "_to_sparse_semi_structured",
    ]
)

# CPU kernels for half precision are tens of times slower than for single precision; see mode.py.
MATRIX_PRODUCTS = frozenset(
    [
        "mm",
        "addmm",
        "bmm",
        "baddbmm",
        "convolution",
        "convolution_backward",
        "_scaled_dot_product_flash_attention_for_cpu",
    ]
)


_OF_TORCH = frozenset({"aten", "prim", "prims"})


class OpPlan:
    """How the dispatch mode treats one operator overload.

    short: tensors come only in the positional arguments, so that the short path can find the place.
    custom: it is no operator of torch, and may have kernels in Python.
    first_only: the first argument is the only one that can hold tensors, and is no list.
    ordinary: on a card nothing else is to be done than to launch the kernel and mark the result.
    tensors: positions of arguments that must be tensors, where a number will not do.
    launches: counts as a kernel on the card's queue.
    """

    __slots__ = (
        "call",
        "composite",
        "custom",
        "first_only",
        "func",
        "half_in_single",
        "indexing",
        "launches",
        "name",
        "ordinary",
        "random",
        "short",
        "sync",
        "tensors",
    )

    # Cleared in a forked child that must not use the card: each operator is then looked at.
    short_path = True

    def __init__(self, func: Any) -> None:
        arguments = func._schema.arguments
        name: str = func._schema.name.split("::", 1)[1]
        self.func = func
        self.name = name
        self.custom = func.namespace not in _OF_TORCH
        self.call = func._op
        self.composite = _needs_decomposing(func)
        self.launches = name not in LAUNCHLESS
        self.sync = SYNCHRONIZING.get(name)
        if name == "repeat_interleave" and func._overloadname == "Tensor":
            self.sync = "repeat_interleave"
        self.indexing = name in INDEXING
        self.random = any(argument.name == "generator" for argument in arguments)
        self.half_in_single = name in MATRIX_PRODUCTS
        tensors = [argument for argument in arguments if "Tensor" in str(argument.type)]
        self.short = self.short_path and not (
            self.composite or self.custom or self.random or any(argument.kwarg_only for argument in tensors)
        )
        self.first_only = len(tensors) == 1 and tensors[0] is arguments[0] and str(tensors[0].type) == "Tensor"
        takes_numbers = torch._C._should_allow_numbers_as_tensors(name)
        self.tensors = tuple(
            position
            for position, argument in enumerate(arguments)
            if str(argument.type) == "Tensor" and not argument.kwarg_only and not takes_numbers
        )
        self.ordinary = not (self.sync or self.indexing or name == "_pack_padded_sequence")


def _needs_decomposing(func: Any) -> bool:
    """Whether the operator reaches the mode whole only because inference mode skips its composite kernel."""
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    try:
        name = func.name()
        return bool(has_kernel(name, "CompositeImplicitAutograd") and not has_kernel(name, "CPU"))
    except RuntimeError:
        return False


def kernel_in_python(func: Any, device_key: str) -> Any:
    """The dispatch key of an operator's kernel for a device, if that was given in Python by `torch.library`; or None.

    device_key: such as ``CUDA``.  The kernel for the device goes before the one for all devices.
    """
    for key in (device_key, "CompositeExplicitAutograd"):
        if f"{func.namespace}/{_library_name(func)}/{key}" in torch.library._impls:
            return getattr(torch._C.DispatchKey, key)
    return None


def _library_name(func: Any) -> str:
    name: str = func._schema.name.split("::", 1)[1]
    return f"{name}.{func._schema.overload_name}" if func._schema.overload_name else name
