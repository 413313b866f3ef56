"""Conditions that ask where a value is: they hold for the places that the value has, and for no others."""

from __future__ import annotations

import pytest

from tests.inference.cases import cases, findings, halves, reported, sources

#: A value that may be at several places, and a helper that follows it.
FOLLOWED = cases(
    """
## array_or_what_was_given
import numpy as np
def warp(x):
    grid = torch.zeros(3)
    if x.is_cuda:
        grid = grid.cuda()  # right
        grid = torch.ones(3)  # wrong
    return x + grid

def get(item):
    image = item.cuda()
    if isinstance(item, np.ndarray):
        image = torch.from_numpy(item)
    return warp(image)

## device_text_of_two_places
def warp(x):
    grid = torch.zeros(3)
    if x.device.type == "cuda":
        grid = grid.to("cuda")  # right
        grid = torch.ones(3)  # wrong
    return x * grid

def get(item, big):
    image = torch.ones(3)
    if big:
        image = torch.ones(3).cuda()
    return warp(image)

## not_on_the_host
def warp(x):
    grid = torch.zeros(3)
    if str(x.device) == "cpu":
        return grid + x
    return grid.cuda() + x  # right
    return grid + x  # wrong

def get(item, big):
    image = torch.ones(3)
    if big:
        image = torch.ones(3).cuda()
    return warp(image)
"""
)

#: Only the device of another argument says that something is on the CPU, or on an accelerator. Nobody passes such values.
OTHERS = """
## another_argument_is_on_the_host
def mix(matches, points, device):
    grid = torch.zeros(3)
    if matches.is_cuda:
        grid = grid.cuda()
    return points - grid

def run(matches, device):
    return mix(matches, torch.ones(3).to(device), device)

## another_argument_is_on_a_card
class Grid:
    def __init__(self, use_cuda=True):
        self.grid = torch.ones(3)
        if use_cuda:
            self.grid = self.grid.cuda()
    def warp(self, theta):
        x = torch.ones(3)
        if theta.is_cuda:
            x = x.cuda()
        return self.grid * x

## two_arguments_that_are_asked
def mix(a, b):
    grid = torch.ones(3)
    mask = torch.ones(3)
    if a.is_cuda:
        grid = grid.cuda()
    if b.is_cuda:
        mask = mask.cuda()
    return grid * mask
"""


@pytest.mark.parametrize("text", halves(FOLLOWED, "wrong", {}))
def test_value_at_two_places_is_not_followed(text: str) -> None:
    assert reported(text)


@pytest.mark.parametrize("text", halves(FOLLOWED, "right", {}))
def test_value_at_two_places_is_followed(text: str) -> None:
    assert findings(text) == []


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in sources(OTHERS).items()])
def test_device_of_another_argument_is_no_witness(text: str) -> None:
    assert reported(text) == []
