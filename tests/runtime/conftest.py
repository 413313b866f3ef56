"""What tests of verify and run share: a launcher for the session, runs that are remembered, one process with torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from devlint.runtime.correction import FixCase
from devlint.runtime.processes import Launcher
from devlint.runtime.verify import Finder, Report, Request, Runner, find_with_linter, verify
from tests.runtime.running import SERVER, Ended, Run

PROGRAMS = Path(__file__).parents[2] / "fixtures" / "runtime"

Verifier = Callable[..., Report]


def selected(program: str) -> tuple[str, ...]:
    """The rules that a program of fixtures/runtime is looked at with, as written beside it; () for the default ones."""
    import tomllib  # Python 3.11 and later

    path = (PROGRAMS / program).with_suffix(".toml")
    return tuple(tomllib.loads(path.read_text(encoding="utf-8")).get("select", ())) if path.exists() else ()


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
            text, find = find_with_linter(path, selected(program), ())
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


@pytest.fixture(scope="module")
def server() -> Iterator[subprocess.Popen[str]]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


@pytest.fixture
def run(server: subprocess.Popen[str], tmp_path: Path) -> Run:
    """Run a program on one simulated card, by default with the report as JSON."""

    def run_program(
        text: str,
        *arguments: str,
        options: tuple[str, ...] = ("--json",),
        device: str = "sim",
        script: str = "train.py",
    ) -> Ended:
        folder = tmp_path / "project"
        folder.mkdir(exist_ok=True)
        (folder / "train.py").write_text(textwrap.dedent(text), encoding="utf-8")
        out, err = tmp_path / "out", tmp_path / "err"
        out.unlink(missing_ok=True)
        err.unlink(missing_ok=True)
        argv = ["run", "--device", device, *options, script, *arguments]
        assert server.stdin is not None and server.stdout is not None
        request = {"argv": argv, "folder": str(folder), "out": str(out), "err": str(err)}
        print(json.dumps(request), file=server.stdin, flush=True)
        status = int(server.stdout.readline())
        return Ended(status, out.read_text(encoding="utf-8"), err.read_text(encoding="utf-8"))

    return run_program


@pytest.fixture
def shared_launcher(launcher: Launcher, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` uses the session's launcher, which is not closed with the command."""

    class Shared(Launcher):
        def __enter__(self) -> Launcher:
            return launcher

    monkeypatch.setattr("devlint.runtime.verify.Launcher", Shared)
