"""Runs the tasks of many files, in worker processes when that pays; outcomes keep the order of the tasks."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from devlint import worker
from devlint.model import FileResult, Statistics
from devlint.report import FileReport
from devlint.worker import Outcome, Task

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

FILES_PER_JOB = 50  # below this number of files a worker process costs more than it saves
CHUNK = 16
CLOSING = 5.0  # seconds


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
    if jobs == 1:
        yield from worker.run_each(tasks)
    else:
        yield from _in_processes(tasks, jobs)


def _in_processes(tasks: Sequence[Task], jobs: int) -> Iterator[Outcome]:
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    size = max(1, min(CHUNK, len(tasks) // (jobs * 4)))
    chunks = [tasks[start : start + size] for start in range(0, len(tasks), size)]
    executor = ProcessPoolExecutor(jobs, initializer=_ignore_interrupt)
    done = 0
    try:
        for future in [executor.submit(worker.run_tasks, chunk) for chunk in chunks]:
            yield from future.result()
            done += 1
    except BrokenProcessPool:
        executor.shutdown(wait=True, cancel_futures=True)  # its threads must be gone before another process is forked
        yield from _one_by_one([task for chunk in chunks[done:] for task in chunk])
        done = len(chunks)
    finally:
        if done < len(chunks):
            _end_workers()
        _close(executor)


def _one_by_one(tasks: Sequence[Task]) -> Iterator[Outcome]:
    """What is left after a worker process died: a file that ends its process is named, all others are checked."""
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    executor = ProcessPoolExecutor(1, initializer=_ignore_interrupt)
    try:
        for task in tasks:
            try:
                yield executor.submit(worker.run_task, task).result()
            except BrokenProcessPool:
                message = f"{task.name}:1: internal error: the process that checked this file ended abruptly"
                yield Outcome(FileReport(FileResult(task.name, statistics=Statistics(files=1))), errors=[message])
                executor.shutdown(wait=True)
                executor = ProcessPoolExecutor(1, initializer=_ignore_interrupt)
    except BaseException:
        _end_workers()
        raise
    finally:
        _close(executor)


def _close(executor: ProcessPoolExecutor) -> None:
    """Wait until the executor's own threads are gone, or for CLOSING seconds.

    When the interpreter ends while an executor closes, it may write to a pipe that is closed already and say so on
    standard error (concurrent/futures/process.py, `_python_exit`). The wait has a limit because before Python 3.12 an
    executor whose processes were ended may wait for ever.
    """
    import threading

    closing = threading.Thread(target=executor.shutdown, kwargs={"cancel_futures": True}, daemon=True)
    closing.start()
    closing.join(CLOSING)


def _end_workers() -> None:
    """End the worker processes at once: the run was interrupted, and what they are doing may take long."""
    import multiprocessing

    for process in multiprocessing.active_children():
        process.terminate()


def _ignore_interrupt() -> None:
    """Leave Ctrl-C to the main process."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
