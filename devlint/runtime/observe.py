"""Recording on a real accelerator: nothing is changed but the clocks, and nothing is simulated.

A dispatch mode sees each operator with the devices of its tensors.  From the operators' names follow
synchronizations and transfers, as for the simulated card; kernels are counted until the host is known
to have waited.  At a clock read the card itself is asked, by ``Stream.query()``, whether it is idle.

A card that is fast enough is always idle by then. Kept busy, it gets work that computes nothing beside the program's,
so that what is queued is unfinished a moment later, as on a slower card or with more data.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from time import perf_counter as _now  # the real one, before the clocks are replaced
from typing import Any

from devlint.runtime.recorder import Recorder
from devlint.runtime.waiting import PAGEABLE

#: How long the work of a card that is kept busy takes, in clock cycles, and in seconds at 3 GHz, which no card reaches; it is
#: renewed when fewer seconds than the third are left. The fourth bounds how often, and so what a run waits for it.
_CYCLES, _LASTS, _LEFT, _MOST_TIMES = 12_000_000, 0.004, 0.002, 1000


@contextmanager
def observe(recorder: Recorder, busy: bool = False, draws: list[list[Any]] | None = None) -> Iterator[Recorder]:
    """Record what the body asks of the real accelerator; does nothing where there is none.

    The mode also sees operators of the backward pass: torch carries it into its device threads. busy: keep the card
    busy (CUDA and ROCm). draws: is given operator, shape, type and device of each random draw.
    """
    kind = accelerator_kind()
    if kind is None:
        yield recorder
        return
    from devlint.runtime.simulator.patches.base import PatchSet
    from devlint.runtime.simulator.patches.clocks import clock_patches

    observer = _make_observer(kind, recorder, busy and kind == "cuda", [] if draws is None else draws)
    patches = PatchSet()
    patches.apply(clock_patches(recorder, observer.unfinished))
    if kind == "cuda":
        patches.apply(observer.copies.patches())
    try:
        with observer:
            yield recorder
    finally:
        patches.undo()


def accelerator_kind() -> str | None:
    """The kind of the real accelerator of this machine (``cuda``, ``xpu``, ``mps``), or None."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        return "xpu"
    if torch.backends.mps.is_available():
        return "mps"
    return None


#: Random draws that are noted.
_MOST_DRAWS = 10_000


def _make_observer(kind: str, recorder: Recorder, busy: bool, draws: list[list[Any]]) -> Any:
    import torch
    from torch.utils._python_dispatch import TorchDispatchMode

    from devlint.runtime.copies import source_of
    from devlint.runtime.simulator.mode import tensors_in
    from devlint.runtime.simulator.opfacts import OpPlan
    from devlint.runtime.unfinished import UnfinishedCopies

    module = getattr(torch, kind)

    class Observer(TorchDispatchMode):  # type: ignore[misc]
        """Looks at each operator before or after it runs; never changes one."""

        def __init__(self) -> None:
            super().__init__()
            self._plans: dict[int, OpPlan] = {}
            self._queued: dict[torch.device, int] = {}
            self._busy_until: dict[torch.device, float] = {}
            self._times = 0
            self.copies = UnfinishedCopies(recorder)

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False

        def unfinished(self) -> int:
            """Kernels not known to have finished; asks each card that was used."""
            for device in list(self._queued):
                if self._is_idle(device):
                    self._queued[device] = 0
            return sum(self._queued.values())

        def _is_idle(self, device: torch.device) -> bool:
            if not hasattr(module, "current_stream"):
                return self._queued[device] == 0
            return bool(module.current_stream(device).query())

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            plan = self._plans.get(id(func))
            if plan is None:
                plan = self._plans[id(func)] = OpPlan(func)
            kwargs = kwargs or {}
            copies = plan.name in ("_to_copy", "copy_")
            tensors = list(tensors_in((args, list(kwargs.values()))))
            if plan.sync or plan.launches:
                for tensor in tensors[plan.name == "copy_" :]:  # what is copied into is not read
                    if tensor.device.type == "cpu":
                        self.copies.read(tensor, plan.sync or plan.name)
                    elif copies and busy and tensor.device.type == kind:
                        self._occupy(tensor.device)
            try:
                result = func(*args, **kwargs)
            except RuntimeError as error:
                if "device" in str(error):
                    recorder.record("fault", str(error).splitlines()[0])
                raise
            if plan.random and isinstance(result, torch.Tensor) and len(draws) < _MOST_DRAWS:
                draws.append([plan.name, list(result.shape), str(result.dtype), str(result.device)])
            cards = {tensor.device for tensor in tensors if tensor.device.type == kind}
            if copies:
                self._copied(plan.name, args, kwargs, result)
            elif cards:
                self._ran(plan, cards, args)
            return result

        def _ran(self, plan: OpPlan, cards: set[torch.device], args: Any) -> None:
            what = plan.sync
            if plan.indexing and any(index is not None and index.dtype is torch.bool for index in args[1]):
                what = "boolean mask" if "put" not in plan.name else what
            for device in cards:
                pending = self._queued.get(device, 0)
                if what is not None:
                    recorder.record("sync", what, pending=pending, device=str(device))
                    self._queued[device] = 0
                elif plan.launches:
                    self._queued[device] = pending + 1
                    if busy:
                        self._occupy(device)
                    if recorder.kernel_lines:
                        _count_line(recorder)

        def _occupy(self, device: torch.device) -> None:
            """Queue work that only takes time, unless enough of it is left."""
            if self._busy_until.get(device, 0.0) - _now() > _LEFT or self._times >= _MOST_TIMES:
                return
            if not torch.cuda.is_available() or torch.cuda.is_current_stream_capturing():
                return
            with torch.cuda.device(device):
                torch.cuda._sleep(_CYCLES)
            self._times += 1
            self._busy_until[device] = max(self._busy_until.get(device, 0.0), _now()) + _LASTS

        def _copied(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
            source, target = (args[1], args[0]) if name == "copy_" else (args[0], result)
            here, there = source.device, target.device
            if here.type != kind and there.type != kind:
                return
            card = there if there.type == kind else here
            if here == there:
                self._queued[card] = self._queued.get(card, 0) + 1
                return
            non_blocking = kwargs.get("non_blocking", len(args) > 2 and bool(args[2]))
            size = source.numel() * source.element_size()
            pending = self._queued.get(card, 0)
            across = here.type == there.type
            direction: Any = "d2d" if across else "h2d" if there.type == kind else "d2h"
            blocking = not non_blocking and not across
            if kind == "cuda" and direction == "d2h" and not blocking and target.is_pinned():
                self.copies.begin(target, torch.cuda.current_stream(card).record_event(), str(card))
            what = "copy_" if name == "copy_" else "to"
            if direction == "h2d" and non_blocking and not source.is_pinned():
                what += PAGEABLE
            self._queued[card] = 0 if blocking else pending + 1
            recorder.record(
                "transfer",
                what,
                bytes=size,
                direction=direction,
                blocking=blocking,
                pending=pending,
                device=str(card),
                source=source_of(source, on_host=here.type == "cpu"),
            )

    return Observer()


def _count_line(recorder: Recorder) -> None:
    frame: Any = sys._getframe(1)
    while frame is not None:
        if recorder.is_user(frame.f_code):
            key = (id(frame.f_code), frame.f_lasti)
            recorder.kernels[key] = recorder.kernels.get(key, 0) + 1
            return
        frame = frame.f_back
