"""Patches of compilers: programs run eagerly; code for a real card is refused by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import torch
import torch.utils.cpp_extension as cpp_extension

from devlint.runtime.simulator.errors import CannotSimulate
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation


def patches(simulation: Simulation) -> Iterator[Patch]:
    """``torch.compile``, custom CUDA extensions, Triton kernels."""

    def compile_function(original: Any) -> Any:
        def compile(model: Any = None, **kwargs: Any) -> Any:
            simulation.note("torch.compile: the model runs eagerly")
            return (lambda function: function) if model is None else model

        return compile

    def compile_module(original: Any) -> Any:
        def compile(self: torch.nn.Module, *args: Any, **kwargs: Any) -> None:
            simulation.note("Module.compile: the model runs eagerly")

        return compile

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

    yield Patch(torch, "compile", compile_function)
    yield Patch(torch.nn.Module, "compile", compile_module)
    yield Patch(cpp_extension, "load_inline", load_inline)
    yield Patch(cpp_extension, "load", load)
    yield from _triton()


def _triton() -> Iterator[Patch]:
    """Launching a Triton kernel; only when the program could import Triton."""
    try:
        runtime: Any = importlib.import_module("triton.runtime.jit")
    except Exception:  # an absent or broken Triton has no kernels to launch
        return

    def run(original: Any) -> Any:
        def run(self: Any, *args: Any, **kwargs: Any) -> Any:
            raise CannotSimulate(f"the Triton kernel {getattr(self, '__name__', '?')!r}", "it runs on a real card only")

        return run

    yield Patch(runtime.JITFunction, "run", run)
