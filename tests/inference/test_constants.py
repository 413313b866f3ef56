"""What a caller says of a switch: a constant reaches the conditions of what it calls, through fields too."""

from __future__ import annotations

import pytest

from tests.inference.cases import cases, halves, reported

CASES = cases(
    """
## switch_kept_in_a_field
class Loss(nn.Module):
    def __init__(self, use_gpu=True):
        super().__init__()
        self.use_gpu = use_gpu
    def forward(self, x):
        y = torch.ones(3)
        if self.use_gpu:
            y = y.cuda()
        return x + y

Loss(use_gpu=True)(torch.rand(3))  # wrong
Loss(use_gpu=False)(torch.rand(3))  # right

## switch_that_is_a_default
class Loss:
    def __init__(self, cuda=False):
        self.cuda = cuda
    def run(self, x):
        y = torch.ones(3)
        if self.cuda:
            y = y.cuda()
        return x + y

Loss(True).run(torch.rand(3))  # wrong
Loss().run(torch.rand(3))  # right

## name_of_a_mode
class Maker:
    def __init__(self, mode):
        self.mode = mode
    def make(self):
        if self.mode == "gpu":
            return torch.ones(3).cuda()
        return torch.ones(3)

print(Maker("gpu").make() + torch.rand(3))  # wrong
print(Maker("host").make() + torch.rand(3))  # right

## number_that_is_a_default
class Cell(nn.Module):
    def __init__(self, damping=0.0):
        super().__init__()
        self.damping = damping
        self.register_buffer("noise", torch.rand(3))
    def forward(self, x):
        if self.damping > 0:
            x = x + torch.ones(3).cuda()
        return x

def main():
    cell = Cell(damping=0.5)  # wrong
    cell = Cell()  # right
    cell(torch.rand(3))
main()

## model_asks_where_it_is
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
    def forward(self, x):
        device = "cuda" if next(self.parameters()).is_cuda else "cpu"
        return self.layer(x) + torch.rand(3, device=device)

def main():
    net = Net()
    net = net.cuda()  # wrong
    net(torch.rand(3))
main()

## device_that_is_always_there
class Attack:
    def prepare(self):
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    def model(self):
        device = self.device if self.device else torch.device("cuda:0")
        return nn.Linear(3, 3).to(device)
    def run(self, x):
        self.prepare()
        return self.model()(x)  # wrong
        return self.model()(x.to(self.device))  # right

Attack().run(torch.rand(3))
"""
)


@pytest.mark.parametrize("text", halves(CASES, "wrong", {}))
def test_switch_that_is_on_fails(text: str) -> None:
    assert reported(text)


@pytest.mark.parametrize("text", halves(CASES, "right", {}))
def test_switch_that_is_off_is_silent(text: str) -> None:
    assert not reported(text)
