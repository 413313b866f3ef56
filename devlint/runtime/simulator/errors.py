"""Errors of the simulator itself, as opposed to those it reproduces.  Free of torch."""

from __future__ import annotations


class CannotSimulate(RuntimeError):
    """The program needs something that only real hardware has; it says nothing about the program.

    what: the name of the thing, such as ``torch.cuda.CUDAGraph``.
    why: why no CPU kernel can stand in for it.
    """

    def __init__(self, what: str, why: str) -> None:
        super().__init__(f"{what} cannot be simulated: {why}")
        self.what = what
        self.why = why
