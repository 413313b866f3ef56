"""A program under watch: the recorder, the names behind device errors, and the memory held at each step.

`devlint run` and the pytest plugin share it. torch is imported when watching starts.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import sys
import threading
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from types import FrameType, TracebackType
from typing import Any, Final, TypeAlias

from devlint.errors import UsageError
from devlint.runtime.blame import Blame, blame, frames_from, frames_of
from devlint.runtime.findings import Finding, device_error, from_events, size, sort
from devlint.runtime.launch import is_devlint
from devlint.runtime.recorder import Event, Recorder
from devlint.runtime.simulator.errors import CannotSimulate
from devlint.runtime.simulator.spec import DeviceSpec
from devlint.runtime.verdict import is_device_fault

DEVICES: Final = "auto, cuda, xpu, mps, or simulated: sim, sim:2, sim:xpu, sim:cuda:3"
REAL: Final = ("cuda", "xpu", "mps")
_Fault: TypeAlias = "tuple[str | None, int, str]"  # file, line and text of a device error
_MOST_BLAMES = 200
_MOST_SAMPLES = 4096
# Growth is judged from the third step on: gradients and the optimizer's state are made in the first two.
_SETTLED = 2
_FEWEST_STEPS = 4


def check_device(text: str, option: str = "--device") -> str:
    """A device name as `watching` takes it. Raises UsageError that names the option and lists the known devices."""
    if text == "auto" or text in REAL:
        return text
    try:
        return str(DeviceSpec.parse(text))
    except ValueError as error:
        raise UsageError(f"{option} {text}: {error}; known devices: {DEVICES}") from error


def choose_device(text: str) -> str:
    """What `auto` means here: a real accelerator if torch has one, else one simulated card.

    Raises UsageError when a real device is asked for by name and torch finds none.
    """
    if text.startswith("sim"):
        return text
    import torch

    places = {"cuda": torch.cuda, "xpu": getattr(torch, "xpu", None), "mps": torch.backends.mps}
    there = [kind for kind, place in places.items() if place is not None and place.is_available()]
    if text == "auto":
        return there[0] if there else str(DeviceSpec())
    if text not in there:
        raise UsageError(f"torch {torch.__version__} finds no {text} device here; `devlint doctor` says why")
    return text


class Watch:
    """What a program did while it was watched.

    recorder: synchronizations, transfers, clocks, races, faults. device: how a report names the device; kind: its
    type for ``torch.device``. notes: what the simulation replaced by something simpler. memory: bytes held after each
    optimizer step.
    """

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder = recorder or Recorder()
        self.device = ""
        self.kind = ""
        self.notes: list[str] = []
        self.memory = Memory()
        self.muted = False  # explain no device error: nobody will ask
        self._blames: dict[_Fault, Blame] = {}
        self._explained: dict[_Fault, Blame] = {}  # in this part of the run
        self._in_threads: list[Finding] = []

    def forget(self) -> None:
        """Start anew: in a forked child, what happened before is the parent's."""
        self.recorder.forget()
        self.memory.forget()
        self._blames.clear()
        self._explained.clear()
        self._in_threads.clear()

    def begin_part(self) -> None:
        """A new test begins: a device error at a line that an earlier one reached may be about another variable."""
        self._explained.clear()

    # ------------------------------------------------------------------ device errors

    def explain_faults_of(self, simulation: Any) -> None:
        """Let each simulated device error be explained while the frames that led to it are there."""
        fault = simulation.fault

        def explained(error: type[Exception], text: str, operands: Any = ()) -> Any:
            try:
                fault(error, text, operands)
            except Exception as raised:
                if self.muted:
                    raise
                self._explain(raised, text, operands, sys._getframe(1))
                raise

        simulation.fault = explained

    def _explain(self, error: Exception, text: str, operands: Any, frame: FrameType) -> None:
        file, line = self.recorder.locate(frame)
        known = self._explained.get((file, line, text))
        if known is None and len(self._explained) < _MOST_BLAMES:
            found = Blame()
            with contextlib.suppress(Exception), _without_recording():  # explaining must not hide the error
                found = blame(frames_from(frame), operands, self.recorder.is_user)
            known = self._explained[file, line, text] = found
            if len(self._blames) < _MOST_BLAMES:
                self._blames.setdefault((file, line, text), found)
        setattr(error, "devlint_finding", self._finding(Event("fault", text, file, line), known))  # noqa: B010

    def _finding(self, event: Event, found: Blame | None, caught: int = 0) -> Finding:
        return device_error(event.what, found, event, caught=caught)

    def error_behind(self, error: BaseException | None) -> BaseException | None:
        """The device error among an exception and its causes, if any."""
        for each in chain(error):
            if hasattr(each, "devlint_operands") or hasattr(each, "devlint_finding"):
                return each
        return None

    def explanation(self, error: BaseException | None) -> Finding | None:
        """The finding for an exception that ended a program or a test; None if it is no device error.

        On a real card the exception carries nothing: the failing statement's own names are looked at.
        """
        behind = self.error_behind(error)
        if behind is not None and hasattr(behind, "devlint_finding"):
            finding: Finding = behind.devlint_finding
            return finding
        for each in chain(error):
            if not is_device_error(each):
                continue
            places = frames_of(each.__traceback__)
            found = Blame()
            with contextlib.suppress(Exception):
                found = blame(places, getattr(each, "devlint_operands", ()), self.recorder.is_user)
            file, line = next(
                ((f.f_code.co_filename, at) for f, at in places if self.recorder.is_user(f.f_code)), (None, 0)
            )
            return self._finding(Event("fault", str(each), file, line), found)
        return None

    def ended_thread(self, error: BaseException | None, name: str) -> None:
        """An exception that nobody caught ended a thread of this name."""
        found = self.explanation(error)
        if found is not None and len(self._in_threads) < _MOST_BLAMES:
            details = (*found.details, f"it ended the thread {name}")
            self._in_threads.append(replace(found, kind="error", details=details))

    @contextmanager
    def seeing_threads_end(self) -> Iterator[None]:
        """Inside, an exception that ends a thread is seen, and shown as ever."""
        plain = threading.excepthook

        def excepthook(ended: Any) -> None:
            self.ended_thread(ended.exc_value, getattr(ended.thread, "name", "?"))
            plain(ended)

        threading.excepthook = excepthook
        try:
            yield
        finally:
            threading.excepthook = plain

    # ------------------------------------------------------------------ findings

    def caught(self, known: Counter[tuple[str | None, int]]) -> list[Finding]:
        """The device errors that some code caught: all but so many at each place, whose end is known."""
        left, found = Counter(known), []
        for event in self.recorder.events():
            if event.kind != "fault":
                continue
            ended = min(left[event.file, event.line], event.count)
            left[event.file, event.line] -= ended
            if event.count > ended:
                blame_of = self._blames.get((event.file, event.line, event.what))
                found.append(self._finding(replace(event, count=event.count - ended), blame_of, event.count - ended))
        return found

    def findings(self, ended_by: BaseException | None = None) -> list[Finding]:
        """Everything that was found. ended_by: the exception that ended the program, if one did."""
        found = from_events(self.recorder.events())
        last = self.explanation(ended_by)
        uncaught = [*([] if last is None else [last]), *self._in_threads]
        found += uncaught
        found += self.caught(Counter((finding.file, finding.line) for finding in uncaught))
        growth = self.memory.growth()
        if growth is not None:
            found.append(growth)
        return sort(found)


def chain(error: BaseException | None) -> Iterator[BaseException]:
    """An exception, its cause, the cause of that and so on, each once."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def show_exception(error: BaseException, trace: TracebackType | None) -> None:
    """Print a traceback as Python does; of a device error without the frames of the simulator that raised it."""
    shown = traceback.TracebackException(type(error), error, trace)
    if any(hasattr(each, "devlint_operands") or isinstance(each, CannotSimulate) for each in chain(error)):
        waiting: list[traceback.TracebackException | None] = [shown]
        while waiting:
            each = waiting.pop()
            if each is not None:
                kept = [frame for frame in each.stack if not is_devlint(frame.filename)]
                each.stack = traceback.StackSummary.from_list(kept)
                waiting += [each.__cause__, each.__context__]
    sys.stderr.write(_without_own_frames("".join(shown.format())))


def _without_own_frames(text: str) -> str:
    """A printed traceback without devlint's frames, also those in the text of an exception from another process."""
    kept: list[str] = []
    own = False
    for line in text.splitlines(keepends=True):
        place = re.match(r'  File "(.+)", line \d+', line)
        own = is_devlint(place[1]) if place else own and line.startswith("    ")
        if not own:
            kept.append(line)
    return "".join(kept)


def cannot_simulate(error: BaseException | None) -> CannotSimulate | None:
    """The CannotSimulate among an exception and its causes, if any."""
    return next((each for each in chain(error) if isinstance(each, CannotSimulate)), None)


def is_device_error(error: BaseException) -> bool:
    """Whether an exception is one of torch's errors about devices, or a device method was called on what has none."""
    text = str(error)
    if isinstance(error, AttributeError) and text.startswith("'NoneType'"):  # a value that is missing
        return False
    # torch of a build without CUDA asserts that it has it [torch/cuda/__init__.py, _lazy_init]
    kinds = (RuntimeError, TypeError, ValueError, AttributeError, AssertionError)
    return isinstance(error, kinds) and is_device_fault(type(error).__name__, text)


@contextmanager
def watching(device: str, watch: Watch) -> Iterator[Watch]:
    """Run the body on a device, as `choose_device` returns it, and record into the watch."""
    if device.startswith("sim"):
        from devlint.runtime.simulator import simulate

        with simulate(DeviceSpec.parse(device), recorder=watch.recorder) as simulation:
            watch.device, watch.kind = simulation.description, simulation.kind
            watch.notes = simulation.notes
            watch.explain_faults_of(simulation)
            cards = simulation.cards
            with watch.memory.sampled(lambda: sum(card.allocated for card in cards), watch.recorder):
                yield watch
        return
    import torch

    from devlint.runtime.observe import observe

    module = getattr(torch, device)
    count = module.device_count()
    name = module.get_device_name(0) if hasattr(module, "get_device_name") else device
    watch.kind = device
    watch.device = f"{name} x{count}" if count > 1 else str(name)
    held = module.memory_allocated if hasattr(module, "memory_allocated") else None
    with observe(watch.recorder):
        read = (lambda: sum(held(index) for index in range(count))) if held is not None else lambda: 0
        with watch.memory.sampled(read, watch.recorder):
            yield watch


@contextmanager
def _without_recording() -> Iterator[None]:
    """Look at tensors without any trace on the simulated card."""
    import torch

    with torch.utils._python_dispatch._disable_current_modes(), torch._C.DisableTorchFunction():
        yield


class Memory:
    """Bytes that tensors hold on all cards, after each optimizer step.

    track: whether to take samples at all.
    """

    def __init__(self) -> None:
        self.track = True
        self.samples: list[int] = []
        self.steps = 0
        self._place: tuple[str | None, int] = (None, 0)
        self._keepers: list[str] = []

    def forget(self) -> None:
        """Start anew."""
        self.samples.clear()
        self._keepers.clear()
        self.steps = 0

    @contextmanager
    def sampled(self, read: Callable[[], int], recorder: Recorder) -> Iterator[None]:
        """Inside, each step of an optimizer takes a sample."""
        if not self.track:
            yield
            return
        from torch.optim.optimizer import register_optimizer_step_post_hook

        owner = os.getpid()

        def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            if os.getpid() != owner:
                return
            self.steps += 1
            if len(self.samples) < _MOST_SAMPLES:
                self.samples.append(read())
            self._place = recorder.locate(sys._getframe(1))
            if len(self.samples) == self.steps and self.steps >= _SETTLED + _FEWEST_STEPS and self._grows():
                self._keepers = _keepers(sys._getframe(1), recorder)

        handle = register_optimizer_step_post_hook(after_step)
        try:
            yield
        finally:
            handle.remove()

    def _grows(self) -> bool:
        settled = self.samples[_SETTLED:]
        return len(settled) >= _FEWEST_STEPS and all(after > before for before, after in itertools.pairwise(settled))

    def growth(self) -> Finding | None:
        """A finding if the memory grew with every step after the first ones."""
        if not self._grows():
            return None
        settled = self.samples[_SETTLED:]
        each = (settled[-1] - settled[0]) / (len(settled) - 1)
        file, line = self._place
        details = [f"kept: {text}" for text in self._keepers]
        if details:
            details.append(
                "a graph keeps all tensors that it saved for backward: keep `.detach()` or `.item()` instead"
            )
        return Finding(
            "DEV508",
            "warning",
            f"device memory grows with each of {len(settled) - 1} steps, by {size(each)} per step, "
            f"from {size(settled[0])} to {size(settled[-1])}",
            file,
            line,
            count=len(settled) - 1,
            bytes=settled[-1] - settled[0],
            details=tuple(details),
        )


def _keepers(frame: FrameType | None, recorder: Recorder) -> list[str]:
    """The variables of the user's frames that hold tensors with their graph, most tensors first."""
    import torch

    found: dict[str, int] = {}
    while frame is not None:
        if recorder.is_user(frame.f_code):
            for name, value in list(frame.f_locals.items()):
                if isinstance(value, torch.Tensor) and _sums(value.grad_fn):
                    found[f"`{name}` adds up tensors with their graph"] = 1
                if type(value) is dict:
                    value = list(value.values())
                items = value if isinstance(value, (list, tuple)) else ()
                kept = sum(isinstance(item, torch.Tensor) and item.grad_fn is not None for item in items)
                if kept > 1:
                    found[f"`{name}` holds tensors with their graph"] = kept
        frame = frame.f_back
    return sorted(found, key=lambda text: -found[text])[:3]


def _sums(node: Any) -> bool:
    """Whether a graph begins with a sum of sums, as a running total has it."""
    for _ in range(_SETTLED + 1):
        if node is None or not type(node).__name__.startswith("AddBackward"):
            return False
        node = node.next_functions[0][0]
    return True
