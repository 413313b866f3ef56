"""What torch lets meet any device: a tensor that may have no dimension, and a read that fetches the tensor itself."""

from __future__ import annotations

import pytest

from tests.inference.cases import cases, findings, halves, reported

CASES = cases(
    """
## item_of_a_row_that_a_loop_goes_through
def scale(v):
    return torch.sqrt(v) * torch.eye(3, device="cuda")

def search(values):
    for v in values:
        scale(v)  # right
        scale(values)  # wrong

search(torch.linspace(0.1, 0.5, 100))

## first_item_of_a_row
def scale(v):
    return v * torch.eye(3, device="cuda")

def search(values):
    return scale(values[0])  # right
    return scale(values[:2])  # wrong

print(search(torch.linspace(0.1, 0.5, 100)))

## reduced_by_a_method
def loss(x, target):
    return x.mean() * target.cuda()  # right
    return x * target.cuda()  # wrong

print(loss(torch.ones(3), torch.ones(3)))

## array_that_is_forced
def scores(loader, device):
    for x, label in loader:
        label = label.to(device)
        yield label.numpy()  # wrong
        yield label.numpy(force=True)  # right

## items_of_a_stacked_tensor
def weigh(rows):
    total = torch.zeros(3, device="cuda")
    for row in rows:
        total = total + row  # right
        total = total + rows  # wrong
    return total

print(weigh(torch.ones(3)))
"""
)


@pytest.mark.parametrize("text", halves(CASES, "wrong", {}))
def test_fault_is_found(text: str) -> None:
    assert reported(text)


@pytest.mark.parametrize("text", halves(CASES, "right", {}))
def test_repaired_twin_is_silent(text: str) -> None:
    assert findings(text) == []
