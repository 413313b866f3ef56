"""Worker processes: how many, and in which order their outcomes come."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from devlint import pool
from devlint.safe_path import keep_out, safe_path
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


# The tree that is checked

NAMES = (
    "random", "multiprocessing", "pickle", "subprocess", "queue", "signal", "threading", "tempfile", "libcst", "tokenize",
    "tomllib", "sqlite3", "concurrent", "devlint_rules", "json", "_pickle", "sitecustomize", "typing_extensions",
)  # fmt: skip


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A directory with files to check and with modules that say so when they are imported."""
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text(f"open('ran-{name}', 'w').close()\n")
    (tmp_path / "evil-1.dist-info").mkdir()
    (tmp_path / "evil-1.dist-info" / "entry_points.txt").write_text("[devlint.rules]\nevil = random:RULES\n")
    return tmp_path


def _ran(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("ran-"))


PROGRAM = """
import multiprocessing, sys
sys.path[:0] = {path!r}
if {method!r}:
    multiprocessing.set_start_method({method!r})
if __name__ == "__main__":
    from devlint.cli import main
    sys.exit(main())
"""


@pytest.mark.parametrize("method", ["", "spawn", "forkserver", "fork"])
def test_no_module_of_the_tree_is_imported_by_a_worker(
    hostile: Path, tmp_path_factory: pytest.TempPathFactory, method: str
) -> None:
    if method and method not in multiprocessing.get_all_start_methods():
        pytest.skip("not on this platform")
    program = tmp_path_factory.mktemp("elsewhere") / "program.py"
    program.write_text(PROGRAM.format(path=[path for path in sys.path if os.path.isabs(path)], method=method))
    command = [sys.executable, str(program), "check", ".", "-j", "3", "--isolated", "--exit-zero"]
    done = subprocess.run(command, cwd=hostile, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr, _ran(hostile)) == (0, "", [])


@pytest.mark.parametrize("path", [None, "", ".", os.pathsep + ".", "HERE", "HERE/sub", "sub"])
@pytest.mark.parametrize("options", [("-j", "3", "--isolated"), ("-j", "1", "--config", 'plugins = ["evil"]')])
def test_no_module_of_the_tree_is_imported_by_python_m(
    hostile: Path, path: str | None, options: tuple[str, ...]
) -> None:
    (hostile / "sub").mkdir()
    for name in set(NAMES) - {"sitecustomize"}:  # Python itself imports that one, before any program runs
        (hostile / "sub" / f"{name}.py").write_text(f"open('ran-{name}', 'w').close()\n")
    (hostile / "sitecustomize.py").unlink()
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    if path is not None:
        environment["PYTHONPATH"] = path.replace("HERE", str(hostile))
    command = [sys.executable, "-m", "devlint", "check", ".", "--exit-zero", *options]
    done = subprocess.run(command, cwd=hostile, capture_output=True, text=True, timeout=60, env=environment)
    assert _ran(hostile) == [], done.stderr


def test_the_directory_of_python_itself_may_be_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(pool.__file__).parents[1]
    monkeypatch.chdir(home)
    monkeypatch.setattr(sys, "path", [str(home), str(home / "devlint"), os.path.dirname(os.__file__)])
    assert safe_path() == [os.path.dirname(os.__file__), str(home), str(home / "devlint")]


# The end of the process that started the workers

SLEEPY = "import time; from devlint.engine import Linter; Linter.check = lambda self, source: time.sleep(600); main()"
BUSY = "from devlint.engine import Linter; Linter.check = lambda self, source: [0 for _ in iter(int, 1) if _]; main()"
IN_C = (
    "import os; from devlint.engine import Linter; "
    "Linter.check = lambda self, source: (open(str(os.getpid()), 'w').close(), sum(range(10**13))); main()"
)
STARTS = """
import os, sys
from devlint import pool
from devlint.cli import main
pool._START = pool._START.replace("main()", {patch!r})
sys.exit(main(["check", ".", "--isolated", "--no-cache", "-j", "2"]))
"""


def _children(pid: int) -> list[int]:
    """The processes that the threads of one have started."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):
            found += map(int, thread.read_text().split())
    return found


def _is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def _wait(condition: Callable[[], object], seconds: float) -> bool:
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.mark.skipif(
    not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="needs Linux's list of children"
)
@pytest.mark.parametrize("patch", [SLEEPY, BUSY], ids=["asleep", "busy"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_workers_end_with_the_process_that_started_them(tmp_path: Path, number: int, patch: str) -> None:
    for index in range(4):
        (tmp_path / f"m{index}.py").write_text("import torch\nx = torch.zeros(3).to('cuda')\n")
    command = [sys.executable, "-c", STARTS.format(patch=patch)]
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )  # fmt: skip
    workers: list[int] = []

    def ready() -> bool:
        workers[:] = _children(process.pid)
        return len(workers) == 2

    assert _wait(ready, 30)
    time.sleep(0.5)  # so that they have been given something to do
    process.send_signal(number)
    _, err = process.communicate(timeout=30)  # until everybody has closed the two pipes
    assert all(_wait(partial(_is_gone, each), 5) for each in workers)
    assert b"Traceback" not in err
    assert process.returncode == (-9 if number == signal.SIGKILL else 128 + number)


@pytest.mark.skipif(
    not Path(f"/proc/self/task/{os.getpid()}/children").exists(), reason="needs Linux's list of children"
)
def test_workers_in_a_long_call_of_c_are_killed_together(tmp_path: Path) -> None:
    for index in range(4):
        (tmp_path / f"m{index}.py").write_text("import torch\nx = torch.zeros(3).to('cuda')\n")
    starts = STARTS.format(patch=IN_C).replace("sys.exit", "pool.CLOSING = 8\nsys.exit")
    process = subprocess.Popen(
        [sys.executable, "-c", starts], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    workers: list[int] = []

    def ready() -> bool:
        workers[:] = [int(each.name) for each in tmp_path.iterdir() if each.name.isdigit()]
        return len(workers) == 2

    assert _wait(ready, 60)
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGTERM
    assert all(map(_is_gone, workers))
    assert time.monotonic() - began < 15  # one wait for both of them


def test_a_worker_that_does_not_start_is_done_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "_START", "raise SystemExit")
    tasks = [Task(str(tmp_path / f"m{number}.py"), f"m{number}.py", Settings()) for number in range(6)]
    for task in tasks:
        Path(task.path).write_text("x = 1\n")
    assert [outcome.report.result.path for outcome in pool.run_all(tasks, 2)] == [task.name for task in tasks]


def test_what_a_rule_prints_is_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    noisy = "import os; from devlint import worker; run = worker.run_task; "
    noisy += "worker.run_task = lambda task: (print('x' * 100), os.write(1, b'y' * 100), run(task))[2]; main()"
    monkeypatch.setattr(pool, "_START", pool._START.replace("main()", noisy))
    tasks = [Task(str(tmp_path / f"m{number}.py"), f"m{number}.py", Settings()) for number in range(6)]
    for task in tasks:
        Path(task.path).write_text("x = 1\n")
    assert not [outcome.errors for outcome in pool.run_all(tasks, 2) if outcome.errors]


@pytest.mark.parametrize(("command", "first"), [("check", False), ("rule", False), ("run", True), ("verify", True)])
def test_only_what_runs_a_program_keeps_the_path_that_was_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, first: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "src"), *sys.path])
    keep_out([command, "train.py"])
    assert (sys.path[0] == str(tmp_path)) is first
    assert (sys.path[-1] == str(tmp_path / "src")) is not first
