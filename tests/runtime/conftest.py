"""What tests of verify share: one launcher for the session, and runners that remember the runs of a program."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from devlint.runtime.correction import FixCase
from devlint.runtime.processes import Launcher
from devlint.runtime.verify import Finder, Report, Request, Runner, find_with_linter, verify

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "runtime"

Verifier = Callable[..., Report]


@pytest.fixture(scope="session")
def launcher() -> Iterator[Launcher]:
    """Children with one thread each: the programs are small, and the tests may run beside others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, "OMP_NUM_THREADS", "1")
        with Launcher() as made:
            yield made


@pytest.fixture(scope="session")
def verify_program(launcher: Launcher) -> Verifier:
    """Verify a program of fixtures/runtime with the linter's fixes, some of them replaced by others."""
    runners: dict[tuple[str, str, tuple[str, ...], int | None], Runner] = {}
    linted: dict[str, tuple[str, Finder, list[FixCase]]] = {}

    def run(
        program: str,
        device: str = "sim",
        *,
        arguments: Sequence[str] = (),
        steps: int | None = None,
        change: Callable[[str, list[FixCase]], list[FixCase]] | None = None,
    ) -> Report:
        path = PROGRAMS / program
        if program not in linted:
            text, find = find_with_linter(path, (), ())
            linted[program] = text, find, find(text)
        text, find, cases = linted[program]
        key = (program, device, tuple(arguments), steps)
        if key not in runners:
            request = Request(str(path), tuple(arguments), device, steps, timeout=60.0)
            runners[key] = Runner(request, launcher)
        runner = runners[key]
        if change is None:
            return verify(runner.request, text, cases, runner, find)
        return verify(runner.request, text, change(text, list(cases)), runner)

    return run
