"""Generators that a program makes without a seed get one, alike in all runs.

Otherwise two runs decide alike by chance, `rng.random() < 0.5`, and a third one does not. What the operating system draws,
as for `secrets` and `uuid`, stays as it is: other processes rely on it. Free of torch.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

_OWN = (__file__, random.__file__)


def seed_generators(number: int, is_user: Callable[[FrameType], bool]) -> None:
    """`random.Random()` and `seed()` of the program's own code; others draw names of temporary files by it.

    is_user: whether a generator that is made in a frame is made by the program.
    """
    source, plain = random.Random(number), random.Random.seed

    def seed(self: random.Random, a: Any = None, version: int = 2) -> None:
        if a is None:
            frame: FrameType | None = sys._getframe(1)
            while frame is not None and frame.f_code.co_filename in _OWN:
                frame = frame.f_back
            a = source.getrandbits(128) if frame is not None and is_user(frame) else None
        plain(self, a, version)

    module: Any = random
    generator: random.Random = module._inst
    random.Random.seed = seed  # type: ignore[method-assign]
    module.seed = generator.seed


def seed_generators_of_numpy(number: int) -> None:
    """`numpy.random.default_rng()`, `RandomState()` and whatever else asks numpy for a seed; where numpy is imported."""
    module: Any = sys.modules.get("numpy.random.bit_generator")
    if hasattr(module, "randbits"):
        module.randbits = random.Random(number).getrandbits
