"""A simulated accelerator on a PyTorch without one.

Tensors stay ordinary CPU tensors for C++; the simulated card is a mark on the tensor's storage.
One dispatch mode propagates the marks, applies CUDA's rules for mixed devices and keeps each card's
queue; reversible patches make ``.device``, ``torch.cuda``, serialization, autocast and clocks agree.

    with simulate(DeviceSpec.parse("sim:2"), recorder=recorder) as sim:
        run_the_program()

torch is imported when a simulation starts, not when this package is imported.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator.errors import CannotSimulate
from devlint.runtime.simulator.spec import DeviceSpec

if TYPE_CHECKING:
    from devlint.runtime.simulator.simulation import Simulation

__all__ = ["CannotSimulate", "DeviceSpec", "simulate"]


@contextmanager
def simulate(spec: DeviceSpec | None = None, recorder: Recorder | None = None) -> Iterator[Simulation]:
    """Run the body on a simulated accelerator (default: one cuda card); undo everything on leaving.

    Raises RuntimeError when a simulation is already active in this process.
    """
    from devlint.runtime.simulator.session import start, stop

    simulation = start(spec or DeviceSpec(), recorder or Recorder())
    try:
        yield simulation
    finally:
        stop(simulation)
