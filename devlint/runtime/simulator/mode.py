"""The dispatch mode: every operator passes here and leaves with its result marked.

The short path serves the common operator, whose tensors are all on one card or all on the host; it
is written for speed, since it runs once per kernel.  Everything else takes `_carefully`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

import torch
from torch._ops import HigherOrderOperator
from torch.utils._python_dispatch import TorchDispatchMode

from devlint.runtime.simulator import messages, mixing, unwritten
from devlint.runtime.simulator.cards import Card, Lease
from devlint.runtime.simulator.generators import check_generator
from devlint.runtime.simulator.marks import WILD, Mark, card_of, has_storage, mark_of, set_mark, storage_of
from devlint.runtime.simulator.opfacts import OpPlan, kernel_in_python
from devlint.runtime.simulator.simulation import Simulation
from devlint.runtime.simulator.subclasses import by_class, faking, run_on_fakes, tracing_modes
from devlint.runtime.simulator.transfer import copy_to_place

_Tensor = torch.Tensor
_Parameter = torch.nn.Parameter
_NO_KEYWORDS: Final[dict[str, Any]] = {}
_CPU = torch.device("cpu")


# In the short path: no tensor was met yet; the long path is needed.
_UNSEEN: Final = object()
_CAREFUL: Final = object()
_NUMBERS: Final = frozenset({int, float, bool, complex})
_PLAIN: Final = frozenset({int, float, bool, type(None), torch.dtype})


class SimulatedDevice(TorchDispatchMode):  # type: ignore[misc]
    """Propagates marks, applies the mixing rules, keeps the queues.  One instance per thread."""

    # torch.cond, flex_attention and other operators that take functions come here as well.
    supports_higher_order_operators = True

    def __init__(self, simulation: Simulation) -> None:
        super().__init__()
        self._simulation = simulation
        recorder = simulation.recorder
        self._user_code = recorder.user_code
        self._other_code = recorder.other_code
        self._is_user = recorder.is_user
        self._kernels = recorder.kernels if recorder.kernel_lines else None

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # Otherwise torch wraps each call of this mode for its compiler, at a cost per operator.
        return False

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if self._simulation.unwritten and not isinstance(func, HigherOrderOperator):
            return self._with_unwritten_memory(func, types, args, kwargs)
        return self._operator(func, types, args, kwargs)

    def _with_unwritten_memory(
        self, func: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any] | None
    ) -> Any:
        plan = _plans.get(id(func))
        if plan is None:
            plan = _plans[id(func)] = OpPlan(func)
        if plan.composite or types:  # the operators inside come by themselves
            return self._operator(func, types, args, kwargs)
        mark = unwritten.look(self._simulation, plan, args, kwargs or _NO_KEYWORDS)
        result = self._operator(func, types, args, kwargs)
        if mark is not None:
            unwritten.take_over(result, mark)
        return result

    def _operator(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        if (types and by_class(types)) or faking():
            return self._by_its_class(func, args, kwargs or _NO_KEYWORDS)
        plan = _plans.get(id(func))
        if plan is None:
            if isinstance(func, HigherOrderOperator):
                return self._higher_order(func, args, kwargs or _NO_KEYWORDS)
            plan = _plans[id(func)] = OpPlan(func)
        if not plan.short or (kwargs and "device" in kwargs):
            return self._carefully(func, plan, args, kwargs or _NO_KEYWORDS)
        place: Any = _UNSEEN
        try:
            if plan.first_only:
                place = storage_of(args[0])._devlint_mark
                if place is WILD:
                    place = _CAREFUL
            else:
                for value in args:
                    kind = value.__class__
                    if kind is _Tensor or kind is _Parameter:
                        mark = storage_of(value)._devlint_mark
                        if mark is not place:
                            if place is not _UNSEEN or mark is WILD:
                                place = _CAREFUL
                                break
                            place = mark
                    elif kind is list or kind is tuple:
                        for item in value:
                            if isinstance(item, _Tensor):
                                mark = storage_of(item)._devlint_mark
                                if mark is not place:
                                    if place is not _UNSEEN or mark is WILD:
                                        place = _CAREFUL
                                        break
                                    place = mark
                        if place is _CAREFUL:
                            break
                    elif kind not in _PLAIN and isinstance(value, _Tensor):
                        place = _CAREFUL
                        break
        # A tensor without storage, or by keyword; a number for a tensor, as TorchScript has it.
        except (NotImplementedError, RuntimeError, IndexError, TypeError):
            place = _CAREFUL
        if place is None:
            if self._simulation.copies_in_flight:
                self._check_copies(plan, args)
            return plan.call(*args, **kwargs) if kwargs else plan.call(*args)
        if place is _UNSEEN and not plan.tensors:
            return plan.call(*args, **kwargs) if kwargs else plan.call(*args)
        if place is _UNSEEN or place is _CAREFUL or not plan.ordinary or (plan.half_in_single and _has_half(args)):
            return self._carefully(func, plan, args, kwargs or _NO_KEYWORDS)
        if plan.launches:
            place.queued += 1
            if self._kernels is not None:
                self._count_line(sys._getframe(1))
        result = plan.call(*args, **kwargs) if kwargs else plan.call(*args)
        if result.__class__ is _Tensor:
            try:
                storage: Any = storage_of(result)
            except (NotImplementedError, RuntimeError):
                return self._marked(result, place)
            if storage._devlint_mark is None:
                storage._devlint_mark = place
                storage._devlint_lease = Lease(place, storage.nbytes())
            return result
        return self._marked(result, place)

    def _count_line(self, frame: Any) -> None:
        """Count a kernel for the nearest user frame, as (code, instruction); lines are worked out when read."""
        other = self._other_code
        while frame is not None:
            code = frame.f_code
            identity = id(code)
            if identity not in other and (identity in self._user_code or self._is_user(code)):
                key = (identity, frame.f_lasti)
                kernels: Any = self._kernels
                kernels[key] = kernels.get(key, 0) + 1
                return
            frame = frame.f_back

    # ------------------------------------------------------------------ who else takes operators

    def _by_its_class(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A tensor's class takes the operator, with this mode on for those it calls; fake tensors have a mode."""
        if isinstance(func, HigherOrderOperator):
            return self._higher_order(func, args, kwargs)
        if not faking():
            return NotImplemented
        simulation = self._simulation
        return run_on_fakes(simulation.kind, simulation.thread.target, func, args, kwargs)

    def _higher_order(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run its plain implementation, whose operators come here; a mode that traces gets it whole."""
        implementation = func.py_kernels.get(torch._C.DispatchKey.CompositeExplicitAutograd)
        if implementation is None or tracing_modes():
            return func(*args, **kwargs)
        with self:
            return implementation(*args, **kwargs)

    # ------------------------------------------------------------------ the long path

    def _carefully(self, func: Any, plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if plan.composite and not any(tensor.is_nested for tensor in tensors_in(args)):
            with self:
                return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        simulation = self._simulation
        if plan.custom:
            kernel = self._kernel_in_python(plan, args, kwargs)
            if kernel is not None:
                with self:
                    return func._op_dk(kernel, *args, **kwargs)
        if any(position < len(args) and args[position].__class__ in _NUMBERS for position in plan.tensors):
            # TorchScript's own numbers come without their tensors.
            args = tuple(
                _as_tensor(value) if position in plan.tensors and value.__class__ in _NUMBERS else value
                for position, value in enumerate(args)
            )
        marks = [mark_of(tensor) for tensor in tensors_in((args, tuple(kwargs.values())))]
        wild = any(mark is WILD for mark in marks)
        places = [mark for mark in marks if mark is not WILD]
        place: Any = places[0] if places else _UNSEEN
        mixed = any(other is not place for other in places)

        device = kwargs.get("device")
        if device is not None and device.type == "meta":  # a shape without memory is on no card
            return plan.call(*args, **kwargs)
        if device is not None:
            target = simulation.thread.target
            if device.type == simulation.kind:  # asked for by name, by code that bypasses the patches
                wanted = simulation.place(device)
                kwargs = {**kwargs, "device": _CPU}
                if plan.name == "_to_copy":
                    return self._to_copy(plan, args, kwargs, wanted)
                place, mixed = wanted, False
            elif target is not None and plan.name == "_to_copy":  # by a tensor's class, on the tensors inside
                return self._to_copy(plan, args, kwargs, target[0])
            elif target is not None:
                place, mixed = target[0], False
            elif place is _UNSEEN:  # a factory called by C++, which sees only the CPU
                if plan.random:
                    check_generator(simulation, args, kwargs, None)
                result = plan.call(*args, **kwargs)
                _mark_new(result, WILD)
                return result
            # Otherwise C++ passed on `self.options()`: the result stays with the inputs.

        if mixed:
            outcome = mixing.resolve(simulation, self, func, plan, args, kwargs)
            if isinstance(outcome, mixing.Finished):
                return outcome.result
            place = outcome
        if plan.random:
            check_generator(simulation, args, kwargs, place if isinstance(place, Card) else None)
        if place is _UNSEEN:
            result = plan.call(*args, **kwargs)
            if wild:
                _mark_new(result, WILD)
            return result
        if place is None:
            return self._on_host(func, plan, args, kwargs, wild)
        return self._on_card(plan, args, kwargs, place, mixed, wild)

    def _kernel_in_python(self, plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The dispatch key of the Python kernel that the card, or the host, would run; None if it is not in Python."""
        tensors = tensors_in((args, tuple(kwargs.values())))
        card = next((found for tensor in tensors if (found := card_of(tensor)) is not None), None)
        return kernel_in_python(plan.func, "CPU" if card is None else card.kind.upper())

    def _on_host(self, func: Any, plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any], wild: bool) -> Any:
        if self._simulation.copies_in_flight:
            self._check_copies(plan, args)
        # Memory that a host operator writes, together with real host tensors, is host memory.
        if wild and any(mark_of(tensor) is None and tensor.dim() for tensor in tensors_in(args)):
            for tensor in written_tensors(func, args, kwargs):
                if mark_of(tensor) is WILD:
                    set_mark(tensor, None)
        return plan.call(*args, **kwargs)

    def _on_card(
        self, plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any], place: Card, mixed: bool, wild: bool
    ) -> Any:
        simulation = self._simulation
        if plan.launches or plan.sync is not None:
            simulation.check_launch()
        if plan.name == "_pack_padded_sequence" and card_of(args[1]) is not None:
            simulation.fault(RuntimeError, messages.packed_lengths(args[1], simulation.device_of(args[1])))
        if wild:
            for tensor in tensors_in((args, tuple(kwargs.values()))):
                if mark_of(tensor) is WILD:
                    set_mark(tensor, place)
        if plan.sync is not None:
            size = args[0].element_size() if plan.name == "_local_scalar_dense" else 0
            simulation.wait(plan.sync, place, size)
        elif plan.indexing and _waits_for_mask(plan.name, args):
            simulation.wait("boolean mask", place)
        if plan.launches:
            place.queued += 1
            if self._kernels is not None:
                self._count_line(sys._getframe(2))
        if plan.half_in_single and _has_half(args):
            result = _in_single_precision(plan, args, kwargs)
        else:
            result = plan.call(*args, **kwargs)
        if plan.name == "_pack_padded_sequence":  # the batch sizes stay on the host by contract
            set_mark(result[0], place)
            return result
        inputs = list(tensors_in((args, tuple(kwargs.values())))) if mixed else []
        for tensor in tensors_in((result,)):
            if mark_of(tensor) is None and not shares_memory(tensor, inputs):
                set_mark(tensor, place)
        return result

    def _marked(self, result: Any, place: Card) -> Any:
        if result.__class__ is tuple or result.__class__ is list:
            for item in result:
                if item.__class__ is _Tensor and has_storage(item):
                    storage: Any = storage_of(item)
                    if storage._devlint_mark is None:
                        storage._devlint_mark = place
                        storage._devlint_lease = Lease(place, storage.nbytes())
                elif item is not None:
                    self._mark_each((item,), place)
        elif result is not None:
            self._mark_each((result,), place)
        return result

    def _mark_each(self, values: Any, place: Card) -> None:
        for tensor in tensors_in(values):
            if mark_of(tensor) is None:
                set_mark(tensor, place)

    def _to_copy(self, plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any], wanted: Any) -> Any:
        source = args[0]
        if mark_of(source) is wanted:
            result = plan.call(*args, **kwargs)
            set_mark(result, wanted)
            return result
        return copy_to_place(
            self._simulation,
            source,
            wanted,
            kwargs.get("dtype"),
            kwargs.get("non_blocking", False),
            kwargs.get("memory_format"),
            "to",
        )

    def _check_copies(self, plan: OpPlan, args: tuple[Any, ...]) -> None:
        if plan.launches or plan.sync:
            for tensor in tensors_in(args):
                self._simulation.check_copy_finished(tensor, plan.sync or plan.name)


# Operator facts do not depend on the simulation.  Keyed by id, since hashing an operator calls Python;
# the plan keeps its operator alive.
_plans: dict[int, OpPlan] = {}


def _as_tensor(number: Any) -> torch.Tensor:
    kind = torch.tensor(number, device=_CPU).dtype
    made: torch.Tensor = torch._C._VariableFunctions.scalar_tensor(number, dtype=kind)
    set_mark(made, WILD)
    return made


def only_carefully() -> None:
    """Let every operator of this process take the long path from now on."""
    OpPlan.short_path = False
    for plan in _plans.values():
        plan.short = False


def tensors_in(values: Any) -> Iterator[torch.Tensor]:
    """The tensors in nested lists and tuples of arguments, in order."""
    for value in values:
        if isinstance(value, _Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors_in(value)


def written_tensors(func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterator[torch.Tensor]:
    """The tensors an operator writes: in-place self and ``out=``."""
    for index, argument in enumerate(func._schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            value = args[index] if index < len(args) else kwargs.get(argument.name)
            if isinstance(value, _Tensor):
                yield value


def shares_memory(tensor: torch.Tensor, others: list[torch.Tensor]) -> bool:
    """Whether the tensor is a view of one of the others, or the same."""
    if not has_storage(tensor):
        return False
    storage = storage_of(tensor)
    return any(has_storage(other) and storage_of(other) is storage for other in others)


def _mark_new(result: Any, mark: Mark) -> None:
    for tensor in tensors_in((result,)):
        if mark_of(tensor) is None:
            set_mark(tensor, mark)


def _waits_for_mask(name: str, args: tuple[Any, ...]) -> bool:
    if not any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1]):
        return False
    if "put" not in name:
        return True
    # One host value under a mask becomes masked_fill, which waits for nothing.
    value, accumulate = args[2], len(args) > 3 and args[3]
    return bool(accumulate or value.numel() != 1 or card_of(value) is not None)


def _has_half(args: tuple[Any, ...]) -> bool:
    for value in args:
        if isinstance(value, _Tensor):
            return value.dtype is torch.float16
    return False


def _in_single_precision(plan: OpPlan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A half-precision product computed in single precision and rounded once, as tensor cores do.

    The CPU's own half-precision kernels are tens of times slower.
    """

    def widen(value: Any) -> Any:
        if isinstance(value, _Tensor):
            return value.float() if value.dtype is torch.float16 else value
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], _Tensor):
            return [widen(item) for item in value]
        return value

    def narrow(value: Any) -> Any:
        return value.half() if isinstance(value, _Tensor) and value.dtype is torch.float32 else value

    result = plan.call(*map(widen, args), **{name: widen(value) for name, value in kwargs.items()})
    return tuple(map(narrow, result)) if isinstance(result, (tuple, list)) else narrow(result)
