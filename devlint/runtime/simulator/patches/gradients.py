"""Patches of autograd: gradients must be on their tensor's device.

So must those that a backward pass starts from, and those that a custom backward returns.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator
from typing import Any

import torch

from devlint.runtime.simulator import messages
from devlint.runtime.simulator.marks import WILD, card_of, has_storage, mark_of, set_mark
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation

_Tensor = torch.Tensor


def patches(simulation: Simulation) -> Iterator[Patch]:
    """``Tensor.grad``, ``torch.autograd.grad``, what a backward pass starts from and what a custom one returns."""

    def grad(original: Any) -> Any:
        def read(self: torch.Tensor) -> Any:
            gradient = original.__get__(self)
            if gradient is not None and mark_of(gradient) is not mark_of(self):
                adopt(gradient, self, scalars=True)
            return gradient

        def write(self: torch.Tensor, gradient: Any) -> None:
            if isinstance(gradient, _Tensor) and mark_of(gradient) is not WILD:
                found, expected = simulation.device_of(gradient), simulation.device_of(self)
                if found != expected:
                    simulation.fault(RuntimeError, messages.gradient(found, expected))
            original.__set__(self, gradient)

        return property(read, write, original.__delete__)

    def autograd_grad(original: Any) -> Any:
        @functools.wraps(original)
        def grad(outputs: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            gradients = original(outputs, inputs, *args, **kwargs)
            for gradient, source in zip(gradients, (inputs,) if isinstance(inputs, _Tensor) else inputs, strict=False):
                if isinstance(gradient, _Tensor) and isinstance(source, _Tensor):
                    adopt(gradient, source, scalars=False)
            return gradients

        return grad

    yield Patch(_Tensor, "grad", grad)
    yield Patch(torch.autograd, "grad", autograd_grad)
    # `Tensor.backward`, `torch.autograd.backward` and `torch.autograd.grad` all start the engine by this function.
    yield Patch(torch.autograd, "_engine_run_backward", lambda original: _from_roots(simulation, original))
    yield Patch(torch.autograd.Function, "apply", lambda original: _checked_apply(simulation))


def _from_roots(simulation: Simulation, original: Any) -> Any:
    """The engine's start, with its check of each gradient against the root that it is for."""

    @functools.wraps(original)
    def start(roots: Any, gradients: Any, *args: Any, **kwargs: Any) -> Any:
        pairs = enumerate(zip(roots, gradients, strict=False))
        given = [_root_gradient(simulation, position, root, gradient) for position, (root, gradient) in pairs]
        return original(roots, tuple(given), *args, **kwargs)

    return start


def _root_gradient(simulation: Simulation, position: int, root: Any, gradient: Any) -> Any:
    """The gradient that a root starts from; one without dimensions is moved (autograd/engine.cpp, validate_outputs)."""
    if type(root) is not _Tensor or type(gradient) is not _Tensor or not (has_storage(root) and has_storage(gradient)):
        return gradient  # the engine does not look into a class, nor into what a transform of functions wraps
    if WILD in (mark_of(root), mark_of(gradient)):
        return gradient
    expected, found = simulation.device_of(root), simulation.device_of(gradient)
    if found != expected and gradient.dim():
        text = f"invalid gradient at index {position} - expected device {expected} but got {found}"
        simulation.fault(RuntimeError, text)
    return gradient if found == expected else gradient.to(expected)


def adopt(gradient: torch.Tensor, owner: torch.Tensor, *, scalars: bool) -> None:
    """The engine moves a gradient made by C++ constants, and a zero-dim one, to its tensor's device."""
    if mark_of(gradient) is WILD or (scalars and gradient.dim() == 0):
        mark = mark_of(owner)
        set_mark(gradient, None if mark is WILD else mark)


def _checked_apply(simulation: Simulation) -> Any:
    """``Function.apply`` that checks each gradient of a custom backward against its input's device.

    The engine does this in C++ (autograd/engine.cpp, validate_outputs), where every device is the CPU.
    """

    # A classmethod of Python or, from 2.15 on, one of C: only the descriptor can be bound to another class.
    descriptor = inspect.getattr_static(torch.autograd.Function, "apply")

    def apply(cls: Any, *args: Any, **kwargs: Any) -> Any:
        result = descriptor.__get__(None, cls)(*args, **kwargs)
        first = result if isinstance(result, _Tensor) else next(_tensors_of(result), None)
        node = first.grad_fn if first is not None else None
        if node is not None and cls.__module__.partition(".")[0] not in ("torch", "devlint"):
            expected = [
                (position, simulation.device_of(value))
                for position, value in enumerate(value for value in args if isinstance(value, _Tensor))
                if value.requires_grad
            ]
            node.register_hook(_check_gradients(simulation, f"{cls.__name__}Backward", expected))
        return result

    return classmethod(apply)


def _check_gradients(simulation: Simulation, name: str, expected: list[tuple[int, torch.device]]) -> Any:
    def check(gradients: tuple[Any, ...], outer: tuple[Any, ...]) -> None:
        for position, device in expected:
            gradient = gradients[position] if position < len(gradients) else None
            if not isinstance(gradient, _Tensor) or gradient.dim() == 0 or mark_of(gradient) is WILD:
                continue
            found = simulation.device_of(gradient)
            if found != device:
                simulation.fault(
                    RuntimeError,
                    f"Function {name} returned an invalid gradient at index {position} - expected device {device} "
                    f"but got {found}",
                )

    return check


def _tensors_of(values: Any) -> Iterator[torch.Tensor]:
    for value in values if isinstance(values, (list, tuple)) else ():
        if isinstance(value, _Tensor):
            yield value


__all__ = ["adopt", "card_of", "patches"]
