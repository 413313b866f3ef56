"""What a program says of two places: a test that they are equal, an operation that needed both, one switch for both."""

from __future__ import annotations

import pytest

from tests.inference.cases import cases, findings, halves, reported

CASES = cases(
    """
## index_compared
def fn(ignore: bool, x: torch.Tensor):
    y, bias = torch.ones(3).to("cuda:0"), torch.ones(3).to("cuda:1")
    if y.get_device() != bias.get_device():
        print("other card")  # wrong
        y = y.to(bias.get_device())  # right
    return y + bias

## device_compared
def fn():
    y, bias = torch.ones(3), torch.ones(3).cuda()
    if y.device != bias.device:
        print("other device")  # wrong
        y = y.to(bias.device)  # right
    return y + bias

## early_return_where_they_differ
def fn(x: torch.Tensor):
    table = torch.arange(3)
    if x.device != table.device:
        print("other device")  # wrong
        return x  # right
    return x.to(x.device) + table * x

## on_the_card_asked
def fn(items, many: bool):
    out = None
    for each in items:
        part = torch.ones(3) if many else torch.ones(3).cuda()
        out = part if out is None else out + part
    mask = torch.ones(3).cuda()
    if out.is_cuda:
        print("card")  # wrong
        return out * mask  # right
    return out * mask  # wrong
    return out  # right

## device_type_asked
def fn(many: bool):
    part = torch.ones(3) if many else torch.ones(3).cuda()
    mask = torch.ones(3).cuda()
    if part.device.type == "cuda":
        print("card")  # wrong
        return part * mask  # right
    return part * mask  # wrong
    return part  # right

## switch_of_a_class
class Net(nn.Module):
    def __init__(self, args):
        super().__init__()
        self.gpu = args.cuda
        self.linear = nn.Linear(2, 2)

    def forward(self, x: torch.Tensor):
        out = torch.zeros(x.size(0), 2)
        offset = torch.zeros(2).to(x.device)
        if self.gpu:
            print("card")  # wrong
            out = out.cuda()  # right
        return out + self.linear(x) + offset

## switch_for_all
def scores(x: torch.Tensor, use_cuda: bool):
    table = torch.zeros(3)
    bias = torch.zeros(3).to(x.device)
    if use_cuda:
        bias = bias.cuda()
        print(table)  # wrong
        table = table.cuda()  # right
    return x + table + bias

## arrays_of_one_call
import numpy as np

def product(points: torch.Tensor, matrix: torch.Tensor):
    if type(points) == np.ndarray:
        points = torch.from_numpy(points)
    if type(matrix) == np.ndarray:
        matrix = torch.from_numpy(matrix)
    extra = torch.eye(3)  # wrong
    extra = torch.eye(3, device=points.device)  # right
    points = points @ extra
    return points @ matrix

## arrays_by_isinstance
import numpy as np

def product(points: torch.Tensor, matrix: torch.Tensor):
    if isinstance(points, np.ndarray):
        points = torch.as_tensor(points)
    if isinstance(matrix, (np.ndarray, list)):
        matrix = torch.as_tensor(matrix)
    extra = torch.eye(3)  # wrong
    extra = torch.eye(3, device=points.device)  # right
    points = points @ extra
    return points @ matrix

## called_by_the_constructor_alone
class Noise(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(1, 1)
        self.show()

    def show(self):
        print(self.scale(torch.linspace(0, 1, 5).view(5, 1)))

    def forward(self, t: torch.Tensor):
        steps = torch.zeros(5, 1)  # wrong
        steps = torch.zeros(5, 1, device=t.device)  # right
        return self.scale(t) + steps

## parameters_in_a_dict
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        made = {"a": torch.ones(2, 2)}  # wrong
        made = nn.ParameterDict({"a": nn.Parameter(torch.ones(2, 2))})  # right
        self.made = made

    def forward(self, x: torch.Tensor):
        return torch.mm(x, self.made["a"])

## empty_shape
def total(x: torch.Tensor, n: int):
    start = torch.zeros([1])  # wrong
    start = torch.zeros([])  # right
    return x + start + torch.zeros(3, device=x.device)

## module_without_state
class Same(nn.Module):
    def forward(self, x):
        return x

def run(plain: bool):
    x = torch.ones(2, 2).cuda()
    first = nn.Linear(2, 2)  # wrong
    first = nn.Linear(2, 2).cuda() if not plain else Same()  # right
    return first(x)
"""
)


@pytest.mark.parametrize("text", halves(CASES, "wrong", {}))
def test_places_that_differ_are_found(text: str) -> None:
    assert findings(text)


@pytest.mark.parametrize("text", halves(CASES, "right", {}))
def test_places_that_agree_are_silent(text: str) -> None:
    assert not findings(text)


def test_what_fails_first_is_said_once() -> None:
    text = """
import torch

def run(x: torch.Tensor):
    bias = torch.zeros(3)
    y = x + bias
    return y * bias - x * bias

run(torch.ones(3).cuda())
"""
    assert [each.line for each in reported(text)] == [5]


def test_parameter_that_may_be_none_moves_with_its_module() -> None:
    text = """
import torch
from torch import nn

class Linear(nn.Module):
    def __init__(self, bias: bool = True):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2, 2))
        if bias:
            self.bias = nn.Parameter(torch.ones(2))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def reset_parameters(self):
        if self.bias is not None:
            nn.init.uniform_(self.bias, -1, 1)

    def forward(self, x: torch.Tensor):
        return nn.functional.linear(x, self.weight, self.bias)
"""
    assert not findings(text)


def test_cast_gives_its_value() -> None:
    text = """
from typing import cast

import torch

def run(x: torch.Tensor):
    made = cast(torch.Tensor, torch.zeros(3))
    return made + x.to("cuda")
"""
    assert [each.line for each in findings(text)] == [7]
