"""Objects of libraries that are called like functions: the steps of a pipeline; and loaders that are given."""

from __future__ import annotations

from typing import Final

import pytest

from tests.inference.cases import findings

START: Final = """\
import torch
from PIL import Image
from torchvision import models, transforms
from torchvision.transforms import v2

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = models.resnet18().to(device).eval()
"""
STEPS: Final = [
    "transforms.Compose([transforms.Resize(224), transforms.ToTensor(), transforms.Normalize([0.5], [0.5])])",
    "transforms.ToTensor()",
    "v2.Compose([v2.ToImage(), v2.ToDtype(torch.float32, scale=True)])",
    "transforms.Compose([transforms.Compose([transforms.PILToTensor()]), transforms.Lambda(lambda x: x.float())])",
]


@pytest.mark.parametrize("steps", STEPS)
def test_pipeline_gives_a_tensor_of_the_cpu(steps: str) -> None:
    body = f"prepare = {steps}\npicture = prepare(Image.open('a.png')).unsqueeze(0)\nprint(model(picture))\n"
    (found,) = findings(START + body)
    assert (found.code, found.evidence, found.soft) == ("DEV103", "named", False)


@pytest.mark.parametrize("steps", STEPS)
def test_what_is_moved_behind_a_pipeline_is_silent(steps: str) -> None:
    body = f"prepare = {steps}\npicture = prepare(Image.open('a.png')).unsqueeze(0).to(device)\nprint(model(picture))\n"
    assert not findings(START + body)


@pytest.mark.parametrize(
    "steps",
    [
        "transforms.Compose([transforms.ToTensor(), transforms.Lambda(lambda x: x.to(device))])",
        "transforms.Compose(own_steps())",
        "transforms.Compose([transforms.ToTensor(), *own_steps()])",
    ],
)
def test_pipeline_with_a_step_that_may_move_is_silent(steps: str) -> None:
    body = f"from steps import own_steps\n\nprepare = {steps}\nprint(model(prepare(Image.open('a.png'))))\n"
    assert not findings(START + body)


def test_step_that_cannot_be_read_makes_the_place_likely() -> None:
    steps = "transforms.Compose([transforms.ToTensor(), own_step])"
    body = f"from steps import own_step\n\nprepare = {steps}\nprint(model(prepare(Image.open('a.png'))))\n"
    (found,) = findings(START + body)
    assert found.soft


def test_pipeline_leaves_a_tensor_where_it_is() -> None:
    body = "prepare = transforms.Compose([transforms.Resize(8)])\nx = prepare(torch.rand(1, 3, 9, 9, device=device))\n"
    assert not findings(START + body + "print(model(x))\n")
    assert findings(START + body + "print(x + torch.rand(1, 3, 8, 8))\n")


def test_pipeline_that_an_object_keeps() -> None:
    body = """
class Classifier:
    def __init__(self, net, device):
        self.device = device
        self.net = net.to(device)
        self.prepare = transforms.Compose([transforms.Resize(224), transforms.ToTensor()])

    def classify(self, path):
        picture = self.prepare(Image.open(path)).unsqueeze(0)
        return self.net(picture).argmax()
"""
    assert findings(START + body)
    assert not findings(START + body.replace("unsqueeze(0)", "unsqueeze(0).to(self.device)"))


LOADER: Final = """\
import torch
from torch import nn
from torch.utils.data import DataLoader


def train(batches: DataLoader, device: torch.device):
    model = nn.Linear(8, 2).to(device)
"""


@pytest.mark.parametrize(
    "loop",
    [
        "    for inputs, labels in batches:\n        model(inputs)\n",
        "    for i, (inputs, labels) in enumerate(batches):\n        model(inputs)\n",
        "    inputs = next(iter(batches))[0]\n    model(inputs)\n",
    ],
)
def test_batches_of_a_loader_that_is_given_are_on_the_cpu(loop: str) -> None:
    assert findings(LOADER + loop)
    assert not findings(LOADER + loop.replace("model(inputs)", "model(inputs.to(device))"))


def test_loader_that_a_library_changed_says_nothing() -> None:
    body = "    batches = accelerator.prepare(batches)\n    for inputs, _ in batches:\n        model(inputs)\n"
    assert not findings(LOADER.replace("device: torch.device", "device: torch.device, accelerator") + body)


def test_loader_that_an_object_keeps() -> None:
    body = """\
import torch
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, net: torch.nn.Module, batches: DataLoader, device: torch.device):
        self.net = net.to(device)
        self.batches = batches
        self.device = device

    def run(self):
        for inputs, labels in self.batches:
            self.net(inputs)
"""
    assert findings(body)
    assert not findings(body.replace("self.net(inputs)", "self.net(inputs.to(self.device))"))


# -- models of libraries

MODELS: Final = """\
import timm
import torch
import torchvision
from transformers import AutoModelForCausalLM, AutoTokenizer, BertModel

tokenizer = AutoTokenizer.from_pretrained("name")
"""


@pytest.mark.parametrize(
    "call",
    [
        "torchvision.models.resnet18().cuda()(torch.rand(1, 3, 8, 8))",
        "timm.create_model('resnet18').to('cuda')(torch.rand(1, 3, 8, 8))",
        "BertModel.from_pretrained('name').cuda()(torch.tensor([[1, 2]]))",
        "BertModel.from_pretrained('name')(torch.tensor([[1, 2]]).cuda())",
        "BertModel.from_pretrained('name').cuda()(**tokenizer('text', return_tensors='pt'))",
        "AutoModelForCausalLM.from_pretrained('name').cuda().generate(tokenizer.encode('a', return_tensors='pt'))",
        "torchvision.models.detection.fasterrcnn_resnet50_fpn().cuda().eval()([torch.rand(3, 8, 8)])",
    ],
)
def test_model_of_a_library_needs_its_input_where_it_is(call: str) -> None:
    assert findings(MODELS + f"print({call})\n")


@pytest.mark.parametrize(
    "call",
    [
        "torchvision.models.resnet18().cuda()(torch.rand(1, 3, 8, 8).cuda())",
        "BertModel.from_pretrained('name', device_map='auto')(torch.tensor([[1, 2]]).cuda())",
        "BertModel.from_pretrained('name', **settings)(torch.tensor([[1, 2]]).cuda())",
        "BertModel.from_pretrained('name').cuda()(**tokenizer('text', return_tensors='pt').to('cuda'))",
        "BertModel.from_pretrained('name').cuda()(**tokenizer('text', return_tensors='np'))",
        "torchvision.models.resnet18().cuda().load_state_dict(torch.load('a.pt', map_location='cpu'))",
    ],
)
def test_model_of_a_library_with_its_input_is_silent(call: str) -> None:
    assert not findings(MODELS + f"from settings import settings\n\nprint({call})\n")
