"""Watching imports during a simulation: modules that must not see the patches, and late targets of patches.

``torch._dynamo``, which every optimizer imports, makes an inventory of torch's functions and stops at ones
it does not know; importing it up front would cost each program a second.  So its import runs with the
patches set aside.  Other modules are costly or may be absent, and are patched when the program imports them.
And names that one module took from another by ``from torch import zeros`` are exchanged where they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any, TypeAlias

# Carries out a module's code, which it gets as a function.
Around: TypeAlias = Callable[[ModuleType, Callable[[], None]], None]


class ImportWatch(MetaPathFinder):
    """Finds the watched modules as usual and carries out their code through `around`."""

    def __init__(self, around: Mapping[str, Around]) -> None:
        self._around = around

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        around = self._around.get(fullname)
        spec = PathFinder.find_spec(fullname, path, target) if around is not None else None
        if around is None or spec is None or spec.loader is None:
            return None
        spec.loader = WatchedLoader(spec.loader, around)
        return spec


class WatchedLoader(Loader):
    """A module's own loader, but for the moment of carrying out its code."""

    def __init__(self, loader: Any, around: Around) -> None:
        self._loader = loader
        self._run = around

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        self._run(module, lambda: self._loader.exec_module(module))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


def rebind(modules: Iterable[ModuleType], exchange: Iterable[tuple[Any, Any]]) -> list[tuple[ModuleType, str, Any]]:
    """In the modules' own names, put the second of each pair for the first; returns what was there before."""
    by_id = {id(old): new for old, new in exchange}
    changed: list[tuple[ModuleType, str, Any]] = []
    for module in modules:
        for name, value in list(vars(module).items()):
            if id(value) in by_id:
                setattr(module, name, by_id[id(value)])
                changed.append((module, name, value))
    return changed


def set_aside(patches: Callable[[], AbstractContextManager[Any]]) -> Around:
    """Carry out a module's code while the patches are not there."""

    def around(module: ModuleType, run: Callable[[], None]) -> None:
        with patches():
            run()

    return around


def afterwards(patch: Callable[[ModuleType], None]) -> Around:
    """Patch a module once its code has been carried out."""

    def around(module: ModuleType, run: Callable[[], None]) -> None:
        run()
        patch(module)

    return around
