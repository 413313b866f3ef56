"""Repeats what a test suite calls on copies that were moved to the card, and keeps what fails there.

Most suites never put anything on a card. Here each outermost call of a module, and of a public function or method of
one package, is carried out as ever; then it is repeated on copies of its object and arguments that were made before the
call and moved to the simulated card, with the same random numbers. The caller gets the first result and sees nothing
of the second.
"""

from __future__ import annotations

import contextlib
import enum
import inspect
import io
import itertools
import os
import random
import re
import sys
import threading
import time
import unittest.mock
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from types import CodeType, FunctionType, ModuleType, TracebackType
from typing import Any, Final

import torch
from torch.utils._device import DeviceContext

from devlint.runtime.blame import Blame, Place, blame, frames_of, where_mixed
from devlint.runtime.findings import Finding, device_error
from devlint.runtime.recorder import Event
from devlint.runtime.shadows.moving import Mover, NotPossible, copies, is_record
from devlint.runtime.shadows.wrapping import Wrapper, files_of_tests, original_of
from devlint.runtime.simulator.errors import CannotSimulate
from devlint.runtime.simulator.marks import card_of
from devlint.runtime.simulator.simulation import Simulation
from devlint.runtime.simulator.subclasses import tracing_modes
from devlint.runtime.verdict import is_device_fault
from devlint.runtime.watch import Watch, chain

_MOST_EACH: Final = 3  # repeats of one callable with arguments of the same kinds
_MOST_PLACES: Final = 500
_MOST_NAMES: Final = 8
_MOST_PARTS: Final = 16
_CALLED_BY_TORCH: Final = (
    (torch.nn.Module, "__call__"),
    (torch.distributions.Transform, "__call__"),
    (torch.distributions.Transform, "_inv_call"),
)
# What each of them calls in turn, of the class of the package.
_CALLS_IN_TURN: Final = {
    torch.nn.Module.__call__: "forward",
    torch.distributions.Transform.__call__: "_call",
    torch.distributions.Transform._inv_call: "_inverse",
}
_MODULE_NAMES: Final = frozenset(dir(torch.nn.Module))
_NEVER_WRAPPED: Final = (type, torch.Tensor, torch.autograd.Function, BaseException, enum.Enum)
_clock: Final = time.perf_counter  # the real one: a simulation puts another in its place
_torch_folder: Final = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_own_folder: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep


@dataclass(slots=True)
class Shadowed:
    """One place that fails on the card. what: ``call``, ``result`` or ``backward``. tests: the first few, by node id."""

    finding: Finding
    what: str
    callables: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    count: int = 0

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two of them one."""
        return self.finding.file, self.finding.line, self.what if self.what == "result" else self.finding.code

    def add(self, callables: list[str], tests: list[str], count: int) -> None:
        """The same place again."""
        self.callables += [name for name in callables if name not in self.callables][:_MOST_NAMES]
        self.tests += [name for name in tests if name not in self.tests][:_MOST_NAMES]
        self.count += count


@dataclass(slots=True)
class Tally:
    """What was seen: plain numbers, which processes add up.

    calls: outermost calls that take tensors; on_card: those that were on the card by themselves; repeated; left_out: of
    kinds that were repeated often enough. not_possible, other: what could not be copied or moved, and errors of repeats
    that are not about devices, with how often.
    """

    calls: int = 0
    on_card: int = 0
    repeated: int = 0
    left_out: int = 0
    callables: set[str] = field(default_factory=set)
    not_possible: Counter[str] = field(default_factory=Counter)
    other: Counter[str] = field(default_factory=Counter)
    places: dict[tuple[Any, ...], Shadowed] = field(default_factory=dict)

    def note(self, found: Shadowed) -> None:
        """Keep a failing place, with those of the same place."""
        known = self.places.get(found.key)
        if known is not None:
            known.add(found.callables, found.tests, found.count)
        elif len(self.places) < _MOST_PLACES:
            self.places[found.key] = found

    def as_row(self) -> dict[str, Any]:
        """For another process."""
        numbers = {name: getattr(self, name) for name in ("calls", "on_card", "repeated", "left_out")}
        return {
            **numbers,
            "callables": sorted(self.callables),
            "not_possible": dict(self.not_possible),
            "other": dict(self.other),
            "places": [asdict(place) for place in self.places.values()],
        }

    def add(self, row: dict[str, Any]) -> None:
        """Add what another process has seen."""
        for name in ("calls", "on_card", "repeated", "left_out"):
            setattr(self, name, getattr(self, name) + row[name])
        self.callables.update(row["callables"])
        self.not_possible.update(row["not_possible"])
        self.other.update(row["other"])
        for place in row["places"]:
            finding = Finding.of_fields(place["finding"])
            self.note(Shadowed(**{**place, "finding": finding}))


@dataclass(frozen=True, slots=True)
class _Prepared:
    """Copies of a call's arguments, made before it, and the random numbers it began with.

    what: is called. kind: what similar calls have in common.
    """

    args: Any
    kwargs: Any
    states: Any
    what: Any
    kind: Any


class _Thread(threading.local):
    """depth: of calls that are seen. within: the objects whose failing call is under way. kind: of the call looked at."""

    depth = 0
    kind: Any = None

    def __init__(self) -> None:
        self.within: list[Any] = []


class Shadow:
    """Watches calls and repeats them.

    package: whose functions and methods count, and whose modules alone; empty: the modules of every library but torch.
    repeating: False only counts. test: node id of the running test; empty outside tests, when nothing is repeated.
    """

    def __init__(self, package: str = "", *, repeating: bool = True) -> None:
        self.package = package
        self.repeating = repeating
        self.tally = Tally()
        self.test = ""
        # What pytest's `monkeypatch` of the running test and `unittest.mock` put in place would see repeats.
        self.patches: Any = None
        self._mocking: set[int] = set()
        self._tests: frozenset[str] = frozenset()  # the files of the suite, which are none of the package's
        self.fresh: list[Shadowed] = []  # of the running test
        self._thread = _Thread()
        self._seen: Counter[Any] = Counter()
        # What failed on the card: its repeat ends there, so that what it calls is repeated by itself from then on.
        self._failed_there: set[Any] = set()
        self._fine_there: set[Any] = set()  # kinds of calls whose repeat went through
        # The first call of a kind is always repeated; more of them if all repeats with this one, which will take as long
        # as the one before, take no longer than the suite's own calls.
        self._own_seconds = self._spent_seconds = 0.0
        self._seconds_of_kinds: dict[Any, float] = {}
        self._simulation: Simulation | None = None
        self._watch: Watch | None = None

    # ------------------------------------------------------------------ what is watched

    @contextlib.contextmanager
    def watching(self, simulation: Simulation, watch: Watch) -> Iterator[None]:
        """Inside, calls are seen."""
        self._simulation, self._watch = simulation, watch
        with contextlib.ExitStack() as stack:
            stack.enter_context(self._calls_of_objects())
            if self.package and self.repeating:
                wrapper = Wrapper(self.package, self._around, _left_out)
                stack.enter_context(wrapper.watching())
                stack.enter_context(_scripts_see_originals())
            if self.repeating:
                stack.enter_context(_noting_mocks(self._mocking))
            yield
        self._simulation = self._watch = None

    @contextlib.contextmanager
    def _calls_of_objects(self) -> Iterator[None]:
        """Modules, and transforms of distributions, are called through methods of torch."""
        with contextlib.ExitStack() as stack:
            for owner, name in _CALLED_BY_TORCH:
                plain: Any = getattr(owner, name)
                setattr(owner, name, self._watched(plain))
                stack.callback(setattr, owner, name, plain)
            yield

    def _watched(self, plain: Any) -> Any:
        thread = self._thread

        def __call__(called: Any, *args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if thread.depth or not self._is_of_package(type(called).__module__):
                return plain(called, *args, **kwargs)
            return self.call(plain, (called, *args), kwargs)

        return __call__

    def _around(self, function: FunctionType) -> Any:
        thread = self._thread

        def called(*args: Any, **kwargs: Any) -> Any:
            __tracebackhide__ = True
            if thread.depth:
                return function(*args, **kwargs)
            return self.call(function, args, kwargs)

        return called

    def _is_of_package(self, module: str) -> bool:
        if self.package:
            return module == self.package or module.startswith(self.package + ".")
        return not module.startswith(("torch.", "devlint."))

    # ------------------------------------------------------------------ one call

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Carry a call out as ever, and repeat it on the card afterwards."""
        __tracebackhide__ = True
        thread = self._thread
        if args and any(args[0] is each for each in thread.within):
            return function(*args, **kwargs)  # a part of a call that may have moved the object's attributes by itself
        doubtful = _called(function, args) in self._failed_there
        thread.depth += 1
        thread.kind = None
        began = _clock()
        try:
            prepared = self._prepared(function, args, kwargs) if self.test else None
            kind = thread.kind
            if doubtful and prepared is not None:  # first, to know whether what it calls is to be looked at
                self._repeat(function, prepared)
                self._spend(_clock() - began, prepared)
                prepared = None
            inside = doubtful and kind not in self._fine_there
            before = _clock()
            with self._looking_inside(args) if inside else contextlib.nullcontext():
                result = function(*args, **kwargs)
            after = _clock()
            self._own_seconds += 0 if inside else after - before
            if prepared is not None:
                self._repeat(function, prepared)
                self._spend(_clock() - after + before - began, prepared)
            return result
        finally:
            thread.depth -= 1

    def _spend(self, seconds: float, prepared: _Prepared) -> None:
        self._spent_seconds += seconds
        self._seconds_of_kinds[prepared.kind] = seconds

    @contextlib.contextmanager
    def _looking_inside(self, args: tuple[Any, ...]) -> Iterator[None]:
        """Inside, calls are seen as if the test had made them, but for other calls of the same object."""
        thread = self._thread
        thread.depth -= 1
        thread.within.append(args[0] if args and not isinstance(args[0], torch.Tensor) else thread)
        try:
            yield
        finally:
            thread.within.pop()
            thread.depth += 1

    def _prepared(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Prepared | None:
        """Copies for a repeat; None if there is nothing to repeat, or not again."""
        if _within_a_trace() or _within_construction(sys._getframe(2)):  # objects may be half made
            return None
        tensors = list(_tensors_of((args, kwargs)))
        if not tensors:
            return None
        self.tally.calls += 1
        if any(card_of(tensor) is not None or tensor.is_meta for tensor in tensors):
            self.tally.on_card += 1
            return None
        if not self.repeating:
            return None
        key = (function, _kinds((args, kwargs), 0), torch.is_grad_enabled(), torch.is_inference_mode_enabled())
        self._thread.kind = key
        seen = self._seen[key]
        expected = self._spent_seconds + self._seconds_of_kinds.get(key, 0.0)
        if seen >= _MOST_EACH or (seen and expected > self._own_seconds):
            self.tally.left_out += 1
            return None
        if self._mocking or getattr(self.patches, "_setattr", None) or getattr(self.patches, "_setitem", None):
            self.tally.not_possible["in a test that has patched something"] += 1
            return None
        self._seen[key] += 1
        states = _random_states()
        try:
            with _quiet(), self._unrecorded():
                copied_args, copied_kwargs = copies((args, kwargs), self.package)
        except NotPossible as error:
            self.tally.not_possible[f"not copied: {error}"] += 1
            return None
        finally:
            _set_random_states(states)
        return _Prepared(copied_args, copied_kwargs, states, _called(function, args), key)

    def _repeat(self, function: Any, prepared: _Prepared) -> None:
        after = _random_states()
        _set_random_states(prepared.states)
        try:
            with _quiet(), self._unrecorded():
                self._repeat_on_card(function, prepared)
        finally:
            _set_random_states(after)

    def _repeat_on_card(self, function: Any, prepared: _Prepared) -> None:
        assert self._simulation is not None
        name = _name_of(function, prepared.args)
        mover = Mover(self._simulation.cards[0].device, self.package)
        try:
            args = tuple(mover.move(value, place) for place, value in _with_names(function, prepared.args))
            kwargs = {key: mover.move(value, key) for key, value in prepared.kwargs.items()}
        except NotPossible as error:
            self.tally.not_possible[f"not moved: {error}"] += 1
            return
        except Exception as error:  # a `to` of the package's own
            self.tally.not_possible[f"not moved: {type(error).__name__} in {name}"] += 1
            return
        if not mover.moved:
            return
        self.tally.repeated += 1
        self.tally.callables.add(name)
        what = "call"
        try:
            result = function(*args, **self._with_device(function, args, kwargs))
            outputs = [value for value in _results_of(result) if not isinstance(value, torch.nn.Parameter)]
            self._look_at_results(function, name, prepared, outputs)
            what = "backward"
            _go_back(outputs)
            self._fine_there.add(prepared.kind)
        except Exception as error:
            self._failed(error, name, what, prepared.what)

    def _with_device(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """A parameter `device` that is left at the host or the default is for the caller to say, who is on the card."""
        code = _code_of(function, args)
        names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        if "device" not in names or "device" in kwargs or names.index("device") < min(len(args), code.co_argcount):
            return kwargs
        default = _default_of(function, args, "device")
        if default not in (None, "cpu", torch.device("cpu")):
            return kwargs
        assert self._simulation is not None
        return {**kwargs, "device": self._simulation.cards[0].device}

    def _look_at_results(self, function: Any, name: str, prepared: _Prepared, outputs: list[torch.Tensor]) -> None:
        left = [value for value in outputs if value.device.type == "cpu"]
        if not left:
            return
        code = _code_of(function, prepared.args)
        shape = f"{str(left[0].dtype).removeprefix('torch.')}{list(left[0].shape)}"
        message = f"{name} returned {shape} on the CPU, but its inputs are on the GPU"
        finding = Finding("DEV102", "error", message, code.co_filename, code.co_firstlineno)
        self._note(finding, "result", name)

    def _failed(self, error: Exception, name: str, what: str, called: Any) -> None:
        if any(isinstance(each, CannotSimulate) for each in chain(error)):
            self.tally.other[str(error)] += 1
            return
        device_errors = [each for each in chain(error) if self._is_about_devices(each)]
        self._tests = files_of_tests()
        if any(self._is_of_tests(each) for each in device_errors):
            self.tally.other[f"{name}: in a function of the test"] += 1
            return
        if not device_errors:
            text = (str(error).strip().splitlines() or [""])[0][:100]
            self.tally.other[f"{name}: {type(error).__name__}: {text}"] += 1
            return
        self._failed_there.add(called)
        self._note(self._finding(device_errors[0], error, what), what, name)

    def _is_about_devices(self, error: BaseException) -> bool:
        """A device error of torch, or the package's own that names both the host and the card."""
        text = str(error)
        if hasattr(error, "devlint_operands") or is_device_fault(type(error).__name__, text):
            return True
        assert self._simulation is not None
        return all(re.search(rf"\b{name}\b", text) for name in ("cpu", self._simulation.kind))

    def _is_of_tests(self, error: BaseException) -> bool:
        """Whether an error is due to code of the suite, and not to tensors on two devices that this code was given."""
        places = [place for place in frames_of(_inside(error.__traceback__)) if not _is_library(place[0].f_code)]
        if not places or places[0][0].f_code.co_filename not in self._tests:
            return False
        frame = places[0][0]
        given = frame.f_code.co_varnames[: frame.f_code.co_argcount]
        found = [tensor.device.type for tensor in _tensors_of([frame.f_locals.get(name) for name in given])]
        return len(set(found)) < 2

    def _finding(self, cause: BaseException, error: BaseException, what: str) -> Finding:
        places: Sequence[Place] = frames_of(_inside(cause.__traceback__ or error.__traceback__))
        found = Blame()
        with contextlib.suppress(Exception):
            if places and self._is_own(places[0][0].f_code) and not hasattr(cause, "devlint_operands"):
                places = where_mixed(places, self._is_own)
            found = blame(places, getattr(cause, "devlint_operands", ()), self._is_own)
        file, line = next(((f.f_code.co_filename, at) for f, at in places if self._is_own(f.f_code)), (None, 0))
        text = str(cause) if what == "call" else f"{cause} (in the backward pass)"
        return device_error(text, found, Event("fault", text, file, line))

    def _is_own(self, code: CodeType) -> bool:
        """Whether code is of the package under test; without one, of anything but torch, devlint and Python."""
        file = os.path.abspath(code.co_filename)
        if self.package:
            return file.startswith(self._folders()) and file not in self._tests
        assert self._watch is not None
        return not _is_library(code) and ("site-packages" in file or self._watch.recorder.is_user_file(file))

    def _folders(self) -> tuple[str, ...]:
        module = sys.modules.get(self.package)
        paths = list(getattr(module, "__path__", None) or [])
        file = getattr(module, "__file__", None)
        return tuple(os.path.abspath(path) + os.sep for path in paths) or ((file,) if file else ())

    def _note(self, finding: Finding, what: str, name: str) -> None:
        found = Shadowed(finding, what, [name], [self.test], 1)
        if found.key not in {each.key for each in self.fresh}:
            self.fresh.append(found)
        self.tally.note(found)

    @contextlib.contextmanager
    def _unrecorded(self) -> Iterator[None]:
        """What a repeat does is no event of the suite."""
        assert self._simulation is not None and self._watch is not None
        cards = [(card, card.queued, card.done, card.leases) for card in self._simulation.cards]
        self._watch.muted = True
        try:
            with self._simulation.recorder.paused():
                yield
        finally:
            self._watch.muted = False
            for card, queued, done, leases in cards:
                card.queued, card.done, card.leases = queued, done, leases


# ---------------------------------------------------------------------------------------------- looking at a call


def _left_out(owner: type, name: str | None) -> bool:
    """Classes, or methods of them, that are called by torch, by Python or through something that is watched already."""
    if name is None:
        tests = getattr(sys.modules.get("unittest"), "TestCase", ())
        return issubclass(owner, (*_NEVER_WRAPPED, tests)) or getattr(owner, "_is_protocol", False)
    if issubclass(owner, torch.optim.Optimizer):
        return name != "step"
    return issubclass(owner, torch.nn.Module) and name in _MODULE_NAMES


def _tensors_of(values: Any, depth: int = 0) -> Iterator[torch.Tensor]:
    """Tensors in arguments or results, with those that modules and optimizers hold."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, torch.nn.Module):
        for part in _parts(values):
            for group in ("_parameters", "_buffers"):
                yield from (tensor for tensor in vars(part).get(group, {}).values() if tensor is not None)
    elif isinstance(values, (list, tuple, set, frozenset)):
        for value in values:
            yield from _tensors_of(value, depth)
    elif isinstance(values, dict):
        yield from _tensors_of(list(values.values()), depth)
    elif isinstance(values, torch.optim.Optimizer):
        for group in getattr(values, "param_groups", ()):  # one around another may have none
            yield from group["params"]
    elif depth < 2 and hasattr(values, "__dict__") and not isinstance(values, (type, FunctionType)):
        yield from _tensors_of(list(vars(values).values()), depth + 1)


def _results_of(values: Any) -> Iterator[torch.Tensor]:
    """Tensors that a call hands out: also in containers, records and distributions, but not inside other objects."""
    if isinstance(values, torch.Tensor):
        yield values
    elif isinstance(values, (list, tuple, set, frozenset)):
        for value in values:
            yield from _results_of(value)
    elif isinstance(values, dict):
        yield from _results_of(list(values.values()))
    elif is_record(values):
        yield from _results_of(list(vars(values).values()))


def _called(function: Any, args: tuple[Any, ...]) -> Any:
    """What a call is a call of: a function, or a method of a module's class."""
    return (type(args[0]), _in_turn(function)) if _in_turn(function) else function


def _parts(module: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """A module and those in it, by identity: a class of the package may have an `__eq__` and a `__hash__` of its own."""
    waiting, known = [module], {id(module)}
    while waiting:
        part = waiting.pop()
        yield part
        inner = [each for each in vars(part).get("_modules", {}).values() if each is not None and id(each) not in known]
        known.update(map(id, inner))
        waiting += inner[::-1]


def _kinds(value: Any, depth: int) -> Any:
    """Kinds, ranks, types and mode of arguments: what two calls have in common that do the same."""
    if isinstance(value, torch.Tensor):
        return type(value), value.dtype, _rank(value), value.requires_grad, value.layout
    if isinstance(value, (bool, str, torch.dtype, type(None), type)):
        return value
    if isinstance(value, (list, tuple)):
        return type(value), *(_kinds(item, depth) for item in value[:8])
    if isinstance(value, dict):
        return tuple((_key_kind(key), _kinds(item, depth)) for key, item in list(value.items())[:16])
    if isinstance(value, torch.nn.Module):
        return tuple((type(part), *_settings(part)) for part in itertools.islice(_parts(value), _MOST_PARTS))
    if depth < 2 and hasattr(value, "__dict__") and not isinstance(value, (FunctionType, ModuleType)):
        return type(value), *((key, _kinds(item, depth + 1)) for key, item in list(vars(value).items())[:16])
    return type(value)


def _key_kind(key: Any) -> Any:
    """The key of a dict as a part of a kind; an optimizer's state has parameters for keys, and their values say nothing."""
    return _kinds(key, 2) if isinstance(key, torch.Tensor) else str(key)


def _rank(tensor: torch.Tensor) -> int | None:
    """How many dimensions a tensor has; None for a parameter of a lazy module, which has no elements yet."""
    return None if torch.nn.parameter.is_lazy(tensor) else tensor.dim()


def _settings(part: torch.nn.Module) -> Iterator[Any]:
    """The attributes of a module that choose what it does: switches, names, functions, and which tensors there are."""
    for key, item in vars(part).items():
        if isinstance(item, (bool, str, type(None))):
            yield key, item
        elif isinstance(item, FunctionType):
            yield key, item.__module__, item.__qualname__
        elif isinstance(item, torch.Tensor):
            yield key, _rank(item)
        elif key in ("_parameters", "_buffers"):
            yield tuple(name for name, tensor in item.items() if tensor is not None)


def _within_a_trace() -> bool:
    """Whether values are not there to be copied: a trace, a transform of functions, fake tensors."""
    return bool(
        torch._C._get_tracing_state() is not None
        or torch._C._functorch.peek_interpreter_stack() is not None
        or tracing_modes()
        or not all(map(_is_host_by_default, _function_modes()))
    )


def _function_modes() -> Iterator[Any]:
    """The modes that see every function of torch, such as a default device."""
    for level in range(torch._C._len_torch_function_stack()):
        yield torch._C._get_function_stack_at(level)


def _is_host_by_default(mode: Any) -> bool:
    """Whether a mode only says that the host is the default device, as it is without."""
    return isinstance(mode, DeviceContext) and mode.device.type == "cpu"


def _within_construction(frame: Any) -> bool:
    """Whether an object is being made: its `__init__` is on the stack, below the test."""
    while frame is not None and "_pytest" not in frame.f_globals.get("__name__", ""):
        if frame.f_code.co_name == "__init__":
            return True
        frame = frame.f_back
    return False


def _is_library(code: CodeType) -> bool:
    """Whether code is torch's, devlint's or made from a text."""
    return os.path.abspath(code.co_filename).startswith((_torch_folder, _own_folder)) or code.co_filename[:1] == "<"


def _in_turn(function: Any) -> str:
    """The method of the package that a method of torch calls; "" for functions of the package itself."""
    return _CALLS_IN_TURN.get(function, "")


def _code_of(function: Any, args: Any) -> CodeType:
    """The code of the function, or of the `forward` of the module that is called."""
    code: CodeType = _function_of(function, args).__code__
    return code


def _function_of(function: Any, args: Any) -> Any:
    """The function itself, or the method that a method of torch calls in turn, without wrappers."""
    return original_of(getattr(type(args[0]), _in_turn(function)) if _in_turn(function) else function)


def _default_of(function: Any, args: Any, name: str) -> Any:
    """What a parameter is if no argument is given for it."""
    with contextlib.suppress(TypeError, ValueError):
        return inspect.signature(_function_of(function, args)).parameters[name].default
    return inspect.Parameter.empty


def _name_of(function: Any, args: Any) -> str:
    if _in_turn(function):
        back = ".inv" if _in_turn(function) == "_inverse" else ""
        return f"{type(args[0]).__module__}.{type(args[0]).__qualname__}{back}"
    return f"{function.__module__}.{function.__qualname__}"


def _with_names(function: Any, args: Any) -> Iterator[tuple[str, Any]]:
    """Positional arguments with the names of their parameters, where those are known."""
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if code is not None else ()
    for position, value in enumerate(args):
        yield names[position] if position < len(names) else "", value


def _go_back(outputs: list[torch.Tensor]) -> None:
    """A backward pass from what can have one."""
    roots = [value for value in outputs if value.requires_grad and value.grad_fn is not None]
    if roots and torch.is_grad_enabled():
        torch.autograd.backward([value.abs().sum() if value.is_complex() else value.sum() for value in roots])


def _inside(trace: TracebackType | None) -> TracebackType | None:
    """A traceback from the first frame below this file on."""
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    return trace


# ---------------------------------------------------------------------------------------------- leaving no trace


def _random_states() -> Any:
    numpy = sys.modules.get("numpy")
    return torch.get_rng_state(), random.getstate(), numpy.random.get_state() if numpy is not None else None


def _set_random_states(states: Any) -> None:
    torch.set_rng_state(states[0])
    random.setstate(states[1])
    if states[2] is not None:
        sys.modules["numpy"].random.set_state(states[2])


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Nothing is printed or warned of, and torch's defaults stay."""
    dtype = torch.get_default_dtype()
    nowhere = io.StringIO()
    with (
        warnings.catch_warnings(),
        contextlib.redirect_stdout(nowhere),
        contextlib.redirect_stderr(nowhere),
    ):
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            if torch.get_default_dtype() is not dtype:
                torch.set_default_dtype(dtype)


@contextlib.contextmanager
def _noting_mocks(active: set[int]) -> Iterator[None]:
    """Inside, a patch of `unittest.mock` is in the set while it is in place."""
    kind: Any = unittest.mock._patch
    enter, leave = kind.__enter__, kind.__exit__

    def __enter__(self: Any) -> Any:
        made = enter(self)
        active.add(id(self))
        return made

    def __exit__(self: Any, *error: Any) -> Any:
        active.discard(id(self))
        return leave(self, *error)

    kind.__enter__, kind.__exit__ = __enter__, __exit__
    try:
        yield
    finally:
        kind.__enter__, kind.__exit__ = enter, leave


@contextlib.contextmanager
def _scripts_see_originals() -> Iterator[None]:
    """TorchScript compiles what is wrapped, not the wrapper."""
    import torch._jit_internal
    import torch.jit._recursive

    def unwrapping(function: Any) -> Any:
        return lambda first, *args, **kwargs: function(original_of(first), *args, **kwargs)

    places = (
        (torch.jit, "script"),
        (torch._jit_internal, "createResolutionCallbackFromClosure"),
        (torch.jit._recursive, "try_compile_fn"),
    )
    plain = [getattr(owner, name) for owner, name in places]
    for (owner, name), function in zip(places, plain, strict=True):
        setattr(owner, name, unwrapping(function))
    try:
        yield
    finally:
        for (owner, name), function in zip(places, plain, strict=True):
            setattr(owner, name, function)
