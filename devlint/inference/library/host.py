"""What the host's own libraries give that is no tensor: readings of clocks, and numpy's source of random numbers."""

from __future__ import annotations

from typing import Final

#: Clocks [Python's library reference, "time", "timeit" and "datetime"].
CLOCKS: Final = frozenset(
    {"time.time", "time.perf_counter", "time.monotonic", "time.time_ns", "time.perf_counter_ns", "time.monotonic_ns",
     "timeit.default_timer", "datetime.datetime.now"}
)  # fmt: skip
#: The source of random numbers that `numpy.random.default_rng` makes. Its methods give arrays where they get a size, which is
#: the first argument of some [numpy documentation, "Random Generator"].
NUMPY_GENERATOR: Final = "numpy.random.Generator"
NUMPY_SIZE_FIRST: Final = frozenset({"random", "standard_normal", "standard_exponential"})
