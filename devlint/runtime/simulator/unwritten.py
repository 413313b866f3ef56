"""Memory of a card that was allocated and never written: reading it is an error, at the line that reads.

The mark is one of the whole storage: any write to a part of it clears it, so a program that fills half of a tensor and
reads the other half is not seen. A copy of such memory is marked like its source and is no read. Host memory is not
marked, nor is what C++ allocates on its own.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import torch

from devlint.runtime.blame import blame, frames_from
from devlint.runtime.findings import shown
from devlint.runtime.simulator.marks import card_of, has_storage, storage_of

if TYPE_CHECKING:
    from devlint.runtime.simulator.opfacts import OpPlan
    from devlint.runtime.simulator.simulation import Simulation

ALLOCATING: Final = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_permuted", "new_empty", "new_empty_strided"}
)
# In place, and what was there before has no part in the result.
_OVERWRITING: Final = frozenset(
    {
        *("fill_", "zero_", "copy_", "set_", "resize_", "resize_as_", "eye_", "detach_", "requires_grad_"),
        *("uniform_", "normal_", "random_", "bernoulli_", "exponential_", "geometric_", "log_normal_", "cauchy_"),
        *("_foreach_copy_", "_foreach_zero_", "_fused_dropout_"),
        # a part is written, and the rest of the storage is taken for written from then on
        *("masked_fill_", "masked_scatter_", "index_put_", "_index_put_impl_", "index_copy_", "index_fill_"),
        *("scatter_", "put_", "fill_diagonal_", "tril_", "triu_", "narrow_copy_", "slice_scatter_", "select_scatter_"),
    }
)
# The result has the same content.
_COPYING: Final = frozenset({"clone", "_to_copy", "contiguous", "lift_fresh", "alias"})
# Only the shape is looked at.
_LOOKING: Final = frozenset(
    {
        *("empty_like", "zeros_like", "ones_like", "full_like", "rand_like", "randn_like", "randint_like"),
        *("new_empty", "new_empty_strided", "new_zeros", "new_ones", "new_full", "expand", "expand_as", "view_as"),
        *("size", "stride", "is_same_size", "_has_compatible_shallow_copy_type", "equal_size", "_shape_as_tensor"),
    }
)
# They say what is written, and hand it back.
_OF_TORCH: Final = frozenset({"aten", "prims"})


_CONTAINERS: Final = (list, tuple)


class Unwritten:
    """Where memory was allocated; counts the memory that is still unwritten."""

    __slots__ = ("_simulation", "file", "line", "what")

    def __init__(self, simulation: Simulation, what: str, file: str | None, line: int) -> None:
        self._simulation = simulation
        self.what = what
        self.file = file
        self.line = line
        simulation.unwritten += 1

    def __del__(self) -> None:
        self._simulation.unwritten -= 1

    @property
    def where(self) -> str:
        """For a message: by what and where."""
        return f"by {self.what}" + (f" at {shown(self.file)}:{self.line}" if self.file else "")


def allocated(simulation: Simulation, tensor: torch.Tensor, what: str) -> None:
    """Memory on a card was allocated and not written."""
    if tensor.layout is torch.strided and tensor.numel() and card_of(tensor) is not None and has_storage(tensor):
        file, line = simulation.recorder.locate(sys._getframe(2))
        storage: Any = storage_of(tensor)
        storage._devlint_unwritten = Unwritten(simulation, what, file, line)


def look(simulation: Simulation, plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Unwritten | None:
    """Before an operator: report what it reads of unwritten memory, and clear the marks of what it writes.

    Returns the mark that its result takes over, if it is a copy.
    """
    if not (_any_marked(args) or (kwargs and _any_marked(kwargs.values()))):
        return None
    taken_over: Unwritten | None = None
    known = plan.func.namespace in _OF_TORCH
    for argument, tensor in _tensors(plan.func, args, kwargs):
        mark = _mark_of(tensor)
        if mark is None:
            continue
        writes = not known or (argument.alias_info is not None and argument.alias_info.is_write)
        if known and not writes and ((not plan.launches and plan.sync is None) or plan.name in _LOOKING):
            continue
        if plan.name in _COPYING or (plan.name == "copy_" and not writes):
            taken_over = mark
            continue
        overwrites = argument.kwarg_only or plan.name in _OVERWRITING or not known
        if not (writes and overwrites):
            _report(simulation, plan.name, argument.name, tensor, mark, sys._getframe(2))
        if writes or not overwrites:  # each is reported once
            clear(tensor)
    return taken_over


def take_over(result: Any, mark: Unwritten) -> None:
    """The copy of unwritten memory is unwritten as well."""
    if isinstance(result, torch.Tensor) and card_of(result) is not None and has_storage(result):
        storage: Any = storage_of(result)
        storage._devlint_unwritten = mark


def clear(tensor: torch.Tensor) -> None:
    """Something was written to the tensor's memory."""
    if has_storage(tensor):
        storage: Any = storage_of(tensor)
        storage._devlint_unwritten = None


def _any_marked(values: Iterable[Any]) -> bool:
    """Whether one of the tensors is unwritten; runs before every operator while anything is."""
    for value in values:
        if isinstance(value, torch.Tensor):
            if _mark_of(value) is not None:
                return True
        elif value.__class__ in _CONTAINERS and _any_marked(value):
            return True
    return False


def _mark_of(tensor: torch.Tensor) -> Unwritten | None:
    try:
        found: Unwritten | None = storage_of(tensor)._devlint_unwritten
    except (NotImplementedError, RuntimeError, ValueError):  # no storage, or one that refuses; see `marks`
        return None
    return found


def _tensors(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[Any, torch.Tensor]]:
    arguments = func._schema.arguments
    named = {argument.name: argument for argument in arguments}
    pairs = [*zip(arguments, args, strict=False), *((named[name], value) for name, value in kwargs.items())]
    for argument, value in pairs:
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, torch.Tensor):
                yield argument, item


def copied(simulation: Simulation, source: torch.Tensor, result: torch.Tensor, what: str) -> None:
    """A tensor was copied to another device: on a card it is still unwritten, and on the host it has been read."""
    mark = _mark_of(source)
    if mark is None:
        return
    if card_of(result) is not None:
        take_over(result, mark)
        return
    clear(source)
    _report(simulation, what, "self", source, mark, sys._getframe(2))


def _report(
    simulation: Simulation, what: str, argument: str, tensor: torch.Tensor, mark: Unwritten, frame: FrameType
) -> None:
    from devlint.runtime.simulator.mixing import Operand

    recorder = simulation.recorder
    operand = Operand(argument, simulation.device_of(tensor), tuple(tensor.shape), tensor.dtype, tensor.data_ptr())
    found = blame(frames_from(frame), [operand], recorder.is_user)
    name = f"`{found.met[0].name}`" if found.met else f"a tensor {list(tensor.shape)}"
    recorder.record("unwritten", f"{what} reads {name}, allocated {mark.where}", at=recorder.locate(frame))
