"""What test suites of public packages do on a simulated card beside computing: shapes on `meta`, Python's types."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from devlint.runtime.simulator import DeviceSpec, simulate

pytestmark = pytest.mark.runtime


@pytest.fixture(autouse=True)
def _card() -> Iterator[None]:
    with simulate(DeviceSpec()):
        yield


@pytest.mark.parametrize(
    "leave",
    [
        lambda x: x.to("meta"),
        lambda x: x.to(torch.device("meta")),
        lambda x: torch.empty_like(x, device="meta"),
        lambda x: x.new_empty(3, device="meta"),
        lambda x: nn.Parameter(x).to("meta"),
        lambda x: nn.Linear(2, 2).cuda().to("meta").weight,
    ],
)
def test_tensor_that_leaves_the_card_for_meta_is_on_no_card(leave: Callable[[Any], Any]) -> None:
    left = leave(torch.ones(3, device="cuda"))
    assert left.device == torch.device("meta")
    assert left.is_meta and not left.is_cuda


def test_module_made_on_meta_gets_memory_on_the_card() -> None:
    assert nn.Linear(2, 2, device="meta").to_empty(device="cuda").weight.device == torch.device("cuda:0")


@pytest.mark.parametrize(("kind", "dtype"), [(float, torch.float64), (int, torch.int64), (bool, torch.bool)])
def test_conversion_to_a_type_of_python_stays_in_place(kind: type, dtype: torch.dtype) -> None:
    converted = torch.ones(3, device="cuda").to(kind)
    assert (converted.dtype, converted.device) == (dtype, torch.device("cuda:0"))
    assert torch.ones(3).to(kind).device == torch.device("cpu")
