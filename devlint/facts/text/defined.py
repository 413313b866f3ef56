"""A function that a file defines, and what is noted of it while the file is run."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from devlint.facts.events import Guards
    from devlint.facts.text.classes import ClassFacts
    from devlint.facts.values import Value


@dataclass(slots=True)
class Summary:
    """What one call of a function does: its result, and its effects on the caller's state.

    `works`: it queues device work; `waits`: and waits for it. `moved`: parameters whose module moved in place, with what
    they are now; `attributes`: what it leaves on `self`. `card` and `default`: the current card and default device.
    """

    result: Value
    works: bool = False
    waits: bool = False
    moved: dict[str, Value] = field(default_factory=dict)
    attributes: dict[str, Value] = field(default_factory=dict)
    card: int | None = None
    default: Value | None = None


_NO_CLOSURE: Mapping[str, Value] = MappingProxyType({})


@dataclass(slots=True, eq=False)
class Function:
    """One function of the file: its node, its qualified name in the file, the class it is a method of."""

    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
    name: str
    owner: ClassFacts | None = None
    closure: Mapping[str, Value] = field(default_factory=lambda: _NO_CLOSURE)  # what the enclosing function knew
    called: int = 0  # calls seen with something known about their tensors
    callers: list[Guards] = field(default_factory=list)  # what each call of the file stands under
    given: dict[str, Value] = field(default_factory=dict)  # what methods of the same object pass, by parameter
    seen: dict[str, Value | None] = field(
        default_factory=dict
    )  # by parameter, what all these calls gave; None: unknown
    summaries: dict[object, Summary] = field(default_factory=dict)  # by signature of the arguments

    @property
    def is_method(self) -> bool:
        """Whether it stands in the body of its class, and not in a method."""
        return self.owner is not None and "." not in self.name[len(self.owner.name) + 1 :]
