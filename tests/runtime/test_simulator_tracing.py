"""`torch.jit.trace` on a simulated card: the trace is made, and what it recorded keeps to the card's rules."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch
from torch import nn

from devlint.runtime.simulator import DeviceSpec, simulate

pytestmark = [pytest.mark.runtime, pytest.mark.filterwarnings("ignore::DeprecationWarning")]


def network() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 2, 3), nn.MaxPool2d(2))


def test_trace_of_a_model_on_the_host() -> None:
    with simulate(DeviceSpec()):
        model, images = network(), torch.randn(1, 1, 8, 8)
        traced = torch.jit.trace(model, images)
        assert torch.equal(traced(images), model(images))


def test_traced_model_on_the_card() -> None:
    with simulate(DeviceSpec()):
        model, images = network().cuda(), torch.randn(1, 1, 8, 8, device="cuda")
        traced = torch.jit.trace(model, images)
        assert str(traced(images).device) == "cuda:0"
        with pytest.raises(RuntimeError):
            traced(images.cpu())


class Shapes(nn.Module):  # type: ignore[misc]
    """Computes with shapes, with positions made on the host and with a constant."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, length, width = x.shape
        flat = x.reshape(rows * length, width) * length
        offset = torch.tensor([1.0, 2.0], device=x.device)
        return flat.view(rows, length, width) + torch.arange(length).to(x.device)[:, None] + offset


def test_model_that_computes_with_shapes() -> None:
    with simulate():
        model, first, other = Shapes(), torch.ones(2, 3, 2, device="cuda"), torch.ones(5, 3, 2, device="cuda")
        traced = torch.jit.trace(model, first)
        assert torch.equal(traced(other), model(other))
        assert str(traced(other).device) == "cuda:0"
