"""Patches of autocast regions of the simulated kind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation

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

    yield Patch(torch.amp.autocast_mode.autocast, "__enter__", enter)
    yield Patch(torch.amp.autocast_mode.autocast, "__exit__", leave)
