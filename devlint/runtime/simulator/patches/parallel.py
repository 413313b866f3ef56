"""Patches for several cards: grouping by device, DataParallel's copies, process groups."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Iterator
from typing import Any

import torch
import torch.nn.parallel
import torch.nn.parallel._functions
import torch.nn.parallel.comm
import torch.utils._foreach_utils

from devlint.runtime.simulator.errors import CannotSimulate
from devlint.runtime.simulator.marks import mark_of
from devlint.runtime.simulator.patches.base import Patch, always, constant
from devlint.runtime.simulator.simulation import Simulation

_COLLECTIVES = (
    "all_reduce",
    "all_gather",
    "all_gather_into_tensor",
    "all_to_all",
    "all_to_all_single",
    "broadcast",
    "gather",
    "irecv",
    "isend",
    "recv",
    "reduce",
    "reduce_scatter",
    "reduce_scatter_tensor",
    "scatter",
    "send",
)
_GROUPING = "_group_tensors_by_device_and_dtype"


def patches(simulation: Simulation) -> Iterator[Patch]:
    """What C++ would do by its own idea of the device."""
    yield from _grouping(simulation)
    copies = _Copies(simulation)
    comm = torch.nn.parallel.comm
    for name in ("broadcast", "broadcast_coalesced", "reduce_add", "reduce_add_coalesced", "scatter", "gather"):
        yield Patch(comm, name, always(getattr(copies, name)))
    yield Patch(torch.nn.parallel._functions, "_get_stream", constant(None))
    yield from _process_groups(simulation)


def _grouping(simulation: Simulation) -> Iterator[Patch]:
    """Optimizers and clip_grad_norm_ group tensors by device and dtype."""

    def group(
        tensorlistlist: list[list[torch.Tensor | None]], with_indices: bool = False
    ) -> dict[tuple[torch.device, torch.dtype], tuple[list[list[Any]], list[int]]]:
        groups: dict[tuple[torch.device, torch.dtype], tuple[list[list[Any]], list[int]]] = {}
        for index, leader in enumerate(tensorlistlist[0]):
            if leader is None:
                raise RuntimeError("the first list of tensors must not contain None")
            key = (simulation.device_of(leader), leader.dtype)
            lists, indices = groups.setdefault(key, ([[] for _ in tensorlistlist], []))
            for grouped, given in zip(lists, tensorlistlist, strict=True):
                if given:
                    grouped.append(given[index])
            if with_indices:
                indices.append(index)
        return groups

    owners = [
        module
        for name, module in list(sys.modules.items())
        if name.startswith("torch.") and _GROUPING in getattr(module, "__dict__", {})
    ]
    for owner in owners:
        yield Patch(owner, _GROUPING, always(group))


class _Copies:
    """``torch.nn.parallel.comm`` with ordinary transfers."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation

    def _device(self, device: Any) -> torch.device:
        if device == -1:
            return torch.device("cpu")
        if device is None:
            return self._simulation.current.device
        return self._simulation.device(device)

    def broadcast_coalesced(self, tensors: Any, devices: Any, buffer_size: int = 0) -> Any:
        return [[tensor.detach().to(self._device(device)) for tensor in tensors] for device in devices]

    def broadcast(self, tensor: Any, devices: Any = None, *, out: Any = None) -> Any:
        if out is not None:
            return tuple(target.copy_(tensor) for target in out)
        return tuple(copies[0] for copies in self.broadcast_coalesced([tensor], devices))

    def reduce_add(self, inputs: Any, destination: Any = None) -> Any:
        device = self._device(destination)
        total = inputs[0].to(device)
        for tensor in inputs[1:]:
            total = total + tensor.to(device)
        return total

    def reduce_add_coalesced(self, inputs: Any, destination: Any = None, buffer_size: int = 0) -> Any:
        return tuple(self.reduce_add(slot, destination) for slot in zip(*inputs, strict=True))

    def scatter(
        self,
        tensor: Any,
        devices: Any = None,
        chunk_sizes: Any = None,
        dim: int = 0,
        streams: Any = None,
        *,
        out: Any = None,
    ) -> Any:
        if out is not None:
            chunks = tensor.split([target.size(dim) for target in out], dim)
            return tuple(target.copy_(chunk) for target, chunk in zip(out, chunks, strict=True))
        chunks = tensor.chunk(len(devices), dim) if chunk_sizes is None else tensor.split(chunk_sizes, dim)
        return tuple(chunk.to(self._device(device)) for chunk, device in zip(chunks, devices, strict=False))

    def gather(self, tensors: Any, dim: int = 0, destination: Any = None, *, out: Any = None) -> Any:
        if out is not None:
            return torch.cat([tensor.to(out.device) for tensor in tensors], dim, out=out)
        device = self._device(destination)
        return torch.cat([tensor.to(device) for tensor in tensors], dim)


def _process_groups(simulation: Simulation) -> Iterator[Patch]:
    """Collectives over cards run over gloo; the NCCL library itself cannot be called."""
    distributed = torch.distributed
    if not distributed.is_available():
        return

    card_only: set[Any] = set()  # groups whose backend takes no host tensors

    def without_own(backend: Any) -> tuple[Any, bool]:
        """The backend to use instead, and whether it stands for one that takes tensors on cards only."""
        names = str(backend)
        if backend is None or any(name in names for name in ("nccl", "xccl")):
            simulation.note("torch.distributed: backend gloo stands in for the card's own")
            return "gloo", backend is not None and "gloo" not in names
        return backend, False

    def init_process_group(original: Any) -> Any:
        def init_process_group(backend: Any = None, *args: Any, **kwargs: Any) -> Any:
            backend, only = without_own(backend)
            kwargs.pop("device_id", None)
            result = original(backend, *args, **kwargs)
            if only:
                card_only.add(distributed.group.WORLD)
            return result

        return init_process_group

    def new_group(original: Any) -> Any:
        def new_group(ranks: Any = None, timeout: Any = None, backend: Any = None, *args: Any, **kwargs: Any) -> Any:
            only = backend is None and distributed.group.WORLD in card_only
            if backend is not None:
                backend, only = without_own(backend)
            kwargs.pop("device_id", None)
            result = original(ranks, timeout, backend, *args, **kwargs)
            if only:
                card_only.add(result)
            return result

        return new_group

    def collective(original: Any) -> Any:
        """A backend is looked up by the device of the first tensor (ProcessGroup.hpp, getBackend)."""
        parameters = inspect.signature(original)

        @functools.wraps(original)
        def checked(*args: Any, **kwargs: Any) -> Any:
            try:
                given = parameters.bind(*args, **kwargs).arguments
            except TypeError:
                return original(*args, **kwargs)
            group = given.get("group") or distributed.group.WORLD
            if group in card_only:
                for value in given.values():
                    tensor = value[0] if isinstance(value, (list, tuple)) and value else value
                    if isinstance(tensor, torch.Tensor) and mark_of(tensor) is None:
                        text = f"No backend type associated with device type {simulation.device_of(tensor).type}"
                        simulation.fault(RuntimeError, text)
            return original(*args, **kwargs)

        return checked

    for owner in (distributed, distributed.distributed_c10d):
        yield Patch(owner, "init_process_group", init_process_group)
        yield Patch(owner, "new_group", new_group)
        yield Patch(owner, "is_nccl_available", constant(True))
    # Not in distributed_c10d, whose own functions for objects make tensors where the stand-in takes them.
    for name in _COLLECTIVES:
        yield Patch(distributed, name, collective)
    if simulation.kind == "cuda":
        for name in ("all_reduce", "all_gather", "broadcast", "reduce", "reduce_scatter"):
            yield Patch(torch.cuda.nccl, name, always(_no_nccl(name)))


def _no_nccl(name: str) -> Any:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise CannotSimulate(f"torch.cuda.nccl.{name}", "it calls the NCCL library, which needs real cards")

    return refuse
