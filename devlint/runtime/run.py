"""`devlint run [--device sim:2] SCRIPT ARGUMENTS`: run a program on a simulated or real accelerator and report.

This runs the program, in this process, with whatever it does. What it prints and returns stays; at its end a report
goes to standard error, as a sanitizer does it: what is wrong on an accelerator, what makes a figure wrong, and what
waits and moves. On a simulated card tensors stay in host memory and torch's own mixing rules apply; on a real one
nothing is changed, only recorded.
"""

from __future__ import annotations

import argparse
import atexit
import builtins
import contextlib
import json
import os
import shutil
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NoReturn

from devlint.commands.shell import parse
from devlint.errors import UsageError
from devlint.report import data
from devlint.runtime.everywhere import run_on_all
from devlint.runtime.family import Family, Member, Report, merged
from devlint.runtime.findings import Finding, Totals, shown, size, source_line, times, transfers_by_line
from devlint.runtime.launch import StepLimit, end_now, extra_environment, is_devlint
from devlint.runtime.signals import reported_before
from devlint.runtime.watch import DEVICES, Watch, cannot_simulate, check_device, choose_device, show_exception, watching
from devlint.terminal import printable_report

NOT_SIMULATED: Final = 3
_MOST_NOTES = 20
_MOST_LINES = 8
_WITH_VALUE = ("--device", "--steps", "--output", "-m")


@dataclass(frozen=True, slots=True)
class Request:
    """What to run. script: as the user wrote it: a file, a command, or with `module` the name of a module.

    path: the file of a command.
    """

    script: str
    arguments: tuple[str, ...] = ()
    device: str = "auto"
    module: bool = False
    steps: int | None = None
    json: bool = False
    output: str | None = None
    path: str = ""


@dataclass(slots=True)
class End:
    """How the program ended. status: its own exit status. error: the exception that ended it, if one did.

    how: one line for the report, empty for a plain end.
    """

    status: int = 0
    how: str = ""
    error: BaseException | None = None


def main(argv: Sequence[str]) -> int:
    """Run the command. Returns the program's exit status, 1 if the report holds an error, or 3 if the program needs
    what cannot be simulated.

    Raises UsageError for a wrong command line, a missing script, one that is no Python, or a missing device.
    """
    request = _parse(list(argv))
    if not request.module and request.script.endswith(".ipynb"):
        raise UsageError(
            f"{request.script}: run takes no notebooks; save the code as a script, as with: jupyter nbconvert --to script"
        )
    if request.device == "all":
        return run_on_all(request.script, request.arguments, request.json, request.output)
    if not request.module and not os.path.isfile(request.script):
        request = replace(request, path=_command(request.script))
    if not request.module:
        _check_syntax(request.path or request.script)
    if "torch" not in sys.modules:
        os.environ.update(extra_environment(request.device))
    try:
        import torch
    except ImportError as error:
        raise UsageError(f"devlint run needs torch: {error}; `devlint doctor` says more") from error
    device = choose_device(request.device)
    watch = Watch()
    with Family.founded(device, request.steps) as family:
        member = Member(family, watch, first=True)
        report = _Written(request, watch, member, torch.__version__)
        with (
            watching(device, watch),
            member.watched(),
            watch.seeing_threads_end(),
            _reported_before_exit(report),
            reported_before(report.terminated),
            _ended_after(request.steps, report),
        ):
            end = run_program(request)
            _finish_threads_and_handlers()
        if not member.first:  # a child that the program forked, and that came to the program's end
            member.error = end.error
            member.end()
            end_now(end.status & 0xFF)
        return report.write(end)


def _command(name: str) -> str:
    """The file of a command that is written in Python, such as torchrun. Raises UsageError for anything else."""
    found = shutil.which(name) if os.path.basename(name) == name else None
    if found is None:
        raise UsageError(f"{name} is not a file")
    with open(found, "rb") as file:
        first = file.readline(200)
    if not (first.startswith(b"#!") and b"python" in first):
        raise UsageError(f"{name}: {found} is not written in Python; devlint run starts scripts and commands that are")
    return found


def _check_syntax(path: str) -> None:
    """Raise UsageError with the place when a script is no Python, before anything is run."""
    try:
        with open(path, "rb") as file, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # they come again when the script is run
            compile(file.read(), path, "exec", dont_inherit=True)
    except SyntaxError as error:
        place = f"{shown(path)}:{error.lineno or 1}:{max(error.offset or 1, 1)}"
        raise UsageError(f"{place}: {type(error).__name__}: {error.msg}; nothing was run") from error
    except (ValueError, OSError) as error:  # null bytes
        raise UsageError(f"{shown(path)}: {error}; nothing was run") from error


# ------------------------------------------------------------------------------------------------------ the program


def run_program(request: Request) -> End:
    """Carry the program out as `python SCRIPT ARGUMENTS` or `python -m MODULE ARGUMENTS` would."""
    path = os.path.abspath(request.path or request.script)
    try:
        if request.module:
            import runpy

            sys.argv = [request.script, *request.arguments]
            sys.path[0:1] = [os.getcwd()]
            runpy.run_module(request.script, run_name="__main__", alter_sys=True)
        else:
            _run_file(request, path)
    except StepLimit:
        return End(how=f"ended by devlint after {request.steps} optimizer steps")
    except SystemExit as stop:
        if isinstance(stop.code, str):
            print(stop.code, file=sys.stderr)
        status = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        return End(status, f"sys.exit({stop.code!r})" if status else "")
    except KeyboardInterrupt as error:
        return End(130, "interrupted", error)
    except BaseException as error:
        show_exception(error, _user_part(error))
        return End(1, f"{type(error).__name__} ended the program", error)
    return End()


def _run_file(request: Request, path: str) -> None:
    with open(path, "rb") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    sys.argv = [request.path or request.script, *request.arguments]
    sys.path[0:1] = [os.path.dirname(os.path.realpath(path))]
    module = types.ModuleType("__main__")
    module.__file__ = path
    module.__builtins__ = builtins  # type: ignore[attr-defined]
    module.__loader__ = None
    sys.modules["__main__"] = module
    exec(code, module.__dict__)


def _user_part(error: BaseException) -> types.TracebackType | None:
    """The traceback without the frames of devlint and `runpy` that lie above the program."""
    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if not is_devlint(name) and "runpy" not in name:
            return trace
        trace = trace.tb_next
    return None  # a syntax error in the script itself


def _finish_threads_and_handlers() -> None:
    """Wait for the program's threads and run its exit handlers, while its device is still there."""
    with contextlib.suppress(Exception):
        threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()


@contextlib.contextmanager
def _ended_after(steps: int | None, report: _Written) -> Iterator[None]:
    """End the program after this many optimizer steps."""
    if steps is None:
        yield
        return
    from torch.optim.optimizer import register_optimizer_step_post_hook

    memory = report.watch.memory

    def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
        if memory.steps > steps:  # the program caught the first StepLimit
            os._exit(report.write(End(how=f"ended by devlint after {steps} optimizer steps")))
        if memory.steps == steps:
            raise StepLimit

    handle = register_optimizer_step_post_hook(after_step)
    try:
        yield
    finally:
        handle.remove()


@contextlib.contextmanager
def _reported_before_exit(report: _Written) -> Iterator[None]:
    """`os._exit` skips every handler, so the report is written inside it; `os.exec*` becomes a child and its status."""
    leave, execute = os._exit, os.execve

    def exit_after_report(status: int) -> NoReturn:
        if report.member.first:
            status = report.write(End(status, f"os._exit({status})"))
        else:
            report.member.end()
        leave(status)

    def execve(path: Any, arguments: Any, environment: Any) -> NoReturn:
        if not report.member.first:
            execute(path, arguments, environment)
        status = os.spawnve(os.P_WAIT, path, arguments, environment)
        exit_after_report(status if status >= 0 else 128 - status)

    def execv(path: Any, arguments: Any) -> NoReturn:
        execve(path, arguments, os.environ)

    plain = {"_exit": leave, "execve": execute, "execv": os.execv}
    vars(os).update({"_exit": exit_after_report, "execve": execve, "execv": execv})
    try:
        yield
    finally:
        vars(os).update(plain)


# ------------------------------------------------------------------------------------------------------- the report


class _Written:
    """The report, written once."""

    def __init__(self, request: Request, watch: Watch, member: Member, torch: str) -> None:
        self.request = request
        self.watch = watch
        self.member = member
        self.others: list[Report] = []
        self.torch = torch
        self._folder = os.getcwd()
        # A copy, since the program may close its own.
        self._stderr: int | None = None
        with contextlib.suppress(OSError):
            self._stderr = os.dup(2)
        self._written: int | None = None

    def write(self, end: End) -> int:
        """Write the report and return the exit status of the command."""
        if self._written is not None:
            return self._written
        refused = cannot_simulate(end.error)
        blocker = None if refused is None else str(refused)
        self.others = self.member.family.reports()
        own = self.watch.findings(None if blocker is not None else end.error)
        findings = merged(own, self.others, end.error)
        status = end.status
        blocker = blocker or next((each.blocker for each in self.others if status and each.blocker), None)
        if blocker is not None:
            status = NOT_SIMULATED
            end.how = f"{blocker} (this is not a fault of the program)"
        elif any(finding.kind == "error" for finding in findings):
            status = 1
        self._written = status
        here = _folder()
        with contextlib.suppress(OSError):
            os.chdir(self._folder)  # paths are shown, and --output is meant, as the user sees them
        make: Callable[[list[Finding], End, int], str] = self._as_json if self.request.json else self._as_text
        text = make(findings, end, status)
        with contextlib.suppress(OSError):  # a full disk, or a reader that has gone
            if self.request.output is not None:
                with open(self.request.output, "w", encoding="utf-8") as file:
                    file.write(text)
            else:
                self._to_stderr(text)
        if here is not None:
            with contextlib.suppress(OSError):
                os.chdir(here)
        return status

    def terminated(self, how: str) -> None:
        """The process is asked to end: write what there is."""
        if self.member.first:
            self.write(End(143, how))
        else:
            self.member.end(how)

    def _to_stderr(self, text: str) -> None:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                stream.flush()
        data = text.encode(errors="backslashreplace")
        while data and self._stderr is not None:
            data = data[os.write(self._stderr, data) :]

    def _as_text(self, findings: list[Finding], end: End, status: int) -> str:
        lines = [f"devlint: {self.watch.device}, torch {self.torch}"]
        notes = 0
        for finding in findings:
            notes += finding.kind == "note"
            if finding.kind == "note" and notes > _MOST_NOTES:
                continue
            lines += ["", f"{finding.code} {finding.rule} {finding.where}: {finding.kind}: {finding.message}"]
            text = source_line(finding)
            lines += [f"    | {text}"] if text else []
            lines += [f"    {detail}" for detail in finding.details]
            lines.append(f"    summary: {finding.summary}")
        if notes > _MOST_NOTES:
            lines += ["", f"and {notes - _MOST_NOTES} more notes; --json shows all"]
        lines += ["", *self._totals(), *(f"replaced: {note}" for note in self._notes())]
        if end.how:
            lines.append(f"the program: {end.how}")
        counts = [sum(finding.kind == kind for finding in findings) for kind in ("error", "warning", "note")]
        lines.append("devlint: " + ", ".join(_counted(*each) for each in zip(counts, _WORDS, strict=True)))
        return printable_report("\n".join(lines)) + "\n"

    def _totals(self) -> list[str]:
        events = [*self.watch.recorder.events(), *(event for each in self.others for event in each.events)]
        totals = Totals.of(events)
        lines = [f"including {_counted(len(self.others), 'process')} that the program started"] if self.others else []
        lines += [
            f"the host waited {times(totals.synchronizations)}; {_counted(totals.transfers, 'transfer')}, "
            f"{size(totals.bytes_in)} to the device and {size(totals.bytes_out)} back"
        ]
        moved = transfers_by_line(events)
        lines += [f"    {each}" for each in moved[:_MOST_LINES]]
        lines += [f"    and {len(moved) - _MOST_LINES} more lines; --json shows all"] if moved[_MOST_LINES:] else []
        for name, samples in (("", self.watch.memory.samples), *((each.name, each.memory) for each in self.others)):
            if not samples:
                continue
            lines.append(
                f"device memory{' of ' if name else ''}{name}: {size(samples[0])} after step 1, "
                f"{size(samples[-1])} after step {len(samples)}, "
                f"{size(max(samples))} at most"
            )
        dropped = self.watch.recorder.dropped + sum(each.dropped for each in self.others)
        if dropped:
            lines.append(f"{dropped} events at other places were not recorded")
        return lines

    def _notes(self) -> list[str]:
        notes = [self.watch.notes, *(each.notes for each in self.others)]
        return list(dict.fromkeys(note for each in notes for note in each))

    def _as_json(self, findings: list[Finding], end: End, status: int) -> str:
        recorded = json.loads(self.watch.recorder.to_json())
        row = {
            "program": self.request.script,
            "device": self.watch.device,
            "torch": self.torch,
            "exit": {"status": status, "program": end.status, "how": end.how},
            "findings": [{**finding.as_row(), "file": finding.file and shown(finding.file)} for finding in findings],
            "events": recorded["events"],
            "kernels": sum(each["count"] for each in recorded["kernels"]),
            "dropped": recorded["dropped"],
            "memory": self.watch.memory.samples,
            "steps": self.watch.memory.steps,
            "replaced": self._notes(),
            "processes": [each.as_row() for each in self.others],
        }
        return data.as_json(row) + "\n"


_WORDS = ("error", "warning", "note")


def _counted(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 'es' if word.endswith('s') else 's'}"


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:  # the program removed it
        return None


# ------------------------------------------------------------------------------------------------- the command line


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(f"devlint run: {message}")


def _parse(argv: list[str]) -> Request:
    """Split devlint's options from the program: everything after the script's name is the program's own."""
    cut = 0
    while cut < len(argv) and argv[cut].startswith("-") and argv[cut] != "--":
        if argv[cut] == "-m":
            break
        cut += 2 if argv[cut] in _WITH_VALUE else 1
    own, rest = argv[:cut], argv[cut:]
    module = rest[:1] == ["-m"]
    rest = rest[1:] if module or rest[:1] == ["--"] else rest
    options = parse(parser(), own)
    if not rest:
        parser().error("which program? Give a script, or -m and a module")
    if options.steps is not None and options.steps < 1:
        parser().error("--steps must be at least 1")
    if options.device == "all" and (module or options.steps is not None):
        parser().error("--device all runs a script to its end: no -m, no --steps")
    return Request(
        script=rest[0],
        arguments=tuple(rest[1:]),
        device="all" if options.device == "all" else check_device(options.device),
        module=module,
        steps=options.steps,
        json=options.json,
        output=options.output and os.path.abspath(options.output),
    )


def parser() -> argparse.ArgumentParser:
    """The parser of the options of `devlint run`."""
    result = _Parser(
        prog="devlint run",
        usage="devlint run [OPTIONS] SCRIPT [ARGUMENTS]\n       devlint run [OPTIONS] -m MODULE [ARGUMENTS]",
        description="Run a program on a simulated or real accelerator, and report device bugs on standard error. This runs "
        "your program.",
        epilog="Exit codes: the exit code of the program, or 1 if the report contains an error, 2 for wrong usage, 3 if the "
        "program needs something that devlint cannot simulate.",
    )
    result.add_argument(
        "--device",
        default="auto",
        help=f"{DEVICES} (default: auto, which is a real device if there is one, otherwise a simulated one). With `all`, run "
        "the program on plain CPU, one GPU, two GPUs, XPU, MPS and a CUDA build without a GPU, and print a table",
    )
    result.add_argument("--steps", type=int, metavar="N", help="end the program after N optimizer steps")
    result.add_argument("--json", action="store_true", help="print the report as one JSON object")
    result.add_argument("--output", metavar="FILE", help="write the report to this file instead of standard error")
    return result
