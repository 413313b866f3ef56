"""Modules whose class defines `_apply`, buffers that are bound again, and containers of modules that exist already."""

from __future__ import annotations

import pytest

from tests.inference.cases import cases, findings, halves, reported

CASES = cases(
    """
## device_that_apply_notes
class History(nn.Module):
    def __init__(self):
        super().__init__()
        self.place = torch.device("cpu")
    def _apply(self, fn):
        self.place = fn(torch.zeros(1)).device  # right
        return super()._apply(fn)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.parts = nn.ModuleList([History() for _ in range(3)])
    def forward(self, x):
        return self.fc(x.to(self.parts[0].place))

model = Net().cuda()
print(model(torch.ones(3, 3)))

## table_that_apply_moves
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.tables = torch.ones(3)
    def _apply(self, fn):
        super()._apply(fn)
        self.tables = fn(self.tables)  # right
        return self
    def forward(self, x):
        return self.fc(x) + self.tables

print(Net().to("cuda")(torch.ones(3, 3).cuda()))

## part_of_a_part
class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = torch.ones(3)
    def _apply(self, fn):
        self.rows = fn(self.rows)  # right
        return super()._apply(fn)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = Table()
    def forward(self, x):
        return x + self.table.rows

class Whole(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = Net()
    def forward(self, x):
        return self.net(x)

print(Whole().cuda()(torch.ones(3).cuda()))

## buffer_that_the_constructor_binds_again
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.randn(4, 3))  # right
        self.rows = torch.randn(4, 3)  # wrong
        self.rows = nn.functional.normalize(self.rows)
    def forward(self, x):
        return self.rows @ x

print(Memory().cuda()(torch.ones(3).cuda()))

## buffer_that_a_method_binds_again
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("rows", torch.randn(4, 3))
    def forward(self, x):
        self.rows = torch.cat([self.rows[1:], x])
        return self.rows

memory = Memory().cuda()
memory(torch.ones(1, 3))  # wrong
memory(torch.ones(1, 3).cuda())  # right

## loop_that_moves_all_modules
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(3))
        self.fc = nn.Linear(3, 3)
    def forward(self, x):
        return self.fc(x) * self.scale

net = Net()
for each in net.modules():
    each.cuda()  # right
    each.eval()  # wrong
print(net(torch.ones(1, 3).cuda()))

## loop_that_moves_all_children_of_a_sequence
net = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
for each in net.children():
    each.cuda()  # right
    each.eval()  # wrong
print(net(torch.ones(1, 3).cuda()))

## parameters_that_a_list_gets_one_by_one
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rows = nn.ParameterList([])
        for _ in range(3):
            self.rows.append(nn.Parameter(torch.zeros(3)))
    def forward(self, x):
        return x * self.rows[0]

net = Net()
net = net.cuda()  # right
print(net(torch.ones(3).cuda()))  # right
print(Net()(torch.ones(3).cuda()))  # wrong

## sequence_of_the_children_of_a_model
import torchvision
model = torchvision.models.resnet18().cuda()
body = nn.Sequential(*list(model.children())[:-1])
head = nn.Linear(512, 3)
head.cuda()  # right
print(head(body(torch.ones(1, 3, 64, 64).cuda()).flatten(1)))

## sequence_of_the_children_of_what_was_given
def features(model, x):
    modules = list(model.children())[:-1]
    body = nn.Sequential(*modules)
    extra = nn.Linear(3, 3)
    extra.cuda()  # right
    return extra(body(x.cuda()))

print(features(nn.Sequential(nn.Linear(3, 3), nn.ReLU()).cuda(), torch.ones(3)))

## sequence_of_layers_that_were_moved
first = nn.Linear(3, 3).cuda()
second = nn.Linear(3, 3).cuda()
net = nn.Sequential(first, nn.ReLU(), second)
print(net(torch.ones(3)))  # wrong
print(net(torch.ones(3).cuda()))  # right
"""
)


@pytest.mark.parametrize("text", halves(CASES, "wrong", {}))
def test_fault_is_found(text: str) -> None:
    assert reported(text)


@pytest.mark.parametrize("text", halves(CASES, "right", {}))
def test_repaired_twin_is_silent(text: str) -> None:
    assert findings(text) == []
