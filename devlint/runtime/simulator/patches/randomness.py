"""Patches of random generators.  Random numbers come from CPU streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from devlint.runtime.simulator.generators import generator_device, remember
from devlint.runtime.simulator.marks import CPU, card_of
from devlint.runtime.simulator.patches.base import Patch
from devlint.runtime.simulator.simulation import Simulation


def patches(simulation: Simulation) -> Iterator[Patch]:
    """``torch.Generator(device)`` and the states of generators."""

    def generator_class(original: Any) -> Any:
        class Generator(torch._C.Generator):  # type: ignore[misc]
            """A CPU generator that answers for the device it was made for."""

            def __new__(cls, device: Any = "cpu") -> Generator:
                self: Generator = super().__new__(cls)
                place = simulation.place(device)
                if isinstance(place, torch.device):
                    remember(self, place)
                else:
                    remember(self, CPU if place is None else place.device)
                return self

            def __init__(self, device: Any = "cpu") -> None:
                pass

            @property
            def device(self) -> torch.device:
                return generator_device(self)

        Generator.__module__, Generator.__qualname__ = "torch", "Generator"
        return Generator

    def set_rng_state(original: Any) -> Any:
        def set_rng_state(new_state: torch.Tensor) -> None:
            if card_of(new_state) is not None:
                simulation.fault(TypeError, "RNG state must be a torch.ByteTensor")
            original(new_state)

        return set_rng_state

    yield Patch(torch, "Generator", generator_class)
    yield Patch(torch, "set_rng_state", set_rng_state)
    yield Patch(torch.random, "set_rng_state", set_rng_state)
