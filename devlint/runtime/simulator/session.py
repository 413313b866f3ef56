"""Starting and stopping a simulation."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
import torch.utils._device
from torch.utils._python_dispatch import _disable_current_modes

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator.imports import ImportWatch, afterwards, rebind, set_aside
from devlint.runtime.simulator.mode import SimulatedDevice, only_carefully
from devlint.runtime.simulator.patches.base import PatchSet
from devlint.runtime.simulator.patches.table import LATE_PATCHES, LatePatches, patch_table
from devlint.runtime.simulator.simulation import Simulation
from devlint.runtime.simulator.spec import DeviceSpec


class _Session:
    """What a simulation changed in this process."""

    def __init__(self, simulation: Simulation) -> None:
        self.simulation = simulation
        self._patches = PatchSet()
        self._mode: Any = SimulatedDevice(simulation)
        self._rebound: list[tuple[ModuleType, str, Any]] = []
        self._modules_before: set[str] = set()
        self._watch = ImportWatch(
            {
                "torch._dynamo": set_aside(self._set_aside),
                **{name: afterwards(functools.partial(self._patch_late, late)) for name, late in LATE_PATCHES.items()},
            }
        )

    def enter(self) -> None:
        # Inventories of torch's functions are made before anything is patched.
        torch.utils._device._device_constructors()
        self._patches.apply(patch_table(self.simulation))
        try:
            for name, late in LATE_PATCHES.items():
                if name in sys.modules:
                    self._patch_late(late, sys.modules[name])
            self._mode.__enter__()
        except BaseException:
            self._patches.undo()
            raise
        # The program's modules may have taken names before; those it imports from now on must not keep ours.
        self._rebound = rebind(self._user_modules(), self._patches.exchanged())
        self._modules_before = set(sys.modules)
        sys.meta_path.insert(0, self._watch)

    def leave(self) -> None:
        if self._watch in sys.meta_path:
            sys.meta_path.remove(self._watch)
        later = [module for name, module in list(sys.modules.items()) if name not in self._modules_before]
        try:
            self._mode.__exit__(None, None, None)
        finally:
            rebind(_only_modules(later), [(new, old) for old, new in self._patches.exchanged()])
            for module, name, value in self._rebound:
                setattr(module, name, value)
            self.simulation.autocast.remove()
            self._patches.undo()

    def _user_modules(self) -> Iterator[ModuleType]:
        is_user_file = self.simulation.recorder.is_user_file
        for module in _only_modules(list(sys.modules.values())):
            if is_user_file(getattr(module, "__file__", None) or "<unknown>"):
                yield module

    def _patch_late(self, late: LatePatches, module: ModuleType) -> None:
        self._patches.apply(late(self.simulation, module))

    @contextmanager
    def _set_aside(self) -> Iterator[None]:
        with _disable_current_modes(), self._patches.set_aside():
            yield


def _only_modules(values: Iterable[object]) -> Iterator[ModuleType]:
    for value in values:
        if isinstance(value, ModuleType):
            yield value


_active: list[_Session] = []


def start(spec: DeviceSpec, recorder: Recorder) -> Simulation:
    """Apply the patches and enter the dispatch mode; on an error nothing stays changed.

    Raises RuntimeError when a simulation is already active in this process.
    """
    if _active:
        raise RuntimeError(f"an accelerator is already simulated in this process: {_active[0].simulation.description}")
    session = _Session(Simulation(spec, recorder))
    session.enter()
    _active.append(session)
    return session.simulation


def stop(simulation: Simulation) -> None:
    """Leave the mode and undo every patch."""
    for session in list(_active):
        if session.simulation is simulation:
            _active.remove(session)
            session.leave()


def _after_fork() -> None:
    """A child cannot use the device if its parent did, and has queued nothing itself."""
    for session in _active:
        for card in session.simulation.cards:
            card.wait()
        session.simulation.copies_in_flight = False
        if session.simulation.touched:
            session.simulation.bad_fork = True
            only_carefully()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def active_simulation() -> Simulation | None:
    """The simulation of this process, if one is active."""
    return _active[0].simulation if _active else None
