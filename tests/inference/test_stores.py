"""What a container holds after its items were rebound: one heap rule for lists, dicts and batches.

A store under a known key replaces that item. One under an unknown key may have replaced any. A loop that goes through all
items and rebinds each replaces all of them.
"""

from __future__ import annotations

import pytest

from tests.inference.cases import cases, halves, reported

CASES = cases(
    """
## keys_of_a_batch
from torch.utils.data import DataLoader

def train(dataset):
    model = nn.Linear(2, 2).cuda()
    for batch in DataLoader(dataset):
        for key in batch.keys():
            print(key)  # wrong
            batch[key] = batch[key].cuda()  # right
        model(batch["x"])

## items_of_a_batch
from torch.utils.data import DataLoader

def train(dataset):
    model = nn.Linear(2, 2).cuda()
    for batch in DataLoader(dataset):
        for key, value in batch.items():
            print(key, value)  # wrong
            batch[key] = value.cuda()  # right
        model(batch["x"])

## items_that_are_tensors
from torch.utils.data import DataLoader

def train(dataset):
    model = nn.Linear(2, 2).cuda()
    for batch in DataLoader(dataset):
        for key, value in batch.items():
            if torch.is_tensor(value):
                print(key)  # wrong
                batch[key] = value.cuda()  # right
        model(batch["x"])

## items_checked_by_class
from torch.utils.data import DataLoader

def train(dataset):
    model = nn.Linear(2, 2).cuda()
    for batch in DataLoader(dataset):
        for key in batch:
            if isinstance(batch[key], torch.Tensor):
                print(key)  # wrong
                batch[key] = batch[key].cuda()  # right
        model(batch["x"])

## one_entry_of_a_batch
from torch.utils.data import DataLoader

def train(dataset):
    model = nn.Linear(2, 2).cuda()
    for batch in DataLoader(dataset):
        batch["y"] = batch["y"].cuda()
        batch["x"] = batch["x"].cuda()  # right
        model(batch["x"])

## numbers_of_a_list
def run():
    model = nn.Linear(2, 2).cuda()
    parts = [torch.ones(1, 2), torch.zeros(1, 2)]
    for i in range(len(parts)):
        print(i)  # wrong
        parts[i] = parts[i].cuda()  # right
    model(parts[0])

## enumerated_list
def run():
    model = nn.Linear(2, 2).cuda()
    parts = [torch.ones(1, 2), torch.zeros(1, 2)]
    for i, part in enumerate(parts):
        print(i, part)  # wrong
        parts[i] = part.cuda()  # right
    model(parts[1])

## keys_of_a_dict
def run():
    model = nn.Linear(2, 2).cuda()
    parts = {"a": torch.ones(1, 2), "b": torch.zeros(1, 2)}
    for key in parts:
        print(key)  # wrong
        parts[key] = parts[key].cuda()  # right
    model(parts["b"])

## first_of_a_batch
from torch.utils.data import DataLoader

def train(dataset, device):
    model = nn.Linear(2, 2).to(device)
    for x, y in DataLoader(dataset):
        if type(x) == type([]):
            x[0] = x[0].to(device)
        else:
            print(x)  # wrong
            x = x.to(device)  # right
        model(x)
"""
)


@pytest.mark.parametrize("text", halves(CASES, "wrong", {}))
def test_item_that_stayed_is_found(text: str) -> None:
    assert reported(text)


@pytest.mark.parametrize("text", halves(CASES, "right", {}))
def test_rebound_items_are_where_they_were_put(text: str) -> None:
    assert not reported(text)
