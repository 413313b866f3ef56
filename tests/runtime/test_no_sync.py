"""Regions in which the host must not wait: the line and the reason of a wait are named."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

pytest.importorskip("torch")

import torch

# All that a run inside this process imports must be there before the first; see test_pytest_plugin.py.
import devlint.runtime.shadows.shadow
import devlint.runtime.simulator.handrules
import devlint.runtime.simulator.session  # noqa: F401
from devlint.runtime.findings import from_events
from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import DeviceSpec, simulate
from devlint.runtime.waiting import HostWaited, no_sync, waiting_allowed

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.runtime


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder([__file__])
    with simulate(DeviceSpec("cuda", 2), recorder):
        yield recorder


WAITS: dict[str, tuple[Callable[[], object], str]] = {
    "item": (lambda: torch.ones(3, device="cuda").sum().item(), "item; its value is read on the host"),
    "float": (lambda: float(CARD), "item; its value is read on the host"),
    "if": (lambda: 1 if (CARD > 0).all() else 2, "its value is read on the host"),
    "nonzero": (lambda: CARD.nonzero(), "nonzero; the size of its result is known on the card only"),
    "boolean mask": (
        lambda: torch.ones(3, device="cuda")[torch.ones(3, device="cuda") > 0],
        "boolean mask; the size of its result is known on the card only",
    ),
    "tolist": (lambda: CARD.tolist(), "tolist; it copies to the host and waits for the copy"),
    "cpu": (lambda: CARD.cpu(), "cpu; it copies to the host and waits for the copy"),
    "blocking copy": (lambda: torch.ones(3).to("cuda"), "to; it copies from the host without non_blocking=True"),
    "tensor from a list": (lambda: torch.tensor([1.0], device="cuda"), "it copies from the host without non_blocking"),
    "pageable": (lambda: torch.ones(3).to("cuda", non_blocking=True), "memory that is not pinned: pin it"),
    "tensor then move": (lambda: torch.tensor([1.0]).cuda(non_blocking=True), "memory that is not pinned: pin it"),
    "copy into a buffer": (lambda: CARD.copy_(torch.ones(()), non_blocking=True), "memory that is not pinned: pin it"),
    "pinned but strided": (
        lambda: torch.ones(4, 4).pin_memory()[:, ::2].to("cuda", non_blocking=True),
        "pinned memory with gaps, through a buffer that is not pinned: make it contiguous first",
    ),
    "pinned but another type": (
        lambda: torch.ones(4).pin_memory().to("cuda", torch.float16, non_blocking=True),
        "it converts while it copies, through a buffer that is not pinned: convert on the card",
    ),
    "synchronize": (lambda: torch.cuda.synchronize(), "synchronize; it is made to wait"),
}
CARD: torch.Tensor


@pytest.mark.parametrize("name", WAITS)
def test_wait_is_named_with_its_line_and_reason(recorder: Recorder, name: str) -> None:
    global CARD
    CARD = torch.ones((), device="cuda")
    call, says = WAITS[name]
    with pytest.raises(HostWaited) as caught, no_sync():
        call()
    assert says in str(caught.value)
    assert f"at {__file__}:" in str(caught.value)
    call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: torch.ones(3, device="cuda") * 2,
        lambda: torch.ones(3).pin_memory().to("cuda", non_blocking=True),
        lambda: torch.ones(4, 4).pin_memory().t().to("cuda", non_blocking=True),
        lambda: torch.ones(4, 4).pin_memory()[:2].to("cuda", non_blocking=True),
        lambda: torch.ones(3, device="cuda").to("cpu", non_blocking=True),
        lambda: torch.ones(3, device="cuda").to("cuda:1"),
        lambda: torch.ones(3).sum().item(),
        lambda: torch.where(torch.ones(3, device="cuda") > 0, 1, 2),
    ],
)
def test_what_does_not_wait_is_allowed(recorder: Recorder, call: Callable[[], object]) -> None:
    with no_sync():
        call()


def test_part_of_a_region_may_wait(recorder: Recorder) -> None:
    total = torch.ones(3, device="cuda").sum()
    with no_sync():
        with waiting_allowed():
            assert total.item() == 3
        with pytest.raises(HostWaited):
            total.item()


def test_other_threads_may_wait(recorder: Recorder) -> None:
    total, seen = torch.ones(3, device="cuda").sum(), []
    with no_sync():
        thread = threading.Thread(target=lambda: seen.append(total.item()))
        thread.start()
        thread.join()
    assert seen == [3.0]


def test_without_a_device_a_region_says_nothing() -> None:
    with no_sync():
        assert torch.ones(3).sum().item() == 3


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: torch.ones(4, 4).pin_memory()[:, ::2], "from pinned memory with gaps"),
        (lambda: torch.ones(4, 4), "from memory that is not pinned"),
    ],
)
def test_copy_that_waits_after_all_is_a_finding(
    recorder: Recorder, make: Callable[[], torch.Tensor], says: str
) -> None:
    make().to("cuda", non_blocking=True)
    (found,) = [finding for finding in from_events(recorder.events()) if finding.code == "DEV504"]
    assert says in found.message


MARKED = """\
import pytest, torch

@pytest.fixture
def total():
    x = torch.ones(3, device="cuda")
    assert x.sum().item() == 3
    return x.sum()

@pytest.mark.devlint_no_sync
def test_waits(total):
    y = total * 2
    assert y.item() == 6

@pytest.mark.devlint_no_sync
def test_does_not(total):
    y = total * 2
    assert y.shape == ()

def test_may(total):
    assert total.item() == 3
"""


@pytest.mark.parametrize("options", [[], ["--devlint-device=sim:2"]])
def test_mark(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, options: list[str]) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider --import-mode=importlib --strict-markers\n")
    pytester.makepyfile(test_marked=MARKED)
    chosen = options or ["--deselect=test_marked.py::test_may"]
    result = pytester.runpytest_inprocess(*chosen)
    result.assert_outcomes(failed=1, passed=2 if options else 1, deselected=0 if options else 1)
    result.stdout.fnmatch_lines(
        ["*HostWaited: the host waits for the card at *test_marked.py:12: item; its value is read*"]
    )
