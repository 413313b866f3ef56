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
