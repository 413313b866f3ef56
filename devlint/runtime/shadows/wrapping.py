"""The public functions and methods of a package, each with something around it from the import on.

A wrapper passes for what it wraps: signature, name, source, pickle and TorchScript see the original. Free of torch.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import FunctionType, ModuleType
from typing import Any, Final, TypeAlias

from devlint.runtime.simulator.imports import WatchedLoader, afterwards

# Gets the original function and returns what is to be called in its place.
Around: TypeAlias = Callable[[FunctionType], Callable[..., Any]]
ORIGINAL: Final = "__devlint_original__"


def wrapped(function: FunctionType, around: Around) -> Any:
    """The function with something around it."""
    made = functools.wraps(function)(around(function))
    setattr(made, ORIGINAL, function)
    with contextlib.suppress(ValueError, TypeError):  # `inspect.getfullargspec` asks for this alone
        setattr(made, "__signature__", inspect.signature(function))  # noqa: B010
    return made


def original_of(function: Any) -> Any:
    """What a wrapper stands for; anything else itself."""
    return getattr(function, ORIGINAL, function)


class Wrapper(MetaPathFinder):
    """Wraps the public functions and methods of a package's modules as they are imported.

    package: its name. around: for functions and methods. left_out: whether a class is to be left as it is, or only one
    of its methods (then the method's name is given).
    """

    def __init__(self, package: str, around: Around, left_out: Callable[[type, str | None], bool]) -> None:
        self._package = package
        self._around = around
        self._left_out = left_out
        self._put: list[tuple[Any, str, Any]] = []

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != self._package and not fullname.startswith(self._package + "."):
            return None
        finders = [finder for finder in sys.meta_path if finder is not self and hasattr(finder, "find_spec")]
        found = (finder.find_spec(fullname, path, target) for finder in finders)
        spec = next((each for each in found if each is not None), None)
        if spec is None or not hasattr(spec.loader, "exec_module") or _is_test(spec):
            return None
        spec.loader = WatchedLoader(spec.loader, afterwards(self.wrap))
        return spec

    def wrap(self, module: ModuleType) -> None:
        """Wrap what a module defines, and what it has taken from one of the package before."""
        for name, value in list(vars(module).items()):
            if name.startswith("_") or getattr(value, "__module__", None) != module.__name__:
                continue
            if isinstance(value, FunctionType) and not hasattr(value, ORIGINAL):
                self._replace(module, name, wrapped(value, self._around))
            elif isinstance(value, type) and not self._left_out(value, None):
                self._wrap_methods(value)

    def _wrap_methods(self, owner: type) -> None:
        for name, value in list(vars(owner).items()):
            if (name.startswith("_") and name != "__call__") or self._left_out(owner, name):
                continue
            if isinstance(value, FunctionType) and not hasattr(value, ORIGINAL) and not inspect.isabstract(owner):
                self._replace(owner, name, wrapped(value, self._around))
            elif isinstance(value, (staticmethod, classmethod)) and isinstance(value.__func__, FunctionType):
                self._replace(owner, name, type(value)(wrapped(value.__func__, self._around)))

    def _replace(self, owner: Any, name: str, made: Any) -> None:
        before = vars(owner)[name]
        with contextlib.suppress(AttributeError, TypeError):
            setattr(owner, name, made)
            self._put.append((owner, name, before))

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Inside, the package's modules are wrapped: those that are there already and those imported later."""
        for name, module in list(sys.modules.items()):
            inside = name == self._package or name.startswith(self._package + ".")
            if inside and isinstance(module, ModuleType) and not _is_test(getattr(module, "__spec__", None)):
                self.wrap(module)
        sys.meta_path.insert(0, self)
        try:
            yield
        finally:
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            for owner, name, before in reversed(self._put):
                with contextlib.suppress(AttributeError, TypeError):
                    setattr(owner, name, before)
            self._put.clear()


def files_of_tests() -> frozenset[str]:
    """The files of all modules that pytest has loaded as tests or conftests."""
    modules = [module for module in list(sys.modules.values()) if isinstance(module, ModuleType)]
    return frozenset(module.__file__ or "" for module in modules if _is_test(getattr(module, "__spec__", None)))


def is_of_test(function: FunctionType) -> bool:
    """Whether a function is defined in a module of tests."""
    return _is_test(function.__globals__.get("__spec__"))


def _is_test(spec: ModuleSpec | None) -> bool:
    """Whether a module is loaded by pytest, which rewrites the assertions of tests, also of those inside a package."""
    return type(getattr(spec, "loader", None)).__module__.partition(".")[0] == "_pytest"
