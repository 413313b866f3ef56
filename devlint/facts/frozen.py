"""Dataclasses that cost no more than they must: the analysis makes and changes hundreds of values for each function.

`record`: a dataclass that the type checker holds to be frozen. `frozen=True` sets every field through
`object.__setattr__`, which takes five times as long. `replace`: what `dataclasses.replace` gives, which asks every field
for its properties each time and takes more than twice as long.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import replace
else:
    from dataclasses import dataclass, fields
    from functools import lru_cache
    from operator import attrgetter

    def record(*, frozen, slots):
        return dataclass(slots=slots, unsafe_hash=frozen)

    @lru_cache(None)
    def _reader(kind):
        """A function that gives the fields of an object of a dataclass, in the order in which its constructor takes them."""
        names = [field.name for field in fields(kind)]
        return attrgetter(*names) if len(names) > 1 else lambda value: [getattr(value, name) for name in names]

    def replace(value, /, **changes):
        kind = value.__class__
        copied = kind(*_reader(kind)(value))
        for name, change in changes.items():
            object.__setattr__(copied, name, change)
        return copied


__all__ = ["record", "replace"]
