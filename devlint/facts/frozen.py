"""`record`: a dataclass that the type checker holds to be frozen and that costs no more to make than a plain one.

`frozen=True` sets every field through `object.__setattr__`, which takes five times as long, and the analysis makes
hundreds of values for each function.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:
    from dataclasses import dataclass

    def record(*, frozen, slots):
        return dataclass(slots=slots, unsafe_hash=frozen)


__all__ = ["record"]
