"""Random programs: what the facts claim of them, and what the rules report, against what happens when they run.

Each program runs twice, for both values of its flag, on two simulated accelerators.
"""

from __future__ import annotations

import builtins
import sys
import traceback
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import pytest

from devlint.engine import Linter
from devlint.facts.analysis import analyse
from devlint.facts.events import Meet
from devlint.facts.values import Device, Symbol
from devlint.registry import load_rules
from devlint.settings import Settings
from devlint.source import decode, parse
from devlint.testing.probes import PROBE, reveal
from tests.facts import programs
from tests.facts.programs import Program

pytestmark = pytest.mark.runtime

SAMPLE = 60
FILE = "generated.py"
#: Meetings that torch allows: a copy crosses devices, and a tensor that is returned is only left behind.
ALLOWED = ("copy", "size")


@dataclass
class Ran:
    """What the runs of one program showed: devices by row of a probe, rows that ran, rows that an error came through."""

    seen: dict[int, set[str]] = field(default_factory=dict)
    rows: set[int] = field(default_factory=set)
    errors: list[tuple[list[int], Exception]] = field(default_factory=list)


@dataclass
class Result:
    """What the analysis said about some programs, summed up; the lists hold what must not be."""

    probes: int = 0
    known: int = 0
    faulty: int = 0
    reported: int = 0
    wrong: list[str] = field(default_factory=list)
    false: list[str] = field(default_factory=list)
    constructs: set[str] = field(default_factory=set)


def devices_of(value: Any) -> set[str]:
    import torch

    if isinstance(value, torch.nn.Module):
        return {str(t.device) for t in (*value.parameters(), *value.buffers())}
    return {str(value.device)} if isinstance(value, torch.Tensor) else set()


def two_simulated_cards() -> AbstractContextManager[Any]:
    from devlint.runtime.simulator import DeviceSpec, simulate

    return simulate(DeviceSpec("cuda", 2))


def run(text: str, cards: Callable[[], AbstractContextManager[Any]] = two_simulated_cards) -> Ran:
    """Run `main` of a program for both flags, each time with the cards of a new context."""
    import torch

    ran = Ran()
    code = compile(text, FILE, "exec", dont_inherit=True)

    def probe(value: Any) -> Any:
        ran.seen.setdefault(sys._getframe(1).f_lineno, set()).update(devices_of(value))
        return value

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != FILE:
            return None
        ran.rows.add(frame.f_lineno)
        return trace

    for flag in (True, False):
        with pytest.MonkeyPatch.context() as patch, cards():
            patch.setattr(builtins, PROBE, probe, raising=False)
            namespace: dict[str, Any] = {"__name__": "generated"}
            exec(code, namespace)
            before = sys.gettrace()
            sys.settrace(trace)
            try:
                namespace["main"](flag, torch.ones(3, 3, device="cuda:0"), torch.device("cuda:0"))
            except Exception as error:
                rows = [f.lineno or 0 for f in traceback.extract_tb(error.__traceback__) if f.filename == FILE]
                ran.errors.append((rows, error))
            finally:
                sys.settrace(before)
        torch.set_default_device(None)
    return ran


def admits(device: Device, seen: str) -> bool:
    """Whether a claimed device allows the one that was seen. `cuda` without a card allows any card."""
    kind, _, card = seen.partition(":")
    return any(
        isinstance(place, Symbol) or (place.type == kind and (place.card is None or str(place.card) == (card or "0")))
        for place in device
    )


def judge(text: str, ran: Ran, result: Result, name: str) -> None:
    """Compare the facts of a program with its runs."""
    source = decode(text.encode(), FILE)
    facts = analyse(parse(source), source, Settings())
    for span, value in facts.probes:
        row = source.position(span.start).row
        if not ran.seen.get(row):
            continue
        result.probes += 1
        result.known += bool(value.device)
        refuted = [seen for seen in ran.seen[row] if value.device and not admits(value.device, seen)]
        line = source.line_text(row).strip()
        result.wrong += [f"{name}, line {row}, {line}: claimed {reveal(value)}, seen {seen}" for seen in refuted]
    stopped = {row for rows, _ in ran.errors for row in rows}
    for event in facts.events:
        row = source.position(event.span.start).row
        if isinstance(event, Meet) and event.how not in ALLOWED and row in ran.rows - stopped:
            result.false.append(f"{name}, line {row}: `{event.off.text}` does not stop {event.operation}")


def check(seeds: Sequence[int]) -> Result:
    """Write, run and judge the programs of some seeds."""
    result = Result()
    linter = Linter(load_rules())
    for seed in seeds:
        program = programs.program(seed)
        result.constructs |= program.constructs
        ran = run(program.text)
        assert bool(ran.errors) == (program.fault is not None), f"seed {seed}: {program.fault}, {ran.errors}"
        judge(program.text, ran, result, f"seed {seed}")
        if program.fault is not None:
            codes = [d.code for d in linter.check_bytes(program.text.encode(), FILE).diagnostics]
            result.faulty += 1
            result.reported += any(code.startswith(("DEV1", "DEV3")) for code in codes)
    return result


@pytest.fixture(scope="module")
def sample() -> Result:
    return check(range(SAMPLE))


def shares(result: Result) -> str:
    return f"{result.known} of {result.probes} probes known, {result.reported} of {result.faulty} faults reported"


def test_no_claim_is_refuted(sample: Result) -> None:
    print(shares(sample))
    assert not sample.wrong


def test_what_is_called_an_error_raises(sample: Result) -> None:
    assert not sample.false


def test_most_devices_are_known(sample: Result) -> None:
    assert sample.known >= 0.7 * sample.probes, shares(sample)


def test_most_faults_are_reported(sample: Result) -> None:
    assert sample.faulty >= 0.3 * SAMPLE
    assert sample.reported >= 0.8 * sample.faulty, shares(sample)


def test_every_construct_is_written(sample: Result) -> None:
    assert sample.constructs >= programs.CONSTRUCTS


@pytest.mark.slow
def test_five_hundred_programs() -> None:
    result = check(range(SAMPLE, 500))
    print(shares(result))
    assert not result.wrong
    assert not result.false
    assert result.known >= 0.7 * result.probes
    assert result.reported >= 0.8 * result.faulty


def test_programs_are_the_same_for_the_same_seed() -> None:
    assert programs.program(7) == programs.program(7)


def test_every_program_is_long_enough() -> None:
    for seed in range(SAMPLE):
        lines = programs.program(seed).text[len(programs.PREAMBLE) :].splitlines()
        assert sum(bool(line.strip()) and PROBE not in line for line in lines) >= programs.STATEMENTS


def test_a_refuted_claim_shrinks_to_the_statements_that_show_it() -> None:
    program: Program = programs.program(3)
    text = programs.shrink(program.text, lambda candidate: "nn.Linear(3, 3)" in candidate and "net" in candidate)
    assert len(text.splitlines()) <= 3


def test_a_wrong_claim_and_a_false_alarm_are_found() -> None:
    text = f"import torch\nx = torch.ones(3).cuda(1)\n{PROBE}(x)\ny = x + torch.ones(3)\n"
    result = Result()
    judge(text, Ran(seen={3: {"cuda:0"}}, rows={2, 3, 4}), result, "one")
    assert result.wrong == [f"one, line 3, {PROBE}(x): claimed tensor cuda:1, seen cuda:0"]
    assert result.false == ["one, line 4: `torch.ones(3)` does not stop +"]
