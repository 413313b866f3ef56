"""Finds the rules: the shipped ones, and those that packages announce under the entry point group `devlint.rules`.

An entry point names a tuple of Rule classes. Any installed package can have one, so only those that the settings name are
loaded. The shipped rules are called `builtin`. They are found without the installed packages' metadata, whose reading takes
longer than linting a small file.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from devlint import shipped
from devlint.errors import RuleLoadError
from devlint.model import ENGINE_RULES
from devlint.rule import Rule

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "devlint.rules"
BUILTIN = "builtin"


def load_rules(plugins: Iterable[str] = ()) -> tuple[Rule[Any], ...]:
    """The shipped rules and those of the named entry points, one instance each, sorted by code.

    Raises RuleLoadError for an entry point that is missing or does not load, for codes or names that two rules share,
    and when there is no rule at all.
    """
    names = [name for name in dict.fromkeys(plugins) if name != BUILTIN]
    return collect([Shipped(), *(announced(names) if names else ())], names)


def announced(plugins: Iterable[str] = ()) -> list[EntryPoint]:
    """The entry points of all installed packages. Those that are named can be imported from then on.

    devlint leaves the folder in which it runs off the path. A package that is installed from there in editable form is no
    part of the checked tree alone: what installed it says where it lies, and that is put behind everything else.
    """
    from importlib.metadata import entry_points

    found = list(entry_points(group=GROUP))
    for point in found:
        if point.name in plugins:
            sys.path += [folder for folder in _editable(point) if folder not in sys.path]
    return found


def _editable(point: EntryPoint) -> Iterator[str]:
    """The folders that an installed package names in its `.pth` files [site, PEP 660; the files are listed in its RECORD]."""
    for file in (point.dist.files if point.dist is not None else None) or ():
        if file.suffix == ".pth" and len(file.parts) == 1:
            with suppress(OSError, UnicodeDecodeError):
                lines = Path(file.locate()).read_text(encoding="utf-8").splitlines()
                yield from (line for line in lines if os.path.isabs(line) and os.path.isdir(line))


class Shipped:
    """The shipped rules as an entry point."""

    name = BUILTIN

    def __init__(self) -> None:
        self.value = f"{shipped.package()}:RULES"

    def load(self) -> Any:
        """The tuple of classes. Raises ImportError or AttributeError."""
        module, _, attribute = self.value.partition(":")
        return getattr(importlib.import_module(module), attribute)


def collect(found: Iterable[EntryPoint | Shipped], plugins: Iterable[str] = ()) -> tuple[Rule[Any], ...]:
    """`load_rules` on given entry points, of which `builtin` is one. One that is listed twice with one target counts once."""
    by_name: dict[str, EntryPoint | Shipped] = {}
    for point in found:
        first = by_name.setdefault(point.name, point)
        if first.value != point.value:
            raise RuleLoadError(f"two packages provide rules as {point.name!r}: {first.value} and {point.value}")
    rules: list[Rule[Any]] = []
    for name in dict.fromkeys((BUILTIN, *plugins)):
        if name not in by_name:
            known = ", ".join(sorted(by_name))
            raise RuleLoadError(f"no installed package provides rules as {name!r}; there are: {known}")
        rules += _instances(by_name[name])
    return check_rules(rules)


def check_rules(rules: Sequence[Rule[Any]]) -> tuple[Rule[Any], ...]:
    """The rules sorted by code. Raises RuleLoadError when codes or names clash, or when there is none."""
    if not rules:
        raise RuleLoadError("no rules found: the rule packages are empty")
    taken = {key: "devlint" for meta in ENGINE_RULES for key in (meta.code, meta.name)}
    for rule in rules:
        owner = f"{type(rule).__module__}.{type(rule).__qualname__}"
        for key in (rule.meta.code, rule.meta.name):
            if key in taken:
                raise RuleLoadError(f"{key} is claimed twice: by {taken[key]} and by {owner}")
            taken[key] = owner
    return tuple(sorted(rules, key=lambda rule: rule.meta.code))


def _instances(point: EntryPoint | Shipped) -> list[Rule[Any]]:
    try:
        classes = point.load()
    except Exception as error:  # whatever a rule package raises while it is imported
        place = _where(error)
        raise RuleLoadError(f"rules {point.name!r} ({point.value}) cannot be loaded: {place}{error}") from error
    if not isinstance(classes, tuple) or not all(isinstance(item, type) and issubclass(item, Rule) for item in classes):
        raise RuleLoadError(f"rules {point.name!r} ({point.value}) must be a tuple of Rule classes")
    try:
        return [item() for item in classes]
    except Exception as error:
        raise RuleLoadError(f"rules {point.name!r} ({point.value}) cannot be made: {_where(error)}{error}") from error


def _where(error: BaseException) -> str:
    """`file:line: ErrorType: ` of the innermost frame of an error."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    place = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}: " if trace is not None else ""
    return f"{place}{type(error).__name__}: "
