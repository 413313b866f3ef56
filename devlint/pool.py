"""Runs the tasks of many files, in worker processes when that pays; outcomes keep the order of the tasks.

A worker is a Python of its own that reads chunks of tasks from its standard input and writes outcomes to its standard
output (`devlint.worker_process`). Its search path is that of this process, without the current directory: what Python's
`multiprocessing` starts with `-c` imports `random.py` and `multiprocessing.py` from there, of the tree that is checked.
The end of its standard input ends a worker, so that none outlives this process, however that ends.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from devlint import worker
from devlint.model import FileResult, Statistics
from devlint.report import FileReport
from devlint.safe_path import safe_path
from devlint.worker import Outcome, Task

if TYPE_CHECKING:
    from concurrent.futures import Future

FILES_PER_JOB = 50  # below this number of files a worker process costs more than it saves
CHUNK = 16
CLOSING = 5.0  # seconds in which all workers may end what they are writing

_START = """
import pickle, sys
try:
    sys.path[:] = pickle.load(sys.stdin.buffer)
except EOFError:
    sys.exit()
from devlint.worker_process import main
main()
"""


def jobs_for(files: int, wanted: int) -> int:
    """The number of processes for so many files; `wanted` 0 lets the machine and the number of files decide."""
    if wanted:
        return max(1, min(wanted, files))
    affinity = getattr(os, "sched_getaffinity", None)  # not on every platform
    processors = len(affinity(0)) if affinity is not None else os.cpu_count() or 1
    return max(1, min(processors, files // FILES_PER_JOB))


def run_all(tasks: Sequence[Task], wanted: int = 0) -> Iterator[Outcome]:
    """The outcome of each task, in order."""
    jobs = jobs_for(len(tasks), wanted)
    if jobs == 1 or not _may_start():
        yield from worker.run_each(tasks)
        return
    size = max(1, min(CHUNK, len(tasks) // (jobs * 4)))
    crew = _Crew(jobs)
    try:
        chunks = [tasks[start : start + size] for start in range(0, len(tasks), size)]
        for chunk, future in [(chunk, crew.submit(chunk)) for chunk in chunks]:
            try:
                yield from future.result()
            except _CannotStartError:
                yield from worker.run_each(chunk)
    finally:
        crew.end()


def command() -> list[str]:
    """What starts a worker. `-I`: nothing but what Python itself and its environment hold is imported at first."""
    options = ["-I", *(["-B"] if sys.dont_write_bytecode else []), *(["-X", "utf8"] if sys.flags.utf8_mode else [])]
    return [sys.executable, *options, "-c", _START]


def _may_start() -> bool:
    return bool(sys.executable) and not getattr(sys, "frozen", False)


class _CannotStartError(Exception):
    """No worker process can be had here."""


class _DiedError(Exception):
    """A worker process ended before it had answered."""


class _Worker:
    """One worker process."""

    def __init__(self) -> None:
        """Start it. Raises _CannotStartError when it does not come up."""
        try:
            # A process group of its own: Ctrl-C is for this process, which ends the workers.
            self._process = subprocess.Popen(
                command(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=None if sys.stderr is not None else subprocess.DEVNULL,
                start_new_session=True,
                creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),
            )
        except OSError as error:
            raise _CannotStartError from error
        try:
            self._send(safe_path())
            self._receive()
        except _DiedError as error:
            self.end(time.monotonic() + CLOSING)
            raise _CannotStartError from error

    def ask(self, tasks: Sequence[Task]) -> list[Outcome]:
        """The outcomes of some tasks. Raises _DiedError when the process ends before it has answered."""
        self._send(tasks)
        answer = self._receive()
        assert isinstance(answer, list)
        return answer

    def _send(self, what: object) -> None:
        assert self._process.stdin is not None
        try:
            pickle.dump(what, self._process.stdin)
            self._process.stdin.flush()
        except (OSError, ValueError) as error:  # ValueError: closed by `end`
            raise _DiedError from error

    def _receive(self) -> object:
        assert self._process.stdout is not None
        try:
            return pickle.load(self._process.stdout)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError) as error:
            raise _DiedError from error

    def let_go(self) -> None:
        """Tell the process to end, which it does at once or when it has written what it is writing."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def end(self, until: float) -> None:
        """End the process: by itself until a time of `time.monotonic`, then by force, as one in a long call of C."""
        self.let_go()
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


class _Crew:
    """Threads that hand chunks of tasks to a worker each."""

    def __init__(self, jobs: int) -> None:
        import threading
        from concurrent.futures import ThreadPoolExecutor

        self._threads = ThreadPoolExecutor(jobs)
        self._own = threading.local()
        self._lock = threading.Lock()
        self._all: list[_Worker] = []
        self._is_over = False

    def submit(self, tasks: Sequence[Task]) -> Future[list[Outcome]]:
        return self._threads.submit(self._run, tasks)

    def _run(self, tasks: Sequence[Task]) -> list[Outcome]:
        """The outcomes of a chunk. A file that ends its process is named, all others are checked."""
        try:
            return self._worker().ask(tasks)
        except _DiedError:
            self._own.worker = None
        if self._is_over:
            return []
        if len(tasks) > 1:
            return [outcome for task in tasks for outcome in self._run([task])]
        name = tasks[0].name
        message = f"{name}:1: internal error: the process that checked this file ended abruptly"
        return [Outcome(FileReport(FileResult(name, statistics=Statistics(files=1))), errors=[message])]

    def _worker(self) -> _Worker:
        known: _Worker | None = getattr(self._own, "worker", None)
        if known is None:
            with self._lock:
                if self._is_over:
                    raise _DiedError
                known = self._own.worker = _Worker()
                self._all.append(known)
        return known

    def end(self) -> None:
        """End all workers, whatever they are doing, and wait until the threads are gone."""
        self._threads.shutdown(wait=False, cancel_futures=True)
        with self._lock:
            self._is_over = True
        for each in self._all:
            each.let_go()
        until = time.monotonic() + CLOSING
        for each in self._all:
            each.end(until)
        self._threads.shutdown(wait=True)
