"""pytest plugin: run a test suite as if an accelerator were there. Off unless asked for; needs torch only then.

`pytest --devlint-device=sim:2` simulates two cards from before the first conftest is imported until the end of the
session, so that `skipif(not torch.cuda.is_available())` lets tests run. A device error gets a note that names the
variable left behind; what cannot be simulated skips the test, by name; a summary lists what waited and which timers
read the clock too early. `@pytest.mark.devlint_device("sim:2")` and the fixture `devlint_device` do the same for one
test.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from devlint.runtime.family import Family
    from devlint.runtime.findings import Finding
    from devlint.runtime.recorder import Event
    from devlint.runtime.shadows.shadow import Shadow, Tally
    from devlint.runtime.watch import Watch

_OPTION = "--devlint-device"
_SHADOW = "--devlint-shadow"
_STRICT = "--devlint-shadow-strict"
_MARKER = "devlint_device"
_NO_SYNC = "devlint_no_sync"
_KEY = pytest.StashKey["_Session"]()
_MOST_LINES = 20
_MOST_NAMED = 6
_SENT = "devlint"  # what a worker of xdist sends, by this name


@dataclass(frozen=True, slots=True)
class TestDevice:
    """What the fixture `devlint_device` gives: the device a test runs on, and what was recorded so far.

    name: such as ``cuda:0``, for `torch.device` and `.to`. watch: the recorder and the findings.
    """

    __test__ = False  # no test class, whatever its name says

    name: str
    watch: Watch

    def __str__(self) -> str:
        return self.name

    def events(self) -> list[Event]:
        """Synchronizations, transfers, clock reads and faults since the simulation started."""
        return self.watch.recorder.events()


@dataclass(slots=True)
class Share:
    """How much of a suite was on the card by itself."""

    tests: int = 0
    on_card: int = 0

    def add(self, other: Share) -> None:
        """Add that of another process."""
        self.tests += other.tests
        self.on_card += other.on_card


class _Session:
    """The device of a whole session, and the devices of single tests."""

    def __init__(self, text: str | None, package: str | None = None) -> None:
        self.text = text
        self.package = package  # whose calls are repeated on the card; "": those of all modules; None: of none
        self.shadow: Shadow | None = None
        self.share = Share()
        self._sent: Tally | None = None
        self.watch: Watch | None = None
        self.received: list[dict[str, Any]] = []
        self.received_hidden: list[dict[str, Any]] = []
        self.tests: list[Watch] = []  # of tests with a marker of their own
        self._accounted: Counter[tuple[str | None, int]] = Counter()
        self._stack = ExitStack()
        self._family: Family | None = None

    def start(self) -> None:
        """Enter the device of the session."""
        from devlint.errors import DevlintError
        from devlint.runtime.family import Family, Member
        from devlint.runtime.launch import extra_environment
        from devlint.runtime.recorder import Recorder
        from devlint.runtime.watch import Watch, check_device, choose_device, watching

        assert self.text is not None
        try:
            text = check_device(self.text, _OPTION)
            if "torch" not in sys.modules:
                os.environ.update(extra_environment(text))
            device = choose_device(text)
        except (DevlintError, ImportError) as error:
            raise pytest.UsageError(str(error)) from error
        if self.watch is None:
            self.watch = Watch(Recorder(kernel_lines=False))  # which line queues how much is no matter of a suite
            self.watch.memory.track = False  # a suite has no steps of its own
        self._family = self._stack.enter_context(Family.founded(device))
        self._stack.enter_context(watching(device, self.watch))
        self._stack.enter_context(Member(self._family, self.watch, first=True).watched())
        self._stack.enter_context(_asserted_errors(self))
        if device.startswith("sim"):
            from devlint.runtime.simulator.session import active_simulation

            simulation = active_simulation()
            assert simulation is not None
            self._stack.enter_context(self._shadowing().watching(simulation, self.watch))

    def _shadowing(self) -> Shadow:
        """What counts the calls and, if asked for, repeats them on the card."""
        if self.shadow is None:
            from devlint.runtime.shadows.shadow import Shadow

            self.shadow = Shadow(self.package or "", repeating=self.package is not None)
        return self.shadow

    def stop(self) -> None:
        """Leave it."""
        self._collect()
        self._stack.close()

    def _collect(self) -> None:
        """Keep what processes that the tests started have reported."""
        if self._family is not None:
            self.received += [asdict(event) for report in self._family.reports() for event in report.events]
            self._family = None

    def rows(self) -> list[dict[str, Any]]:
        """The events of this process, of those that its tests started, and of workers of xdist."""
        self._collect()
        own = self.watch.recorder.events() if self.watch is not None else []
        return [asdict(event) for event in own] + self.received

    def tally(self) -> Tally:
        """What was seen of calls; in the controller of xdist, what the workers have sent."""
        from devlint.runtime.shadows.shadow import Tally

        if self.shadow is not None:
            return self.shadow.tally
        if self._sent is None:
            self._sent = Tally()
        return self._sent

    def activity(self) -> Any:
        """Differs after anything was put on a card of the session, or queued there."""
        if self.watch is None:
            return None
        from devlint.runtime.simulator.session import active_simulation

        simulation = active_simulation()
        if simulation is not None:
            return [(card.leases, card.queued) for card in simulation.cards]
        stats = getattr(getattr(sys.modules["torch"], self.watch.kind), "memory_stats", None)
        return stats().get("allocation.all.allocated", 0) if stats is not None else None

    def accounted(self, finding: Finding) -> None:
        """A device error ended a test, or is what a test asserts."""
        self._accounted[finding.file, finding.line] += 1

    def hidden(self) -> list[Finding]:
        """Device errors that neither ended a test nor were asserted: some code caught them."""
        from devlint.runtime.findings import Finding

        own = self.watch.caught(self._accounted) if self.watch is not None else []
        return [*own, *(Finding.of_fields(row) for row in self.received_hidden)]

    def for_test(self, text: str) -> ExitStack:
        """The device of one test instead of the session's, to be closed after the test."""
        from devlint.errors import DevlintError
        from devlint.runtime.recorder import Recorder
        from devlint.runtime.watch import Watch, check_device, choose_device, watching

        try:
            device = choose_device(check_device(text, f"marker {_MARKER}"))
        except (DevlintError, ImportError) as error:
            raise pytest.UsageError(str(error)) from error
        stack = ExitStack()
        if self.watch is not None:
            self.stop()
            stack.callback(self.start)
        watch = Watch(Recorder(kernel_lines=False))
        watch.memory.track = False
        self.tests.append(watch)
        stack.callback(self.tests.remove, watch)
        stack.enter_context(watching(device, watch))
        return stack

    @property
    def current(self) -> Watch | None:
        """The watch of the running test, else of the session."""
        return self.tests[-1] if self.tests else self.watch


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options."""
    group = parser.getgroup("devlint")
    group.addoption(
        _SHADOW,
        metavar="PACKAGE",
        nargs="?",
        const="",
        default=None,
        help="repeat the calls of modules, and of public functions and methods of PACKAGE, on a simulated GPU, and list "
        f"what fails there. Needs {_OPTION}=sim",
    )
    group.addoption(_STRICT, action="store_true", help=f"with {_SHADOW}: fail if a call fails on the simulated GPU")
    group.addoption(
        _OPTION,
        metavar="DEVICE",
        default=None,
        help="run the tests on a simulated accelerator (sim, sim:2, sim:xpu, sim:cuda:3) or on a real one (auto, cuda, "
        "xpu, mps)",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Enter the simulation before the first conftest asks which devices there are."""
    known = early_config.known_args_namespace
    _open(early_config, getattr(known, "devlint_device", None), getattr(known, "devlint_shadow", None))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker; enter the simulation if the plugin was loaded too late for the first conftests."""
    config.addinivalue_line("markers", f'{_MARKER}(device="sim"): run the test on this device, such as "sim:2"')
    config.addinivalue_line("markers", f"{_NO_SYNC}: the host must not wait for the card while the test is called")
    _open(config, config.getoption("devlint_device", None), config.getoption("devlint_shadow", None))


def _open(config: pytest.Config, text: str | None, package: str | None) -> None:
    if _KEY in config.stash:
        return
    if package is not None and not (text or "").startswith("sim"):
        raise pytest.UsageError(f"{_SHADOW} needs a simulated GPU: add {_OPTION}=sim")
    if package and not all(part.isidentifier() for part in package.split(".")):
        raise pytest.UsageError(f"{_SHADOW}={package}: no name of a package; a path of tests goes after --")
    session = config.stash[_KEY] = _Session(text, package)
    if text is not None and not _only_controls(config):
        session.start()
        config.add_cleanup(session.stop)


def _only_controls(config: pytest.Config) -> bool:
    """Whether this process only hands tests to the workers of xdist."""
    options = config.known_args_namespace
    # execnet starts a worker by `python -c`; a suite that a test of a worker starts has the variable, too, and is none
    worker = hasattr(config, "workerinput") or ("PYTEST_XDIST_WORKER" in os.environ and sys.argv[:1] == ["-c"])
    return not worker and bool(getattr(options, "tx", None) or getattr(options, "numprocesses", None))


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say on which device the suite runs."""
    session = config.stash[_KEY]
    if session.text is None:
        return None
    return f"devlint: {session.watch.device if session.watch is not None else session.text}"


# ---------------------------------------------------------------------------------------------------------- tests


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Run a test with a marker, from its setup to its teardown, on the device it asks for."""
    text, session = _wanted(item), item.config.stash[_KEY]
    if session.watch is None and text is None:
        return (yield)
    if session.watch is not None:
        session.watch.begin_part()
    before = session.activity()
    try:
        if text is None:
            return (yield)
        with session.for_test(text):
            return (yield)
    finally:
        session.share.tests += 1
        session.share.on_card += text is not None or session.activity() != before


def _wanted(item: pytest.Item) -> str | None:
    marker = item.get_closest_marker(_MARKER)
    if marker is not None:
        if len(marker.args) > 1 or marker.kwargs:
            raise pytest.UsageError(f'{item.nodeid}: {_MARKER} takes one device, such as {_MARKER}("sim:2")')
        return str(marker.args[0]) if marker.args else "sim"
    session = item.config.stash[_KEY]
    asks = _MARKER in getattr(item, "fixturenames", ()) or item.get_closest_marker(_NO_SYNC) is not None
    return "sim" if asks and session.watch is None else None


@pytest.fixture
def devlint_device(request: pytest.FixtureRequest) -> TestDevice:
    """The device that the test runs on: the marker's, else the session's, else one simulated card."""
    watch = request.config.stash[_KEY].current
    assert watch is not None, "the plugin enters the device before the test's fixtures"
    return TestDevice(f"{watch.kind}:0", watch)


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[Any]) -> None:
    """Explain the device error that ended a test, a fixture or a test of `unittest`; skip what cannot be simulated.

    pytest's own support of `unittest` has put the exception that a `TestCase` kept into `call` by now.
    """
    session = item.config.stash[_KEY]
    watch = session.current
    error = call.excinfo.value if call.excinfo is not None else None
    if watch is None or not isinstance(error, Exception):
        return
    from devlint.runtime.watch import cannot_simulate

    blocker = cannot_simulate(error)
    if blocker is not None:
        skipped = pytest.skip.Exception(f"devlint: {blocker}", _use_item_location=True)
        call.excinfo = pytest.ExceptionInfo.from_exception(_raised(skipped))
        return
    finding = watch.explanation(error)
    if finding is not None:
        session.accounted(finding)
        _hide_own_frames(error)
        _add_note(
            item, error, "\n  ".join([f"devlint: {finding.code} {finding.rule} at {finding.where}", *finding.details])
        )


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Watch the test itself, not its fixtures: what it waits for, and the calls that are to be repeated."""
    if item.get_closest_marker(_NO_SYNC) is None:
        return (yield from _shadowed(item))
    from devlint.runtime.waiting import no_sync

    with no_sync():
        return (yield from _shadowed(item))


def _shadowed(item: pytest.Item) -> Generator[None, None, None]:
    shadow = item.config.stash[_KEY].shadow
    if shadow is None:
        return (yield)
    shadow.test = item.nodeid
    shadow.patches = getattr(item, "funcargs", {}).get("monkeypatch")
    try:
        return (yield)
    finally:
        shadow.test, shadow.patches = "", None
        for found in shadow.fresh:
            item.add_report_section(
                "call", "devlint", "\n".join(["fails on the simulated GPU:", *_shown_place(found.finding)])
            )
        shadow.fresh.clear()


def _shown_place(finding: Finding) -> list[str]:
    """A place with its details; files of installed packages as their package names them."""
    lines = [f"{finding.where}: {finding.code} {finding.message}", *(f"    {line}" for line in finding.details)]
    return [re.sub(r"[^\s]*[/\\\\](?:site|dist)-packages[/\\\\]", "", line) for line in lines]


def _raised(error: BaseException) -> BaseException:
    """The exception with a traceback, which pytest's reports want."""
    try:
        raise error
    except BaseException as raised:
        return raised


def _add_note(item: pytest.Item, error: BaseException, text: str) -> None:
    if text in getattr(error, "__notes__", ()):
        return
    if hasattr(error, "add_note"):
        error.add_note(text)
    else:  # Python 3.10
        item.add_report_section("call", "devlint", text)


@contextlib.contextmanager
def _asserted_errors(session: _Session) -> Iterator[None]:
    """Inside, a device error that a test asserts by `pytest.raises` or `assertRaises` is not one that code hides."""
    import unittest.case

    kinds: list[Any] = [unittest.case._AssertRaisesContext, type(pytest.raises(Exception))]
    plain = [kind.__exit__ for kind in kinds]

    def noting(leave: Any) -> Any:
        @functools.wraps(leave)
        def __exit__(self: Any, kind: Any, error: Any, trace: Any) -> Any:
            finding = getattr(error, "devlint_finding", None)
            if finding is not None:
                session.accounted(finding)
            return leave(self, kind, error, trace)

        return __exit__

    for kind, leave in zip(kinds, plain, strict=True):
        kind.__exit__ = noting(leave)
    try:
        yield
    finally:
        for kind, leave in zip(kinds, plain, strict=True):
            kind.__exit__ = leave


def _hide_own_frames(error: BaseException) -> None:
    """Let pytest leave out the frames of the simulator that raised a device error, as it would have none on a card."""
    from devlint.runtime.launch import is_devlint

    trace = error.__traceback__
    while trace is not None:
        name = trace.tb_frame.f_code.co_filename
        if is_devlint(name) and name != __file__:  # a skip that is raised here must be seen
            trace.tb_frame.f_globals["__tracebackhide__"] = True
        trace = trace.tb_next


# -------------------------------------------------------------------------------------------------------- summary


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker of xdist, send what was recorded to the controller."""
    held = session.config.stash[_KEY]
    output = getattr(session.config, "workeroutput", None)
    if output is None and session.config.getoption("devlint_shadow_strict", False) and held.tally().places:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if session.exitstatus == 0 else session.exitstatus
    if output is not None and held.watch is not None:
        output[_SENT] = json.dumps(
            {
                "events": held.rows(),
                "hidden": [asdict(finding) for finding in held.hidden()],
                "share": asdict(held.share),
                "shadow": held.shadow.tally.as_row() if held.shadow is not None else None,
            }
        )


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """In the controller of xdist, keep what a worker recorded."""
    sent = getattr(node, "workeroutput", {}).get(_SENT)
    if sent is not None:
        session, rows = node.config.stash[_KEY], json.loads(sent)
        session.received += rows["events"]
        session.received_hidden += rows["hidden"]
        session.share.add(Share(**rows["share"]))
        if rows["shadow"] is not None:
            session.tally().add(rows["shadow"])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """List the lines that waited for the device, and the clocks that did not."""
    session = config.stash[_KEY]
    if session.text is None:
        return
    from devlint.runtime.family import merged
    from devlint.runtime.findings import CAUGHT, Totals, from_events, size, times
    from devlint.terminal import printable

    events = _merged(session)
    totals = Totals.of(events)

    def write(line: str) -> None:
        terminalreporter.write_line(printable(line))

    terminalreporter.section(printable(f"devlint: {session.watch.device if session.watch else session.text}"))
    write(
        f"the host waited {times(totals.synchronizations)}; {totals.transfers} transfers, "
        f"{size(totals.bytes_in)} to the device and {size(totals.bytes_out)} back"
    )
    _write_shadow(write, session)
    findings = from_events(events)
    sections = [
        ("device errors that some code caught", merged(session.hidden(), ())),
        *(
            (title, [finding for finding in findings if finding.code in codes])
            for title, codes in (
                ("timers that did not wait for the device", ("DEV401", "DEV402")),
                ("reads of unfinished copies", ("DEV505",)),
                ("lines that waited more than once", ("DEV502",)),
            )
        ),
    ]
    for title, chosen in sections:
        if chosen:
            write(f"{title}:")
        for finding in chosen[:_MOST_LINES]:
            write(f"  {finding.where}: {finding.code} {finding.message}")
            if CAUGHT in finding.message:
                for detail in finding.details:
                    write(f"    {detail}")
        if len(chosen) > _MOST_LINES:
            write(f"  and {len(chosen) - _MOST_LINES} more")


def _write_shadow(write: Callable[[str], None], session: _Session) -> None:
    """How much was on the card by itself, and what fails there when it is repeated."""
    share, tally = session.share, session.tally()
    kind = f"calls of {session.package}" if session.package else "calls of modules"
    calls = f"; {tally.on_card} of {tally.calls} {kind}" if tally.calls else ""
    write(f"chose the GPU themselves: {share.on_card} of {share.tests} tests{calls}")
    if session.package is None:
        return
    write(
        f"repeated on the simulated GPU: {tally.repeated} calls of {len(tally.callables)} functions and modules, "
        f"{tally.left_out} similar calls left out"
    )
    if session.package and not tally.calls:
        write(f"no test called {session.package} with tensors: the option needs the name that Python imports")
    for title, counted in (("not repeated", tally.not_possible), ("failed for other reasons", tally.other)):
        if counted:
            named = [f"{text} ({count})" for text, count in counted.most_common(_MOST_NAMED)]
            more = f", and {len(counted) - _MOST_NAMED} more" if len(counted) > _MOST_NAMED else ""
            write(f"{title}: {sum(counted.values())}, {', '.join(named)}{more}")
    places = sorted(tally.places.values(), key=lambda place: (place.finding.file or "", place.finding.line))
    if places:
        write(f"fails on the simulated GPU, on {len(places)} line{'s' if len(places) != 1 else ''}:")
    for place in places:
        for line in _shown_place(place.finding):
            write(f"  {line}")
        others = f" and {len(place.tests) - 1} more" if len(place.tests) > 1 else ""
        write(f"      called as {place.callables[0]}, by {place.tests[0]}{others}")


def _merged(session: _Session) -> list[Event]:
    """The events of all processes, equal ones added up."""
    from devlint.runtime.recorder import Event

    key: Callable[[dict[str, Any]], str] = lambda row: json.dumps(  # noqa: E731
        {name: value for name, value in row.items() if name not in ("count", "bytes", "pending", "again")}
        | {"unfinished": row["pending"] > 0}
    )
    merged: dict[str, dict[str, Any]] = {}
    for row in session.rows():
        first = merged.setdefault(key(row), {**row, "count": 0, "bytes": 0, "again": 0})
        first["count"] += row["count"]
        first["bytes"] += row["bytes"]
        first["again"] += row["again"]
        first["pending"] = max(first["pending"], row["pending"])
    return [Event(**row) for row in merged.values()]
