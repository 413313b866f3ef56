"""A conversion is whole: what needs the card and stays keeps it from being safe, and what belongs to it is written with it."""

from __future__ import annotations

import pytest

from devlint.engine import Linter
from devlint.fix.rounds import fix_source
from devlint.model import Safety
from devlint.settings import Settings
from devlint.source import decode
from devlint_rules import RULES

SELECT = ("DEV201", "DEV202", "DEV203", "DEV205", "DEV209")
SETTINGS = Settings(select=SELECT, torch_stated=False)
CHOICE = '"cuda" if torch.cuda.is_available() else "cpu"'


def converted(text: str, *allow: Safety) -> str:
    linter = Linter(tuple(rule() for rule in RULES), SETTINGS)
    return fix_source(linter, decode(text.encode(), "train.py"), allow or (Safety.SAFE, Safety.UNSAFE)).text


PROGRAM = "import torch\nfrom here import make\n\n\ndef main():\n    model = torch.nn.Linear(2, 2).cuda()\n    {}\n\n\nmain()\n"


def test_a_program_without_more_is_converted_safely() -> None:
    assert ".to(device)" in converted(PROGRAM.format("print(model)"), Safety.SAFE)


@pytest.mark.parametrize(
    "stays",
    [
        "print(torch.cuda.get_device_name(0))",
        "total = torch.cuda.get_device_properties(0).total_memory",
        "try:\n        print(torch.cuda.current_device())\n    except AttributeError:\n        pass",
        "loss = make(usegpu=True)",
        "loss = make(use_cuda=True)",
        "loss = make(on_gpu=True, n=3)",
        "x = torch.rand(3, 2).half()",
        "y = model(torch.rand(3, 2).cuda().half())",
        "model.half()",
        "state = torch.load('a', map_location=torch.device(f'cuda:{make()}'))",
        "state = torch.load('a', map_location=f'cuda:{make()}')",
        "state = torch.load('a', map_location='cuda:{}'.format(make()))",
    ],
)
def test_a_line_that_needs_the_card_keeps_the_conversion_from_being_safe(stays: str) -> None:
    text = PROGRAM.format(stays)
    assert converted(text, Safety.SAFE) == text


@pytest.mark.parametrize("default", ['device="cuda"', "device='cuda:0'", '*, place="cuda"'])
def test_a_default_that_names_the_card_keeps_the_conversion_from_being_safe(default: str) -> None:
    text = PROGRAM.replace("def main", f"def noise({default}):\n    return make()\n\n\ndef main").format("print(model)")
    assert converted(text, Safety.SAFE) == text


@pytest.mark.parametrize(
    "handler",
    [
        "except AttributeError:\n    pass",
        "except (AttributeError, ImportError):\n    pass",
        "except KeyError:\n    pass",
    ],
)
def test_the_name_of_the_card_under_a_handler_of_another_error_is_reported(handler: str) -> None:
    text = f"import torch\n\ntry:\n    print(torch.cuda.get_device_name(0))\n{handler}\n"
    linter = Linter(tuple(rule() for rule in RULES), SETTINGS)
    assert [each.code for each in linter.check(decode(text.encode(), "a.py")).diagnostics] == ["DEV205"]


def test_another_card_than_the_current_one_stays_that_card() -> None:
    text = (
        "import torch\n\n\ndef main(net, other):\n    net = net.cuda()\n    place = torch.device('cuda:1')\n"
        "    other = other.to(place)\n    return net, other\n"
    )
    assert "torch.device('cuda:1' if torch.cuda.is_available() else 'cpu')" in converted(text)


def test_a_second_card_without_a_name_is_a_hint() -> None:
    text = "import torch\n\n\ndef main(net):\n    net = net.cuda()\n    return torch.rand(3).to('cuda:1')\n"
    assert ".to('cuda:1')" in converted(text)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.cuda.amp.autocast()", "torch.autocast(device.type)"),
        ("torch.cuda.amp.autocast(enabled=True)", "torch.autocast(device.type, enabled=True)"),
        ("torch.cuda.amp.GradScaler()", 'torch.amp.GradScaler(device.type, enabled=device.type == "cuda")'),
    ],
)
def test_mixed_precision_takes_the_type_of_the_new_device(old: str, new: str) -> None:
    assert new in converted(PROGRAM.format(f"scale = {old}"))


@pytest.mark.parametrize("text", ["import torch\n\nscale = torch.cuda.amp.GradScaler()\n"])
def test_mixed_precision_alone_keeps_its_type(text: str) -> None:
    assert 'torch.amp.GradScaler("cuda")' in converted(text)


NET = """import torch
from torch import nn
from torch.autograd import Variable


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 1, 3)

    def forward(self, x):
        return self.conv(x)

    def hidden(self, n):
        return {}
"""


@pytest.mark.parametrize(
    "made", ["Variable(torch.zeros(n, 3)).cuda()", "Variable(torch.zeros(n, 3).cuda())", "torch.zeros(n, 3).cuda()"]
)
def test_what_a_module_makes_goes_where_its_parameters_are(made: str) -> None:
    once = converted(NET.format(made))
    assert "next(self.parameters()).device" in once
    assert "is_available" not in once


@pytest.mark.parametrize(
    "use", ["show(self.net, device='cuda:0')", "torch.rand(3).cuda()", "torch.rand(3, device='cuda')"]
)
@pytest.mark.parametrize(
    "beside", ["x.to(self.device)", "torch.ones(3, device=self.device)", "x.to(device=self.device)"]
)
def test_the_device_of_the_class_is_used_where_the_class_places_things_by_it(use: str, beside: str) -> None:
    text = (
        "import torch\nfrom here import Base, show\n\n\nclass Trainer(Base):\n    def step(self, x):\n"
        f"        return {beside}\n\n    def end(self):\n        return {use}\n"
    )
    once = converted(text)
    assert once.count("self.device") == 2
    assert "is_available" not in once


@pytest.mark.parametrize("test", ["pred == kind", "pred > 3", "pred != kind"])
def test_what_is_computed_from_a_tensor_is_not_moved_to_its_device(test: str) -> None:
    text = (
        "import torch\n\n\ndef overlap(pred: torch.Tensor, labels: torch.Tensor, kind: int):\n"
        f"    return torch.sum(torch.mul(({test}).cuda(), (labels == kind).cuda()))\n"
    )
    once = converted(text)
    assert f"torch.mul({test}, " in once or f"torch.mul(({test}), " in once


@pytest.mark.parametrize(
    "said",
    ["torch.cuda.get_device_name(0)", '"card {}".format(torch.cuda.get_device_name(0))', "torch.cuda.current_device()"],
)
def test_a_print_about_the_card_is_put_under_a_guard(said: str) -> None:
    text = f"import torch\n\ntry:\n    print({said})\nexcept AttributeError:\n    print('none')\n"
    assert f"    if torch.cuda.is_available():\n        print({said})\n" in converted(text)


def test_a_print_with_two_calls_is_guarded_once() -> None:
    text = "import torch\n\nprint(torch.cuda.get_device_name(0), torch.cuda.current_device())\n"
    assert converted(text).count("is_available") == 1


@pytest.mark.parametrize("other", ["x = x.cuda()", "net = torch.nn.Linear(2, 2).cuda()", "x = x.to('cuda')"])
def test_one_name_serves_a_function_that_needs_the_new_one(other: str) -> None:
    text = (
        "import torch\n\n\ndef train(loader, net):\n    for x in loader:\n        "
        f"{other}\n        y = net(x)\n        z = torch.relu(y) + torch.ones(3).cuda()\n        z.sum().backward()\n"
    )
    assert ".device" not in converted(text).replace("torch.device", "")


def test_what_meets_the_callers_tensor_follows_it() -> None:
    text = (
        "import torch\n\n\ndef loss(x: torch.Tensor, make):\n    w = make().cuda()\n"
        "    return x + torch.ones(3, device='cuda') + w\n"
    )
    assert "device=x.device" in converted(text)


@pytest.mark.parametrize("unpack", ["a, b = given", "[a, b] = given", "a, (b, c) = given"])
def test_an_argument_that_is_unpacked_is_no_witness(unpack: str) -> None:
    text = (
        "import torch\n\n\nclass Loss:\n    def __call__(self, given, rows):\n"
        f"        {unpack}\n        x = torch.sigmoid(a)\n        rows = rows.cuda()\n        return x * rows\n"
    )
    assert "given.device" not in converted(text)
