"""Readings of a clock while work is queued: how the clock, the work and the wait come, and what is a wait or no work."""

from __future__ import annotations

import ast
import textwrap

import pytest

from devlint.api import InferredCall, InferredReading
from devlint.inference.analysis import infer
from devlint.source import Source

PRELUDE = """\
import time
import timeit
import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Linear(3, 3).to(device)
x = torch.ones(2, 3, device=device)
"""

#: Programs in which `WAIT` stands where a wait mends them, and the line that reads too early ends in `# here`.
PROGRAMS = {
    "context that measures": """
        import contextlib

        @contextlib.contextmanager
        def timed(label):
            start = time.time()
            yield
            print(label, time.time() - start)

        def run():
            with timed("a"):  # here
                y = x @ x.T
                WAIT
            return y

        run()
        """,
    "context that measures what it gets": """
        from contextlib import contextmanager

        @contextmanager
        def timed(times):
            begin = time.perf_counter()
            try:
                yield times
            finally:
                end = time.perf_counter()
                times.append(end - begin)

        def run(m, batch):
            with timed([]) as times:  # here
                m(batch)
                WAIT

        run(model, x)
        """,
    "plain": """
        start = time.time()
        model(x)
        WAIT
        print(time.time() - start)  # here
        """,
    "operator": """
        start = time.perf_counter()
        y = x @ x.T
        WAIT
        end = time.perf_counter()  # here
        print(end - start)
        """,
    "alias of a clock": """
        now = timeit.default_timer
        start = now()
        model(x)
        WAIT
        print(now() - start)  # here
        """,
    "helper reads the clock": """
        def now():
            return time.monotonic()

        def main():
            start = now()
            model(x)
            WAIT
            return now() - start  # here

        main()
        """,
    "helper does the work": """
        def work(m, x):
            return m(x)

        start = time.time()
        work(model, x)
        WAIT
        print(time.time() - start)  # here
        """,
    "closure does the work": """
        def main():
            y = torch.ones(3, 3, device=device)

            def work():
                return y @ y

            start = time.time()
            work()
            WAIT
            return time.time() - start  # here

        main()
        """,
    "argument is what runs": """
        def measure(work):
            start = time.time()
            work()
            WAIT
            return time.time() - start  # here

        def main():
            y = torch.ones(3, 3, device=device)
            return measure(lambda: y @ y)

        main()
        """,
    "object keeps the start": """
        class Watch:
            def start(self):
                self.begin = time.time()

            def stop(self):
                return time.time() - self.begin

        watch = Watch()
        watch.start()
        model(x)
        WAIT
        print(watch.stop())  # here
        """,
    "context of a class": """
        class Timer:
            def __enter__(self):
                self.begin = time.time()
                return self

            def __exit__(self, *error):
                self.seconds = time.time() - self.begin

        with Timer() as timer:  # here
            model(x)
            WAIT
        """,
    "loop": """
        start = time.time()
        for _ in range(3):
            model(x)
        WAIT
        print(time.time() - start)  # here
        """,
}


def rows(code: str) -> list[int]:
    text = PRELUDE + textwrap.dedent(code)
    found = infer(ast.parse(text), Source("case.py", text.encode(), text), None, observes=(InferredReading,)).observed
    return [getattr(each.node, "lineno", 0) for each in found]


def here(code: str) -> list[int]:
    text = PRELUDE + textwrap.dedent(code)
    return [row for row, line in enumerate(text.splitlines(), 1) if line.endswith("# here")]


@pytest.mark.parametrize("name", PROGRAMS)
def test_reading_without_a_wait_is_found(name: str) -> None:
    code = PROGRAMS[name].replace("WAIT", "pass")
    assert rows(code) == here(code)


WAITS = ["torch.cuda.synchronize()", "if torch.cuda.is_available(): torch.cuda.synchronize()", "x.sum().item()"]


@pytest.mark.parametrize("wait", WAITS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_reading_after_a_wait_is_quiet(name: str, wait: str) -> None:
    assert rows(PROGRAMS[name].replace("WAIT", wait)) == []


QUIET = {
    "context that waits before it reads": """
        import contextlib

        @contextlib.contextmanager
        def timed():
            start = time.time()
            yield
            torch.cuda.synchronize()
            print(time.time() - start)

        with timed():
            model(x)
        """,
    "context without device work": """
        import contextlib

        @contextlib.contextmanager
        def timed():
            start = time.time()
            yield
            print(time.time() - start)

        with timed():
            sum(range(9))
        model(x)
        """,
    "work before the context": """
        import contextlib

        @contextlib.contextmanager
        def timed():
            start = time.time()
            yield
            print(time.time() - start)

        model(x)
        torch.cuda.synchronize()
        with timed():
            pass
        """,
    "work before the start": "model(x)\nstart = time.time()\nprint(time.time() - start)\n",
    "work on the CPU": "m = nn.Linear(3, 3)\nstart = time.time()\nm(torch.ones(1, 3))\nprint(time.time() - start)\n",
    "work on one path": "start = time.time()\nif x.ndim:\n    model(x)\nprint(time.time() - start)\n",
    "helper waits": (
        "def sync():\n    torch.cuda.synchronize()\n\n"
        "start = time.time()\nmodel(x)\nsync()\nprint(time.time() - start)\n"
    ),
    "copy that waits": "start = time.time()\ntorch.ones(3).to(device)\nprint(time.time() - start)\n",
    "argument that may be anywhere": (
        "def f(m, x):\n    start = time.time()\n    m(x)\n    return time.time() - start\n"
    ),
    "call that cannot be read": "start = time.time()\nlog(model(x))\nprint(time.time() - start)\n",
    "method that cannot be read": "start = time.time()\nmeter.update(model(x))\nprint(time.time() - start)\n",
    "printed result": "start = time.time()\nprint(model(x))\nprint(time.time() - start)\n",
}


@pytest.mark.parametrize("name", QUIET)
def test_what_is_no_queued_work_is_quiet(name: str) -> None:
    assert rows(QUIET[name]) == []


def test_clocks_are_followed_only_for_who_asks_for_readings(monkeypatch: pytest.MonkeyPatch) -> None:
    text = PRELUDE + textwrap.dedent(PROGRAMS["plain"]).replace("WAIT", "pass")
    source, asked = Source("case.py", text.encode(), text), []
    monkeypatch.setattr("devlint.inference.observed.clocks.Clocks.saw", lambda *_: asked.append(True))
    infer(ast.parse(text), source, None, observes={InferredCall})
    assert not asked
    infer(ast.parse(text), source, None, observes={InferredReading})
    assert asked
