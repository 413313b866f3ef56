"""Memory of a card that nobody wrote: the read is found, with the allocation and the variable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from devlint.runtime.findings import Finding, from_events
from devlint.runtime.recorder import Recorder
from devlint.runtime.simulator import DeviceSpec, simulate
from devlint.runtime.simulator.simulation import Simulation

pytestmark = pytest.mark.runtime
CARD = "cuda"


@pytest.fixture(autouse=True)
def simulation() -> Iterator[Simulation]:
    with simulate(DeviceSpec("cuda", 2), Recorder([__file__])) as simulation:
        yield simulation


def found(simulation: Simulation) -> list[Finding]:
    return [finding for finding in from_events(simulation.recorder.events()) if finding.code == "RUN101"]


class Rotary(nn.Module):  # type: ignore[misc]
    """A table that is computed when the module is made, and is in no checkpoint."""

    inv_freq: torch.Tensor

    def __init__(self, size: int = 4) -> None:
        super().__init__()
        self.register_buffer("inv_freq", 1.0 / 10000 ** (torch.arange(0, size, 2) / size), persistent=False)

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        angles: torch.Tensor = positions[:, None] * self.inv_freq
        return angles.cos()


def test_table_of_a_module_that_was_made_on_meta(simulation: Simulation) -> None:
    """transformers#45902: meta, then to_empty."""
    with torch.device("meta"):
        rotary = Rotary()
    rotary.to_empty(device=CARD)
    rotary(torch.arange(3.0, device=CARD))
    (finding,) = found(simulation)
    assert finding.kind == "error"
    assert "mul reads `rotary.inv_freq`, allocated by empty_like at " in finding.message


def test_table_that_a_loader_replaces_by_empty_memory(simulation: Simulation) -> None:
    """transformers#48892: what a checkpoint does not have is allocated on the device."""
    rotary = Rotary()
    for name, value in rotary.named_buffers():
        if name not in rotary.state_dict():
            rotary.register_buffer(name, torch.empty_like(value, device=CARD), persistent=False)
    rotary(torch.arange(3.0, device=CARD))
    (finding,) = found(simulation)
    assert "reads `rotary.inv_freq`, allocated by empty_like" in finding.message


def test_table_that_a_broadcast_of_the_checkpoint_leaves_out(simulation: Simulation) -> None:
    """SkyRL#1709: other ranks are made on meta, and get what is in the state, converted."""
    first = nn.Sequential(nn.Linear(3, 3), Rotary()).to(CARD)
    with torch.device("meta"):
        other = nn.Sequential(nn.Linear(3, 3), Rotary())
    other.to_empty(device=CARD)
    other.load_state_dict(first.state_dict())
    other.to(torch.bfloat16)
    other[0](torch.ones(1, 3, device=CARD, dtype=torch.bfloat16))
    assert found(simulation) == []
    other[1](torch.arange(3.0, device=CARD))
    (finding,) = found(simulation)
    assert "reads `other.1.inv_freq`" in finding.message


READS: dict[str, Callable[[], Any]] = {
    "a sum": lambda: torch.empty(3, device=CARD).sum(),
    "in place": lambda: torch.ones(3, device=CARD).new_empty(3).add_(1),
    "a parameter": lambda: nn.Parameter(torch.empty(3, device=CARD)) * 2,
    "a copy": lambda: torch.empty(3, device=CARD).clone() + 1,
    "a conversion": lambda: torch.empty(3, device=CARD).double() + 1,
    "on another card": lambda: torch.empty(3, device=CARD).to("cuda:1") + 1,
    "a view": lambda: torch.empty(2, 2, device=CARD).t()[0] * 2,
    "in a list": lambda: torch.cat([torch.empty(2, device=CARD), torch.ones(2, device=CARD)]),
    "strided": lambda: torch.empty_strided((2, 2), (1, 2), device=CARD).exp(),
    "grown": lambda: torch.empty(0, device=CARD).resize_(4).relu(),
    "item": lambda: torch.empty((), device=CARD).item(),
    "a weight of a layer": lambda: nn.LayerNorm(3, device="meta").to_empty(device=CARD)(torch.ones(3, device=CARD)),
}


@pytest.mark.parametrize("name", READS)
def test_read_is_found(simulation: Simulation, name: str) -> None:
    READS[name]()
    assert found(simulation)
    assert simulation.unwritten == 0 or name == "a weight of a layer"


def written_by_out() -> torch.Tensor:
    result = torch.empty(3, device=CARD)
    torch.add(torch.ones(3, device=CARD), 1, out=result)
    return result


WRITES: dict[str, Callable[[], Any]] = {
    "filled": lambda: torch.empty(3, device=CARD).fill_(1).sum(),
    "drawn": lambda: torch.empty(3, device=CARD).uniform_().sum(),
    "copied into": lambda: torch.empty(3, device=CARD).copy_(torch.ones(3)).sum(),
    "by out": lambda: written_by_out().sum(),
    "initialised": lambda: nn.init.orthogonal_(torch.empty(3, 3, device=CARD)).sum(),
    "a module's own": lambda: nn.LSTM(3, 3, device=CARD)(torch.ones(2, 3, device=CARD))[0].sum(),
    "reset": lambda: reset(nn.BatchNorm1d(3, device="meta")).eval()(torch.ones(2, 3, device=CARD)),
    "in part": lambda: partly(torch.empty(4, device=CARD)).sum(),
    "scattered": lambda: torch.empty(3, device=CARD).scatter_(0, torch.arange(3, device=CARD), 1.0).sum(),
    "only its shape": lambda: torch.zeros_like(torch.empty(3, device=CARD)) + torch.empty(3, device=CARD).shape[0],
    "on the host": lambda: torch.empty(3).sum(),
    "without elements": lambda: torch.cat([torch.empty(0, device=CARD), torch.ones(2, device=CARD)]),
    "adaptive softmax": lambda: nn.AdaptiveLogSoftmaxWithLoss(4, 8, [3]).to(CARD)(
        torch.ones(2, 4, device=CARD), torch.tensor([1, 5], device=CARD)
    ),
    "a training step": lambda: train(nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Flatten()).to(CARD)),
}


def partly(tensor: torch.Tensor) -> torch.Tensor:
    tensor[:2] = 1
    return tensor


def reset(module: nn.BatchNorm1d) -> nn.BatchNorm1d:
    module.to_empty(device=CARD)
    module.reset_parameters()
    return module


def train(model: nn.Module) -> None:
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        model(torch.ones(2, 1, 4, 4, device=CARD)).sum().backward()
        optimizer.step()


@pytest.mark.parametrize("name", WRITES)
def test_what_was_written_is_no_finding(simulation: Simulation, name: str) -> None:
    WRITES[name]()
    assert found(simulation) == []


def test_memory_that_is_given_back_is_not_counted(simulation: Simulation) -> None:
    kept = torch.empty(3, device=CARD)
    assert simulation.unwritten == 1
    del kept
    assert simulation.unwritten == 0


def test_the_same_memory_is_reported_once(simulation: Simulation) -> None:
    table = torch.empty(3, device=CARD)
    for _ in range(3):
        table * 2
    (finding,) = found(simulation)
    assert finding.count == 1
