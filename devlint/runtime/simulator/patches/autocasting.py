"""Patches of autocast regions of the simulated kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from devlint.runtime.simulator.marks import card_of
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation

# The text of aten/src/ATen/autocast_mode.cpp.
_BANNED = (
    "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
    "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
    "In this case, combine the two layers using torch.nn.functional.binary_cross_entropy_with_logits\n"
    "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
    "safe to autocast."
)
_OUTER = "_devlint_outer_autocast"


def patches(simulation: Simulation) -> Iterator[Patch]:
    """Entering and leaving a region also switches the CPU's autocast, with the same dtype."""
    kind = simulation.kind

    def enter(original: Any) -> Any:
        def __enter__(self: Any) -> Any:
            result = original(self)
            if self.device == kind:
                simulation.autocast.install()
                outer = vars(self).setdefault(_OUTER, [])
                outer.append((torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu")))
                torch.set_autocast_dtype("cpu", torch.get_autocast_dtype(kind))
                torch.set_autocast_enabled("cpu", torch.is_autocast_enabled(kind))
            return result

        return __enter__

    def leave(original: Any) -> Any:
        def __exit__(self: Any, *exception: object) -> Any:
            outer = vars(self).get(_OUTER)
            if outer:
                enabled, dtype = outer.pop()
                torch.set_autocast_enabled("cpu", enabled)
                torch.set_autocast_dtype("cpu", dtype)
            return original(self, *exception)

        return __exit__

    def binary_cross_entropy(original: Any) -> Any:
        def binary_cross_entropy(source: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if kind == "cuda" and torch.is_autocast_enabled(kind) and card_of(source) is not None:
                raise RuntimeError(_BANNED)
            return original(source, *args, **kwargs)

        return binary_cross_entropy

    yield Patch(torch._C._nn, "binary_cross_entropy", binary_cross_entropy)
    yield Patch(torch.amp.autocast_mode.autocast, "__enter__", enter)
    yield Patch(torch.amp.autocast_mode.autocast, "__exit__", leave)
