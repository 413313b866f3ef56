"""The processes of a watched program: those it starts are put on the same device, and their reports join its own.

An interpreter that the program starts imports a private `sitecustomize` first, which waits for it to import torch, and
then enters the device. A forked child is on the device already, and begins a report of its own. Each process writes
its report to a file in a private folder when it ends, and when it finds something new, since others may end it. Free of
torch.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import glob
import json
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, NoReturn

from devlint.runtime.findings import CAUGHT, KINDS, Finding, sort
from devlint.runtime.launch import end_now
from devlint.runtime.recorder import Event
from devlint.runtime.serving import ImportCalls
from devlint.runtime.signals import reported_before

if TYPE_CHECKING:
    from devlint.runtime.watch import Watch

_VARIABLE: Final = "DEVLINT_WATCH"
# Cheap, since many interpreters that a program starts never import torch.
_SITECUSTOMIZE: Final = """\
import importlib.machinery, os, sys

class DevlintWaitsForTorch:
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name != "torch":
            return None
        sys.meta_path.remove(cls)
        if not os.path.isdir({folder!r}):
            return None
        sys.path.insert(0, {home!r})
        try:
            from devlint.runtime import family
        finally:
            sys.path.remove({home!r})
        return family.torch_spec({folder!r}, path)

while {site!r} in sys.path:
    sys.path.remove({site!r})
if os.environ.get({variable!r}) == {folder!r}:
    sys.meta_path.insert(0, DevlintWaitsForTorch)
if importlib.machinery.PathFinder.find_spec("sitecustomize") is not None:
    sys.path.insert(0, {home!r})
    try:
        from devlint.runtime.follow import next_sitecustomize
    finally:
        sys.path.remove({home!r})
    next_sitecustomize()
"""


@dataclass(frozen=True, slots=True)
class Report:
    """What one process wrote: the program's own (in memory only), or one that it started or forked.

    name: how it is named to the user: its rank, or the name of the `multiprocessing.Process`, or its number.
    how: one line on how it ended, empty for a plain end or for one that was not seen. blocker: what it needed that
    cannot be simulated. memory: bytes held after each optimizer step.
    """

    pid: int
    name: str
    command: tuple[str, ...] = ()
    how: str = ""
    blocker: str | None = None
    findings: tuple[Finding, ...] = ()
    events: tuple[Event, ...] = ()
    kernels: int = 0
    dropped: int = 0
    memory: tuple[int, ...] = ()
    steps: int = 0
    notes: tuple[str, ...] = field(default=())

    def as_row(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "findings": [asdict(finding) for finding in self.findings]}


class Family:
    """A program's processes. device: for `watching`; steps: after so many optimizer steps a started process ends."""

    def __init__(self, folder: str, device: str, steps: int | None = None) -> None:
        self.folder = folder
        self.device = device
        self.steps = steps

    @classmethod
    @contextlib.contextmanager
    def founded(cls, device: str, steps: int | None = None) -> Iterator[Family]:
        """Inside, interpreters that this process starts belong to the family."""
        owner = os.getpid()
        folder = tempfile.mkdtemp(prefix="devlint-")
        family = cls(folder, device, steps)
        before = {name: os.environ.get(name) for name in ("PYTHONPATH", _VARIABLE)}
        try:
            family._write()
            path = [os.path.join(folder, "site"), *filter(None, [before["PYTHONPATH"]])]
            os.environ.update({"PYTHONPATH": os.pathsep.join(path), _VARIABLE: folder})
            yield family
        finally:
            if os.getpid() == owner:
                for name, value in before.items():
                    if value is None:
                        os.environ.pop(name, None)
                    else:
                        os.environ[name] = value
                shutil.rmtree(folder, ignore_errors=True)

    def _write(self) -> None:
        site = os.path.join(self.folder, "site")
        os.mkdir(site)
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        with open(os.path.join(site, "sitecustomize.py"), "w", encoding="utf-8") as file:
            file.write(_SITECUSTOMIZE.format(home=home, folder=self.folder, site=site, variable=_VARIABLE))
        with open(os.path.join(self.folder, "job"), "w", encoding="utf-8") as file:
            json.dump({"device": self.device, "steps": self.steps}, file)

    def reports(self) -> list[Report]:
        """What the processes wrote so far, in the order of their names."""
        found: list[Report] = []
        for path in glob.glob(os.path.join(glob.escape(self.folder), "report.*.json")):
            with contextlib.suppress(OSError, ValueError, TypeError), open(path, encoding="utf-8") as file:
                found.append(_report(json.load(file)))
        return sorted(found, key=lambda report: (len(report.name), report.name, report.pid))


def _report(row: dict[str, Any]) -> Report:
    findings = [Finding.of_fields(each) for each in row["findings"]]
    events = [Event(**each) for each in row["events"]]
    tuples = {name: tuple(row[name]) for name in ("command", "memory", "notes")}
    return Report(**{**row, **tuples, "findings": tuple(findings), "events": tuple(events)})


class Member:
    """This process as one of a family.

    first: whether it is the program itself, whose report someone else writes; a process forked from it is not.
    """

    def __init__(self, family: Family, watch: Watch, *, first: bool) -> None:
        self.family = family
        self.watch = watch
        self.first = first
        self.error: BaseException | None = None
        self._forked = False
        self._ended = False

    @contextlib.contextmanager
    def watched(self) -> Iterator[Member]:
        """Inside, forked children and processes of `multiprocessing` write reports."""
        from multiprocessing.process import BaseProcess

        process: Any = BaseProcess
        plain = process._bootstrap

        def bootstrap(this: Any, *arguments: Any, **named: Any) -> Any:
            this.run = self._noting(this.run)
            return plain(this, *arguments, **named)

        process._bootstrap = bootstrap
        _members.append(self)
        try:
            yield self
        finally:
            process._bootstrap = plain
            _members.remove(self)

    def _noting(self, run: Callable[[], Any]) -> Callable[[], Any]:
        """Remember the exception that ends a process, since `multiprocessing` prints it and goes on."""

        @functools.wraps(run)
        def noted() -> Any:
            try:
                return run()
            except SystemExit as stop:
                self.error = stop.__context__ if stop.code else None
                raise
            except BaseException as error:
                self.error = error
                raise

        return noted

    def after_fork(self) -> None:
        """In a forked child: what happened before belongs to the parent."""
        self.first = False
        self._forked = True
        self._ended = False
        self.error = None
        self.watch.forget()
        self.watch.recorder.on_news = self.write

    def end(self, how: str = "") -> None:
        """Write the last report of this process."""
        if not self._ended:
            self.write(how)
            self._ended = True

    def write(self, how: str = "") -> None:
        """Write what there is to report so far."""
        if self.first or self._ended:
            return
        from devlint.runtime.watch import cannot_simulate

        watch = self.watch
        blocker = cannot_simulate(self.error)
        events = watch.recorder.events()
        if self._forked and not events and self.error is None:
            return
        rank = os.environ.get("RANK")
        command = list(getattr(sys, "orig_argv", sys.argv))
        report = Report(
            pid=os.getpid(),
            name=f"rank {rank}" if rank is not None and not self._forked else _process_name(),
            command=tuple(command),
            how=how or ("" if self.error is None else f"{type(self.error).__name__} ended it"),
            blocker=None if blocker is None else str(blocker),
            findings=tuple(watch.findings(None if blocker is not None else self.error)),
            events=tuple(events),
            kernels=sum(watch.recorder.kernels.values()),
            dropped=watch.recorder.dropped,
            memory=tuple(watch.memory.samples),
            steps=watch.memory.steps,
            notes=tuple(watch.notes),
        )
        path = os.path.join(self.family.folder, f"report.{os.getpid()}")
        with contextlib.suppress(OSError):  # the program is over, its folder is gone
            with open(path, "w", encoding="utf-8") as file:
                json.dump(report.as_row(), file, default=str)
            os.replace(path, path + ".json")

    # ------------------------------------------------------------------ an interpreter of its own

    def watch_end(self) -> None:
        """See how this interpreter ends."""
        from devlint.runtime.watch import cannot_simulate, show_exception

        atexit.register(self.end)
        self.watch.recorder.on_news = self.write
        plain_hook, leave = sys.excepthook, os._exit

        def excepthook(kind: type[BaseException], error: BaseException, trace: Any) -> None:
            self.error = error
            if cannot_simulate(error) is not None or self.watch.error_behind(error) is not None:
                show_exception(error, trace)
            else:
                plain_hook(kind, error, trace)

        def exit_after_report(status: int) -> NoReturn:
            self.end()
            leave(status)

        sys.excepthook = excepthook
        os._exit = exit_after_report
        if self.family.steps is not None:
            self._end_after(self.family.steps)

    def _end_after(self, steps: int) -> None:
        from torch.optim.optimizer import register_optimizer_step_post_hook

        def after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
            if self.watch.memory.steps >= steps and not self._forked:
                self.end(f"ended by devlint after {steps} optimizer steps")
                end_now(0)

        register_optimizer_step_post_hook(after_step)


_members: list[Member] = []


def _after_fork() -> None:
    for member in _members:
        member.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _process_name() -> str:
    multiprocessing = sys.modules.get("multiprocessing.process")
    name = multiprocessing.current_process().name if multiprocessing is not None else "MainProcess"
    return f"process {os.getpid()}" if name == "MainProcess" else str(name)


def torch_spec(folder: str, path: Any) -> Any:
    """Where torch is, for an interpreter of the family in a folder: with torch it enters the device."""
    calls: dict[str, Callable[[Any], None]] = {}
    job = os.path.join(folder, "job")
    with contextlib.suppress(OSError, ValueError), open(job, encoding="utf-8") as file:  # the program may be over
        calls["torch"] = functools.partial(_begin, Family(folder, **json.load(file)))
    return ImportCalls(calls).find_spec("torch", path)


def _begin(family: Family, torch: Any) -> None:
    """torch has been imported: enter the device until the process ends."""
    from devlint.runtime.watch import Watch, watching

    watch = Watch()
    member = Member(family, watch, first=False)
    stack = contextlib.ExitStack()
    stack.enter_context(watching(family.device, watch))
    stack.enter_context(member.watched())
    stack.enter_context(watch.seeing_threads_end())
    stack.enter_context(reported_before(member.end))
    member.watch_end()
    _held.append(stack)


_held: list[contextlib.ExitStack] = []  # until the process ends


# ------------------------------------------------------------------------------------------- one report out of many


def merged(own: Iterable[Finding], reports: Sequence[Report], error: BaseException | None = None) -> list[Finding]:
    """The findings of all processes, equal ones once, with the processes they are from.

    error: what ended the program itself. If it only repeats the text of an error of a started process, as a
    `DataLoader` and `torch.multiprocessing.spawn` do, the finding of that process stands for both.
    """
    told = _told(error)
    found: list[tuple[str, Finding]] = []
    for report in reports:
        for finding in report.findings:
            text = finding.message.partition(CAUGHT)[0]
            if finding.message != text and text in told:
                finding = replace(finding, kind="error", message=text)
            found.append((report.name, finding))
    if any(finding.kind == "error" and finding.message in told for _, finding in found):
        own = [finding for finding in own if finding.kind != "error" or finding.message not in told]
    groups: dict[tuple[Any, ...], tuple[Finding, list[str]]] = {}
    for name, finding in [*(("", finding) for finding in own), *found]:
        key = _without_figures(finding)
        known, names = groups.get(key, (finding, []))
        weightier = (KINDS.index(finding.kind), -finding.count) < (KINDS.index(known.kind), -known.count)
        groups[key] = (finding if weightier else known, [*names, *([name] if name and name not in names else [])])
    return sort(
        replace(finding, details=(*finding.details, f"in {_listed(names)}")) if names else finding
        for finding, names in groups.values()
    )


def _told(error: BaseException | None) -> str:
    """The texts of exceptions that repeat the traceback of another process."""
    from devlint.runtime.watch import chain

    return "\n".join(text for text in map(str, chain(error)) if "Traceback (most recent call last)" in text)


def _without_figures(finding: Finding) -> tuple[Any, ...]:
    """What is the same in two processes that do the same on different cards."""
    texts = (finding.message.partition(CAUGHT)[0], *finding.details)
    return (
        finding.code,
        finding.file,
        finding.line,
        *(re.sub(r"[\d.]+( [kMG]?B)?|once|times", "", each) for each in texts),
    )


def _listed(names: Sequence[str]) -> str:
    return (
        names[0]
        if len(names) == 1
        else f"{len(names)} processes: {', '.join(names[:4])}" + (", ..." if len(names) > 4 else "")
    )
