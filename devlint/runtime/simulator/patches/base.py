"""One reversible patch, and applying and undoing a table of them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

import torch
import torch.jit._builtins

_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class Patch:
    """Replace ``target.attribute`` by ``make(original)`` for the time of a simulation.

    create: also when the attribute does not exist (`make` then gets None); otherwise a patch whose
        attribute this torch lacks is skipped.
    """

    target: Any
    attribute: str
    make: Callable[[Any], Any]
    create: bool = False

    @property
    def name(self) -> str:
        """For messages: ``torch.Tensor.to``."""
        owner = getattr(self.target, "__qualname__", None) or getattr(self.target, "__name__", repr(self.target))
        return f"{owner}.{self.attribute}"


def constant(value: Any) -> Callable[[Any], Any]:
    """A maker of functions that take anything and return `value`."""

    def make(original: Any) -> Any:
        def answer(*args: Any, **kwargs: Any) -> Any:
            return value

        return answer

    return make


def always(replacement: Any) -> Callable[[Any], Any]:
    """A maker that ignores the original."""
    return lambda original: replacement


def as_deprecated(original: Any, replacement: Any) -> Any:
    """The replacement, which warns at each call if the original does: by `typing_extensions.deprecated`, as in torch."""
    text = getattr(original, "__deprecated__", None)
    if text is None or not hasattr(
        original, "__wrapped__"
    ):  # the function under the old name's wrapper has the text too
        return replacement

    def deprecated(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return replacement(*args, **kwargs)

    return deprecated


@dataclass(frozen=True, slots=True)
class _Applied:
    target: Any
    attribute: str
    own: Any
    replacement: Any

    def put_back(self) -> None:
        if self.own is _ABSENT:
            delattr(self.target, self.attribute)
        else:
            setattr(self.target, self.attribute, self.own)

    def put_again(self) -> None:
        setattr(self.target, self.attribute, self.replacement)


class PatchSet:
    """Applies patches in order and undoes them in reverse; undoing twice is harmless."""

    def __init__(self) -> None:
        self._applied: list[_Applied] = []
        self._jit_names: list[int] = []

    def apply(self, patches: Iterable[Patch]) -> None:
        """Apply each patch; on an error those already applied are undone before it is raised."""
        try:
            for patch in patches:
                self._apply(patch)
        except BaseException:
            self.undo()
            raise

    def _apply(self, patch: Patch) -> None:
        exists = hasattr(patch.target, patch.attribute)
        if not exists and not patch.create:
            return
        original = getattr(patch.target, patch.attribute) if exists else None
        own = original if exists else _ABSENT
        if isinstance(patch.target, (type, ModuleType)):
            # What the target only inherits reappears when the replacement is deleted.
            own = vars(patch.target).get(patch.attribute, _ABSENT)
        replacement = as_deprecated(original, patch.make(original))
        setattr(patch.target, patch.attribute, replacement)
        self._applied.append(_Applied(patch.target, patch.attribute, own, replacement))
        self._tell_torchscript(original, replacement)

    def _tell_torchscript(self, original: Any, replacement: Any) -> None:
        """TorchScript finds operators by the id of the Python function; let it find the replacement too."""
        table = torch.jit._builtins._get_builtin_table()
        operator = table.get(id(original)) if original is not None else None
        if operator is not None and callable(replacement):
            table[id(replacement)] = operator
            self._jit_names.append(id(replacement))

    def exchanged(self) -> Iterator[tuple[Any, Any]]:
        """Functions and classes of modules with what replaces them: what `from module import name` binds."""
        for applied in self._applied:
            if isinstance(applied.target, ModuleType) and callable(applied.own) and applied.own is not _ABSENT:
                yield applied.own, applied.replacement

    @contextmanager
    def set_aside(self) -> Iterator[None]:
        """Everything as without patches for a while, but for the attributes that carry marks.

        Other threads may still be at work on marked tensors.
        """
        aside = [applied for applied in self._applied if not applied.attribute.startswith("_devlint_")]
        for applied in reversed(aside):
            applied.put_back()
        try:
            yield
        finally:
            for applied in aside:
                applied.put_again()

    def undo(self) -> None:
        """Put everything back."""
        while self._applied:
            self._applied.pop().put_back()
        table = torch.jit._builtins._get_builtin_table()
        for identity in self._jit_names:
            table.pop(identity, None)
        self._jit_names.clear()


def overridable(original: Any) -> Callable[[Any], Any]:
    """Give a replacement of a Tensor method the override protocol that the original has in C++.

    Tensor subclasses and function modes then see the call as before.
    """

    def decorate(function: Any) -> Any:
        def method(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
            if has_override((self,)):
                return torch.overrides.handle_torch_function(method, (self,), self, *args, **kwargs)
            return function(self, *args, **kwargs)

        method.__name__ = getattr(original, "__name__", function.__name__)
        method.__qualname__ = f"Tensor.{method.__name__}"
        method.__doc__ = getattr(original, "__doc__", None)
        return method

    has_override = torch.overrides.has_torch_function
    return decorate
