"""Copies between the host and cards: always made here, never by C++, which sees one device only."""

from __future__ import annotations

from typing import Any

import torch

from devlint.runtime.copies import source_of
from devlint.runtime.simulator import unwritten
from devlint.runtime.simulator.cards import Card
from devlint.runtime.simulator.marks import (
    WILD,
    card_of,
    is_pinned,
    mark_of,
    set_mark,
    set_pinned,
    storage_of,
)
from devlint.runtime.simulator.simulation import Simulation
from devlint.runtime.waiting import CONVERTED, PAGEABLE, STRIDED

_copying_to = torch._C.TensorBase.to
_WithoutDispatch: Any = torch._C._DisableTorchDispatch


def copy_to_place(
    simulation: Simulation,
    source: torch.Tensor,
    place: Card | None,
    dtype: torch.dtype | None,
    non_blocking: bool,
    memory_format: torch.memory_format | None,
    what: str,
) -> torch.Tensor:
    """A copy of `source` on another card or the host, without autograd; records the transfer.

    The bytes are copied even between host and card, whose memory is the same here: on a real card
    the two are independent.
    """
    formats: dict[str, Any] = {} if memory_format is None else {"memory_format": memory_format}
    with _WithoutDispatch():
        result: torch.Tensor = _copying_to(source, dtype=dtype or source.dtype, copy=True, **formats)
    size = source.numel() * source.element_size()
    came_from = card_of(source)
    if place is not None:
        set_mark(result, place)
    elif non_blocking and came_from is not None:
        set_pinned(result)  # torch allocates page-locked memory for such a copy
    if simulation.unwritten:
        unwritten.copied(simulation, source, result, what)
    record_copy(simulation, came_from, place, source, result, size, non_blocking, what)
    return result


def record_copy(
    simulation: Simulation,
    came_from: Card | None,
    place: Card | None,
    source: torch.Tensor,
    result: torch.Tensor,
    size: int,
    non_blocking: bool,
    what: str,
) -> None:
    """Record a copy that was made, and stamp host memory that a non-blocking copy still fills."""
    read = source_of(source, on_host=True)
    if place is not None and came_from is None:
        through = _through_buffer(source, result) if non_blocking else ""
        simulation.transferred(what, "h2d", size, place, blocking=not non_blocking, through=through, source=read)
    elif place is not None and came_from is not None and came_from is not place:
        simulation.transferred(what, "d2d", size, place, blocking=False, source=read)
    elif place is None and came_from is not None:
        # A copy to pageable memory returns only when it is complete.
        blocking = not (non_blocking and is_pinned(result))
        simulation.transferred(what, "d2h", size, came_from, blocking=blocking, source=read)
        if not blocking:
            storage: Any = storage_of(result)
            storage._devlint_copy = (came_from, came_from.queued)
            came_from.unread_copies += 1
            simulation.copies_in_flight = True


def _through_buffer(source: torch.Tensor, result: torch.Tensor) -> str:
    """What sends a copy through a buffer of the driver or of torch, for which the host waits; "" if nothing does.

    Of memory with gaps, or that is converted, torch makes a plain copy on the host first [aten/src/ATen/native/cuda/
    Copy.cu, copy_requires_temporaries].
    """
    if not is_pinned(source):
        return PAGEABLE
    if source.dtype != result.dtype:
        return CONVERTED
    if source.layout is torch.strided and not _without_gaps(source, result):
        return STRIDED
    return ""


def _without_gaps(source: torch.Tensor, result: torch.Tensor) -> bool:
    if source.is_contiguous() and result.is_contiguous():
        return True
    return source.stride() == result.stride() and _is_dense(source)


def _is_dense(tensor: torch.Tensor) -> bool:
    """Whether the elements lie side by side in some order of the dimensions."""
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


class _Move(torch.autograd.Function):  # type: ignore[misc]
    """A transfer that autograd follows: the gradient goes back to where the input was."""

    @staticmethod
    def forward(
        ctx: Any,
        source: torch.Tensor,
        simulation: Simulation,
        place: Card | None,
        dtype: torch.dtype | None,
        non_blocking: bool,
        memory_format: torch.memory_format | None,
        what: str,
    ) -> torch.Tensor:
        ctx.simulation, ctx.origin, ctx.dtype = simulation, card_of(source), source.dtype
        return copy_to_place(simulation, source, place, dtype, non_blocking, memory_format, what)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        moved = move(ctx.simulation, gradient, ctx.origin, ctx.dtype, False, None, "backward of a transfer")
        return moved, None, None, None, None, None, None


def move(
    simulation: Simulation,
    source: torch.Tensor,
    place: Card | None,
    dtype: torch.dtype | None = None,
    non_blocking: bool = False,
    memory_format: torch.memory_format | None = None,
    what: str = "to",
    copy: bool = False,
) -> torch.Tensor:
    """``source.to(place, ...)``; the tensor itself when nothing changes and no copy is asked for."""
    if mark_of(source) is WILD:
        set_mark(source, None)
    if source.layout is not torch.strided:
        return _move_sparse(simulation, source, place, dtype, non_blocking, what)
    if card_of(source) is place or simulation.thread.tracing is not None:
        formats: dict[str, Any] = {} if memory_format is None else {"memory_format": memory_format}
        same: torch.Tensor = _copying_to(source, dtype=dtype or source.dtype, copy=copy, **formats)
        return same
    arguments = (source, simulation, place, dtype, non_blocking, memory_format, what)
    if source.requires_grad and torch.is_grad_enabled() and not torch.is_inference_mode_enabled():
        moved: torch.Tensor = _Move.apply(*arguments)
        return moved
    return copy_to_place(simulation, source, place, dtype, non_blocking, memory_format, what)


def _move_sparse(
    simulation: Simulation,
    source: torch.Tensor,
    place: Card | None,
    dtype: torch.dtype | None,
    non_blocking: bool,
    what: str,
) -> torch.Tensor:
    came_from = card_of(source)
    if came_from is place and (dtype is None or dtype == source.dtype):
        return source
    with _WithoutDispatch():
        result: torch.Tensor = _copying_to(source, dtype=dtype or source.dtype, copy=True)
    set_mark(result, place)
    size = _sparse_bytes(source)
    record_copy(simulation, came_from, place, source, result, size, non_blocking, what)
    return result


def _sparse_bytes(tensor: torch.Tensor) -> int:
    stored = tensor._nnz() if tensor.layout is not torch._mkldnn else tensor.numel()
    return int(stored) * int(tensor.element_size())
