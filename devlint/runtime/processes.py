"""Runs one job, a script or a command, and always comes back: bounded in time and output, with nothing left running."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from devlint.errors import UsageError
from devlint.runtime.follow import SITECUSTOMIZE, can_be_here
from devlint.runtime.launch import Job, extra_environment, following
from devlint.runtime.printed import read_printed

GRACE = 5.0
"""Seconds a child may take beyond its time limit to write its report."""
START_UP = 60.0
"""Seconds a child may take to import torch, which does not count as the program's time."""
MOST_INPUT = 256 * 1024 * 1024
"""Bytes of standard input that are handed on."""
MOST_OUTPUT = 64 * 1024
"""Bytes kept from the end of each output stream."""
_MARK = "DEVLINT_RUN"


@dataclass(slots=True)
class Seen:
    """What one process left: its report, None when it died without one; then `crash` holds what is known.

    counts: how often each statement ran there; elsewhere: in processes forked from it.
    """

    pid: int
    report: dict[str, Any] | None
    counts: list[int] = field(default_factory=list)
    elsewhere: list[int] = field(default_factory=list)
    crash: str = ""


@dataclass(slots=True)
class Ended:
    """How a run ended. `main`: the process that was started, if it is a Python that could be followed; `others`: what
    it started, in order of rank, then of start, then of number. printed: what each thread printed that could be followed."""

    returncode: int | None  # None: killed by the parent
    main: Seen
    others: list[Seen] = field(default_factory=list)
    stdout: str = ""
    stderr: str = ""
    printed: tuple[str, ...] = ()
    left_behind: int = 0  # processes that the program had left running


class Launcher:
    """Starts children, one at a time, and ends them; a context manager.

    On Linux one process imports torch and every run is forked from it, so that a run does not pay for the import again:
    on an H100 with torch 2.11 a run takes 0.4 to 0.9 s instead of 8 to 10 s. That process never touches a card, whose
    driver would not survive the fork. Elsewhere, on XPU and MPS, and with `forks=False`, each run is a fresh interpreter.
    """

    def __init__(self, forks: bool | None = None) -> None:
        self._forks = sys.platform == "linux" if forks is None else forks
        self._input = _Input()
        self._nursery: _Nursery | None = None

    def __enter__(self) -> Launcher:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process that runs are forked from."""
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None

    def run(self, job: Job) -> Ended:
        """Run a job; its files for reports are filled in here."""
        with tempfile.TemporaryDirectory(prefix="devlint-", ignore_cleanup_errors=True) as folder:
            place = Path(folder)
            (place / "site").mkdir()
            home = str(Path(__file__).resolve().parents[2])
            text = SITECUSTOMIZE.format(home=home, folder=folder)
            (place / "site" / "sitecustomize.py").write_text(text, encoding="utf-8")
            files = {name: str(place / name) for name in ("report", "counts", "crash")}
            Path(files["counts"]).write_bytes(bytes(16 * max(job.statements, 1)))
            Path(files["report"]).touch()
            Path(files["crash"]).touch()
            job = replace(job, folder=folder, report=files["report"], counts=files["counts"], crash=files["crash"])
            (place / "job").write_text(json.dumps(asdict(job)), encoding="utf-8")
            # Opened here first, so that a program that clears the temporary folder does not take its report along.
            with (
                open(files["report"], "rb") as report,
                open(files["counts"], "rb") as counts,
                open(files["crash"], encoding="utf-8", errors="replace") as crash,
            ):
                ended = (self._command if job.command and not can_be_here(job.command) else self._supervise)(job)
                if not job.command:
                    numbers = _read_counts(counts.read())
                    ended.main = Seen(ended.main.pid, _parse(report.read()), *numbers, crash.read())
            followed = sorted(_followed(place), key=lambda seen: (_rank(seen), _identity(seen), seen.pid))
            if job.command:
                ended.main = next((seen for seen in followed if seen.pid == ended.main.pid), ended.main)
            ended.others = [seen for seen in followed if seen.pid != ended.main.pid]
            ended.printed = tuple(read_printed(place))
        return ended

    def _command(self, job: Job) -> Ended:
        """A command, with the folder of this interpreter first on the path: its `python`, `pytest` and `torchrun`."""
        path = _command_path()["PATH"]
        name, *arguments = job.command
        found = shutil.which(name, path=path)
        if found is None:
            raise UsageError(f"cannot start {name}: there is no such command")
        return self._fresh([found, *arguments], job, {"PATH": path, **following(job.folder)})

    def _fresh(self, call: list[str], job: Job, environment: dict[str, str]) -> Ended:
        given = self._input.give()
        try:
            return _fresh(call, job, environment, given)
        finally:
            os.close(given)

    def _supervise(self, job: Job) -> Ended:
        if not self._forks or job.device in ("xpu", "mps") or (job.device == "auto" and _may_have_another_card()):
            return self._alone(job)
        if self._nursery is None or not self._nursery.alive:
            self.close()
            self._nursery = _Nursery()
        given = self._input.give()
        try:
            ended = self._nursery.run(job, given)
        finally:
            os.close(given)
        return ended or self._alone(job)

    def _alone(self, job: Job) -> Ended:
        if job.command:
            return self._command(job)
        return self._fresh(_python(f"main({os.path.join(job.folder, 'job')!r})"), job, {})


def _command_path() -> dict[str, str]:
    """A search path on which the commands of this interpreter come first."""
    return {"PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])}


def _followed(folder: Path) -> Iterator[Seen]:
    """What the processes that were followed left in the folder of their job."""
    for path in folder.glob("counts.*"):
        pid = int(path.suffix[1:])
        with suppress(OSError):
            counts = _read_counts(path.read_bytes())
            crash = folder / f"crash.{pid}"
            text = crash.read_text(encoding="utf-8", errors="replace") if crash.exists() else ""
            report = folder / f"report.{pid}"
            yield Seen(pid, _parse(report.read_bytes()) if report.exists() else None, *counts, text)


def _rank(seen: Seen) -> int:
    rank = (seen.report or {}).get("rank")
    return int(rank) if isinstance(rank, str) and rank.isdecimal() else 1_000_000


def _identity(seen: Seen) -> list[int]:
    """The number of a process among those that its parent started."""
    identity = (seen.report or {}).get("identity")
    return [each for each in identity if isinstance(each, int)] if isinstance(identity, list) else []


def _may_have_another_card() -> bool:
    """Whether Linux shows a device file of an accelerator, and none of CUDA or ROCm; torch is asked later, in the child."""
    cuda, others = ("nvidia0", "nvidiactl", "dxg", "kfd"), ("dri", "accel")
    return any(Path("/dev", name).exists() for name in others) and not any(Path("/dev", n).exists() for n in cuda)


def _python(call: str) -> list[str]:
    """The command that calls a function of `launch`, devlint importable but not left on `sys.path`."""
    home = str(Path(__file__).resolve().parents[2])
    return [
        sys.executable,
        "-u",
        "-c",
        f"import sys; sys.path.insert(0, {home!r}); from devlint.runtime import launch; "
        f"sys.path.remove({home!r}); launch.{call}",
    ]


def _environment(mark: str) -> dict[str, str]:
    return {**os.environ, _MARK: mark, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0"}


def _fresh(call: list[str], job: Job, environment: dict[str, str], given: int) -> Ended:
    """A run in an interpreter of its own, or of a command. given: its standard input."""
    mark = uuid.uuid4().hex
    try:
        child = subprocess.Popen(
            call,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**_environment(mark), **extra_environment(job.device), **environment},
            start_new_session=True,
        )
    except OSError as error:
        raise UsageError(f"cannot start {call[0]}: {error.strerror or error}") from error
    assert child.stdout is not None and child.stderr is not None
    streams = [_Tail(child.stdout), _Tail(child.stderr)]
    returncode: int | None = None
    try:
        with suppress(subprocess.TimeoutExpired):
            returncode = child.wait(job.timeout + GRACE + START_UP)
    finally:
        if child.poll() is None:
            if os.name == "nt":
                subprocess.run(["taskkill", "/T", "/F", "/PID", str(child.pid)], capture_output=True, check=False)
            else:
                _kill(-child.pid)
            child.wait()
        left = _end_marked(mark, keep=0)
        if os.name == "posix" and not Path("/proc").exists():
            _kill(-child.pid)  # without marks, at least what stayed in the child's group
    out, err = (stream.text() for stream in streams)
    return Ended(returncode, Seen(child.pid, None), stdout=out, stderr=err, left_behind=left)


class _Input:
    """Standard input, read once and given to every run from its beginning.

    It is read as it comes, so a pipe that stays open keeps no run waiting that does not read. A terminal is not read.
    """

    def __init__(self, source: int = 0) -> None:
        self._source = source
        self._data = bytearray()
        self._ended = not _can_be_read(source)
        self._more = threading.Condition()
        self._reader: threading.Thread | None = None

    def give(self) -> int:
        """A new file descriptor to read it from; the caller closes it."""
        if self._ended and not self._data:
            return os.open(os.devnull, os.O_RDONLY)
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, daemon=True)
            self._reader.start()
        end, start = os.pipe()
        threading.Thread(target=self._feed, args=(start,), daemon=True).start()
        return end

    def _read(self) -> None:
        with suppress(OSError):
            while len(self._data) < MOST_INPUT and (chunk := os.read(self._source, 65536)):
                with self._more:
                    self._data += chunk
                    self._more.notify_all()
        with self._more:
            self._ended = True
            self._more.notify_all()

    def _feed(self, target: int) -> None:
        done = 0
        try:
            while True:
                with self._more:
                    while done == len(self._data) and not self._ended:
                        self._more.wait()
                    chunk = bytes(self._data[done : done + 65536])
                if not chunk:
                    return
                done += os.write(target, chunk)
        except OSError:  # the run ended without reading all of it
            return
        finally:
            os.close(target)


def _can_be_read(source: int) -> bool:
    """Whether a file descriptor is an open file or pipe, and no terminal or device."""
    try:
        mode = os.fstat(source).st_mode
    except OSError:
        return False
    return stat.S_ISREG(mode) or stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


class _Nursery:
    """The process that has torch imported and forks a child for each run."""

    def __init__(self) -> None:
        self._mark = uuid.uuid4().hex
        self._socket, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            _python(f"serve({theirs.fileno()})"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,  # if it cannot start, a fresh interpreter shows why
            env=_environment(self._mark),
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
        )
        theirs.close()

    @property
    def alive(self) -> bool:
        """Whether it can be asked for another child."""
        return self._process.poll() is None

    def close(self) -> None:
        """End it and whatever it started."""
        self._socket.close()
        _kill(self._process.pid)  # it holds nothing that has to be saved
        _end_marked(self._mark, keep=0)
        self._process.wait()

    def run(self, job: Job, given: int) -> Ended | None:
        """Run a job in a child; None when no child was started. given: its standard input."""
        pipes = [os.pipe(), os.pipe()]
        streams = [_Tail(open(read, "rb", buffering=0)) for read, _ in pipes]  # noqa: SIM115
        returncode: int | None = None
        pid = left = 0
        try:
            start = {
                "folder": os.getcwd(),
                "environment": {**os.environ, **extra_environment(job.device), **_command_path()},
            }
            Path(job.folder, "start").write_text(json.dumps(start), encoding="utf-8")
            request = json.dumps({"job": os.path.join(job.folder, "job"), "command": bool(job.command)}).encode()
            try:
                socket.send_fds(self._socket, [request], [given, *(write for _, write in pipes)])
            finally:
                for _, write in pipes:
                    os.close(write)
            self._socket.settimeout(START_UP)
            pid = int(self._socket.recv(64) or b"0")
            if pid:
                self._socket.settimeout(job.timeout + GRACE)
                try:
                    returncode = int(self._socket.recv(64) or b"-9")
                except TimeoutError:
                    _kill(-pid)
                    self._socket.settimeout(GRACE)
                    self._socket.recv(64)
        except OSError:  # the nursery itself is gone; the next run gets a new one
            _kill(self._process.pid)
            self._process.wait()
        finally:
            left = _end_marked(self._mark, keep=self._process.pid)
        out, err = (stream.text() for stream in streams)
        return Ended(returncode, Seen(pid, None), stdout=out, stderr=err, left_behind=left) if pid else None


class _Tail:
    """Drains a stream in a thread and keeps its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._kept = bytearray()
        self._dropped = 0
        self._thread = threading.Thread(target=self._drain, daemon=True)
        self._thread.start()

    def _drain(self) -> None:
        with suppress(OSError, ValueError):
            while chunk := os.read(self._stream.fileno(), 65536):
                self._kept += chunk
                if len(self._kept) > 2 * MOST_OUTPUT:
                    self._dropped += len(self._kept) - MOST_OUTPUT
                    del self._kept[:-MOST_OUTPUT]

    def text(self) -> str:
        """What was kept; waits shortly for the rest."""
        self._thread.join(2.0)
        if not self._thread.is_alive():
            self._stream.close()
        data = bytes(self._kept[-MOST_OUTPUT:])
        dropped = self._dropped + len(self._kept) - len(data)
        head = f"[{dropped} bytes before this were dropped]\n" if dropped else ""
        return head + data.decode(errors="replace")


def _kill(pid: int) -> None:
    """Kill one of our processes, or with a negative number its group; one that is gone already is no error."""
    with suppress(ProcessLookupError, PermissionError):
        if pid < 0:
            os.killpg(-pid, signal.SIGKILL)
        else:
            os.kill(pid, signal.SIGKILL)


def _end_marked(mark: str, keep: int) -> int:
    """End every process that a run left behind, also in a session of its own; returns how many there were.

    `keep`: the nursery. Workers that are just ending get a moment to do so.
    """
    patience = time.monotonic() + 0.3
    while (left := [pid for pid in _marked(mark) if pid != keep]) and time.monotonic() < patience:
        time.sleep(0.02)
    alive = left
    deadline = time.monotonic() + GRACE
    while alive and time.monotonic() < deadline:
        for pid in alive:
            _kill(pid)
        time.sleep(0.02)
        alive = [pid for pid in _marked(mark) if pid != keep]
    return len(left)


def _marked(mark: str) -> Iterator[int]:
    """Living processes that carry the mark of this run in their environment, where the system shows it."""
    wanted = f"{_MARK}={mark}".encode()
    with suppress(OSError):
        for entry in os.scandir("/proc"):
            if entry.name.isdecimal():
                with suppress(OSError):
                    status = Path(f"/proc/{entry.name}/stat").read_bytes().rpartition(b")")[2].split()
                    if status[0] != b"Z" and wanted in Path(f"/proc/{entry.name}/environ").read_bytes().split(b"\0"):
                        yield int(entry.name)


def _parse(data: bytes) -> dict[str, Any] | None:
    try:
        row = json.loads(data)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None


def _read_counts(data: bytes) -> tuple[list[int], list[int]]:
    numbers = list(memoryview(data).cast("Q"))
    half = len(numbers) // 2
    return numbers[:half], numbers[half:]
