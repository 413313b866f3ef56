"""The words of CUDA's device errors, as in PyTorch's own sources.

``exact`` is the check that torchgen writes into each CUDA kernel's wrapper (torchgen/dest/register_dispatch_key.py
with c10/core/DeviceType checks), ``tensor_iterator`` the one in aten/src/ATen/TensorIterator.cpp.
"""

from __future__ import annotations

import torch

# The wording of the exact check changed with 2.8 (aten/src/ATen/core/adaption.cpp).
RELEASE = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:2])
_NEW_EXACT_WORDING = RELEASE >= (2, 8)

TOO_MANY_SCALARS = "Trying to pass too many CPU scalars to non-CPU kernel!"
NOT_INITIALIZED = "CUDA error: initialization error"
EVENTS_WITHOUT_TIMING = "Both events must be created with argument 'enable_timing=True'."
EVENTS_NOT_COMPLETED = "Both events must be completed before calculating elapsed time."
EVENTS_NOT_RECORDED = "Both events must be recorded before calculating elapsed time."

_DTYPE_NAMES = {
    torch.float32: "Float",
    torch.float64: "Double",
    torch.float16: "Half",
    torch.bfloat16: "BFloat16",
    torch.int64: "Long",
    torch.int32: "Int",
    torch.int16: "Short",
    torch.int8: "Char",
    torch.uint8: "Byte",
    torch.bool: "Bool",
    torch.complex64: "ComplexFloat",
    torch.complex128: "ComplexDouble",
}
DTYPES_BY_NAME = {name: dtype for dtype, name in _DTYPE_NAMES.items()}


def forked(kind: str) -> str:
    """The device in a child that was forked after its parent used it (torch/cuda/__init__.py, torch/xpu/__init__.py)."""
    name = kind.upper()
    return (
        f"Cannot re-initialize {name} in forked subprocess. To use {name} with multiprocessing, "
        "you must use the 'spawn' start method"
    )


def dtype_name(dtype: torch.dtype) -> str:
    """C++'s name of a scalar type, such as ``Long``."""
    return _DTYPE_NAMES.get(dtype, str(dtype).removeprefix("torch."))


def type_name(dtype: torch.dtype, device: torch.device) -> str:
    """The legacy type string of a tensor, such as ``torch.cuda.FloatTensor``."""
    place = "" if device.type == "cpu" else f"{device.type}."
    return f"torch.{place}{dtype_name(dtype)}Tensor"


def exact(argument: str, device: torch.device, common: torch.device, method: str) -> str:
    """An argument is not on the device of the first one."""
    if _NEW_EXACT_WORDING:
        return (
            f"Expected all tensors to be on the same device, but got {argument} is on {device}, different from "
            f"other tensors on {common} (when checking argument in method {method})"
        )
    return (
        f"Expected all tensors to be on the same device, but found at least two devices, {common} and {device}! "
        f"(when checking argument for argument {argument} in method {method})"
    )


def tensor_iterator(common: torch.device, other: torch.device) -> str:
    """Two operands of an element-wise operation; `common` is the one that is not the CPU."""
    return f"Expected all tensors to be on the same device, but found at least two devices, {common} and {other}!"


def checked(expected: object, found: object, what: str, function: str) -> str:
    """The check that some composites begin with (TensorUtils.cpp): `what` is "Device" or "DeviceType"."""
    return (
        f"Expected tensor to have {expected} {what}, but got tensor with {found} {what} "
        f"(while checking arguments for {function})"
    )


def no_cpu_scalar(argument: str, kind: str) -> str:
    """A 0-dim CPU tensor where `addcmul` takes none (cuda/PointwiseOpsKernel.cu)."""
    text = (
        f"CPU Scalar support for {argument} argument is not supported when calling addcmul on {kind.upper()} tensors."
    )
    if argument == "tensor1":
        text += " However, CPU Scalar support for tensor2 is supported, please swap your tensor1 and tensor2 terms."
    return text


def kernel_assertion(argument: int, kind: str) -> str:
    """An operand on the host in a kernel that expects none (cuda/Loops.cuh)."""
    return (
        'iter.device(arg).is_cuda() INTERNAL ASSERT FAILED at "/pytorch/aten/src/ATen/native/cuda/Loops.cuh":109, '
        f"please report a bug to PyTorch. argument {argument}: expected a {kind.upper()} device but found cpu"
    )


def no_kernel(operator: str, kind: str) -> str:
    """The first sentence of the dispatcher where a device has no kernel of an operator (core/dispatch)."""
    return f"Could not run '{operator}' with arguments from the '{kind.upper()}' backend."


def output_elsewhere(expected: torch.device, found: torch.device) -> str:
    """The `out=` of a reduction on another device (TensorIterator.h, `set_output`)."""
    return f"Expected out tensor to have device {expected}, but got {found} instead"


def generator(expected: torch.device, found: torch.device) -> str:
    """A generator of another device type than the tensor's."""
    return f"Expected a '{expected.type}' device type for generator but found '{found.type}'"


def to_numpy(device: torch.device) -> str:
    """A tensor on a card cannot become an array."""
    return (
        f"can't convert {device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
    )


def gradient(found: torch.device, expected: torch.device) -> str:
    """``p.grad = g`` with g elsewhere."""
    return (
        f"attempting to assign a gradient with device type '{found.type}' to a tensor with device type "
        f"'{expected.type}'. Please ensure that the gradient and the tensor are on the same device"
    )


def packed_lengths(lengths: torch.Tensor, device: torch.device) -> str:
    """``pack_padded_sequence`` wants its lengths on the host."""
    return (
        "'lengths' argument should be a 1D CPU int64 tensor, but got "
        f"{lengths.dim()}D {device} {dtype_name(lengths.dtype)} tensor"
    )
