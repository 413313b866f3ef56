"""Patches of functions whose device checks sit in C++ composites, above the dispatch mode."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator
from typing import Any

import torch
import torch._VF
import torch.nn.functional as functional

from devlint.runtime.simulator import messages
from devlint.runtime.simulator.marks import WILD, card_of, mark_of
from devlint.runtime.simulator.patches.base import Patch, documented
from devlint.runtime.simulator.simulation import Simulation

_Tensor = torch.Tensor


def patches(simulation: Simulation) -> Iterator[Patch]:
    """Recurrent networks, attention, ctc_loss, meshgrid, tensor_split and others with own checks."""
    for name in ("lstm", "gru", "rnn_tanh", "rnn_relu"):
        yield Patch(torch._VF, name, functools.partial(_recurrent, simulation), create=True)
    for name in ("lstm_cell", "gru_cell"):
        yield Patch(torch._VF, name, functools.partial(_cell, simulation, name), create=True)
    yield Patch(functional, "scaled_dot_product_attention", functools.partial(_attention, simulation))
    yield Patch(torch, "ctc_loss", functools.partial(_ctc_loss, simulation))
    yield Patch(torch._VF, "meshgrid", functools.partial(_meshgrid, simulation), create=True)
    for owner in (torch, _Tensor):
        yield Patch(owner, "tensor_split", functools.partial(_tensor_split, simulation))
        yield Patch(owner, "quantile", functools.partial(_quantile, simulation))
        yield Patch(owner, "inner", functools.partial(_inner, simulation))
        yield Patch(owner, "take_along_dim", functools.partial(_take_along_dim, simulation))
    yield Patch(torch, "gradient", functools.partial(_gradient, simulation))
    yield Patch(torch.linalg, "multi_dot", functools.partial(_multi_dot, simulation))
    for name in ("stft", "istft"):
        yield Patch(torch._VF, name, functools.partial(_window, simulation, name), create=True)


def _differ(simulation: Simulation, one: torch.Tensor, other: torch.Tensor) -> bool:
    if mark_of(one) is WILD or mark_of(other) is WILD:
        return False
    return bool(simulation.device_of(one) != simulation.device_of(other))


def _recurrent(simulation: Simulation, original: Any) -> Any:
    """Hidden state first, then parameters (RNN.cpp, check_attributes); zero-dim CPU tensors are excused."""

    def recurrent(*args: Any, **kwargs: Any) -> Any:
        data = args[0]
        packed = isinstance(args[1], _Tensor) and args[1].dtype is torch.int64 and args[1].dim() == 1
        hidden, parameters = (args[2], args[3]) if packed else (args[1], args[2])
        hidden = hidden if isinstance(hidden, (tuple, list)) else (hidden,)
        for name, tensors in (("hidden", hidden), ("parameter", parameters)):
            for tensor in tensors:
                if _differ(simulation, data, tensor) and not (tensor.dim() == 0 and card_of(tensor) is None):
                    here, there = simulation.device_of(data), simulation.device_of(tensor)
                    simulation.fault(
                        RuntimeError,
                        f"Input and {name} tensors are not at the same device, found input tensor at {here} and "
                        f"{name} tensor at {there}",
                    )
        return original(*args, **kwargs)

    return recurrent


def _cell(simulation: Simulation, name: str, original: Any) -> Any:
    """With the input on a card: a product for the input, one for the hidden state, a fused kernel (RNN.cpp)."""

    def check(argument: str, tensor: Any, first: torch.Tensor, method: str) -> None:
        if isinstance(tensor, _Tensor) and _differ(simulation, first, tensor):
            here, there = simulation.device_of(tensor), simulation.device_of(first)
            simulation.fault(RuntimeError, messages.exact(argument, here, there, f"wrapper_CUDA_{method}"))

    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        source, states = input, hx if isinstance(hx, (tuple, list)) else (hx,)
        if card_of(source) is not None:
            check("mat2", w_ih, source, "mm")
            check("mat2", w_hh, states[0], "mm")
            fused = f"__thnn_fused_{name}"
            state = "cx" if name == "lstm_cell" else "hx"
            for argument, tensor in (("hidden_gates", states[0]), (state, states[-1])):
                check(argument, tensor, source, fused)
            for argument, tensor in (("input_bias", b_ih), ("hidden_bias", b_hh)):
                check(argument, tensor, source, fused)
        return original(source, hx, w_ih, w_hh, b_ih, b_hh)

    return cell


def _attention(simulation: Simulation, original: Any) -> Any:
    """Query, key and value of one device type (transformers/attention.cpp), then the mask.

    The mask is looked at by the kernel that a card takes for single precision with a mask, the memory-efficient one.
    """

    @documented("query", original)
    def attention(query: Any, key: Any, value: Any, *args: Any, **kwargs: Any) -> Any:
        devices = [simulation.device_of(tensor) for tensor in (query, key, value)]
        if len({device.type for device in devices}) > 1:
            simulation.fault(
                RuntimeError,
                f"Expected query, key, and value to have the same device type, but got query.device: {devices[0]} "
                f"key.device: {devices[1]} and value.device: {devices[2]} instead.",
            )
        mask = kwargs.get("attn_mask", args[0] if args else None)
        if isinstance(mask, _Tensor) and _differ(simulation, query, mask):
            here, there = devices[0], simulation.device_of(mask)
            if here.type == "cpu":
                simulation.fault(RuntimeError, messages.tensor_iterator(there, here))
            kernel = "wrapper_CUDA___scaled_dot_product_efficient_attention"
            simulation.fault(RuntimeError, messages.exact("attn_bias", there, here, kernel))
        return original(query, key, value, *args, **kwargs)

    return attention


def _ctc_loss(simulation: Simulation, original: Any) -> Any:
    """Its composite builds a host constant outside the dispatcher for the mean; that part is done here."""

    @documented("log_probs", original)
    def ctc_loss(
        log_probs: Any,
        targets: Any,
        input_lengths: Any,
        target_lengths: Any,
        blank: int = 0,
        reduction: int = 1,
        zero_infinity: bool = False,
    ) -> Any:
        given = [value.tolist() if isinstance(value, _Tensor) else value for value in (input_lengths, target_lengths)]
        each = 0 if reduction == 1 else reduction
        loss = original(log_probs, targets, given[0], given[1], blank, each, zero_infinity)
        if reduction != 1:
            return loss
        lengths = torch.tensor(given[1], device=simulation.device_of(log_probs), dtype=loss.dtype)
        return (loss / lengths.clamp_min(1)).mean()

    return ctc_loss


def _meshgrid(simulation: Simulation, original: Any) -> Any:
    """Neighbours on one device (TensorShape.cpp)."""

    def meshgrid(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        given = list(tensors) if isinstance(tensors, (list, tuple)) else [tensors, *args]
        for one, other in itertools.pairwise(given):
            if isinstance(one, _Tensor) and isinstance(other, _Tensor) and _differ(simulation, one, other):
                simulation.fault(RuntimeError, "meshgrid expects all tensors to have the same device")
        return original(tensors, *args, **kwargs)

    return meshgrid


def _tensor_split(simulation: Simulation, original: Any) -> Any:
    """Split points on the host (TensorShape.cpp)."""

    @documented("input", original)
    def tensor_split(*args: Any, **kwargs: Any) -> Any:
        points = kwargs.get("tensor_indices_or_sections", args[1] if len(args) > 1 else None)
        points = kwargs.get("indices_or_sections", points)
        if isinstance(points, _Tensor) and card_of(points) is not None:
            device = simulation.device_of(points)
            simulation.fault(
                RuntimeError, f"tensor_split expected tensor_indices_or_sections to be on cpu, but it's on {device}"
            )
        return original(*args, **kwargs)

    return tensor_split


def _quantile(simulation: Simulation, original: Any) -> Any:
    """Quantiles on the input's device (Sorting.cpp)."""

    @documented("input", original)
    def quantile(self: Any, q: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(q, _Tensor) and _differ(simulation, self, q):
            simulation.fault(RuntimeError, "quantile() q tensor must be on the same device as the input tensor")
        return original(self, q, *args, **kwargs)

    return quantile


def _inner(simulation: Simulation, original: Any) -> Any:
    """Both on one type of device, numbers too (LinearAlgebra.cpp)."""

    @documented("input", original)
    def inner(self: Any, other: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(other, _Tensor):
            here, there = simulation.device_of(self).type, simulation.device_of(other).type
            if here != there and _differ(simulation, self, other):
                simulation.fault(RuntimeError, messages.checked(here, there, "DeviceType", "inner()"))
        return original(self, other, *args, **kwargs)

    return inner


def _take_along_dim(simulation: Simulation, original: Any) -> Any:
    """Indices on the input's device (TensorAdvancedIndexing.cpp)."""

    @documented("input", original)
    def take_along_dim(self: Any, indices: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(indices, _Tensor) and _differ(simulation, self, indices):
            here, there = simulation.device_of(self), simulation.device_of(indices)
            simulation.fault(RuntimeError, messages.checked(here, there, "Device", "torch.take_along_dim():"))
        return original(self, indices, *args, **kwargs)

    return take_along_dim


def _gradient(simulation: Simulation, original: Any) -> Any:
    """Coordinates on the input's device (ReduceOps.cpp, pre_check_gradient)."""

    @documented("input", original)
    def gradient(self: Any, *args: Any, **kwargs: Any) -> Any:
        spacing = kwargs.get("spacing")
        for tensor in spacing if isinstance(spacing, (list, tuple)) else ():
            if isinstance(tensor, _Tensor) and _differ(simulation, self, tensor):
                here, there = simulation.device_of(self), simulation.device_of(tensor)
                simulation.fault(
                    RuntimeError,
                    "torch.gradient expected each tensor to be on the same device, but got devices "
                    f"{here} and {there}!",
                )
        return original(self, *args, **kwargs)

    return gradient


def _multi_dot(simulation: Simulation, original: Any) -> Any:
    """All on the first one's device (LinearAlgebra.cpp)."""

    @documented("tensors", original)
    def multi_dot(tensors: Any, *args: Any, **kwargs: Any) -> Any:
        for position, tensor in enumerate(tensors):
            if position and _differ(simulation, tensors[0], tensor):
                here, there = simulation.device_of(tensors[0]), simulation.device_of(tensor)
                simulation.fault(
                    RuntimeError,
                    f"multi_dot(): all tensors must be on the same device but tensor 0 is on {here} and tensor "
                    f"{position} on {there}",
                )
        return original(tensors, *args, **kwargs)

    return multi_dot


def _window(simulation: Simulation, name: str, original: Any) -> Any:
    """The window on the input's device (SpectralOps.cpp)."""

    def transform(source: Any, *args: Any, **kwargs: Any) -> Any:
        window = kwargs.get("window", next((value for value in args if isinstance(value, _Tensor)), None))
        if isinstance(window, _Tensor) and _differ(simulation, source, window):
            here, there = simulation.device_of(source), simulation.device_of(window)
            simulation.fault(
                RuntimeError,
                f"{name} input and window must be on the same device but got self on {here} and window on {there}",
            )
        return original(source, *args, **kwargs)

    return transform
