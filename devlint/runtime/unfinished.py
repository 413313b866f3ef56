"""Copies from a real card that are not finished yet, and reads of the host that come too early for them.

A non-blocking copy to the host gives page-locked memory that the card fills later (aten/src/ATen/native/Copy.cpp). Each such
copy gets an event behind it; a read of that memory asks the event. torch is imported inside functions.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

from devlint.runtime.recorder import Recorder


class UnfinishedCopies:
    """The copies that nobody has waited for, by the address of the memory that they fill."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._events: dict[int, tuple[Any, str]] = {}

    def begin(self, target: Any, event: Any, card: str) -> None:
        """A copy into a tensor of the host was queued; `event` was recorded behind it on its stream."""
        address = _address(target)
        if address:
            self._events[address] = (event, card)

    def read(self, tensor: Any, reader: str) -> None:
        """The host reads a tensor: record a race if a copy into its memory is not finished."""
        if not self._events:
            return
        address = _address(tensor)
        event, card = self._events.get(address, (None, ""))
        if event is None:
            return
        if event.query():
            del self._events[address]
        else:
            self._recorder.record("race", f"{reader} of an unfinished copy", device=card)

    def patches(self) -> Iterator[Any]:
        """Patches of the reads that pass no dispatcher."""
        import torch

        from devlint.runtime.simulator.patches.base import Patch

        def watched(name: str, original: Any) -> Any:
            @functools.wraps(original)
            def read(tensor: Any, *args: Any, **kwargs: Any) -> Any:
                self.read(tensor, name)
                return original(tensor, *args, **kwargs)

            return read

        for name in ("tolist", "numpy"):
            yield Patch(torch.Tensor, name, functools.partial(watched, name))


def _address(tensor: Any) -> int:
    """Where the memory of a tensor of the host begins; 0 if it has none or is elsewhere."""
    import torch

    if tensor.device.type != "cpu":
        return 0
    base: Any = torch._C.TensorBase
    try:
        return int(base.untyped_storage(tensor).data_ptr())
    except (RuntimeError, NotImplementedError):  # sparse; without storage
        return 0
