"""Names of torch that get an `ApiCall` event, and what the event says of them."""

from __future__ import annotations

import ast

import pytest

from devlint.facts.analysis import analyse
from devlint.facts.events import ApiCall, Compare
from devlint.facts.idioms.api_calls import describe
from devlint.settings import Settings
from devlint.source import decode, parse

TESTED = """\
import torch
from typing import *


def f(x, device: {} = None):
    return x.to(device) if device else x
"""


def events(code: str) -> list[ApiCall]:
    source = decode(code.encode(), "example.py")
    found = analyse(parse(source), source, Settings()).events
    return [event for event in found if isinstance(event, ApiCall)]


def truth_tests(code: str) -> list[str]:
    source = decode(code.encode(), "example.py")
    found = analyse(parse(source), source, Settings()).events
    return [event.left.text for event in found if isinstance(event, Compare) and event.operator == "truth"]


@pytest.mark.parametrize("name", ["torch.zeros", "torch.nn.Linear", "torch.cuda", "torch.accelerator", "torch.float32"])
def test_most_names_get_none(name: str) -> None:
    assert describe(name) is None


@pytest.mark.parametrize(
    ("name", "raises"),
    [
        ("torch.cuda.synchronize", True),
        ("torch.cuda.empty_cache", False),
        ("torch.accelerator.empty_cache", True),
        ("torch.accelerator.is_available", False),
        ("torch.npu.synchronize", True),
    ],
)
def test_a_call_that_raises_without_an_accelerator(name: str, raises: bool) -> None:
    api = describe(name)
    assert api is not None
    assert api.raises is raises


def test_a_counterpart_comes_with_the_torch_that_has_it() -> None:
    api = describe("torch.cuda.empty_cache")
    assert api is not None
    assert (api.replacement, api.replacement_since, api.remedy) == ("torch.accelerator.empty_cache", (2, 9), "G")


def test_a_name_that_no_torch_has() -> None:
    api = describe("torch.cuda.synchronise")
    assert api is not None
    assert api.exists is False
    assert "torch.cuda.synchronize" in api.nearest


@pytest.mark.parametrize(
    "name",
    ["torch._something", "torch.ops.mine.op", "torch.backends.mkldnn.enabled", "torch.version.cann", "torch.npu"],
)
def test_names_that_the_data_cannot_tell(name: str) -> None:
    assert describe(name) is None


def test_the_call_is_named_through_its_import() -> None:
    (event,) = events("from torch.cuda.amp import autocast\n\nautocast(enabled=True)\n")
    assert event.qualname == "torch.cuda.amp.autocast"
    assert event.is_call
    assert event.discarded
    assert event.arguments["enabled"].text == "True"


def test_a_read_is_no_call() -> None:
    (event,) = events("import torch\n\nkind = torch.cuda.FloatTensor\n")
    assert not event.is_call
    assert isinstance(event.node, ast.Attribute)


@pytest.mark.parametrize(
    ("name", "type"),
    [
        ("torch.cuda.synchronize()", "cuda"),
        ("torch.accelerator.synchronize()", "accelerator"),
        ("torch.mps.synchronize()", "mps"),
        ("torch.autocast('cuda')", ""),
    ],
)
def test_the_type_that_a_name_belongs_to(name: str, type: str) -> None:
    found = events(f"import torch\n\n{name}\n")
    assert [event.type for event in found if event.is_call] == [type]


def test_a_guard_inside_the_same_condition_counts() -> None:
    code = (
        "import torch\n\n\ndef f(d: torch.device):\n"
        "    if d.type == 'cuda' and torch.cuda.current_device() != d.index:\n        return 1\n"
    )
    (event,) = [event for event in events(code) if event.is_call]
    assert event.under.allow("cuda")


@pytest.mark.parametrize("annotation", ["int | None", "Optional[Union[str, torch.device]]", "DeviceLikeType"])
def test_a_device_that_may_be_an_index_is_tested_for_truth(annotation: str) -> None:
    assert truth_tests(TESTED.format(annotation)) == ["device"]


@pytest.mark.parametrize("annotation", ["str | None", "Optional[torch.device]"])
def test_a_device_that_is_no_index_may_be_tested(annotation: str) -> None:
    assert truth_tests(TESTED.format(annotation)) == []
