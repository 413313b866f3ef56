"""The pytest plugin: off unless asked for, and then a suite runs as if an accelerator were there."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")

import torch

# A run inside this process forgets the modules that it imported first, but packages keep those as attributes, and the
# next run would get some of the old modules beside new ones: all must be there before the first run.
import devlint.runtime.shadows.shadow
import devlint.runtime.simulator.handrules
import devlint.runtime.simulator.session  # noqa: F401

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.runtime

SUITE = """\
import pytest
import torch

@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_needs_a_card():
    assert torch.ones(3, device="cuda").device.type == "cuda"

@pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs")
def test_needs_two_cards():
    assert torch.ones(3, device="cuda:1").get_device() == 1
"""


@pytest.fixture(autouse=True)
def _no_settings(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # Each run has modules of the same name, so nothing may be kept from run to run.
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider --import-mode=importlib\n")


def test_off_unless_asked_for(pytester: pytest.Pytester) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has a card")
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(skipped=2)
    result.stdout.no_fnmatch_line("*devlint:*")


@pytest.mark.parametrize(("device", "passed"), [("sim", 1), ("sim:2", 2), ("sim:xpu:2", 0)])
def test_tests_that_need_a_card_run(pytester: pytest.Pytester, device: str, passed: int) -> None:
    pytester.makepyfile(SUITE)
    result = pytester.runpytest_inprocess(f"--devlint-device={device}")
    result.assert_outcomes(passed=passed, skipped=2 - passed)


def test_nothing_stays_patched(pytester: pytest.Pytester) -> None:
    before = torch.cuda.is_available, torch.zeros, torch.Tensor.to
    pytester.makepyfile(SUITE)
    pytester.runpytest_inprocess("--devlint-device=sim:2")
    assert (torch.cuda.is_available, torch.zeros, torch.Tensor.to) == before


def test_first_conftest_sees_the_card(pytester: pytest.Pytester) -> None:
    pytester.makeconftest("import torch\nFOUND = torch.cuda.device_count()\n")
    pytester.makepyfile("def test_found(pytestconfig):\n    import torch\n    assert torch.cuda.device_count() == 3\n")
    pytester.makeconftest("import torch\nif torch.cuda.device_count() != 3:\n    raise RuntimeError('too early')\n")
    pytester.runpytest_inprocess("--devlint-device=sim:3").assert_outcomes(passed=1)


def test_device_error_fails_with_an_explanation(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import torch
        def test_mixed():
            model = torch.nn.Linear(4, 2).cuda()
            batch = torch.randn(3, 4)
            model(batch)
        """
    )
    result = pytester.runpytest_inprocess("--devlint-device=sim")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*devlint: DEV103 module-input-device at *", "*left behind: `batch`, float32*on cpu*"])
    result.stdout.no_fnmatch_line("*simulation.py*")


def test_device_error_in_a_fixture_is_explained(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest, torch
        @pytest.fixture
        def total():
            return torch.ones(3, device="cuda") + torch.zeros(3)
        def test_total(total):
            pass
        """
    )
    result = pytester.runpytest_inprocess("--devlint-device=sim")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*left behind: `torch.zeros(3)`*"])


def test_what_cannot_be_simulated_is_skipped_by_name(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import torch\ndef test_graph():\n    torch.cuda.CUDAGraph()\n")
    result = pytester.runpytest_inprocess("--devlint-device=sim", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*torch.cuda.CUDAGraph cannot be simulated*"])


MEASURED = """\
import time
import torch

def test_timer():
    x = torch.ones(3, device="cuda")
    start = time.perf_counter()
    x = x + 1
    took = time.perf_counter() - start

def test_reads():
    x = torch.ones(3, device="cuda")
    for _ in range(4):
        x.sum().item()
"""


def test_summary_lists_timers_and_waits(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_measured=MEASURED)
    result = pytester.runpytest_inprocess("--devlint-device=sim")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "*devlint: simulated cuda, CPU kernels*",
            "timers that did not wait for the device:",
            "  test_measured.py:8: DEV401 *2 kernels still queued*",
            "lines that waited more than once:",
            "  test_measured.py:13: DEV502 *4 times*",
        ]
    )


def test_marker_gives_one_test_its_own_device(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest, torch
        @pytest.mark.devlint_device("sim:2")
        def test_marked():
            assert torch.cuda.device_count() == 2
        def test_plain():
            assert torch.cuda.device_count() == DEVICES
        """.replace("DEVICES", str(torch.cuda.device_count()))
    )
    pytester.runpytest_inprocess("--strict-markers").assert_outcomes(passed=2)


def test_marker_replaces_the_device_of_the_session(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest, torch
        def test_before():
            assert torch.cuda.device_count() == 1
        @pytest.mark.devlint_device("sim:xpu:3")
        def test_marked(devlint_device):
            assert torch.xpu.device_count() == 3
            assert str(devlint_device) == "xpu:0"
        def test_after():
            assert torch.cuda.device_count() == 1
            assert torch.ones(2, device="cuda").is_cuda
        """
    )
    pytester.runpytest_inprocess("--devlint-device=sim").assert_outcomes(passed=3)


def test_fixture_gives_a_device_and_what_was_recorded(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import torch
        def test_waits_once(devlint_device):
            x = torch.ones(3, device=devlint_device.name)
            x.sum().item()
            assert [event.what for event in devlint_device.events() if event.kind == "sync"] == ["item"]
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_marker_with_a_wrong_device(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.devlint_device('gpu')\ndef test_it():\n    pass\n")
    result = pytester.runpytest_inprocess()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*marker devlint_device gpu: *known devices*"])


def test_option_with_a_wrong_device(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_inprocess("--devlint-device=gpu")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--devlint-device gpu: *known devices*"])


def test_workers_of_xdist_send_what_they_recorded(pytester: pytest.Pytester) -> None:
    pytest.importorskip("xdist")
    pytester.makepyfile(test_measured=MEASURED, test_suite=SUITE)
    result = pytester.runpytest_subprocess("--devlint-device=sim:2", "-n2")
    result.assert_outcomes(passed=4)
    result.stdout.fnmatch_lines(["*test_measured.py:8: DEV401*", "*test_measured.py:13: DEV502 *4 times*"])


def test_suite_that_a_test_in_a_worker_of_xdist_starts_has_workers_of_its_own(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xdist")
    monkeypatch.setenv("PYTEST_XDIST_WORKER", "gw1")
    pytester.makepyfile(test_suite=SUITE)
    pytester.runpytest_subprocess("--devlint-device=sim:2", "-n2").assert_outcomes(passed=2)


def test_importing_the_plugin_imports_no_torch() -> None:
    code = (
        "import sys; import devlint.runtime.pytest_plugin\n"
        "loaded = [name for name in sys.modules if name.split('.')[0] in ('torch', 'numpy', 'libcst')]\n"
        "assert not loaded, loaded"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={**os.environ, "PYTHONWARNINGS": "ignore"})


def test_processes_that_a_test_starts_are_on_the_device(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import subprocess, sys
        CODE = "import torch; x = torch.ones(3, device='cuda:1'); [x.sum().item() for _ in range(5)]"
        def test_child():
            subprocess.run([sys.executable, "-c", CODE], check=True)
        """
    )
    before = dict(os.environ)
    result = pytester.runpytest_inprocess("--devlint-device=sim:2")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*<string>:1: DEV502 the host waited for cuda:1 5 times: item"])
    assert {name: before.get(name) for name in ("PYTHONPATH", "DEVLINT_WATCH")} == {
        name: os.environ.get(name) for name in ("PYTHONPATH", "DEVLINT_WATCH")
    }


# ------------------------------------------------------------------ whose error it is

ONE_BAD_LINE = """\
import unittest
import pytest
import torch

def f(a):
    return a + torch.ones(2).to("cuda")

def test_one():
    first = torch.ones(2)
    f(first)

def test_two():
    second = torch.zeros(2)
    f(second)

class TestIt(unittest.TestCase):
    def test_three(self):
        third = torch.ones(2)
        f(third)
"""


@pytest.mark.parametrize("name", ["first", "second", "third"])
def test_each_test_that_reaches_a_bad_line_has_its_own_note(pytester: pytest.Pytester, name: str) -> None:
    pytester.makepyfile(ONE_BAD_LINE)
    result = pytester.runpytest_inprocess("--devlint-device=sim")
    result.assert_outcomes(failed=3)
    result.stdout.fnmatch_lines([f"*left behind: `{name}`, float32?2? on cpu*"])


def test_setup_of_a_unittest_is_explained(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import unittest, torch
        class TestIt(unittest.TestCase):
            def setUp(self):
                self.shift = torch.ones(2, device="cuda") + torch.arange(2)
            def test_it(self):
                pass
        """
    )
    result = pytester.runpytest_inprocess("--devlint-device=sim")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*left behind: `torch.arange(2)`*"])


def test_what_cannot_be_simulated_skips_a_unittest(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import unittest, torch
        class TestIt(unittest.TestCase):
            def test_it(self):
                torch.cuda.CUDAGraph()
        """
    )
    result = pytester.runpytest_inprocess("--devlint-device=sim", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*torch.cuda.CUDAGraph cannot be simulated*"])


SWALLOWS = """\
import unittest
import pytest
import torch

def lib(a, b):
    try:
        return a + b
    except RuntimeError:
        return a.cpu() + b.cpu()

def test_hidden():
    assert lib(torch.ones(2), torch.ones(2, device="cuda")).sum() == 4

def test_asserted():
    with pytest.raises(RuntimeError):
        torch.ones(3) + torch.ones(3, device="cuda")

class TestIt(unittest.TestCase):
    def test_asserted(self):
        with self.assertRaisesRegex(RuntimeError, "same device"):
            torch.ones(4) + torch.ones(4, device="cuda")
"""


@pytest.mark.parametrize("workers", [(), ("-n1",)])
def test_device_error_that_library_code_catches_is_in_the_summary(
    pytester: pytest.Pytester, workers: tuple[str, ...]
) -> None:
    if workers:
        pytest.importorskip("xdist")
    pytester.makepyfile(test_swallows=SWALLOWS)
    run = pytester.runpytest_subprocess if workers else pytester.runpytest_inprocess
    result = run("--devlint-device=sim", *workers)
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(
        ["device errors that some code caught:", "  test_swallows.py:7: DEV101 *", "    left behind: *"]
    )
    result.stdout.no_fnmatch_line("*test_swallows.py:16:*")
    result.stdout.no_fnmatch_line("*test_swallows.py:21:*")


def test_error_that_ends_a_test_is_not_caught(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ONE_BAD_LINE)
    result = pytester.runpytest_inprocess("--devlint-device=sim")
    result.stdout.no_fnmatch_line("*some code caught*")
