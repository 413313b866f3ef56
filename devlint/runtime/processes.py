"""Runs one job in a child process and always comes back: bounded in time and output, with nothing left running."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any

from devlint.runtime.launch import Job

GRACE = 5.0
"""Seconds a child may take beyond its time limit to write its report."""
START_UP = 60.0
"""Seconds a child may take to import torch, which does not count as the program's time."""
MOST_OUTPUT = 64 * 1024
"""Bytes kept from the end of each output stream."""
_MARK = "DEVLINT_RUN"


@dataclass(slots=True)
class Ended:
    """How a child ended. `report` is None when it died without writing one; then `crash` holds what is known."""

    returncode: int | None  # None: killed by the parent
    report: dict[str, Any] | None
    counts: list[int] = field(default_factory=list)
    elsewhere: list[int] = field(default_factory=list)  # counts of forked children
    stdout: str = ""
    stderr: str = ""
    crash: str = ""
    left_behind: int = 0  # processes that the program had left running


def run(
    *,
    script: str,
    path: str,
    text: str,
    arguments: tuple[str, ...],
    device: str,
    statements: int,
    steps: int | None = None,
    timeout: float = 300.0,
    seed: int = 0,
) -> Ended:
    """Run `text` as the program `path` on a device; see `Job`. `statements`: how many statements the text has."""
    with tempfile.TemporaryDirectory(prefix="devlint-", ignore_cleanup_errors=True) as folder:
        place = Path(folder)
        files = {name: str(place / name) for name in ("report", "counts", "crash")}
        Path(files["counts"]).write_bytes(bytes(16 * max(statements, 1)))
        Path(files["report"]).touch()
        Path(files["crash"]).touch()
        job = Job(script, path, text, arguments, device, steps, timeout, seed, **files)
        (place / "job").write_text(json.dumps(asdict(job)), encoding="utf-8")
        # Opened here first, so that a program that clears the temporary folder does not take its report along.
        with open(files["report"], "rb") as report, open(files["counts"], "rb") as counts, open(files["crash"]) as crash:
            ended = _supervise(str(place / "job"), device, timeout)
            ended.report = _parse(report.read())
            ended.counts, ended.elsewhere = _read_counts(counts.read())
            ended.crash = crash.read()
    return ended


def _supervise(job_file: str, device: str, timeout: float) -> Ended:
    home = str(Path(__file__).resolve().parents[2])
    start = (
        f"import sys; sys.path.insert(0, {home!r}); from devlint.runtime.launch import main; "
        f"sys.path.remove({home!r}); main({job_file!r})"
    )
    mark = uuid.uuid4().hex
    child = subprocess.Popen(
        [sys.executable, "-u", "-c", start],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=_environment(device, mark),
        start_new_session=True,
    )
    assert child.stdout is not None and child.stderr is not None
    streams = [_Tail(child.stdout), _Tail(child.stderr)]
    returncode: int | None
    try:
        returncode = child.wait(timeout + GRACE + START_UP)
    except subprocess.TimeoutExpired:
        returncode = None
    finally:
        left = _end_all(child, mark)
    out, err = (stream.text() for stream in streams)
    return Ended(returncode, None, stdout=out, stderr=err, left_behind=left)


def _environment(device: str, mark: str) -> dict[str, str]:
    environment = dict(os.environ)
    environment[_MARK] = mark
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    environment["PYTHONHASHSEED"] = "0"
    if device == "cpu" or device.startswith("sim"):
        environment["CUDA_VISIBLE_DEVICES"] = ""
    return environment


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


def _end_all(child: subprocess.Popen[bytes], mark: str) -> int:
    """Kill the child if it runs, and every process it left behind; returns how many those were."""
    if os.name == "nt":
        if child.poll() is None:
            subprocess.run(["taskkill", "/T", "/F", "/PID", str(child.pid)], capture_output=True, check=False)
            child.wait()
        return 0
    left = [pid for pid in _marked(mark) if pid != child.pid]
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    deadline = time.monotonic() + 5.0
    while (alive := list(_marked(mark))) and time.monotonic() < deadline:
        for pid in alive:  # also those that started a session of their own
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
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
