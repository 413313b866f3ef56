"""A process of verify: runs one program once, on one device, and writes down what happened.

Started by `processes`, which hands over a file with the fields of `Job`. The program's files are served by `serving`
under the paths of the originals: `__file__`, tracebacks, `linecache`, `sys.argv` and `sys.path[0]` are those of a plain
`python script.py`, and nothing of devlint is left on `sys.path`. Processes that the program starts are followed by
`follow`, with the same pieces.

The report is one JSON object, written at the end, whichever way the end comes: return, exception, `sys.exit`,
`os._exit`, the limit of steps, or the time limit (a thread that writes the report and ends the process). How often each
statement ran stands in a file mapped into memory, and so survives a native crash and is shared with forked children.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import faulthandler
import json
import mmap
import os
import random
import socket
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from devlint.runtime.instrument import COUNTS, VALUE
from devlint.runtime.printed import Printed
from devlint.runtime.serving import File, Served
from devlint.runtime.tally import Graphs, Warned
from devlint.runtime.values import Values
from devlint.runtime.written import Written

if TYPE_CHECKING:
    from devlint.runtime.recorder import Recorder

MOST_LOSSES = 10_000
MOST_LOGGED = 20_000
MOST_MESSAGE = 2000
"""Characters kept from each end of an error's message."""
_real_exit = os._exit
_now, _elapsed = time.time, time.monotonic  # the real ones: others are put in their places


@dataclass(frozen=True, slots=True)
class Job:
    """What to run.

    script: as the user wrote it (`sys.argv[0]`), and path: absolute, both "" when `command` is started instead.
    files: what is served, by absolute path; statements: how many there are in all of them.
    device: `auto`, `cpu`, `cuda`, `xpu`, `mps`, or a simulated one as `DeviceSpec.parse` reads it.
    current: the number of the card that is current when the program starts. busy: keep a real card busy, so that what is
    queued is not finished at once.
    steps: most optimizer steps, None for any number. timeout: seconds the program may run. memory: most bytes that a
    process may hold, None for any number.
    forgiving: on a simulated card, record mixed devices but let the operation go on, as if its operands had been moved.
    ordered: keep a log of events in their order, for a timeline. apart: set all clocks apart from those of other runs.
    report, counts, crash: files for the report, the counters (two for each statement) and a native crash.
    folder: where processes that the program starts put theirs, and where the `sitecustomize` is that they begin with.
    """

    script: str
    path: str
    arguments: tuple[str, ...]
    command: tuple[str, ...]
    files: Mapping[str, File]
    statements: int
    device: str
    steps: int | None = None
    timeout: float = 300.0
    memory: int | None = None
    seed: int = 0
    current: int = 0
    busy: bool = False
    forgiving: bool = False
    ordered: bool = False
    apart: bool = False
    report: str = ""
    counts: str = ""
    crash: str = ""
    folder: str = ""


def read_job(path: str) -> Job:
    """The job in a file that the parent wrote. Raises OSError and ValueError."""
    with open(path, encoding="utf-8") as file:
        row = json.load(file)
    files = {name: File(*each) for name, each in row["files"].items()}
    return Job(**{**row, "arguments": tuple(row["arguments"]), "command": tuple(row["command"]), "files": files})


class StepLimit(BaseException):
    """Raised out of `optimizer.step()` when the run has made enough steps. No `except Exception` catches it."""


class Log:
    """The report file, opened before the program starts and written once."""

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
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
            row = {"end": end, "ended": _now(), **details}
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
                    self._put(os.open(self._path, os.O_WRONLY | os.O_CREAT, 0o600), data)

    @staticmethod
    def _put(file: int, data: bytes) -> None:
        while data:
            data = data[os.write(file, data) :]


def main(job_file: str) -> None:
    """Run the job in this file. Returns, raises SystemExit or ends the process as the program does."""
    job = read_job(job_file)
    report = Log(job.report)
    watch_for_crashes(job.crash)
    if job.folder:  # for the processes that the program starts
        os.environ.update(following(job.folder))
    try:
        import torch
    except ImportError as error:
        report.write("no torch", message=str(error))
        raise SystemExit(1) from None
    try:
        _run(job, report, torch)
    except NoDevice as error:
        report.write("no device", message=str(error))
        raise SystemExit(1) from None
    except Exception as error:  # the program's own errors are in the report already
        report.write("internal error", message=f"{type(error).__name__}: {error}")
        raise


def serve(number: int) -> None:
    """Wait on a socket for jobs and fork a child for each, with torch already imported.

    A request is one JSON object with `job` and `command`, and the three files for standard input, output and error. The
    answer is the child's process number, then its exit status (negative: the signal that ended it). Linux only.
    """
    with contextlib.suppress(ImportError):
        import torch._dynamo
        import torch.optim.optimizer

        from devlint.runtime.simulator import session  # noqa: F401

        if torch.cuda.is_initialized():
            return  # something that is imported with torch has touched the card, so that no child could
    line = socket.socket(fileno=number)
    while True:
        data, files, _, _ = socket.recv_fds(line, 65536, 3)
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            line.close()
            os.setsid()
            for target, source in zip((0, 1, 2), files, strict=True):
                os.dup2(source, target)
                os.close(source)
            sys.stdin = open(0, encoding=sys.stdin.encoding, closefd=False) if sys.stdin is not None else open(0)  # noqa: SIM115
            request = json.loads(data)
            _enter(os.path.join(os.path.dirname(request["job"]), "start"))
            _leave(request["job"], request["command"])
        for file in files:
            os.close(file)
        line.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        line.send(str(os.waitstatus_to_exitcode(status)).encode())


def _enter(path: str) -> None:
    """Take over folder and environment of the process that asked for this run."""
    with open(path, encoding="utf-8") as file:
        start = json.load(file)
    os.chdir(start["folder"])
    os.environ.update(start["environment"])


def _leave(job: str, is_command: bool) -> NoReturn:
    """Run a job and end the process as an interpreter does, without taking torch apart, which takes a second."""
    status = 0
    try:
        if is_command:
            from devlint.runtime import follow

            follow.main(os.path.dirname(job))
        else:
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
    end_now(status & 0xFF)


def end_now(status: int) -> NoReturn:
    """End the process with its output written and nothing else done."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    _real_exit(status)


def extra_environment(device: str) -> dict[str, str]:
    """What a run on this device has in its environment: on plain CPU and on simulated cards no real one is seen."""
    return {"CUDA_VISIBLE_DEVICES": ""} if device == "cpu" or device.startswith("sim") else {}


class NoDevice(Exception):
    """The device that was asked for is not here."""


def following(folder: str) -> dict[str, str]:
    """The environment by which Python processes find the job they belong to."""
    path = [os.path.join(folder, "site"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(path), "DEVLINT_FOLLOW": folder}


def watch_for_crashes(path: str) -> None:
    """Let Python write the stack to a file when the process dies in native code."""
    faulthandler.enable(open(path, "w"), all_threads=False)  # noqa: SIM115  (stays open as long as the process)


def _run(job: Job, report: Log, torch: Any) -> None:
    served = Served(job.files)
    served.install()
    code = served.code(job.path)
    assert code is not None
    count_into(job.counts)
    attend(job, served, report)
    with contextlib.ExitStack() as stack:
        begin(job, served, report, torch, stack)
        _execute(job, code, served, report)


def attend(job: Job, served: Served, report: Log) -> None:
    """Watch how this process ends, and what it prints; set its clocks apart where the job says so. Free of torch."""
    watch(job, served, report)
    report_before_exit(served, report)
    Printed(job.folder).install()
    if job.apart:
        from devlint.runtime.clocks import set_apart
        from devlint.runtime.recorder import Recorder

        set_apart(Recorder().is_user_clock)


def begin(job: Job, served: Served, report: Log, torch: Any, stack: contextlib.ExitStack) -> None:
    """Put this process on the job's device until the stack is closed, and let the report say what happens there.

    Raises NoDevice when the device is not here.
    """
    from torch.optim.optimizer import register_optimizer_step_post_hook

    device = _resolve(job.device, torch)
    started = _elapsed()
    report.fields["seconds"] = lambda: _elapsed() - started
    report.fields["torch"] = lambda: torch.__version__
    report.fields["chosen"] = lambda: device
    on_host = device == "cpu" or device.startswith("sim")
    losses = _Losses(torch, on_host)
    report.fields["losses"] = losses.values
    steps = _Steps(job.steps, report)
    report.fields["steps"] = lambda: steps.made
    seed(job.seed, torch)
    draws: list[list[Any]] = []
    report.fields["draws"] = lambda: draws
    values = Values(torch, on_host, lambda: steps.made, lambda: len(draws))
    report.fields["values"] = values.rows
    stack.enter_context(_device(device, job, report, torch, draws))
    if job.forgiving and device.startswith("sim"):
        stack.enter_context(_forgiving())
    if job.current:
        getattr(torch, "xpu" if "xpu" in device else "cuda").set_device(job.current)
    written = Written([job.folder], [os.path.dirname(path) for path in job.files])
    written.install(torch)
    report.fields["files"] = written.rows
    warned = Warned(lambda frame: standing(frame, served))
    report.fields["warnings"] = warned.rows
    warned.install()
    graphs = Graphs(torch)
    report.fields["graphs"] = lambda: graphs.kept
    report.fields["training"] = graphs.training
    report.fields["gradients"] = graphs.gradients
    torch.autograd.backward = graphs.around(losses.around(torch.autograd.backward))
    register_optimizer_step_post_hook(graphs.after_step)
    register_optimizer_step_post_hook(steps.after_step)
    look = values.look
    setattr(builtins, VALUE, lambda number, value: look(number, value))  # a function, which torch's compiler stops at


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
def _device(device: str, job: Job, report: Log, torch: Any, draws: list[list[Any]]) -> Iterator[None]:
    """Put the run on its device and let the report say which it was and what was recorded."""
    if device == "cpu":
        report.fields["device"] = lambda: "plain CPU"
        yield
        return
    from devlint.runtime.recorder import Recorder

    recorder = Recorder(max_log=MOST_LOGGED if job.ordered else 0)
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
    with _observed(recorder, job.busy, draws):
        yield


@contextlib.contextmanager
def _forgiving() -> Iterator[None]:
    """Let operations on mixed devices go on after they are recorded, on the first card among their operands.

    So does what torch checks by itself before it calls an operator, such as the state of a recurrent network, or that
    an array is made of host memory; a card that is not there, a fork and an event that was not recorded end the program.
    """
    from devlint.runtime.simulator import messages, mixing
    from devlint.runtime.simulator.marks import card_of
    from devlint.runtime.simulator.mode import tensors_in
    from devlint.runtime.simulator.simulation import Simulation

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

    fails = Simulation.fault

    final = (messages.EVENTS_WITHOUT_TIMING, messages.EVENTS_NOT_RECORDED, messages.EVENTS_NOT_COMPLETED)

    def fault(self: Any, error: Any, text: str, operands: Any = ()) -> Any:
        if operands or text in final or "CUDA error" in text or "in forked subprocess" in text:
            return fails(self, error, text, operands)
        self.recorder.record("fault", text, at=self.recorder.locate(sys._getframe(1)))
        return None

    mixing.resolve, Simulation.fault = resolve, fault  # type: ignore[method-assign]
    try:
        yield
    finally:
        mixing.resolve, Simulation.fault = strict, fails  # type: ignore[method-assign]


def _card_name(kind: str, torch: Any) -> str:
    module = getattr(torch, kind)
    if not module.is_available():
        raise NoDevice(f"this machine has no {kind} device that torch {torch.__version__} can use")
    count = module.device_count()
    name = module.get_device_name(0) if hasattr(module, "get_device_name") else kind
    return f"{name} x{count}" if count > 1 else str(name)


def _observed(recorder: Recorder, busy: bool, draws: list[list[Any]]) -> contextlib.AbstractContextManager[Any]:
    from devlint.runtime.observe import observe

    return observe(recorder, busy, draws)


def count_into(path: str) -> None:
    """Let counting statements write to the first half of the mapped file, and in forked children to the second."""
    with open(path, "r+b") as file:
        view = memoryview(mmap.mmap(file.fileno(), 0)).cast("Q")
    half = len(view) // 2
    setattr(builtins, COUNTS, view[:half])
    setattr(builtins, VALUE, lambda number, value: value)  # until torch is there
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

    def __init__(self, most: int | None, report: Log) -> None:
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


def seed(number: int, torch: Any) -> None:
    """One seed for all runs, before the program sets its own."""
    random.seed(number)
    torch.manual_seed(number)
    with contextlib.suppress(ImportError):
        import numpy

        numpy.random.seed(number)


def watch(job: Job, served: Served, report: Log) -> None:
    """End the process when its time is up or it holds too much memory, whatever the program is doing."""
    main_thread = threading.main_thread().ident
    wait = threading.Event().wait

    def end(limit: str) -> NoReturn:
        report.write("limit", limit=limit, **standing(sys._current_frames().get(main_thread or 0), served))
        _real_exit(124)

    def wait_for_end() -> None:
        deadline = _elapsed() + job.timeout
        while (left := deadline - _elapsed()) > 0:
            wait(left if job.memory is None else min(left, 0.05))
            if job.memory is not None and _held() > job.memory:
                end("memory")
        end("time")

    threading.Thread(target=wait_for_end, name="devlint-limits", daemon=True).start()


def _held() -> int:
    """Bytes of memory that this process holds now; where the system does not say, the most it ever held."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE
    except OSError:
        try:
            import resource
        except ImportError:
            return 0
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def standing(frame: types.FrameType | None, served: Served) -> dict[str, Any]:
    """File and line of the innermost frame that runs a file of the program."""
    while frame is not None:
        if served.known(frame.f_code.co_filename):
            return {"file": frame.f_code.co_filename, "line": frame.f_lineno}
        frame = frame.f_back
    return {"file": None, "line": 0}


def report_before_exit(served: Served, report: Log) -> None:
    """`os._exit` skips every handler, so the report is written inside it."""

    def _exit(status: int) -> NoReturn:
        report.write("exit", code=status, how="os._exit", **standing(sys._getframe(1), served))
        _real_exit(status)

    os._exit = _exit


def _execute(job: Job, code: types.CodeType, served: Served, report: Log) -> None:
    """Run the code as the main module."""
    sys.argv = [job.script, *job.arguments]
    if not getattr(sys.flags, "safe_path", False):
        sys.path[0:1] = [os.path.dirname(os.path.realpath(job.path))]
    execute(code, job.path, served, report)


def execute(code: types.CodeType, path: str, served: Served, report: Log) -> None:
    """Run the code as the main module, with `sys.argv` and `sys.path` as they are, and report how it ends."""
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    module.__loader__ = None
    sys.modules["__main__"] = module
    try:
        exec(code, module.__dict__)
    except BaseException as error:
        if report_end(error, served, report):
            traceback.print_exception(type(error), error, _user_part(error, path))
            raise SystemExit(1) from None
        if isinstance(error, SystemExit):
            raise
    else:
        report.write("finished")


def report_end(error: BaseException, served: Served, report: Log) -> bool:
    """Write how an exception ended the program; returns whether it is an error to show."""
    if isinstance(error, StepLimit):
        report.write("limit", limit="steps")
        return False
    if isinstance(error, SystemExit):
        if error.code in (None, 0):
            report.write("finished")
        else:
            status = error.code if isinstance(error.code, int) else 1
            report.write("exit", code=status, how="sys.exit", message=str(error.code), **place_of(error, served))
        return False
    blocker = blocker_of(error)
    if blocker is not None:
        report.write("cannot simulate", message=str(blocker), **place_of(error, served))
    else:
        report.write("exception", **describe(error), **place_of(error, served))
    return True


def blocker_of(error: BaseException) -> BaseException | None:
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


def clipped(message: str) -> str:
    """A message as reports keep it: of a long one, such as one that quotes a worker's traceback, both ends."""
    if len(message) <= 2 * MOST_MESSAGE:
        return message
    return f"{message[:MOST_MESSAGE]}\n[...]\n{message[-MOST_MESSAGE:]}"


def describe(error: BaseException) -> dict[str, Any]:
    """What a report says of an error."""
    return {
        "type": type(error).__name__,
        "message": clipped(str(error)),
        "simulated": hasattr(error, "devlint_operands"),
    }


def _user_part(error: BaseException, path: str) -> types.TracebackType | None:
    """The traceback from the first frame of the program on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != path:
        trace = trace.tb_next
    return trace


def place_of(error: BaseException, served: Served) -> dict[str, Any]:
    """Where an error left the program: the innermost frame in its files, in any user file, and what torch was doing."""
    from devlint.runtime.recorder import Recorder

    is_user = Recorder().is_user
    place: dict[str, Any] = {
        "file": None,
        "line": 0,
        "column": None,
        "inner_file": None,
        "inner_line": 0,
        "inside": [],
    }
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        ours = served.known(code.co_filename) is not None
        if ours or is_user(code):
            place["inner_file"], place["inner_line"], place["inside"] = code.co_filename, trace.tb_lineno, []
            if ours:
                place["file"], place["line"], place["column"] = code.co_filename, trace.tb_lineno, _column(trace)
        elif place["line"] and not is_devlint(code.co_filename):
            place["inside"].append(code.co_name)
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and not place["inner_file"] and error.filename:  # of the script itself
        place["inner_file"], place["inner_line"] = error.filename, error.lineno or 0
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
