"""Patches of ``torch.cuda`` (or xpu, mps), ``torch.accelerator`` and what asks them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch

from devlint.runtime.simulator.cards import Card
from devlint.runtime.simulator.errors import CannotSimulate
from devlint.runtime.simulator.marks import card_of
from devlint.runtime.simulator.patches.base import Patch, always, constant
from devlint.runtime.simulator.simulation import Simulation
from devlint.runtime.simulator.streams import card_from, make_event_class, make_stream_class

_MEMORY = 16 << 30  # what a simulated card says it has; nothing enforces it
_NOT_THERE = {
    "CUDAGraph": "a graph replays kernels without the host",
    "graph": "a graph replays kernels without the host",
    "make_graphed_callables": "a graph replays kernels without the host",
    "XPUGraph": "a graph replays kernels without the host",
    "Graph": "a graph replays kernels without the host",
    "_compile_kernel": "it compiles code for a real card",
    "compile_shader": "it compiles code for a real card",
    "load_metallib": "it loads code for a real card",
    "cudart": "it is the library that drives a real card",
    "CUDAPluggableAllocator": "it allocates the memory of a real card",
    "caching_allocator_alloc": "it allocates the memory of a real card",
    "caching_allocator_delete": "it allocates the memory of a real card",
}


def patches(simulation: Simulation) -> Iterator[Patch]:
    """The device module of the simulated kind and the generic one."""
    shared = _Shared(simulation)
    module = getattr(torch, simulation.kind)
    for name, value in {**shared.device_functions(), **shared.memory_functions(), **shared.seeds()}.items():
        yield Patch(module, name, always(value))
    for part, functions in (("memory", shared.memory_functions()), ("random", shared.seeds())):
        owner = getattr(module, part, None)
        if owner is not None:
            for name, value in functions.items():
                yield Patch(owner, name, always(value))
    for name, why in _NOT_THERE.items():
        yield Patch(module, name, _refusal(f"torch.{simulation.kind}.{name}", why))
    accelerator = getattr(torch, "accelerator", None)
    if accelerator is not None:
        for name, value in {**shared.accelerator_functions(), **shared.memory_functions()}.items():
            yield Patch(accelerator, name, always(value))
        yield Patch(accelerator, "Graph", _refusal("torch.accelerator.Graph", _NOT_THERE["Graph"]))
    yield Patch(torch, "Stream", always(shared.stream_class))
    yield Patch(torch, "Event", always(shared.event_class))
    yield from _questions(simulation)


def _refusal(name: str, why: str) -> Any:
    """A maker of what stands for a function or a class that only a real card has: a class stays one.

    Programs name it in annotations, ask `isinstance` and derive from it, without ever making one.
    """

    def refuse(*args: Any, **kwargs: Any) -> Any:
        raise CannotSimulate(name, why)

    def make(original: Any) -> Any:
        if not isinstance(original, type):
            return refuse
        body = {"__new__": refuse, "__module__": original.__module__, "__doc__": original.__doc__}
        return type(original.__name__, (), body)

    return make


class _Shared:
    """The functions that the device module and ``torch.accelerator`` both offer."""

    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self.event_class = make_event_class(simulation)
        self.stream_class = make_stream_class(simulation, self.event_class)
        self._streams: dict[Card, Any] = {}

    # -------------------------------------------------------------- devices and streams

    def _is_available(self) -> bool:
        # The question starts the driver, unless it goes to NVML (torch/cuda/__init__.py).
        if os.environ.get("PYTORCH_NVML_BASED_CUDA_CHECK") != "1":
            self._simulation.touched = True
        return True

    def _current_index(self) -> int:
        self._simulation.touch()
        return self._simulation.thread.current

    def _set_device(self, device: Any) -> None:
        simulation = self._simulation
        if device is None:
            return
        if isinstance(device, int):
            if device >= 0:
                simulation.thread.current = simulation.card_at(device).index
            return
        place = simulation.place(device)
        if isinstance(place, Card):
            simulation.thread.current = place.index

    def _exchange(self, index: int) -> int:
        before = self._simulation.thread.current
        self._set_device(index)
        return before

    def _synchronize(self, device: Any = None) -> None:
        simulation = self._simulation
        simulation.wait("synchronize", card_from(simulation, device))

    def _current_stream(self, device: Any = None) -> Any:
        card = card_from(self._simulation, device)
        if card not in self._streams:
            self._streams[card] = self.stream_class(card.device)
        return self._streams[card]

    def _device_context(self) -> type:
        shared, simulation = self, self._simulation

        class device:
            """Changes the current card for a block; -1 or None changes nothing."""

            def __init__(self, device: Any) -> None:
                self.idx = self._index(device)
                self.prev_idx = -1

            def _index(self, device: Any) -> int:
                if device is None:
                    return -1
                return device if isinstance(device, int) else card_from(simulation, device).index

            def __enter__(self) -> None:
                self.prev_idx = shared._exchange(self.idx)

            def __exit__(self, *exception: object) -> None:
                simulation.thread.current = self.prev_idx

        return device

    def device_functions(self) -> dict[str, Any]:
        """Availability, current device, streams, events, properties."""
        simulation = self._simulation
        device = self._device_context()

        class device_of(device):  # type: ignore[misc,valid-type]
            """The card of a tensor, for a block."""

            def _index(self, device: Any) -> int:
                card = card_of(device)
                return -1 if card is None else card.index

        class stream_context:
            """``torch.cuda.stream(s)``."""

            def __init__(self, stream: Any) -> None:
                self.stream = stream

            def __enter__(self) -> Any:
                if self.stream is not None:
                    self.stream.__enter__()
                return self

            def __exit__(self, *exception: object) -> None:
                if self.stream is not None:
                    self.stream.__exit__()

        name = f"Simulated {simulation.kind} card"
        properties = SimpleNamespace(
            name=name,
            major=9,
            minor=0,
            total_memory=_MEMORY,
            multi_processor_count=108,
            warp_size=32,
            is_integrated=0,
            is_multi_gpu_board=0,
            max_threads_per_multi_processor=2048,
            max_threads_per_block=1024,
            shared_memory_per_block=49152,
            L2_cache_size=50 << 20,
            regs_per_multiprocessor=65536,
            gcnArchName="",
            uuid="simulated",
            has_fp16=True,
            has_fp64=simulation.kind != "mps",
            max_compute_units=108,
        )

        def of_card(value: Any) -> Any:
            def answer(device: Any = None) -> Any:
                card_from(simulation, device)
                return value

            return answer

        capability = (9, 0) if simulation.kind == "cuda" else {"has_fp16": True}
        return {
            "is_available": self._is_available,
            "is_initialized": lambda: not simulation.bad_fork,
            "init": simulation.touch,
            "_lazy_init": simulation.touch,
            "_is_in_bad_fork": lambda: simulation.bad_fork,
            "device_count": constant(len(simulation.cards))(None),
            "current_device": self._current_index,
            "set_device": self._set_device,
            "_exchange_device": self._exchange,
            "_maybe_exchange_device": self._exchange,
            "synchronize": self._synchronize,
            "device": device,
            "device_of": device_of,
            "_DeviceGuard": device,
            "Stream": self.stream_class,
            "Event": self.event_class,
            "event": SimpleNamespace(Event=self.event_class),
            "StreamContext": stream_context,
            "stream": stream_context,
            "current_stream": self._current_stream,
            "default_stream": self._current_stream,
            "set_stream": constant(None)(None),
            "is_current_stream_capturing": constant(False)(None),
            "get_device_name": of_card(name),
            "get_device_properties": of_card(properties),
            "get_device_capability": of_card(capability),
            "can_device_access_peer": constant(True)(None),
            "get_arch_list": constant(["sm_90"])(None),
            "get_gencode_flags": constant("")(None),
            "is_bf16_supported": constant(True)(None),
            "is_tf32_supported": constant(True)(None),
            "_sleep": constant(None)(None),
            "get_sync_debug_mode": constant(0)(None),
            "set_sync_debug_mode": constant(None)(None),
            "utilization": constant(0)(None),
        }

    def accelerator_functions(self) -> dict[str, Any]:
        """``torch.accelerator``."""
        simulation = self._simulation

        class device_index(self._device_context()):  # type: ignore[misc]
            """Changes the current card for a block."""

        return {
            "is_available": self._is_available,
            "current_accelerator": lambda check_available=False: torch.device(simulation.kind),
            "device_count": constant(len(simulation.cards))(None),
            "current_device_index": self._current_index,
            "current_device_idx": self._current_index,
            "set_device_index": self._set_device,
            "set_device_idx": self._set_device,
            "synchronize": self._synchronize,
            "current_stream": self._current_stream,
            "set_stream": constant(None)(None),
            "device_index": device_index,
            "get_device_capability": constant({"supported_dtypes": set()})(None),
        }

    # -------------------------------------------------------------- memory

    def memory_functions(self) -> dict[str, Any]:
        """Bytes of tensors that are alive; there is no caching allocator behind them."""
        simulation = self._simulation

        def card(device: Any) -> Card:
            return card_from(simulation, device)

        def reset_peak(device: Any = None) -> None:
            card(device).peak = card(device).allocated

        def stats(device: Any = None) -> dict[str, int]:
            found = card(device)
            return {
                f"{pool}_bytes.all.{moment}": value
                for pool in ("allocated", "active", "reserved")
                for moment, value in (("current", found.allocated), ("peak", found.peak))
            }

        def free_and_total(device: Any = None) -> tuple[int, int]:
            return _MEMORY - card(device).allocated, _MEMORY

        def summary(device: Any = None, abbreviated: bool = False) -> str:
            found = card(device)
            return f"{found.device}: {found.allocated} bytes allocated, {found.peak} at the peak (simulated)"

        def allocated(device: Any = None) -> int:
            return card(device).allocated

        def peak(device: Any = None) -> int:
            return card(device).peak

        return {
            "memory_allocated": allocated,
            "memory_reserved": allocated,
            "memory_cached": allocated,
            "current_allocated_memory": allocated,
            "driver_allocated_memory": allocated,
            "max_memory_allocated": peak,
            "max_memory_reserved": peak,
            "max_memory_cached": peak,
            "recommended_max_memory": constant(_MEMORY)(None),
            "reset_peak_memory_stats": reset_peak,
            "reset_max_memory_allocated": reset_peak,
            "reset_max_memory_cached": reset_peak,
            "reset_accumulated_memory_stats": constant(None)(None),
            "memory_stats": stats,
            "memory_stats_as_nested_dict": constant({})(None),
            "memory_summary": summary,
            "memory_snapshot": constant([])(None),
            "memory_usage": constant(0)(None),
            "mem_get_info": free_and_total,
            "get_memory_info": free_and_total,
            "empty_cache": constant(None)(None),
            "ipc_collect": constant(None)(None),
            "set_per_process_memory_fraction": constant(None)(None),
        }

    # -------------------------------------------------------------- seeds

    def seeds(self) -> dict[str, Any]:
        """Cards draw from the CPU's stream, so their seeds and states are the CPU's."""
        count = len(self._simulation.cards)
        return {
            "manual_seed": constant(None)(None),
            "manual_seed_all": constant(None)(None),
            "seed": constant(None)(None),
            "seed_all": constant(None)(None),
            "initial_seed": lambda: torch.initial_seed(),
            "get_rng_state": lambda device=None: torch.get_rng_state(),
            "get_rng_state_all": lambda: [torch.get_rng_state() for _ in range(count)],
            "set_rng_state": constant(None)(None),
            "set_rng_state_all": constant(None)(None),
        }


def _questions(simulation: Simulation) -> Iterator[Patch]:
    """Other places that say which accelerator there is."""
    kind = simulation.kind
    device = torch.device(kind)
    yield Patch(torch._C, "_accelerator_getAccelerator", always(lambda: device))
    yield Patch(torch._C, "_accelerator_getDeviceIndex", always(lambda: simulation.thread.current))
    yield Patch(torch._C, "_accelerator_isAllocatorInitialized", constant(False))
    yield Patch(torch._utils, "_get_available_device_type", always(lambda: kind))
    if kind == "cuda":
        yield Patch(torch.backends.cuda, "is_built", constant(True))
        yield Patch(torch.backends.cudnn, "is_available", constant(True))
        yield Patch(torch.backends.cudnn, "version", constant(90000))
        # True would make C++ choose recurrent kernels that exist on a real card only.
        yield Patch(torch.backends.cudnn, "is_acceptable", constant(False))
        yield Patch(torch.version, "cuda", lambda original: original or "12.8")
        for name in ("range_push", "range_pop", "range_start", "range_end", "mark"):
            yield Patch(torch.cuda.nvtx, name, constant(None))
    elif kind == "mps":
        yield Patch(torch.backends.mps, "is_available", constant(True))
        yield Patch(torch.backends.mps, "is_built", constant(True))
