"""The old types of tensors name a device: `torch.cuda.FloatTensor`, chosen once for a whole script."""

from __future__ import annotations

from typing import Final

import pytest

from tests.inference.cases import findings

CHOSEN: Final = """\
import torch

cuda = torch.cuda.is_available()
Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor
net = torch.nn.Linear(3, 1)
if cuda:
    net.cuda()
"""
BY_STATEMENT: Final = CHOSEN.replace(
    "Tensor = torch.cuda.FloatTensor if cuda else torch.FloatTensor\n",
    "if cuda:\n    Tensor = torch.cuda.FloatTensor\nelse:\n    Tensor = torch.FloatTensor\n",
)


@pytest.mark.parametrize("start", [CHOSEN, BY_STATEMENT])
@pytest.mark.parametrize(
    "made",
    [
        "torch.rand(3).type(Tensor)",
        "Tensor(2, 3)",
        "torch.autograd.Variable(Tensor([[1.0, 2.0, 3.0]]))",
        "torch.rand(3).type(torch.cuda.FloatTensor if cuda else torch.FloatTensor)",
    ],
)
def test_chosen_type_puts_a_tensor_where_the_module_is(start: str, made: str) -> None:
    assert not findings(start + f"net({made})\n")


@pytest.mark.parametrize("start", [CHOSEN, BY_STATEMENT])
@pytest.mark.parametrize("made", ["torch.rand(3).type(torch.FloatTensor)", "torch.FloatTensor(2, 3)"])
def test_type_of_the_cpu_does_not(start: str, made: str) -> None:
    assert findings(start + f"net({made})\n")


@pytest.mark.parametrize("made", ["torch.rand(3).type(Tensor)", "Tensor(2, 3)"])
def test_tensor_of_the_chosen_type_meets_one_of_the_cpu(made: str) -> None:
    assert findings(CHOSEN + f"print({made} + torch.ones(3))\n")


def test_type_of_the_card_makes_a_tensor_there() -> None:
    assert findings("import torch\n\nprint(torch.cuda.LongTensor([1, 2]) + torch.tensor([1, 2]))\n")
