"""Patches of compilers: programs run eagerly, traces see what C++ does; code for a real card is refused by name."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from devlint.runtime.simulator.cards import Card
from devlint.runtime.simulator.errors import CannotSimulate
from devlint.runtime.simulator.marks import CPU, card_of, set_mark
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation


def patches(simulation: Simulation) -> Iterator[Patch]:
    """``torch.compile`` and ``torch.jit.trace``."""

    def trace(original: Any) -> Any:
        # The tracer loses sight of every tensor that passes through a Python dispatch mode. What it records runs
        # under the mode again when the traced function is called.
        def trace(*args: Any, **kwargs: Any) -> Any:
            with _disable_current_modes(), simulation.tracing(_card_in((args, kwargs))):
                return original(*args, **kwargs)

        return trace

    def compile_function(original: Any) -> Any:
        def compile(model: Any = None, **kwargs: Any) -> Any:
            simulation.note("torch.compile: the model runs eagerly")
            if model is None:
                return lambda function: compile(function)
            return _compiled_module(model) if isinstance(model, torch.nn.Module) else model

        return compile

    def compile_module(original: Any) -> Any:
        def compile(self: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
            simulation.note("Module.compile: the model runs eagerly")

        return compile

    def load(original: Any) -> Any:
        @functools.wraps(original)
        def load(f: Any, map_location: Any = None, *args: Any, **kwargs: Any) -> Any:
            # C++ reads the file, and knows of no card; the module's tensors are marked afterwards.
            place = simulation.place(map_location) if map_location is not None else None
            if not isinstance(place, Card):
                return original(f, map_location, *args, **kwargs)
            module = original(f, CPU, *args, **kwargs)
            for tensor in (*module.parameters(), *module.buffers()):  # of a script module, all its tensors
                set_mark(tensor, place)
            return module

        return load

    yield Patch(torch.jit, "load", load)
    yield Patch(torch, "compile", compile_function)
    yield Patch(torch.nn.Module, "compile", compile_module)
    yield Patch(torch.jit, "trace", trace)
    yield Patch(torch.jit, "trace_module", trace)


def _compiled_module(model: torch.nn.Module) -> Any:
    """The wrapper that compiling puts around a module, with its ``_orig_mod`` and names of parameters; runs eagerly."""
    from torch._dynamo.eval_frame import DisableContext, OptimizedModule

    return OptimizedModule(model, DisableContext())


def _card_in(values: Any) -> Card | None:
    """The first card among tensors and modules in nested arguments."""
    if isinstance(values, torch.Tensor):
        return card_of(values)
    if isinstance(values, torch.nn.Module):
        values = (*values.parameters(), *values.buffers())
    if isinstance(values, dict):
        values = tuple(values.values())
    found = map(_card_in, values) if isinstance(values, (list, tuple)) else ()
    return next((card for card in found if card is not None), None)


def extension_patches(simulation: Simulation, module: ModuleType) -> Iterator[Patch]:
    """``torch.utils.cpp_extension``: building CUDA sources."""

    def load_inline(original: Any) -> Any:
        def load_inline(name: str, cpp_sources: Any, cuda_sources: Any = None, *args: Any, **kwargs: Any) -> Any:
            if cuda_sources:
                raise CannotSimulate(f"the CUDA extension {name!r}", "its kernels run on a real card only")
            return original(name, cpp_sources, cuda_sources, *args, **kwargs)

        return load_inline

    def load(original: Any) -> Any:
        def load(name: str, sources: Any, *args: Any, **kwargs: Any) -> Any:
            listed = [sources] if isinstance(sources, str) else list(sources)
            if any(str(source).endswith((".cu", ".cuh", ".sycl")) for source in listed):
                raise CannotSimulate(f"the CUDA extension {name!r}", "its kernels run on a real card only")
            return original(name, sources, *args, **kwargs)

        return load

    yield Patch(module, "load_inline", load_inline)
    yield Patch(module, "load", load)


def triton_patches(simulation: Simulation, module: ModuleType) -> Iterator[Patch]:
    """``triton.runtime.jit``: launching a kernel."""

    def run(original: Any) -> Any:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            raise CannotSimulate(f"the Triton kernel {getattr(self, '__name__', '?')!r}", "it runs on a real card only")

        return run

    yield Patch(module.JITFunction, "run", run)
