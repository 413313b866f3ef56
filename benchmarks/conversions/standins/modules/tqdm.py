"""Stand-in for tqdm: iterates and accepts the calls that change a progress bar."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any


class tqdm:
    def __init__(self, items: Iterable[Any] = (), **_: Any) -> None:
        self.items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)

    def set_description(self, *_: Any) -> None:
        pass

    def update(self, *_: Any) -> None:
        pass


def trange(*numbers: int, **_: Any) -> tqdm:
    return tqdm(range(*numbers))
