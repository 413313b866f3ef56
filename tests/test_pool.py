"""Worker processes: how many, and in which order their outcomes come."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint import pool
from devlint.settings import Settings
from devlint.worker import Task


@pytest.fixture
def two_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda process: {0, 1}, raising=False)


@pytest.mark.usefixtures("two_processors")
@pytest.mark.parametrize(
    ("files", "wanted", "jobs"),
    [
        (0, 0, 1),
        (1, 0, 1),
        (49, 0, 1),
        (99, 0, 1),
        (100, 0, 2),
        (5_000, 0, 2),
        (5, 3, 3),
        (2, 3, 2),
        (0, 3, 1),
        (900, 1, 1),
    ],
)
def test_number_of_processes(files: int, wanted: int, jobs: int) -> None:
    assert pool.jobs_for(files, wanted) == jobs


@pytest.mark.parametrize("jobs", [1, 3])
def test_outcomes_keep_the_order_of_the_tasks(tmp_path: Path, jobs: int) -> None:
    names = [f"m{number}.py" for number in range(40)]
    for name in names:
        (tmp_path / name).write_text("x = 1\n")
    tasks = [Task(str(tmp_path / name), name, Settings()) for name in names]
    assert [outcome.report.result.path for outcome in pool.run_all(tasks, jobs)] == names
