"""Parts of a module that cannot be told apart are where the module is."""

from __future__ import annotations

from typing import Final

import pytest

from tests.inference.cases import findings

BUILD: Final = """\
import torch
from torch import nn


def build(*sizes, layer=nn.Linear):
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [layer(a, b), nn.ReLU()]
    return nn.Sequential(*layers)


def listed(makers):
    return nn.ModuleList([make() for make in makers])


"""


@pytest.mark.parametrize(
    "body",
    [
        "model = build(1, 2)\nmodel(torch.rand(1, device=model[0].weight.device))\n",
        "model = build(1, 2).cuda()\nmodel(torch.rand(1, device=model[0].weight.device))\n",
        "model = listed([nn.ReLU]).cuda()\nfor part in model:\n    part(torch.rand(1).to(part.weight.device))\n",
        "parts = listed([build])\nx = torch.rand(1)\nfor part in parts:\n    x = part(x)\n",
    ],
)
def test_part_is_where_its_module_is(body: str) -> None:
    assert not findings(BUILD + body)


@pytest.mark.parametrize(
    "body",
    [
        "model = build(1, 2).cuda()\nprint(model[0].weight + torch.rand(1, 2))\n",
        "model = build(1, 2)\nmodel[0](torch.rand(1).cuda())\n",
    ],
)
def test_part_meets_what_is_elsewhere(body: str) -> None:
    assert findings(BUILD + body)


MASK: Final = (
    "import torch\n\n\ndef run(mask, n: int):\n    parts = []\n    for i in range(n):\n        row = torch.arange(n)\n"
)


@pytest.mark.parametrize("part", ["mask[:, i]", "mask[..., i]", "mask[None, i]", "mask"])
def test_parts_of_one_tensor_are_on_one_device(part: str) -> None:
    moved = f"        if {part}.is_cuda:\n            row = row.cuda()\n"
    assert not findings(MASK + moved + "        parts.append(row)\n    return torch.stack(parts)\n")


@pytest.mark.parametrize("part", ["mask[:, i]", "mask[..., i]", "mask"])
def test_what_is_moved_beside_a_part_meets_the_rest(part: str) -> None:
    moved = f"        if {part}.is_cuda:\n            row = row.cuda()\n"
    assert findings(MASK + moved + "        parts.append(row + torch.zeros(n))\n    return parts\n")


# -- what a module is made of


@pytest.mark.parametrize(
    "pairs",
    [
        "OrderedDict([('first', part), ('head', nn.Linear(3, 3))])",
        "OrderedDict((('first', part), ('head', nn.Linear(3, 3))))",
        "OrderedDict(first=part)",
        "dict([('first', part)])",
    ],
)
def test_dict_of_pairs_registers_its_parts(pairs: str) -> None:
    body = f"part = nn.Linear(3, 3)\nnn.Sequential({pairs}).cuda()\npart(torch.rand(3).cuda())\n"
    assert not findings("from collections import OrderedDict\n" + BUILD + body)


def test_part_that_no_pair_registers_stays() -> None:
    body = "part = nn.Linear(3, 3)\nnn.Sequential(OrderedDict([('a', nn.ReLU())])).cuda()\npart(torch.rand(3).cuda())\n"
    assert findings("from collections import OrderedDict\n" + BUILD + body)


@pytest.mark.parametrize(
    "kept", ["nn.ModuleList([actor, critic])", "nn.Sequential(actor)", "nn.ModuleDict({'a': actor})"]
)
def test_container_of_what_cannot_be_read_is_only_likely_on_the_cpu(kept: str) -> None:
    made = "from agents import Actor\n\nactor, critic = Actor(device='cuda'), Actor(device='cuda')\n"
    found = findings(BUILD + made + f"nets = {kept}\nnets(torch.rand(3).cuda())\n")
    assert all(each.soft for each in found)


# -- arguments


@pytest.mark.parametrize("default", ["torch.float", "torch.bfloat16"])
def test_parameter_whose_default_is_a_data_type_is_one(default: str) -> None:
    body = f"def run(kind={default}):\n    x = torch.ones(3).to(kind)\n    return torch.cat([torch.zeros(3), x])\n"
    assert not findings("import torch\n\n\n" + body)


TESTED: Final = """\
import torch


def evaluate(model, x, use_gpu=True):
    if use_gpu:
        x = x.cuda()
    return model(x)


def main(settings, count):
    model = torch.nn.Linear(3, 3)
"""


@pytest.mark.parametrize(
    ("made", "flag"),
    [
        ("settings.gpu = settings.count > 0 and torch.cuda.is_available()", "settings.gpu"),
        ("gpu = not settings.cpu and count > 1", "gpu"),
        ("gpu = count > settings.least", "gpu"),
    ],
)
def test_what_a_test_gave_decides_the_same_in_a_call(made: str, flag: str) -> None:
    body = (
        f"    {made}\n    if {flag}:\n        model.cuda()\n    return evaluate(model, torch.rand(3), use_gpu={flag})\n"
    )
    assert not findings(TESTED + body)


def test_another_test_in_the_call_is_reported() -> None:
    body = "    gpu = count > 1\n    if count > 2:\n        model.cuda()\n"
    assert findings(TESTED + body + "    return evaluate(model, torch.rand(3), use_gpu=gpu)\n")


# -- one of several objects

CHOSEN: Final = """\
import torch
from torch import nn


class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.default = torch.zeros(3)

    def forward(self, x, by=None):
        return x + (self.default.to(x.device) if by is None else by)


class Scale(nn.Module):
    def __init__(self):
        super().__init__()
        self.by = nn.Linear(3, 3)

    def forward(self, x, by=None):
        return self.by(x)


"""


def test_one_of_two_classes_that_hold_no_parameter_may_stay() -> None:
    body = "change = Shift() if len(input()) else nn.ReLU()\nprint(change(torch.rand(3).cuda()))\n"
    assert not findings(CHOSEN + body)


def test_one_of_two_classes_that_has_parameters_is_reported() -> None:
    body = "if len(input()):\n    change = Shift()\nelse:\n    change = Scale()\nprint(change(torch.rand(3).cuda()))\n"
    assert findings(CHOSEN + body)
    assert not findings(CHOSEN + body.replace("print(", "change.cuda()\nprint("))
