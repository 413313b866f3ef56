"""A plugin for pytest that seeds every test and writes how it ended, so that two runs of a suite can be compared.

    DEVLINT_SEED=0 DEVLINT_OUTCOMES=FILE pytest -p seeded

FILE gets one JSON object: for each test, the outcomes of its parts and subtests, and a digest of the random numbers that
are next after it. Both are the same in two runs if nothing between the tests differs.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import sys
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

_ended: dict[str, list[str]] = {}


def _seed() -> None:
    seed = int(os.environ["DEVLINT_SEED"])
    random.seed(seed)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def _next_numbers() -> str:
    """A digest of the states of the generators of Python, numpy and torch."""
    states: list[Any] = [random.getstate()]
    if "numpy" in sys.modules:
        states.append(sys.modules["numpy"].random.get_state()[1].tolist())
    if "torch" in sys.modules:
        states.append(sys.modules["torch"].get_rng_state().tolist())
    return hashlib.sha256(repr(states).encode()).hexdigest()[:12]


def pytest_collectstart() -> None:
    """Files that draw numbers as they are imported draw the same ones."""
    _seed()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Seed before the fixtures, and keep what is drawn next after them."""
    _seed()
    result = yield
    _ended.setdefault(item.nodeid, []).append(f"next numbers {_next_numbers()}")
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Keep an outcome, of a test's part or of a subtest."""
    context = getattr(report, "context", None)
    part = f"{report.when} {context}" if context is not None else str(report.when)
    _ended.setdefault(report.nodeid, []).append(f"{part}: {report.outcome}")


def pytest_unconfigure() -> None:
    """Write everything."""
    Path(os.environ["DEVLINT_OUTCOMES"]).write_text(json.dumps(_ended, indent=0), encoding="utf-8")
