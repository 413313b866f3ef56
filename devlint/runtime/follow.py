"""Follows a program into the Python processes that it consists of: a command's own, and what it starts.

Each of them imports a private `sitecustomize` first, which calls `attach`. That serves the program's files, and when
the process imports torch, puts it on the device of the job; a process that never does is left as it is. Every process
writes a report of its own. Free of torch.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.machinery
import importlib.util
import os
import random
import re
import runpy
import sys
import types
from typing import Any

from devlint.runtime import launch
from devlint.runtime.serving import ImportCalls, Served, leave_no_trace, start_script

SITECUSTOMIZE = """\
import sys
sys.path.insert(0, {home!r})
try:
    from devlint.runtime import follow
finally:
    sys.path.remove({home!r})
follow.attach({folder!r})
"""


def main(folder: str) -> None:
    """Be the first process of the job's command, in an interpreter that has torch imported already.

    Returns, raises or ends the process as the command does. Only for commands that `can_be_here` accepts.
    """
    job = launch.read_job(os.path.join(folder, "job"))
    arguments = list(job.command[1:])
    os.environ.update(launch.following(folder))
    process = _attach(folder)
    kind = can_be_here(job.command)
    sys.orig_argv[:] = [sys.executable, *arguments]
    if kind == "pytest":
        arguments = ["-m", "pytest", *arguments]
        sys.path.insert(0, os.path.dirname(sys.executable))
    elif kind == "module":
        sys.path.insert(0, os.getcwd())
    else:
        sys.path.insert(0, os.path.dirname(os.path.realpath(arguments[0])))
    for entry in reversed(os.environ.get("PYTHONPATH", "").split(os.pathsep)[1:]):
        if entry and os.path.abspath(entry) not in sys.path:
            sys.path.insert(1, os.path.abspath(entry))
    process.begin(sys.modules["torch"])
    try:
        if kind == "script":
            process.run_script(arguments[0], arguments)
        else:
            sys.argv = arguments[1:]
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
    except BaseException as error:
        if isinstance(error, SystemExit):
            raise  # by its status it is known
        sys.excepthook(type(error), error, error.__traceback__)
        raise SystemExit(1) from None


def can_be_here(command: tuple[str, ...]) -> str | None:
    """Whether a command is a plain start of Python: `script`, `module` or `pytest`; None for any other."""
    name, *arguments = command
    name = os.path.basename(name)
    if name in ("pytest", "py.test"):
        return "pytest"
    if name not in ("python", "python3") and command[0] != sys.executable:
        return None
    if len(arguments) > 1 and arguments[0] == "-m":
        return "module"
    return "script" if arguments and not arguments[0].startswith("-") and os.path.isfile(arguments[0]) else None


def attach(folder: str) -> None:
    """Make this process part of the job in a folder: called before the program's own code, and before torch."""
    site = os.path.join(folder, "site")
    leave_no_trace([site])
    if os.environ.get("DEVLINT_FOLLOW") == folder:
        with contextlib.suppress(OSError, ValueError):  # the run is over, its folder is gone
            _attach(folder)
    next_sitecustomize()


def _attach(folder: str) -> _Process:
    job = launch.read_job(os.path.join(folder, "job"))
    pid = os.getpid()
    counts = os.path.join(folder, f"counts.{pid}")
    with open(counts, "wb") as file:
        file.truncate(16 * max(job.statements, 1))
    report = launch.Log(os.path.join(folder, f"report.{pid}"))
    launch.watch_for_crashes(os.path.join(folder, f"crash.{pid}"))
    launch.count_into(counts)
    served = Served(job.files)
    served.install()
    process = _Process(job, served, report)
    sys.meta_path.insert(
        0,
        ImportCalls(
            {
                "torch": process.begin,
                "numpy.random": lambda numpy: numpy.seed(job.seed),
                "_pytest.runner": process.watch_tests,
                "_pytest.assertion.rewrite": process.keep_from_rewriting,
            }
        ),
    )
    random.seed(job.seed)
    process.watch_end()
    return process


class _Process:
    """What is observed of one process."""

    def __init__(self, job: launch.Job, served: Served, report: launch.Log) -> None:
        self._job = job
        self._served = served
        self._report = report
        self._device = contextlib.ExitStack()
        self._failures: list[dict[str, Any]] = []
        self._passed: list[str] = []
        report.fields["pid"] = os.getpid
        report.fields["rank"] = lambda: os.environ.get("RANK")
        report.fields["identity"] = lambda: list(getattr(_as_process(), "_identity", ()))
        report.fields["pooled"] = lambda: _takes_what_comes(_as_process())
        report.fields["command"] = lambda: list(getattr(sys, "orig_argv", sys.argv))

    def begin(self, torch: Any) -> None:
        """torch has been imported: put the process on the device."""
        try:
            launch.begin(self._job, self._served, self._report, torch, self._device)
        except launch.NoDevice as error:
            self._report.write("no device", message=str(error))
            launch.end_now(1)
        except Exception as error:
            self._report.write("internal error", message=f"{type(error).__name__}: {error}")
            raise

    def watch_end(self) -> None:
        """See how the process ends; start its script, if that is a file of the program, with what is served."""
        report, served = self._report, self._served
        launch.attend(self._job, served, report)
        atexit.register(self._end)
        plain_hook = sys.excepthook

        def excepthook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
            shown = launch.report_end(error, served, report)
            if isinstance(error, launch.StepLimit):
                launch.end_now(0)
            if shown:
                (sys.excepthook if sys.excepthook is not excepthook else plain_hook)(kind, error, trace)

        sys.excepthook = excepthook
        plain_exit = sys.exit

        def exit(status: Any = None, /) -> Any:
            if status not in (None, 0):
                self._report.fields["exit"] = lambda: {"message": str(status)[:500], **where}
                where = launch.standing(sys._getframe(1), served)
            plain_exit(status)

        sys.exit = exit
        script = script_of(list(sys.orig_argv))
        if script is not None and served.known(os.path.abspath(script)):
            start_script(script, lambda: self.run_script(script, sys.argv))

    def _end(self) -> None:
        self._report.write("finished")
        with contextlib.suppress(Exception):
            self._device.close()

    def run_script(self, script: str, arguments: list[str]) -> None:
        """Run a script of the program, or any other, as the main module; `arguments` with the script's name first."""
        path = os.path.abspath(script)
        sys.argv = arguments
        if getattr(sys.flags, "safe_path", False):
            sys.path.pop(0)
        else:
            sys.path[0:1] = [os.path.dirname(os.path.realpath(path))]
        code = self._served.code(path)
        if code is None:
            with open(path, "rb") as file:
                code = compile(file.read(), path, "exec", dont_inherit=True)
        launch.execute(code, path, self._served, self._report)

    def watch_tests(self, runner: types.ModuleType) -> None:
        """pytest has been imported: see which tests fail, and where."""
        self._report.fields["failures"] = lambda: self._failures
        self._report.fields["passed"] = lambda: sorted(set(self._passed) - {row["test"] for row in self._failures})
        call_info: Any = runner.CallInfo
        plain = call_info.from_call.__func__

        def from_call(cls: Any, *arguments: Any, **named: Any) -> Any:
            call = plain(cls, *arguments, **named)
            if call.excinfo is not None:
                self._failed(call.excinfo.value, call.when)
            elif call.when == "call":
                self._passed.append(_test())
            return call

        call_info.from_call = classmethod(from_call)

    def _failed(self, error: BaseException, when: str) -> None:
        from _pytest.outcomes import OutcomeException

        if isinstance(error, launch.StepLimit):
            self._report.write("limit", limit="steps")
            launch.end_now(0)
        if type(error).__name__ == "CollectError" and error.__cause__ is not None:
            error = error.__cause__
        if isinstance(error, OutcomeException) and type(error).__name__ != "Failed":
            return  # skipped, expected to fail, or the end of the session
        if len(self._failures) < 1000:
            row = {"test": _test() if when != "collect" else "", "when": when, **launch.describe(error)}
            blocker = launch.blocker_of(error)
            row["blocker"] = None if blocker is None else str(blocker)
            self._failures.append({**row, **launch.place_of(error, self._served)})

    def keep_from_rewriting(self, rewrite: types.ModuleType) -> None:
        """pytest would compile test files from disk; those that are served go without its rewritten assertions."""
        hook: Any = rewrite.AssertionRewritingHook
        plain = hook.find_spec

        def find_spec(self_: Any, *arguments: Any, **named: Any) -> Any:
            spec = plain(self_, *arguments, **named)
            return None if spec is not None and self._served.known(spec.origin or "<none>") else spec

        hook.find_spec = find_spec


def _as_process() -> Any:
    """This process as `multiprocessing` knows it; None where that is not imported."""
    known = sys.modules.get("multiprocessing.process")
    return known.current_process() if known is not None else None


def _takes_what_comes(process: Any) -> bool:
    """Whether it is the worker of a pool: which work it gets is a race."""
    module = getattr(getattr(process, "_target", None), "__module__", None)
    return module in ("multiprocessing.pool", "concurrent.futures.process")


def script_of(command: list[str]) -> str | None:
    """The script on an interpreter's command line; None when it runs a module, a command or standard input."""
    arguments = iter(command[1:])
    for argument in arguments:
        if argument in ("-W", "-X", "--check-hash-based-pycs"):
            next(arguments, None)
        elif argument == "-" or re.match(r"-[A-Za-z]*[cm]", argument):
            return None
        elif not argument.startswith("-"):
            return argument
    return None


def _test() -> str:
    """The test that pytest runs now."""
    return os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" ")[0]


def next_sitecustomize() -> None:
    """Import the `sitecustomize` that this one stands before, if there is one."""
    mine = sys.modules.get("sitecustomize")
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None and spec.origin != getattr(mine, "__file__", None):
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)
