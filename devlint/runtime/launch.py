"""The child process of verify: runs one program once, on one device, and writes down what happened.

Started by `processes`, which hands over a file with the fields of `Job`. The program is the text in the job, served
under the path of the original: `__file__`, tracebacks, `linecache`, `sys.argv` and `sys.path[0]` are those of a plain
`python script.py`, and nothing of devlint is left on `sys.path`.

The report is one JSON object, written at the end, whichever way the end comes: return, exception, `sys.exit`,
`os._exit`, the limit of steps, or the time limit (a thread that writes the report and ends the process). How often each
statement ran stands in a file mapped into memory, and so survives a native crash and is shared with forked children.
"""

from __future__ import annotations

import ast
import atexit
import builtins
import contextlib
import faulthandler
import json
import linecache
import mmap
import os
import random
import socket
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from devlint.runtime.places import COUNTS, count_statements

if TYPE_CHECKING:
    from devlint.runtime.recorder import Recorder

MOST_LOSSES = 10_000
_real_exit = os._exit


@dataclass(frozen=True, slots=True)
class Job:
    """What to run.

    script: as the user wrote it (`sys.argv[0]`). path: absolute, the name the text is served under.
    device: `auto`, `cpu`, `cuda`, `xpu`, `mps`, or a simulated one as `DeviceSpec.parse` reads it.
    steps: most optimizer steps, None for any number. timeout: seconds the program may run.
    forgiving: on a simulated card, record mixed devices but let the operation go on, as if its operands had been moved.
    report, counts, crash: files for the report, the counters (two for each statement) and a native crash.
    """

    script: str
    path: str
    text: str
    arguments: tuple[str, ...]
    device: str
    steps: int | None
    timeout: float
    seed: int
    forgiving: bool
    report: str
    counts: str
    crash: str


class StepLimit(BaseException):
    """Raised out of `optimizer.step()` when the run has made enough steps. No `except Exception` catches it."""


class _Report:
    """The report file, opened before the program starts and written once."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY)
        self._path = path
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._written = False
        self.fields: dict[str, Callable[[], Any]] = {}

    def write(self, end: str, **details: Any) -> None:
        """Write the report if this is the process that owns it and nothing was written before."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            if self._written:
                return
            self._written = True
            row = {"end": end, **details}
            for name, read in self.fields.items():
                try:
                    row[name] = read()
                except Exception as error:  # a broken program may break torch too; the rest is still worth having
                    row.setdefault("incomplete", []).append(f"{name}: {type(error).__name__}: {error}")
            data = json.dumps(row, default=str).encode()
            try:
                self._put(self._file, data)
            except OSError:  # the program closed all its files
                with contextlib.suppress(OSError):
                    self._put(os.open(self._path, os.O_WRONLY), data)

    @staticmethod
    def _put(file: int, data: bytes) -> None:
        while data:
            data = data[os.write(file, data) :]


def main(job_file: str) -> None:
    """Run the job in this file. Returns, raises SystemExit or ends the process as the program does."""
    with open(job_file, encoding="utf-8") as file:
        row = json.load(file)
    job = Job(**{**row, "arguments": tuple(row["arguments"])})
    report = _Report(job.report)
    faulthandler.enable(open(job.crash, "w"), all_threads=False)  # noqa: SIM115  (stays open as long as the process)
    try:
        import torch
    except ImportError as error:
        report.write("no torch", message=str(error))
        raise SystemExit(1) from None
    try:
        _run(job, report, torch)
    except _NoDevice as error:
        report.write("no device", message=str(error))
        raise SystemExit(1) from None
    except Exception as error:  # the program's own errors are in the report already
        report.write("internal error", message=f"{type(error).__name__}: {error}")
        raise


def serve(number: int) -> None:
    """Wait on a socket for jobs and fork a child for each, with torch already imported.

    A request is one JSON object with `job` and `environment`, and the two files for standard output and error. The
    answer is the child's process number, then its exit status (negative: the signal that ended it). Linux only.
    """
    with contextlib.suppress(ImportError):
        import torch._dynamo
        import torch.optim.optimizer  # noqa: F401

        from devlint.runtime.simulator import session  # noqa: F401
    line = socket.socket(fileno=number)
    while True:
        data, files, _, _ = socket.recv_fds(line, 65536, 2)
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            line.close()
            os.setsid()
            for target, source in zip((1, 2), files, strict=True):
                os.dup2(source, target)
                os.close(source)
            request = json.loads(data)
            os.environ.update(request["environment"])
            _leave(request["job"])
        for file in files:
            os.close(file)
        line.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        line.send(str(os.waitstatus_to_exitcode(status)).encode())


def _leave(job: str) -> NoReturn:
    """Run a job and end the process as an interpreter does, without taking torch apart, which takes a second."""
    status = 0
    try:
        main(job)
    except SystemExit as stop:
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # waits for the program's threads
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _real_exit(status & 0xFF)


def extra_environment(device: str) -> dict[str, str]:
    """What a run on this device has in its environment: on plain CPU and on simulated cards no real one is seen."""
    return {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" or device.startswith("sim") else {}


class _NoDevice(Exception):
    """The device that was asked for is not here."""


def _run(job: Job, report: _Report, torch: Any) -> None:
    from torch.optim.optimizer import register_optimizer_step_post_hook

    device = _resolve(job.device, torch)
    started = time.monotonic()
    report.fields["seconds"] = lambda: time.monotonic() - started
    report.fields["torch"] = lambda: torch.__version__
    report.fields["chosen"] = lambda: device
    code = _compile(job, report)
    _count_into(job.counts)
    losses = _Losses(torch, on_host=device == "cpu" or device.startswith("sim"))
    report.fields["losses"] = losses.values
    steps = _Steps(job.steps, report)
    report.fields["steps"] = lambda: steps.made
    _seed(job.seed, torch)
    _watch(job.timeout, job.path, report)
    _report_before_exit(job.path, report)
    with _device(device, report, torch), _forgiving() if job.forgiving else contextlib.nullcontext():
        torch.autograd.backward = losses.around(torch.autograd.backward)
        register_optimizer_step_post_hook(steps.after_step)
        _execute(job, code, report)


def _resolve(device: str, torch: Any) -> str:
    """The device that `auto` means here: a real accelerator if there is one, else a simulated card."""
    if device != "auto":
        return device
    if torch.cuda.is_available():
        return "cuda"
    if hasattr(torch, "xpu") and torch.xpu.is_available():
        return "xpu"
    if hasattr(torch.backends, "mps") and torch.backends.mps.is_available():
        return "mps"
    return "sim:cuda:1"


@contextlib.contextmanager
def _device(device: str, report: _Report, torch: Any) -> Iterator[None]:
    """Put the run on its device and let the report say which it was and what was recorded."""
    if device == "cpu":
        report.fields["device"] = lambda: "plain CPU"
        yield
        return
    from devlint.runtime.recorder import Recorder

    recorder = Recorder()
    report.fields["recorded"] = lambda: json.loads(recorder.to_json())
    if device.startswith("sim"):
        from devlint.runtime.simulator import DeviceSpec, simulate

        with simulate(DeviceSpec.parse(device), recorder=recorder) as simulation:
            report.fields["device"] = lambda: simulation.description
            report.fields["notes"] = lambda: list(simulation.notes)
            yield
        return
    name = _card_name(device, torch)
    report.fields["device"] = lambda: name
    with _observed(recorder):
        yield


@contextlib.contextmanager
def _forgiving() -> Iterator[None]:
    """Let operations on mixed devices go on after they are recorded, on the first card among their operands."""
    from devlint.runtime.simulator import mixing
    from devlint.runtime.simulator.marks import card_of
    from devlint.runtime.simulator.mode import tensors_in

    strict = mixing.resolve

    def resolve(simulation: Any, mode: Any, func: Any, plan: Any, args: Any, kwargs: Any) -> Any:
        try:
            return strict(simulation, mode, func, plan, args, kwargs)
        except RuntimeError as error:
            cards = [card_of(tensor) for tensor in tensors_in((args, tuple(kwargs.values())))]
            card = next((each for each in cards if each is not None), None)
            if card is None or not hasattr(error, "devlint_operands"):
                raise
            return card

    mixing.resolve = resolve
    try:
        yield
    finally:
        mixing.resolve = strict


def _card_name(kind: str, torch: Any) -> str:
    module = getattr(torch, kind)
    if not module.is_available():
        raise _NoDevice(f"this machine has no {kind} device that torch {torch.__version__} can use")
    count = module.device_count()
    name = module.get_device_name(0) if hasattr(module, "get_device_name") else kind
    return f"{name} x{count}" if count > 1 else str(name)


def _observed(recorder: Recorder) -> contextlib.AbstractContextManager[Any]:
    from devlint.runtime.observe import observe

    return observe(recorder)


def _compile(job: Job, report: _Report) -> types.CodeType:
    """The program with counted statements, under its own file name."""
    lines = job.text.splitlines(keepends=True)
    linecache.cache[job.path] = (len(job.text), None, lines, job.path)
    tree = ast.parse(job.text, job.path)
    count_statements(tree)
    return compile(tree, job.path, "exec", dont_inherit=True)


def _count_into(path: str) -> None:
    """Let counting statements write to the first half of the mapped file, and in forked children to the second."""
    with open(path, "r+b") as file:
        view = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
    half = len(view) // 2
    setattr(builtins, COUNTS, view[:half])
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lambda: setattr(builtins, COUNTS, view[half:]))


class _Losses:
    """Every scalar that `backward()` starts from, in order, read without a trace on the device.

    On the host the value is read at once, below any dispatch mode; on a card a copy is kept and read at the end,
    because reading it would make the host wait and hide a missing synchronization.
    """

    def __init__(self, torch: Any, on_host: bool) -> None:
        self._torch = torch
        self._on_host = on_host
        self._kept: list[Any] = []
        self._busy = threading.local()

    def around(self, backward: Callable[..., Any]) -> Callable[..., Any]:
        """`torch.autograd.backward` that notes what it is called on."""
        base = self._torch._C.TensorBase
        quiet = self._torch.utils._python_dispatch._disable_current_modes

        def noted(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            for tensor in tensors if isinstance(tensors, (list, tuple)) else (tensors,):
                if len(self._kept) < MOST_LOSSES and isinstance(tensor, base) and base.numel(tensor) == 1:
                    with quiet(), self._torch.no_grad():
                        kept = base.detach(tensor)
                        self._kept.append(base.item(kept) if self._on_host else base.clone(kept))
            return backward(tensors, *args, **kwargs)

        return noted

    def values(self) -> list[float]:
        """The losses so far."""
        with self._torch.utils._python_dispatch._disable_current_modes():
            return [each if isinstance(each, (int, float)) else float(each) for each in list(self._kept)]


class _Steps:
    """Counts optimizer steps and ends the run at the limit."""

    def __init__(self, most: int | None, report: _Report) -> None:
        self._most = most
        self._report = report
        self.made = 0

    def after_step(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """The hook that torch calls after each `step()` of any optimizer."""
        self.made += 1
        if self._most is None or self.made < self._most:
            return
        if self.made > self._most:  # the program caught the first StepLimit
            self._report.write("limit", limit="steps", swallowed=True)
            _real_exit(0)
        raise StepLimit


def _seed(seed: int, torch: Any) -> None:
    """One seed for all runs, before the program sets its own."""
    random.seed(seed)
    torch.manual_seed(seed)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(seed)


def _watch(timeout: float, path: str, report: _Report) -> None:
    """End the process when the time is up, whatever the program is doing."""
    main_thread = threading.main_thread().ident

    def wait() -> None:
        threading.Event().wait(timeout)
        frame = sys._current_frames().get(main_thread or 0)
        line = 0
        while frame is not None:
            if frame.f_code.co_filename == path:
                line = frame.f_lineno
                break
            frame = frame.f_back
        report.write("limit", limit="time", line=line)
        _real_exit(124)

    threading.Thread(target=wait, name="devlint-time-limit", daemon=True).start()


def _report_before_exit(path: str, report: _Report) -> None:
    """`os._exit` skips every handler, so the report is written inside it."""

    def _exit(status: int) -> NoReturn:
        frame: types.FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename != path:
            frame = frame.f_back
        report.write("exit", code=status, how="os._exit", line=frame.f_lineno if frame else 0)
        _real_exit(status)

    os._exit = _exit


def _execute(job: Job, code: types.CodeType, report: _Report) -> None:
    sys.argv = [job.script, *job.arguments]
    sys.path[0:1] = [os.path.dirname(os.path.realpath(job.path))]
    module = types.ModuleType("__main__")
    module.__file__ = job.path
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    module.__loader__ = None
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    except StepLimit:
        report.write("limit", limit="steps")
    except SystemExit as stop:
        if stop.code in (None, 0):
            report.write("finished")
        else:
            status = stop.code if isinstance(stop.code, int) else 1
            report.write("exit", code=status, how="sys.exit", message=str(stop.code), **_place(stop, job.path))
        raise
    except BaseException as error:
        blocker = _cannot_simulate(error)
        if blocker is not None:
            report.write("cannot simulate", message=str(blocker), **_place(error, job.path))
        else:
            report.write("exception", **_describe(error), **_place(error, job.path))
        traceback.print_exception(type(error), error, _user_part(error, job.path))
        raise SystemExit(1) from None
    else:
        report.write("finished")


def _cannot_simulate(error: BaseException) -> BaseException | None:
    """The CannotSimulate among an error and its causes, if any."""
    from devlint.runtime.simulator.errors import CannotSimulate

    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        if isinstance(each, CannotSimulate):
            return each
        seen.add(id(each))
        each = each.__cause__ or each.__context__
    return None


def _describe(error: BaseException) -> dict[str, Any]:
    return {
        "type": type(error).__name__,
        "message": str(error)[:2000],
        "simulated": hasattr(error, "devlint_operands"),
    }


def _user_part(error: BaseException, path: str) -> types.TracebackType | None:
    """The traceback from the first frame of the program on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return trace


def _place(error: BaseException, path: str) -> dict[str, Any]:
    """Where an error left the program: the innermost frame of its file, of any user file, and what torch was doing."""
    from devlint.runtime.recorder import Recorder

    is_user = Recorder().is_user
    place: dict[str, Any] = {"line": 0, "column": None, "inner_file": None, "inner_line": 0, "inside": []}
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == path or is_user(code):
            place["inner_file"], place["inner_line"], place["inside"] = code.co_filename, trace.tb_lineno, []
            if code.co_filename == path:
                place["line"], place["column"] = trace.tb_lineno, _column(trace)
        elif place["line"] and not is_devlint(code.co_filename):
            place["inside"].append(code.co_name)
        trace = trace.tb_next
    place["inside"] = place["inside"][-8:]
    return place


def is_devlint(filename: str) -> bool:
    """Whether a file is devlint's own."""
    return filename.startswith(os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep)


def _column(trace: types.TracebackType) -> int | None:
    """The UTF-8 byte column of the failing expression, where Python knows it (3.11 and later)."""
    positions = getattr(trace.tb_frame.f_code, "co_positions", None)
    if positions is None or trace.tb_lasti < 0:
        return None
    for number, (line, _, column, _) in enumerate(positions()):
        if number == trace.tb_lasti // 2:
            return column if line == trace.tb_lineno else None
    return None
