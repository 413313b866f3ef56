"""What CUDA does when the tensors of one operator are on different devices.

The class of the operator (checktable.py) decides; operators whose kernels have checks of their own
are in handrules.py.  Either the mixture is legal and the result has a place, or the card's own error
is raised.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from devlint.runtime.simulator import messages
from devlint.runtime.simulator.cards import Card
from devlint.runtime.simulator.checktable import CheckClass, check_table
from devlint.runtime.simulator.marks import CPU, WILD, has_storage, mark_of
from devlint.runtime.simulator.simulation import Simulation

if TYPE_CHECKING:
    from devlint.runtime.simulator.opfacts import OpPlan

_Tensor = torch.Tensor

# Element-wise by their yaml entry, yet their CUDA kernels accept no zero-dim CPU tensor.
_NO_CPU_SCALAR = frozenset(
    {"masked_scatter", "masked_scatter_", "index_fill", "index_fill_", "kl_div", "mse_loss_backward"}
)


@dataclass(frozen=True, slots=True)
class Finished:
    """The operator has been carried out; `result` is what it returned."""

    result: Any


@dataclass(frozen=True, slots=True)
class Operand:
    """One tensor of a failed operator, for reports: where it is and what it looks like."""

    argument: str
    device: torch.device
    shape: tuple[int, ...]
    dtype: torch.dtype
    data_ptr: int


class MixedCall:
    """One call of an operator whose tensors are on different devices."""

    def __init__(
        self,
        simulation: Simulation,
        mode: Any,
        func: Any,
        plan: OpPlan,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.simulation = simulation
        self.mode = mode
        self.func = func
        self.plan = plan
        self.name = plan.name
        self.args = args
        self.kwargs = kwargs
        self.tensors = list(_named_tensors(func, args, kwargs))
        self.card = next(mark for _, tensor in self.tensors if isinstance(mark := mark_of(tensor), Card))

    def argument(self, name: str) -> Any:
        """The value given for a schema argument, its default, or None."""
        for index, argument in enumerate(self.func._schema.arguments):
            if argument.name == name:
                if index < len(self.args):
                    return self.args[index]
                return self.kwargs.get(name, argument.default_value)
        return None

    def place(self, tensor: torch.Tensor) -> Card | None:
        """The card of a tensor, None for the host; a WILD tensor is where the others are."""
        mark = mark_of(tensor)
        return mark if mark is None or isinstance(mark, Card) else self.card

    def device(self, tensor: torch.Tensor) -> torch.device:
        """Like :meth:`place`, as a device."""
        place = self.place(tensor)
        return CPU if place is None else place.device

    def is_wild(self, tensor: torch.Tensor) -> bool:
        """Whether the tensor goes with anything."""
        return mark_of(tensor) is WILD

    def fail(self, text: str) -> NoReturn:
        """Raise the card's error."""
        operands = [
            Operand(name, self.device(tensor), tuple(tensor.shape), tensor.dtype, _address(tensor))
            for name, tensor in self.tensors
        ]
        self.simulation.fault(RuntimeError, text, operands)

    def fail_as_iterator(self, one: torch.device, other: torch.device) -> NoReturn:
        """Raise TensorIterator's error; it names a card before the host."""
        first, second = (one, other) if one.type != "cpu" else (other, one)
        self.fail(messages.tensor_iterator(first, second))

    def fail_exactly(self, argument: str, device: torch.device, common: torch.device, method: str) -> NoReturn:
        """Raise the error of the exact check."""
        self.fail(messages.exact(argument, device, common, method))


def resolve(
    simulation: Simulation, mode: Any, func: Any, plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Card | Finished | None:
    """Where the operator runs, or its result if it was carried out here; raises CUDA's error if illegal."""
    from devlint.runtime.simulator.handrules import HAND_RULES, foreach_rule

    call = MixedCall(simulation, mode, func, plan, args, kwargs)
    rule = foreach_rule if plan.name.startswith("_foreach_") else HAND_RULES.get(plan.name)
    if rule is not None:
        outcome = rule(call)
        if not isinstance(outcome, NotDecided):
            return outcome
    return _by_class(call)


class NotDecided:
    """A hand rule found nothing to say; the operator's class decides."""


def _by_class(call: MixedCall) -> Card | Finished | None:
    check = check_table().get(f"{call.name}.{call.func._overloadname}")
    if check is not None and check.kind is CheckClass.EXACT:
        return _exact(call, check.arguments, check.method)
    if check is not None and check.kind is CheckClass.NONE and not call.name.startswith("special_"):
        return call.card
    if check is not None and check.kind is CheckClass.ABSENT:
        call.fail(messages.no_kernel(f"aten::{call.name}", call.card.device.type))
    composite = check is None or check.kind in (CheckClass.EXPLICIT, CheckClass.IMPLICIT)
    if composite and torch._C._dispatch_has_kernel_for_dispatch_key(call.func.name(), "CompositeExplicitAutograd"):
        with call.mode:  # the leaf operators inside raise, in their own words
            key = torch._C.DispatchKey.CompositeExplicitAutograd
            return Finished(call.func._op_dk(key, *call.args, **call.kwargs))
    return _as_iterator(call)


def _exact(call: MixedCall, arguments: tuple[str, ...], method: str) -> Card | None:
    """Every checked tensor on the first one's device; zero-dim CPU tensors are not excused."""
    by_name: dict[str, list[torch.Tensor]] = {}
    for name, tensor in call.tensors:
        by_name.setdefault(name, []).append(tensor)
    common: torch.device | None = None
    for name in arguments:
        for tensor in by_name.get(name, ()):
            if call.is_wild(tensor):
                continue
            device = call.device(tensor)
            if common is None:
                common = device
            elif device != common:
                call.fail_exactly(name, device, common, method)
    return call.card


def _as_iterator(call: MixedCall) -> Card:
    """TensorIterator: at most one zero-dim CPU input beside the card's tensors, and no CPU output."""
    from devlint.runtime.simulator.mode import written_tensors

    outputs = {id(tensor) for tensor in written_tensors(call.func, call.args, call.kwargs)}
    scalars = 0
    for _, tensor in call.tensors:
        place = call.place(tensor)
        if place is call.card:
            continue
        excused = place is None and tensor.dim() == 0 and id(tensor) not in outputs
        if not excused or call.name in _NO_CPU_SCALAR:
            call.fail_as_iterator(call.card.device, call.device(tensor))
        scalars += 1
        if scalars > 1:
            call.fail(messages.TOO_MANY_SCALARS)
    return call.card


def _named_tensors(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[tuple[str, torch.Tensor]]:
    """Tensors with the schema name of their argument; those of a list share its name."""
    names = [argument.name for argument in func._schema.arguments]
    for name, value in (*zip(names, args, strict=False), *kwargs.items()):
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, _Tensor):
                yield name, item


def _address(tensor: torch.Tensor) -> int:
    return tensor.data_ptr() if has_storage(tensor) else 0
