"""What several tests share: a command line run inside this process, in an empty directory."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from devlint.cli import main

# How fast a machine makes examples says nothing about devlint.
settings.register_profile("devlint", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("devlint")


class Result(NamedTuple):
    """What a command line gave."""

    code: int
    out: str
    err: str


@pytest.fixture(scope="session", autouse=True)
def _own_cache_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What devlint keeps for a user is kept for the tests alone."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache-home")))
        yield


Run = Callable[..., Result]
Cli = Run


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Runs a command line in an empty directory, inside this process."""
    monkeypatch.chdir(tmp_path)
    for name in ("NO_COLOR", "FORCE_COLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)

    def run_it(*arguments: str, stdin: bytes = b"") -> Result:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        captured = capfdbinary.readouterr()
        return Result(code, captured.out.decode("utf-8"), captured.err.decode("utf-8"))

    return run_it


@pytest.fixture
def cli(run: Run) -> Cli:
    """Runs `devlint check` without configuration, DEV501 alone unless `--select` says otherwise, one line a problem."""

    def run_check(*arguments: str, stdin: bytes = b"") -> Result:
        rules = () if "--select" in arguments else ("--select", "DEV501")
        form = () if "--output-format" in arguments else ("--output-format", "concise")
        return run("check", "--no-cache", *rules, *form, *arguments, stdin=stdin)

    return run_check
