"""`devlint run --device all SCRIPT`: one program on every kind of machine, and a table of where it ends on each.

The program is carried out once for each machine, in a process of its own, with all it does: plain CPU, one simulated
card, two with the second current, an XPU, an MPS device, and a CUDA build of torch on a machine without a card. The last
is torch as it is here, but for `torch.version.cuda` and the errors of the driver that such a build gives.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from devlint.errors import UsageError
from devlint.report import data
from devlint.runtime.findings import shown
from devlint.terminal import printable_report

LIMIT: Final = 600.0  # seconds on one machine


@dataclass(frozen=True, slots=True)
class Machine:
    """A kind of machine. device: for `watching`, or "cpu"; code: carried out before the program."""

    name: str
    device: str
    code: str = ""


# What a CUDA build says where no driver is found [torch/csrc/cuda/Module.cpp, c10/cuda/CUDAFunctions.cpp].
_NO_DRIVER: Final = """\
def _no_driver(*args, **kwargs):
    raise RuntimeError(
        "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU and installed a driver"
    )
torch.version.cuda = torch.version.cuda or "12.8"
torch.backends.cuda.is_built = lambda: True
torch.cuda._lazy_init = _no_driver
"""
MACHINES: Final = (
    Machine("plain CPU", "cpu"),
    Machine("one CUDA GPU", "sim"),
    Machine("two GPUs, the second current", "sim:2", "torch.cuda.set_device(1)\n"),
    Machine("XPU", "sim:xpu"),
    Machine("MPS", "sim:mps"),
    Machine("CUDA build, no GPU", "cpu", _NO_DRIVER),
)
# Runs the program in the process of one machine: the report goes to a file.
_PROGRAM: Final = """\
import sys
import torch
from devlint.runtime.everywhere import carry_out
carry_out(sys.argv[1], sys.argv[2], sys.argv[3], sys.argv[4:])
"""


@dataclass(frozen=True, slots=True)
class Stop:
    """How the program ended on one machine. line: of the program, 0 where it has none."""

    machine: Machine
    status: int
    how: str
    where: str = ""
    line: int = 0
    file: str = ""
    code: str = ""  # of the finding that explains the end

    @property
    def ends(self) -> bool:
        """Whether the program ended early."""
        return self.status != 0


def run_on_all(script: str, arguments: Sequence[str], as_json: bool, output: str | None) -> int:
    """Carry the program out on each machine and print the table. Returns 1 if it ends early on one of them.

    Raises UsageError for a script that is not there.
    """
    if not os.path.isfile(script):
        raise UsageError(f"{script} is not a file; --device all runs scripts")
    stops = [_on(machine, script, arguments) for machine in MACHINES]
    said = foreseen(stops)
    text = _as_json(script, stops, said) if as_json else _as_text(script, stops, said)
    if output is not None:
        with open(output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        sys.stderr.write(text)
    return int(any(stop.ends for stop in stops))


def _on(machine: Machine, script: str, arguments: Sequence[str]) -> Stop:
    with tempfile.TemporaryDirectory(prefix="devlint-") as folder:
        report, errors = os.path.join(folder, "report.json"), os.path.join(folder, "stderr")
        status = (_forked if hasattr(os, "fork") else _started)(machine, report, errors, script, arguments)
        if status is None:
            return Stop(machine, 124, f"still running after {LIMIT:.0f} s")
        with contextlib.suppress(OSError, ValueError), open(report, encoding="utf-8") as file:
            row = json.load(file)
            own = row.pop("status")
            return Stop(machine, status or own, **row)
        with open(errors, encoding="utf-8", errors="replace") as file:
            last = " ".join(file.read().strip().splitlines()[-1:])
        return Stop(machine, status or 1, f"the process ended with status {status}: {last}")


def _forked(machine: Machine, report: str, errors: str, script: str, arguments: Sequence[str]) -> int | None:
    """Run in a fork of this process, in which torch is imported once; the exit status, None if it took too long."""
    import torch  # noqa: F401

    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            _redirect(errors)
            carry_out(str(MACHINES.index(machine)), report, script, list(arguments))
            status = 0
        finally:
            os._exit(status)
    ends = time.monotonic() + LIMIT
    while time.monotonic() < ends:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


def _redirect(errors: str) -> None:
    """The program reads nothing and prints nowhere."""
    for number, name in ((0, os.devnull), (1, os.devnull), (2, errors)):
        os.dup2(os.open(name, os.O_RDWR | os.O_CREAT, 0o600), number)
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def _started(machine: Machine, report: str, errors: str, script: str, arguments: Sequence[str]) -> int | None:
    """As `_forked`, in a process of its own, where there is no fork."""
    number = str(MACHINES.index(machine))
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    path = os.pathsep.join([home, *filter(None, [os.environ.get("PYTHONPATH")])])
    with open(errors, "wb") as file:
        try:
            return subprocess.run(
                [sys.executable, "-c", _PROGRAM, number, report, script, *arguments],
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": path},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=file,
                timeout=LIMIT,
                check=False,
            ).returncode
        except subprocess.TimeoutExpired:
            return None


def carry_out(number: str, report: str, script: str, arguments: list[str]) -> None:
    """In the process of one machine: run the program there and write how it ended."""
    import torch

    from devlint.runtime.blame import frames_of
    from devlint.runtime.run import Request, run_program
    from devlint.runtime.watch import Watch, cannot_simulate, watching

    machine = MACHINES[int(number)]
    watch = Watch()
    with contextlib.ExitStack() as stack:
        if machine.device != "cpu":
            stack.enter_context(watching(machine.device, watch))
        exec(compile(machine.code, __file__, "exec"), {"torch": torch})
        sys.argv[0] = script
        end = run_program(Request(script, tuple(arguments)))
    row: dict[str, Any] = {"status": end.status, "how": end.how or "ran to its end"}
    if end.error is not None:
        finding = watch.explanation(end.error)
        own = (each for each in frames_of(end.error.__traceback__) if watch.recorder.is_user(each[0].f_code))
        file, line = next(((frame.f_code.co_filename, at) for frame, at in own), ("", 0))
        text = (str(end.error).strip().splitlines() or [""])[0]
        refused = cannot_simulate(end.error)
        row |= {
            "how": f"{type(end.error).__name__}: {text}" if refused is None else str(refused),
            "where": f"{shown(file)}:{line}" if file else "",
            "file": file,
            "line": line,
            "code": finding.code if finding is not None else "DEV205" if lacks(end.error) else "",
        }
    with open(report, "w", encoding="utf-8") as out:
        json.dump(row, out)


def lacks(error: BaseException) -> bool:
    """Whether the module of one kind of device was asked for what only another kind's has: `torch.mps.current_device`."""
    import torch

    home = getattr(error, "obj", None)
    name = getattr(home, "__name__", "") if isinstance(error, AttributeError) and isinstance(home, ModuleType) else ""
    kinds = {f"torch.{kind}": getattr(torch, kind, None) for kind in ("cuda", "xpu", "mps", "mtia", "cpu")}
    return name in kinds and any(hasattr(kind, getattr(error, "name", None) or "") for kind in kinds.values())


def foreseen(stops: Sequence[Stop]) -> dict[tuple[str, int], list[str]]:
    """The rules that say something at the lines where the program ends, by file and line."""
    from devlint.cli import main

    files = sorted({stop.file for stop in stops if stop.ends and os.path.isfile(stop.file)})
    if not files:
        return {}
    said: dict[tuple[str, int], list[str]] = {}
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
        main(["check", "--select", "ALL", "--isolated", "--no-cache", "--exit-zero", "--output-format", "json", *files])
    with contextlib.suppress(ValueError):
        for row in json.loads(printed.getvalue()):
            first, last = row["location"]["row"], row.get("end_location", row["location"])["row"]
            for line in range(first, last + 1):
                codes = said.setdefault((os.path.realpath(row["filename"]), line), [])
                codes += [row["code"]] if row["code"] not in codes else []
    return said


def rules_of(stop: Stop, said: dict[tuple[str, int], list[str]]) -> list[str]:
    """The rules that say something at the line of an end, else anywhere in its file about the choice that leads to it."""
    if not stop.file:
        return []
    file = os.path.realpath(stop.file)
    elsewhere = {code for (where, _), codes in said.items() if where == file for code in codes}
    return said.get((file, stop.line)) or [code for code in _of_choice(stop.how) if code in elsewhere]


def _of_choice(text: str) -> tuple[str, ...]:
    """The rules about the choice of a device, for an error that is due to it."""
    from devlint.explain.errors import recognise

    error = recognise(text)
    return error.family.codes if error is not None and error.family.sought == "device" else ()


def cause_of(stop: Stop, stops: Sequence[Stop]) -> str:
    """Why the program ends there, where no rule has said it beforehand; "" if nothing tells."""
    if stop.code:
        return f"the rule for this error is {stop.code}"
    if stop.how.startswith("sys.exit("):
        return "the program ends itself"
    if all((each.where, each.how) == (stop.where, stop.how) for each in stops):
        return "it fails alike on every machine, so no device is the reason"
    return ""


def _as_text(script: str, stops: Sequence[Stop], said: dict[tuple[str, int], list[str]]) -> str:
    width = max(len(stop.machine.name) for stop in stops)
    lines = [f"devlint: {script} on {len(stops)} machines", ""]
    for stop in stops:
        where = f"{stop.where}: " if stop.where else ""
        lines.append(f"  {stop.machine.name:<{width}}  {where}{stop.how}")
        if stop.ends and stop.where:
            rules = rules_of(stop, said)
            found = f"reported by {', '.join(rules)}" if rules else "reported by no rule"
            cause = "" if rules else cause_of(stop, stops)
            lines.append(f"  {'':<{width}}    {found}{'; ' + cause if cause else ''}")
    ended = sum(stop.ends for stop in stops)
    lines += ["", f"devlint: the program ends early on {ended} of {len(stops)} machines"]
    return printable_report("\n".join(lines)) + "\n"


def _as_json(script: str, stops: Sequence[Stop], said: dict[tuple[str, int], list[str]]) -> str:
    rows = [
        {
            "machine": stop.machine.name,
            "status": stop.status,
            "how": stop.how,
            "where": stop.where,
            "code": stop.code,
            "said_by": rules_of(stop, said),
            "cause": cause_of(stop, stops) if stop.ends else "",
        }
        for stop in stops
    ]
    return data.as_json({"program": script, "machines": rows}, indent=2) + "\n"
