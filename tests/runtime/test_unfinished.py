"""Reads of host memory that a copy is still filling, with events that a test finishes by hand."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator.patches.base import PatchSet
from devlint.runtime.unfinished import UnfinishedCopies

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.runtime


@dataclass
class Event:
    """What `torch.cuda.Event` answers."""

    done: bool = False

    def query(self) -> bool:
        return self.done


def races(recorder: Recorder) -> list[tuple[str, str]]:
    return [(event.what, event.device) for event in recorder.events() if event.kind == "race"]


def test_a_read_of_a_view_before_the_copy_is_over_is_a_race() -> None:
    recorder = Recorder()
    copies, target = UnfinishedCopies(recorder), torch.zeros(4)
    copies.begin(target, Event(), "cuda:0")
    copies.read(target[2:], "item")
    assert races(recorder) == [("item of an unfinished copy", "cuda:0")]


def test_a_read_after_the_copy_is_none() -> None:
    recorder = Recorder()
    copies, target, event = UnfinishedCopies(recorder), torch.zeros(4), Event()
    copies.begin(target, event, "cuda:0")
    event.done = True
    copies.read(target, "item")
    event.done = False  # a later copy has an event of its own
    copies.read(target, "item")
    assert races(recorder) == []


def test_a_read_of_other_memory_is_none() -> None:
    recorder = Recorder()
    copies, target = UnfinishedCopies(recorder), torch.zeros(4)
    copies.begin(target, Event(), "cuda:0")
    copies.read(torch.zeros(4), "item")
    assert races(recorder) == []


@pytest.mark.parametrize("name", ["tolist", "numpy"])
def test_reads_that_pass_no_dispatcher_are_seen(name: str) -> None:
    recorder, patches = Recorder(), PatchSet()
    copies, target = UnfinishedCopies(recorder), torch.zeros(4)
    copies.begin(target, Event(), "cuda:0")
    patches.apply(copies.patches())
    try:
        getattr(target, name)()
    finally:
        patches.undo()
    getattr(target, name)()
    assert races(recorder) == [(f"{name} of an unfinished copy", "cuda:0")]
