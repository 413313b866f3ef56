"""One reversible patch, and applying and undoing a table of them."""

from __future__ import annotations

import functools
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


class Entry:
    """One entry of a dictionary as the attribute ``value``, for the patch table.

    name: of the dictionary, for messages.
    """

    def __init__(self, name: str, mapping: Any, key: Any) -> None:
        super().__setattr__("_mapping", mapping)
        super().__setattr__("_key", key)
        super().__setattr__("__qualname__", name)

    def __getattr__(self, name: str) -> Any:
        if name != "value" or self._key not in self._mapping:
            raise AttributeError(name)
        return self._mapping[self._key]

    def __setattr__(self, name: str, value: Any) -> None:
        self._mapping[self._key] = value

    def __delattr__(self, name: str) -> None:
        del self._mapping[self._key]


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


def documented(first: str, original: Any) -> Callable[[Any], Any]:
    """Give the replacement of a torch function what the original's parser in C++ takes.

    The first argument also by its documented name; and any object that answers ``__torch_function__`` without being a
    tensor, such as a proxy of ``torch.fx``, decides for itself.
    """

    def decorate(function: Any) -> Any:
        @functools.wraps(original)
        def called(*args: Any, **kwargs: Any) -> Any:
            if _answers_itself(args) or (kwargs and _answers_itself(kwargs.values())):
                return original(*args, **kwargs)
            if not args and first in kwargs:
                args = (kwargs.pop(first),)
            return function(*args, **kwargs)

        return called

    return decorate


_NEVER: Final = frozenset(
    {int, float, bool, complex, str, type(None), torch.Tensor, torch.Size, torch.dtype, torch.device}
)


def _answers_itself(values: Iterable[Any]) -> bool:
    for value in values:
        kind = value.__class__
        if kind in _NEVER:
            continue
        if kind is tuple or kind is list:
            if value and value[0].__class__ not in _NEVER and _answers_itself(value):
                return True
        elif hasattr(kind, "__torch_function__") and not isinstance(value, torch.Tensor):
            return True
    return False


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
