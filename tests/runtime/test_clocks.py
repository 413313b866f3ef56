"""In a run that is repeated, whatever comes from a clock surely differs, so that no agreement by chance is believed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from devlint.runtime.compare import Manner, unsteady
from devlint.runtime.correction import Edition
from devlint.runtime.places import Places
from devlint.runtime.processes import Launcher
from devlint.runtime.runs import Run
from devlint.runtime.verify import Request, Runner

pytestmark = pytest.mark.runtime

#: Each of them is almost always the same in two runs that follow each other.
AGREE_BY_CHANCE = [
    "int(time.time() // 100)",
    "round(time.perf_counter() - start)",
    "int(1000 * (time.monotonic() - before)) // 60000",
    "(time.perf_counter_ns() - start_ns) // 10**9",
    "int(time.process_time()) // 60",
    "time.strftime('%Y-%m-%d')",
    "time.strftime('%H')",
    "time.localtime().tm_min",
    "time.ctime()[:16]",
    "time.gmtime().tm_yday",
    "datetime.datetime.now().strftime('%Y%m%d_%H%M')",
    "datetime.datetime.now(datetime.timezone.utc).isoformat()[:13]",
    "Stamp.today().date()",
    "datetime.date.today().isoformat()",
    "'run_%d' % (clock() // 1000)",
    "round(timeit.timeit('pass', number=3))",
    "logging.LogRecord('a', 1, 'b', 1, 'c', (), None).created // 1000",
]
PROGRAM = """\
import datetime
import logging
import time
import timeit
from datetime import datetime as Stamp
from time import time as clock

start, before, start_ns = time.perf_counter(), time.monotonic(), time.perf_counter_ns()
"""
STEADY = """\
import datetime
import pickle
import time

day = datetime.datetime(2024, 2, 29, 12, 30)
print(day, day.isoformat(), datetime.datetime.fromtimestamp(0, datetime.timezone.utc), datetime.date(2024, 1, 1))
print(time.strftime("%Y", time.gmtime(0)), time.asctime(time.gmtime(0)))
print(isinstance(day, datetime.datetime), isinstance(day, datetime.date), isinstance(1, datetime.date))
print(pickle.loads(pickle.dumps([day, day.date()])) == [day, day.date()])


class Day(datetime.datetime):
    pass


print(type(Day(2024, 1, 1)).__name__, isinstance(day, Day), issubclass(Day, datetime.date))
first = time.perf_counter()
time.sleep(0.01)
print(time.perf_counter() > first, time.time() > 0)
"""


def twice(launcher: Launcher, path: Path, text: str) -> tuple[Run, Run]:
    path.write_text(text, encoding="utf-8")
    runner = Runner(Request(str(path), device="cpu", timeout=60.0), launcher)
    edition = Edition({str(path): Places(text)}, [])
    return runner.run(edition, "cpu", "original"), runner.run(edition, "cpu", "original, repeated", again=True)


def test_what_comes_from_a_clock_differs_in_a_repeated_run(launcher: Launcher, tmp_path: Path) -> None:
    lines = "".join(f"print({text!r}, {text})\n" for text in AGREE_BY_CHANCE)
    one, again = twice(launcher, tmp_path / "train.py", PROGRAM + lines)
    same = set(one.out.splitlines()) & set(again.out.splitlines())
    assert same == set()
    assert len(again.out.splitlines()) == len(AGREE_BY_CHANCE), again.text


def test_what_comes_from_no_clock_is_the_same_in_a_repeated_run(launcher: Launcher, tmp_path: Path) -> None:
    one, again = twice(launcher, tmp_path / "train.py", STEADY)
    assert one.out == again.out
    assert "Day False True" in one.out


def test_the_repeated_run_reads_earlier_days_so_that_nothing_grows_old(launcher: Launcher, tmp_path: Path) -> None:
    text = "import os, time\nprint(max(time.time() for _ in range(9000)) - os.path.getmtime(__file__) > 60)\n"
    _, again = twice(launcher, tmp_path / "train.py", text)
    assert again.out == "False\n"


def test_libraries_wait_by_their_own_clocks(launcher: Launcher, tmp_path: Path) -> None:
    text = "import asyncio, queue\n\n\nasync def main():\n    await asyncio.wait_for(asyncio.sleep(0.05), 30)\n\n\n"
    text += "asyncio.run(main())\ntry:\n    queue.Queue().get(timeout=0.05)\nexcept queue.Empty:\n    print('waited')\n"
    _, again = twice(launcher, tmp_path / "train.py", text)
    assert (again.out, again.text) == ("waited\n", "finished")


def test_a_repeated_run_that_its_clocks_end_is_made_with_plain_ones(launcher: Launcher, tmp_path: Path) -> None:
    from devlint.runtime.correction import case_from_row
    from devlint.runtime.runs import Verdict
    from devlint.runtime.verify import verify

    text = (
        "import random, time, torch\n\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "start = time.time()\nif time.time() - start > 600:\n    raise TimeoutError('too slow')\n"
        "print(random.SystemRandom().random())\nprint(torch.ones(3, device=device) + torch.ones(3))\n"
    )
    path = tmp_path / "train.py"
    path.write_text(text, encoding="utf-8")
    row = {
        "code": "DEV101",
        "at": "+ torch.ones(3)",
        "replace": [["+ torch.ones(3)", "+ torch.ones(3, device=device)"]],
    }
    runner = Runner(Request(str(path), device="sim", timeout=60.0), launcher)
    report = verify(runner.request, text, [case_from_row(row, text)], runner)
    assert report.fixes[0].judgement.verdict is Verdict.CONFIRMED, report.fixes[0].judgement.evidence


def test_numbers_that_differ_in_their_last_bits_are_steady() -> None:
    from tests.runtime.test_verify_compare import run, tensor, value

    one, again = (run(values={"1": value(tensor(each))}) for each in (0.1 + 0.2, 0.3))
    assert unsteady(one, again, Manner()) == frozenset()


def test_setting_clocks_apart_needs_no_torch() -> None:
    code = "import sys; import devlint.runtime.clocks; print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
