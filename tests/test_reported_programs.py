"""Small programs made of what people reported: what is found of the fault, and nothing of what is right."""

from __future__ import annotations

from pathlib import Path

import pytest

from devlint.engine import Linter
from devlint.source import read_source
from devlint_rules import RULES

#: Findings about other machines, or about time, are none of the reports.
ASIDE = {"DEV201", "DEV202", "DEV501"}

PROGRAMS = {
    "a module that a function of the file makes": (
        """\
import torch
from torch import nn
def load_model(path):
    model = nn.Sequential(nn.Linear(3, 2))
    model.load_state_dict(torch.load(path, map_location="cpu"))
    model.eval()
    return model
def inference(model, image, device):
    x = torch.from_numpy(image).float().to(device)
    return model(x)
def main(args):
    model = load_model(args.path)
    print(inference(model, args.image, args.device))
""",
        {"DEV103"},
    ),
    "a module of a table": (
        """\
import torch
import models
def load_model(path):
    model = models.__dict__["hg"](2)
    model.load_state_dict(torch.load(path, map_location="cpu"))
    model.eval()
    return model
def inference(model, image, device):
    x = torch.from_numpy(image).float().to(device)
    return model(x)
def main(args):
    model = load_model(args.path)
    print(inference(model, args.image, args.device))
""",
        {"DEV103"},
    ),
    "a module of another package": (
        """\
import torch
from somewhere import hg
def load_model(path):
    model = hg(2)
    model.load_state_dict(torch.load(path, map_location="cpu"))
    model.eval()
    return model
def inference(model, image, device):
    x = torch.from_numpy(image).float().to(device)
    return model(x)
def main(args):
    model = load_model(args.path)
    print(inference(model, args.image, args.device))
""",
        {"DEV103"},
    ),
    "a state that a function loads before the move": (
        """\
import torch
from torch import nn, optim
def load_epoch(path, model, optm):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optm.load_state_dict(checkpoint["optim"])
def main(device):
    model = nn.Linear(3, 2)
    optm = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    load_epoch("a.pt", model, optm)
    model.to(device)
    optm.step()
main(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
""",
        {"DEV111"},
    ),
    "a state that is loaded before the move": (
        """\
import torch
from torch import nn, optim
def main(device):
    model = nn.Linear(3, 2)
    optm = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    checkpoint = torch.load("a.pt", map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optm.load_state_dict(checkpoint["optim"])
    model.to(device)
    optm.step()
main(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
""",
        {"DEV111"},
    ),
    "a loader under a default device": (
        """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.set_default_device("cuda")
loader = DataLoader(TensorDataset(torch.rand(8, 3)), shuffle=True)
for (x,) in loader:
    print(x)
""",
        {"DEV110"},
    ),
    "a loader under a default device of one path": (
        """\
import torch
from torch.utils.data import DataLoader, TensorDataset
if torch.cuda.is_available():
    torch.set_default_device("cuda")
loader = DataLoader(TensorDataset(torch.rand(8, 3)), shuffle=True)
for (x,) in loader:
    print(x)
""",
        {"DEV110"},
    ),
    "a loader under a default device of a function": (
        """\
import torch
from torch.utils.data import DataLoader, TensorDataset
def pick():
    if torch.cuda.is_available():
        torch.set_default_device("cuda")
        return torch.device("cuda")
    return torch.device("cpu")
device = pick()
loader = DataLoader(TensorDataset(torch.rand(8, 3)), shuffle=True)
for (x,) in loader:
    print(x)
""",
        {"DEV110"},
    ),
    "an input under a default device of one path": (
        """\
import torch
from torch import nn
if torch.cuda.is_available():
    torch.set_default_device("cuda")
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(3, 2).to(device)
x = torch.rand(4, 3)
print(model(x))
""",
        set(),
    ),
    "a loader under a chosen default device": (
        """\
import torch
from torch import nn
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.set_default_device(device)
model = nn.Linear(3, 2).to(device)
x = torch.rand(4, 3)
print(model(x))
from torch.utils.data import DataLoader, TensorDataset
for (b,) in DataLoader(TensorDataset(torch.rand(8, 3)), shuffle=True):
    print(model(b))
""",
        {"DEV110"},
    ),
    "a loader under a default type": (
        """\
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
if torch.cuda.is_available():
    torch.set_default_tensor_type(torch.cuda.FloatTensor)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(3, 2).to(device)
for (b,) in DataLoader(TensorDataset(torch.rand(8, 3)), shuffle=True):
    print(model(b))
""",
        {"DEV110", "DEV204"},
    ),
    "an input under a default device of a function": (
        """\
import torch
from torch import nn
def pick():
    if torch.cuda.is_available():
        torch.set_default_device("cuda")
        return torch.device("cuda")
    return torch.device("cpu")
device = pick()
model = nn.Linear(3, 2).to(device)
x = torch.rand(4, 3)
print(model(x))
""",
        set(),
    ),
    "an input under a default device of a call": (
        """\
import torch
from torch import nn
def pick():
    torch.set_default_device("cuda")
pick()
model = nn.Linear(3, 2).to("cuda")
x = torch.rand(4, 3)
print(model(x))
""",
        set(),
    ),
    "a wrapper that is moved to the second card": (
        """\
import torch
from torch import nn
device = torch.device("cuda:1")
model = nn.DataParallel(nn.Linear(3, 2))
model = model.to(device)
model(torch.rand(2, 3).to(device))
""",
        {"DEV601"},
    ),
    "a wrapper on a chosen second card": (
        """\
import torch
from torch import nn
device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")
model = nn.DataParallel(nn.Linear(3, 2).to(device))
model(torch.rand(2, 3).to(device))
""",
        {"DEV601"},
    ),
    "a wrapper whose second card a later statement chooses": (
        """\
import torch
from torch import nn
device = torch.device("cuda:1") if torch.cuda.is_available() else torch.device("cpu")
model = nn.DataParallel(nn.Linear(3, 2))
print("wrapped")
model.to(device)
model(torch.rand(2, 3).to(device))
""",
        {"DEV601"},
    ),
    "a wrapper that moves at once": (
        """\
import torch
from torch import nn
device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")
model = nn.DataParallel(nn.Linear(3, 2)).to(device)
model(torch.rand(2, 3).to(device))
""",
        {"DEV601"},
    ),
    "a wrapper that is moved to its first card": (
        """\
import torch
from torch import nn
device = torch.device("cuda:1" if torch.cuda.is_available() else "cpu")
model = nn.DataParallel(nn.Linear(3, 2), device_ids=[1])
model.to(device)
model(torch.rand(2, 3).to(device))
""",
        set(),
    ),
    "a wrapper on the chosen first card": (
        """\
import torch
from torch import nn
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = nn.DataParallel(nn.Linear(3, 2)).to(device)
model(torch.rand(2, 3).to(device))
""",
        set(),
    ),
    "a wrapper without cards": (
        """\
import torch
from torch import nn
model = nn.Linear(3, 2).to("cuda:1")
model = nn.DataParallel(model)
model(torch.rand(2, 3).to("cuda:1"))
""",
        {"DEV601"},
    ),
    "a wrapper of other cards": (
        """\
import torch
from torch import nn
model = nn.Linear(3, 2).to("cuda:1")
model = nn.DataParallel(model, device_ids=[0, 1])
model(torch.rand(2, 3).to("cuda:1"))
""",
        {"DEV601"},
    ),
    "a training loop whose model stays": (
        """\
import torch
from torch import nn
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.rand(8, 3)
y = torch.randint(0, 2, (8,))
model = nn.Linear(3, 2)
opt = torch.optim.Adam(model.parameters())
f = nn.CrossEntropyLoss()
y = y.to(device)
for i in range(3):
    loss = f(model(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
""",
        {"DEV103"},
    ),
    "a collate function under pinning": (
        """\
import torch
from torch.utils.data import DataLoader
def collate(samples):
    x = torch.stack(samples)
    return x.cuda()
data = [torch.rand(3) for _ in range(8)]
loader = DataLoader(data, batch_size=2, collate_fn=collate, pin_memory=True)
for x in loader:
    print(x)
""",
        {"DEV509"},
    ),
    "a collate function of workers": (
        """\
import torch
from torch.utils.data import DataLoader
def collate(samples):
    x = torch.stack(samples)
    return x.cuda()
data = [torch.rand(3) for _ in range(8)]
loader = DataLoader(data, batch_size=2, collate_fn=collate, num_workers=2)
for x in loader:
    print(x)
""",
        {"DEV605"},
    ),
}
#: What is not found yet, or found though it is right, with the fact that is missing.
_OF_WHAT_IT_IS = "no fact says that a value is a module because `load_state_dict` and `eval` are called on it"
_ON_ONE_PATH = "where two paths meet, a default device that only one of them sets is forgotten, not kept as possible"
_OF_ANOTHER_FILE = (
    "no event tells whose parameters an optimizer has that a function of another file makes, or a method collects"
)
OPEN = {
    "a module of a table": _OF_WHAT_IT_IS,
    "a module of another package": _OF_WHAT_IT_IS,
    "a loader under a default device of one path": _ON_ONE_PATH,
    "a loader under a default device of a function": _ON_ONE_PATH,
    "a loader under a default type": _ON_ONE_PATH,
    "an input under a default device of a function": "a summary keeps the default device of a function's last path alone",
}
OPEN_ACROSS_FILES = {
    "an optimizer that another file makes": _OF_ANOTHER_FILE,
    "parameters that a method gives": _OF_ANOTHER_FILE,
}
HELPERS = {
    "util.py": """\
import torch
def load_epoch(path, model, optm):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optm.load_state_dict(checkpoint["optim"])
def create_optimizer(params, lr):
    return torch.optim.SGD(params, lr=lr, momentum=0.9)
""",
    "funcs.py": """\
import torch
def collate(samples):
    x = torch.stack(samples)
    return x.cuda()
""",
}
ACROSS_FILES = {
    "a state that a function of another file loads": (
        """\
import torch
from torch import nn, optim
import util
def main(device):
    model = nn.Linear(3, 2)
    optm = optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    util.load_epoch("a.pt", model, optm)
    model.to(device)
    optm.step()
main(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
""",
        "DEV111",
    ),
    "a state that an imported function loads by name": (
        """\
import torch
from torch import nn
from util import load_epoch as resume
model = nn.Linear(3, 2)
optimizer = torch.optim.Adam(model.parameters())
resume("a.pt", model, optm=optimizer)
model.cuda()
optimizer.step()
""",
        "DEV111",
    ),
    "an optimizer that another file makes": (
        """\
import torch
from torch import nn, optim
import util
def main(device):
    model = nn.Linear(3, 2)
    optm = util.create_optimizer(model.parameters(), 0.1)
    util.load_epoch("a.pt", model, optm)
    model.to(device)
    optm.step()
main(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
""",
        "DEV111",
    ),
    "parameters that a method gives": (
        """\
import torch
from torch import nn, optim
import util
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(3, 2)
    def set_train_params(self, lr):
        return [{'params': self.f.parameters(), 'lr': lr}]
def make(name):
    return M()
def main(device):
    model = M()
    params = model.set_train_params(0.1)
    optm = optim.SGD(params, lr=0.1, momentum=0.9)
    util.load_epoch("a.pt", model, optm)
    model.to(device)
    optm.step()
main(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
""",
        "DEV111",
    ),
    "a collate function of another file, pinned": (
        """\
import torch
from torch.utils.data import DataLoader
from funcs import collate
data = [torch.rand(3) for _ in range(8)]
loader = DataLoader(data, batch_size=2, collate_fn=collate, pin_memory=True)
for x in loader:
    print(x)
""",
        "DEV509",
    ),
    "a collate function of a star import, pinned": (
        """\
import torch
from torch.utils.data import DataLoader
from funcs import *
data = [torch.rand(3) for _ in range(8)]
loader = DataLoader(data, batch_size=2, collate_fn=collate, pin_memory=True)
for x in loader:
    print(x)
""",
        "DEV509",
    ),
    "a collate function of a module, in workers": (
        """\
import torch
import funcs as helpers
from torch.utils.data import DataLoader
data = [torch.rand(3) for _ in range(8)]
for x in DataLoader(data, batch_size=2, num_workers=2, collate_fn=helpers.collate):
    print(x)
""",
        "DEV605",
    ),
    "a collate function of another file, in workers": (
        """\
import torch
from torch.utils.data import DataLoader
from funcs import collate
data = [torch.rand(3) for _ in range(8)]
loader = DataLoader(data, batch_size=2, collate_fn=collate, num_workers=2)
for x in loader:
    print(x)
""",
        "DEV605",
    ),
}

SCRIPT = """\
import torch
from torch import nn
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
def main(loader):
    model = nn.Linear(3, 2).to(device)
    for x, y in loader:
        out = model(x)
        print(out.numpy())
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.l = nn.LSTM(3, 4)
    def forward(self, x):
        h = torch.zeros(1, x.size(1), 4)
        c = torch.zeros(1, x.size(1), 4)
        return self.l(x, (h, c))
"""


def found(path: Path) -> set[str]:
    result = Linter(tuple(rule() for rule in RULES)).check(read_source(path))
    assert not result.crashes
    return {each.code for each in result.diagnostics} - ASIDE


def marked(names: list[str], reasons: dict[str, str]) -> list[object]:
    return [
        pytest.param(name, marks=[pytest.mark.xfail(strict=True, reason=reasons[name])] if name in reasons else [])
        for name in names
    ]


@pytest.mark.parametrize("name", marked(list(PROGRAMS), OPEN))
def test_fault_of_a_report(name: str, tmp_path: Path) -> None:
    code, expected = PROGRAMS[name]
    path = tmp_path / "train.py"
    path.write_text(code, encoding="utf-8")
    assert found(path) == expected


@pytest.mark.parametrize("name", marked(list(ACROSS_FILES), OPEN_ACROSS_FILES))
def test_fault_whose_cause_is_in_another_file(name: str, tmp_path: Path) -> None:
    code, expected = ACROSS_FILES[name]
    for helper, text in HELPERS.items():
        (tmp_path / helper).write_text(text, encoding="utf-8")
    path = tmp_path / "train.py"
    path.write_text(code, encoding="utf-8")
    assert expected in found(path)


#: A `collate_fn` of another file that is right: the loader starts no worker, or what it calls moves nothing for sure.
RIGHT_LOADERS = {
    "in the main process": "from funcs import collate\nloader = DataLoader(data, collate_fn=collate, num_workers=0)\n",
    "without a move": "from funcs import plain\nloader = DataLoader(data, collate_fn=plain, num_workers=2, pin_memory=True)\n",
    "to a device that it is given": "import funcs\nloader = DataLoader(data, collate_fn=funcs.given, num_workers=2)\n",
}


@pytest.mark.parametrize("name", RIGHT_LOADERS)
def test_a_right_loader_with_a_function_of_another_file(name: str, tmp_path: Path) -> None:
    functions = (
        "def plain(rows):\n    return torch.stack(rows)\ndef given(rows, device=None):\n    return rows[0].to(device)\n"
    )
    (tmp_path / "funcs.py").write_text(HELPERS["funcs.py"] + functions, encoding="utf-8")
    path = tmp_path / "train.py"
    data = "import torch\nfrom torch.utils.data import DataLoader\ndata = [torch.rand(3)]\n"
    path.write_text(data + RIGHT_LOADERS[name] + "for x in loader:\n    print(x)\n", encoding="utf-8")
    assert found(path) == set()


@pytest.mark.parametrize("name", ["demo.py", "test_demo.py", "demo_test.py"])
def test_name_of_a_script_proves_no_test(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(SCRIPT, encoding="utf-8")
    assert found(path) == {"DEV102", "DEV103", "DEV109"}


@pytest.mark.parametrize("call", ["test(main)", "if __name__ == '__main__':\n    test(main)", "print(test(main))"])
def test_a_script_that_calls_its_own_function_is_no_test(call: str, tmp_path: Path) -> None:
    path = tmp_path / "test_demo.py"
    path.write_text(f"{SCRIPT}\n\ndef test(model):\n    return model\n\n\n{call}\n", encoding="utf-8")
    assert found(path) == {"DEV102", "DEV103", "DEV109"}


@pytest.mark.parametrize(
    "test",
    [
        "def test_net():\n    assert Net()",
        "async def test_net():\n    assert Net()",
        "import unittest\nclass Nets(unittest.TestCase):\n    def test_net(self):\n        assert Net()",
    ],
)
def test_what_a_runner_collects_is_a_test(test: str, tmp_path: Path) -> None:
    path = tmp_path / "test_demo.py"
    path.write_text(f"{SCRIPT}\n\n{test}\n", encoding="utf-8")
    assert found(path) == {"DEV109"}
