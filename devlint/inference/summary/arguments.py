"""The arguments of one call."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field

from devlint.inference.terms.values import Value

Argument = tuple[ast.expr, Value]


@dataclass(slots=True)
class Arguments:
    """Positional and named arguments with their expressions. `stars`, `double`: some more came by `*` or `**`."""

    positional: list[Argument] = field(default_factory=list)
    named: dict[str, Argument] = field(default_factory=dict)
    stars: bool = False
    double: bool = False

    def all(self) -> Iterator[Argument]:
        yield from self.positional
        yield from self.named.values()

    def get(self, position: int | None, *names: str) -> Argument | None:
        """An argument by its name, else by its position."""
        for name in names:
            if name in self.named:
                return self.named[name]
        if position is not None and position < len(self.positional) and not self.stars:
            return self.positional[position]
        return None

    def value(self, position: int | None, *names: str) -> Value | None:
        found = self.get(position, *names)
        return found[1] if found is not None else None

    def after(self, value: Value, node: ast.expr) -> Arguments:
        """The same with one more in front."""
        return Arguments([(node, value), *self.positional], self.named, self.stars, self.double)

    def without_first(self) -> Arguments:
        return Arguments(self.positional[1:], self.named, self.stars, self.double)

    def followed_by(self, other: Arguments) -> Arguments:
        """The same with more behind them."""
        named = {**self.named, **other.named}
        return Arguments([*self.positional, *other.positional], named, other.stars, other.double)

    def values(self) -> list[Value]:
        return [value for _, value in self.all()]

    @property
    def is_whole(self) -> bool:
        return not self.stars and not self.double

    def given_keywords(self) -> list[str]:
        """The names that are given, without those given as a literal False or None."""
        return [
            name
            for name, (node, _) in self.named.items()
            if not (isinstance(node, ast.Constant) and node.value in (False, None))
        ]
